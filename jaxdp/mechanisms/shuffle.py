"""The shuffle model: reports of a batch of users come out in a random order, which hides who sent which.

Shuffling adds no noise. Users randomize their reports first, by randomized response at `local_epsilon`; among many
others one report is then harder to tell apart, and the batch is (epsilon, delta)-DP at a smaller epsilon, which
`shuffle_epsilon` and the other functions of `_shuffle_accounting` compute.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, label_array, positive_scalar
from jaxdp.mechanisms._shuffle_accounting import (
    shuffle_delta,
    shuffle_epsilon,
    shuffle_epsilon_bound,
    shuffle_guarantee,
    shuffle_local_epsilon,
    shuffle_local_epsilon_bound,
    shuffle_worst_ones,
)
from jaxdp.mechanisms.channel.label import noisy_ones
from jaxdp.validation import check_count

__all__ = [
    "shuffle_delta",
    "shuffle_epsilon",
    "shuffle_epsilon_bound",
    "shuffle_guarantee",
    "shuffle_local_epsilon",
    "shuffle_local_epsilon_bound",
    "shuffle_worst_ones",
    "shuffled",
    "shuffled_ones",
]


def shuffled(key: jax.Array, reports: Any) -> Any:
    """Puts the reports of a batch into a random order, all orders with equal probabilities.

    Args:
        key: a PRNG key, which the server must not know.
        reports: pytree of arrays [batch, ...]; row i of each leaf is the report of user i. Rows stay together.

    Returns:
        The same pytree, its rows in the new order.

    Raises:
        ValueError: if there is no array, or the arrays do not have equal leading axes.

    Privacy:
        - Adds no noise: reports that are not randomized are released.
        - Those of randomized response are covered by `shuffle_delta`, those of any other local randomizer by
          `shuffle_epsilon_bound`.

    Source:
        Bittau et al. (2017), the shuffler of the encode, shuffle, analyze architecture.

    Deviations:
        None.

    Examples:
        >>> kept = shuffled(jax.random.key(0), {"report": jnp.arange(4), "arm": 10 * jnp.arange(4)})
        >>> sorted(kept["report"].tolist()), (kept["arm"] == 10 * kept["report"]).all().item()
        ([0, 1, 2, 3], True)
    """
    leaves = jax.tree.leaves(reports)
    lengths = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(lengths) != 1 or () in lengths:
        shapes = [jnp.shape(leaf) for leaf in leaves]
        raise ValueError(f"reports must be arrays with one leading axis of users, got shapes {shapes}")
    order = jax.random.permutation(key, lengths.pop()[0])
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[order], reports)


def shuffled_ones(key: jax.Array, ones: ArrayLike, local_epsilon: Scalar, *, batch: int) -> jax.Array:
    """How many of a batch's randomized responses are 1: all that its shuffled binary reports tell.

    The law is that of `randomized_response(key, bits, local_epsilon).sum()` for `batch` bits of which `ones` are 1, in
    a time that does not depend on the batch.

    Args:
        key: a PRNG key.
        ones: [...] integers in [0, batch], how many users hold a 1. Outside the result is no count.
        local_epsilon: [] float > 0, may be traced: the budget of each report before it is shuffled; infinity reports
            the bits.
        batch: users who are shuffled together, >= 1, static.

    Returns:
        [...] int32, or int64 where ones are, in [0, batch].

    Raises:
        ValueError: if batch is not a whole number >= 1, ones are not integers, or local_epsilon is not a scalar, or is
            a Python or NumPy number that is not > 0.

    Privacy:
        - Claim: (epsilon, delta)-DP in the shuffle model with delta = shuffle_delta(epsilon, local_epsilon, batch).
        - Unit: one bit; adjacency: replace one.

    Source:
        Warner (1965); Cheu et al. (2019), the protocol for sums of bits.

    Deviations:
        The probabilities of counts are those of `jaxdp.random.binomial`, in float32 with relative errors of about 1e-5.

    Examples:
        >>> int(shuffled_ones(jax.random.key(0), 30, float("inf"), batch=100))  # no privacy, no noise
        30
    """
    batch = check_count("batch", batch)
    ones = label_array("ones", ones, 2)
    ones = ones if ones.dtype == jnp.int64 else ones.astype(jnp.int32)
    epsilon = positive_scalar("local_epsilon", local_epsilon)
    epsilon = epsilon.astype(jnp.float64 if epsilon.dtype == jnp.float64 else jnp.float32)
    return noisy_ones(key, epsilon, ones, jnp.full_like(ones, batch))
