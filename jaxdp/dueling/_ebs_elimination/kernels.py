"""Steps of elimination laid out for XLA on CPU: loops over lanes, with loops over arms, lines and levels unrolled.

Tests check that the results equal the results of the plain steps, `arms.opponent` and `counters.noise_line`, bit for
bit.
"""

import jax
import jax.numpy as jnp

from jaxdp.dueling._ebs_elimination.arms import Params
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.random import uniform_from_key


def opponents(keys: jax.Array, active: jax.Array) -> jax.Array:
    """Draws, for each key, one of the arms marked in `active` uniformly at random. The result is [...] int32."""
    size = jnp.sum(active, dtype=jnp.int32)
    draws = jnp.vectorize(uniform_from_key, signature="()->()")(keys)
    ranks = (draws * size.astype(draws.dtype)).astype(jnp.int32)  # less than `size`, even in float32
    arm, up_to = jnp.zeros_like(ranks), jnp.zeros((), jnp.int32)
    for is_active in active:  # unrolled, because a gather and a cumulative sum cost more
        up_to = up_to + is_active.astype(jnp.int32)
        arm = arm + (up_to <= ranks).astype(jnp.int32)
    return arm


def noise_line(trees: Trees, params: Params, digits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns a line that bounds each counter's error: (intercept, slope per leaf), each [num_arms] float.

    The line holds until the counter's next inner node ends. The digits are [levels, num_arms].
    """
    float_ = params.intercepts.dtype
    counts, half = digits.astype(float_), jnp.asarray(trees.arity // 2, float_)
    lowest = chosen = steepness = jnp.full(counts.shape[1:], jnp.inf, float_)
    for line in range(len(params.intercepts)):  # unrolled: XLA vectorises elementwise operations, but not reductions
        intercept, slope = params.intercepts[line], params.slopes[0, line]
        for level in range(1, trees.levels):
            intercept = intercept + counts[level] * params.slopes[level, line]  # exact: see `on_lattice`
        height = intercept + half * slope
        better = height < lowest
        chosen, steepness = jnp.where(better, intercept, chosen), jnp.where(better, slope, steepness)
        lowest = jnp.minimum(lowest, height)
    return chosen, steepness
