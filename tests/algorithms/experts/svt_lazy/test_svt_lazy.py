"""Tests of `svt_lazy` alone."""

import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import experts
from tests.algorithms.experts.selections import KEY


def lazy_losses(horizon, num_experts):
    """Makes losses: expert 7 never has one; the others begin to lose one after the other."""
    losses = np.zeros((horizon, num_experts))
    for expert in range(num_experts):
        losses[horizon // (2 * num_experts) * expert :, expert] = expert != 7
    return losses


@pytest.mark.parametrize("epsilon", [20.0, math.inf])
def test_lazy_selections_are_below_their_bound(epsilon):
    """Checks, with probability 1 - 2 failure_prob, a loss of at most K (1 / rate + 2 a + 2) and fewer than K
    selections.
    """
    num_experts, horizon, lanes = 8, 20_000, 64
    learner = experts.svt_lazy(num_experts=num_experts, horizon=horizon)
    read = {"switches": lambda snapshot: snapshot.public.switches}
    world = experts.loss_sequence(lazy_losses(horizon, num_experts))
    run = jaxdp.simulator(learner, world, horizon, checkpoints=[horizon], record=read)
    params = run.params(epsilon=epsilon)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), lanes), params)
    mine = learner.params(epsilon=epsilon)
    most, rate = int(mine.max_switches), float(mine.learning_rate)
    accuracy = float(mine.threshold) - 1 / rate
    bound = most * (1 / rate + 2 * accuracy + 2)
    assert np.asarray(found["loss"]).max() < bound < 0.9 * horizon
    assert 1 <= np.asarray(found["switches"]).max() < most
    if epsilon < math.inf:
        assert rate == pytest.approx(epsilon / (4 * most), rel=1e-6)


@pytest.mark.parametrize("values", [{"max_switches": 2**33}, {"best_loss": 2.0**40}])
def test_more_switches_than_32_bits_count_are_refused(values):
    with jax.enable_x64(True):
        learner = experts.svt_lazy(num_experts=2, horizon=2**40)
        with pytest.raises(ValueError, match="max_switches must be <= 2147483647, got "):
            learner.params(epsilon=1.0, **values)
