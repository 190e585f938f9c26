"""Tests of `svt_restarts` alone."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import experts
from jaxdp.core import State
from tests.algorithms.experts.selections import KEY, look
from tests.algorithms.experts.worlds import shifting, stationary

SIZES: dict[str, Any] = {"num_experts": 3, "horizon": 40}


def detection(epsilon, lanes, windows="dyadic", check_every=1, horizon=100_000, shift=True, **values):
    """Restarts before and after the shift in the middle, and rounds from it to the first restart thereafter."""
    middle = horizon // 2
    first = [0.0] + [0.5] * 9
    world = shifting(first, [0.5, 0.0] + [0.5] * 8, middle) if shift else stationary(first)
    looks = [middle, *range(middle + 50, min(middle + 6000, horizon), 50), horizon] if shift else [horizon]
    learner = experts.svt_restarts(num_experts=10, horizon=horizon, windows=windows, check_every=check_every)
    read = {"restarts": lambda snapshot: snapshot.public.restarts}
    run = jaxdp.simulator(learner, world, horizon, checkpoints=looks, record=read)
    params = run.params(epsilon=epsilon, failure_prob=0.01, **values)
    keys = jax.random.split(KEY(), lanes)
    restarts = np.asarray(jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, params)["restarts"])
    return restarts, np.asarray(looks)[np.argmax(restarts > restarts[:, :1], axis=1)] - middle


def check_no_false_restarts(restarts):
    assert np.mean(restarts[:, -1] > 0) <= 0.01


@pytest.mark.optimised
def test_a_shift_is_found():
    """Plays gap 0.5, ten experts, 10^5 rounds; the full form is slow."""
    for epsilon, most in ((1.0, 5000), (4.0, 2000)):
        restarts, delays = detection(epsilon, lanes=8, check_every=16)
        assert np.median(delays) < most
        check_no_false_restarts(restarts[:, :1])
        assert (restarts[:, -1] == 1).all()


@pytest.mark.optimised
@pytest.mark.parametrize("check_every", [1, 16])
def test_no_false_restarts(check_every):
    """Plays losses of a fixed distribution; a margin that ignores the questions' noise is planted."""
    restarts, _ = detection(1.0, lanes=50, check_every=check_every, horizon=5000, shift=False)
    check_no_false_restarts(restarts)
    restarts, _ = detection(1.0, lanes=50, check_every=check_every, horizon=5000, shift=False, margin=0.0)
    with pytest.raises(AssertionError):
        check_no_false_restarts(restarts)


@pytest.mark.optimised
@pytest.mark.parametrize(("windows", "check_every"), [("dyadic", 1), ("dyadic", 16)])
def test_no_false_restarts_in_many_long_runs(windows, check_every):
    restarts, _ = detection(1.0, lanes=1000, windows=windows, check_every=check_every, shift=False)
    check_no_false_restarts(restarts)


@pytest.mark.optimised
def test_a_shift_is_found_by_all_windows():
    for epsilon, most in ((1.0, 5000), (4.0, 2000)):
        for windows, check_every in (("all", 16), ("dyadic", 1)):
            restarts, delays = detection(epsilon, lanes=64, windows=windows, check_every=check_every)
            assert np.median(delays) < most
            check_no_false_restarts(restarts[:, :1])


def test_restarts_without_privacy_need_no_margin():
    params = experts.svt_restarts(num_experts=3, horizon=100).params(epsilon=math.inf)
    assert float(params.margin) == 1


def reusing(right):
    """Starts the new epoch with the round of the answer "above", as in the paper."""

    def init(key, params):
        state = right.init(key, params)
        return State((state.private, jnp.zeros(3, state.private.regrets.whole.dtype)), state.public)

    def update(key, params, state, report):
        private, last = state.private
        public, (action, losses) = state.public, report
        key_again, key = jax.random.split(key)

        def again():
            earlier = public._replace(round=public.round - 1)
            after = right.update(key_again, params, State(private, earlier), (action, last))
            # Whether the same round ends this epoch, too, is left out.
            return after._replace(public=after.public._replace(restarts=public.restarts))

        reused = (public.selection.round == 0) & (public.restarts > 0)
        state = jax.lax.cond(reused, again, lambda: State(private, public))
        state = right.update(key, params, state, report)
        return State((state.private, losses), state.public)

    return right._replace(init=init, update=update)


def test_restarts_that_reuse_a_round():
    right = experts.svt_restarts(**SIZES)
    values = {"epsilon": 1.0, "margin": -5.0}
    assert look(right, values, rounds=4, num_neighbours=32).verdict == "consistent"
    found = look(reusing(right), values, rounds=6)
    assert found.verdict == "violated"
    assert found.spent > 1.2
