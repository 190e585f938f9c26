"""Tests of `thompson` alone."""

import math

import jax
import jax.numpy as jnp
import pytest

from jaxdp.bandits import (
    thompson,
)
from tests.algorithms.bandits.local_learners import KEY

FLOAT = jnp.result_type(float)


@pytest.mark.parametrize(("posterior", "shapes"), [("bits", (31.0, 11.0)), ("debiased", None)])
def test_the_two_posteriors(posterior, shapes):
    """Checks 40 reports of an arm with 30 ones: Beta(31, 11), or from 40 / c^2 rewards of the debiased share."""
    learner = thompson(num_arms=2, posterior=posterior)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=2.0))
    state, update = learner.init(KEY(), params), jax.jit(learner.update)
    for index in range(40):
        said = learner.privatize(jax.random.key(index), params, (), None, jnp.int32(0), jnp.int32(0))[1]
        top, bottom = (0.5 + sign * 0.5 / math.tanh(1.0) for sign in (1, -1))
        assert float(said) == pytest.approx(top, rel=1e-5) or float(said) == pytest.approx(bottom, rel=1e-5)
        state = update(KEY(), params, state, (jnp.int32(0), jnp.asarray(top if index < 30 else bottom, FLOAT)))
    if shapes is None:
        worth, share = 40 * math.tanh(1.0) ** 2, min(0.5 + 0.25 / math.tanh(1.0), 1)
        shapes = 1 + worth * share, 1 + worth * (1 - share)
    # The other arm's draw is uniform, so this arm is played with the mean of its distribution.
    keys = jax.random.split(KEY(), 20_000)
    arms = jax.jit(jax.vmap(lambda key: learner.act(key, params, state.public, None)))(keys)
    mean = shapes[0] / sum(shapes)
    assert abs(float(jnp.mean((arms == 0).astype(FLOAT))) - mean) < 5 * math.sqrt(mean * (1 - mean) / 20_000)
