"""Helpers of several test files of dueling."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling._pair_blocks import Released

FLOAT = jnp.result_type(float)
LANES = 4000


def states(num_arms):
    """Makes states of all kinds: few duels and many, of little weight and of much, and pairs without any
    information.
    """
    random = np.random.default_rng(num_arms)
    shape, above = (LANES, num_arms, num_arms), np.triu(np.ones((num_arms, num_arms)), 1)
    scale = 10.0 ** random.integers(0, 7, (LANES, 1, 1))
    weight = random.integers(0, 4, shape) * scale * above
    strength = random.integers(-1, 2, shape) + random.choice([0.0, 0.3], (LANES, 1, 1)) * random.normal(size=shape)
    lead = strength * weight / 3
    noise = np.where(weight > 0, random.choice([0.0, 1.0, 30.0], (LANES, 1, 1)), 0)
    released = Released(*(jnp.asarray(leaf) for leaf in (weight.astype(int), lead, weight, noise)))
    given = {
        "uniforms": random.random((LANES, 2)),
        "released": released,
        "hypothesis": random.integers(-1, num_arms, LANES, np.int32),
        "spread": 0.51 * np.log1p(random.exponential(size=LANES) * scale[:, 0, 0]),
    }
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, FLOAT if leaf.dtype == float else leaf.dtype), given)
