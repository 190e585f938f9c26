"""Tests of `versatile_sparring` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import matrix_duels, versatile_sparring
from jaxdp.numerics import compensated
from jaxdp.preferences import lower_bound_matrix
from tests.algorithms.dueling.local_learners import KEY, start

INTEGER = jnp.result_type(int)


def players(public, left, right):
    """Makes the state with these weights of the two players."""
    return public._replace(weights=jnp.stack([jnp.asarray(left), jnp.asarray(right)], 1))


def losses_of(public):
    """Returns estimated losses, [2, num_arms]."""
    return np.asarray(public.losses.total).T


def test_sparring_estimates():
    """Checks importance weights (the loss of each player's arm over its probability), then Tsallis weights of the
    sums.
    """
    learner = versatile_sparring(num_arms=3)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    public = players(start(learner), [0.5, 0.25, 0.25], [0.2, 0.2, 0.6])
    for said, expected in ((0, [[0, 4, 0], [0, 0, 0]]), (1, [[0, 0, 0], [0, 0, 1 / 0.6]])):
        report = jnp.array([1, 2], jnp.int32), jnp.int32(said)
        after = learner.update(KEY(), params, jaxdp.State((), public), report).public
        np.testing.assert_allclose(losses_of(after), expected, rtol=1e-6)
        np.testing.assert_allclose(after.weights.sum(0), 1, rtol=1e-6)
        assert after.round == 1


def test_reduced_variance():
    learner = versatile_sparring(num_arms=3, losses="reduced_variance")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    # In round 64 the rate is 1/2: weights from 1/4 on have the base 1/2.
    public = players(start(learner), [0.5, 0.25, 0.25], [0.2, 0.2, 0.6])._replace(round=jnp.asarray(63, INTEGER))
    report = jnp.array([1, 1], jnp.int32), jnp.int32(0)
    after = learner.update(KEY(), params, jaxdp.State((), public), report).public
    np.testing.assert_allclose(losses_of(after), [[0.5, 0.5 / 0.25 + 0.5, 0.5], [0, 0, 0.5]], rtol=1e-6)


def test_gaussian_reports_become_losses():
    learner = versatile_sparring(num_arms=2, report="gaussian", horizon=100)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, delta=1e-3, failure_prob=0.1))
    stddev = jaxdp.mechanisms.analytic_gaussian(1.0, 1e-3)
    shift = stddev * math.sqrt(2 * math.log(2 * 100 / 0.1))
    np.testing.assert_allclose([params.noise_stddev, params.shift], [stddev, shift], rtol=1e-6)
    public = learner.init(KEY(), params).public
    for said, loss in ((-1e6, 0.0), (-shift, 0.0), (0.5, 0.5), (1 + shift, 1.0), (1e6, 1.0)):
        report = jnp.array([0, 1], jnp.int32), jnp.asarray(said)
        after = learner.update(KEY(), params, jaxdp.State((), public), report).public
        np.testing.assert_allclose(losses_of(after), [[2 * (1 - loss), 0], [0, 2 * loss]], atol=1e-5)


def test_large_losses_do_not_stall():
    """Starts at estimated losses of 2^24: another 1 would be lost in float32."""
    learner = versatile_sparring(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    total = jnp.full((2, 2), 2.0**24)
    heavy = compensated.Sum(total, jnp.zeros_like(total))
    public = players(start(learner)._replace(losses=heavy), jnp.ones(2), jnp.ones(2))
    report = jnp.array([0, 0], jnp.int32), jnp.int32(0)

    @jax.jit
    def play(public):
        def again(_, public):
            public = learner.update(KEY(), params, jaxdp.State((), public), report).public
            return players(public, jnp.ones(2), jnp.ones(2))

        return jax.lax.fori_loop(0, 101, again, public).losses

    found = play(public)
    assert float((found.total - total)[0, 0] - found.excess[0, 0]) == 101


def test_many_arms_are_played_as_few(monkeypatch):
    """Plays 5 arms by the form for more than 16, whose arrays are not written out: the plays are the same."""

    def plays():
        run = jaxdp.simulator(
            versatile_sparring(num_arms=5), matrix_duels(lower_bound_matrix(5)), 60, checkpoints=[10, 30, 60]
        )
        return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 20), run.params(epsilon=2.0))["pseudo_regret"]

    few = plays()
    for module in ("kernels", "tsallis"):
        monkeypatch.setattr(f"jaxdp.numerics.{module}.MAX_UNROLLED", 4)
    np.testing.assert_allclose(plays(), few, rtol=1e-6)


def test_randomized_response_takes_no_delta():
    with pytest.raises(TypeError):
        versatile_sparring(num_arms=2).params(epsilon=1.0, delta=0.1)
