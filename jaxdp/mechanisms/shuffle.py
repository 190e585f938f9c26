"""The shuffle model: a batch of reports is released in random order, which hides the sender of each report.

Shuffling adds no noise. Users first randomize their reports by randomized response at `local_epsilon`. One report is
then hidden among many others, and the batch is (epsilon, delta)-DP at a smaller epsilon, computed by `shuffle_epsilon`
and the other functions of `_shuffle_accounting`.
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
from jaxdp.mechanisms.local_randomizers.label import noisy_ones
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
    """Puts the reports of a batch into a uniformly random order.

    Args:
        key: a PRNG key, which the server must not know.
        reports: pytree of arrays [batch, ...]; row i of each leaf is the report of user i. Rows stay together.

    Returns:
        The same pytree with its rows in the new order.

    Raises:
        ValueError: if the pytree has no array, or its arrays do not have equal leading axes.

    Privacy:
        - Adds no noise: if reports are not randomized, the data themselves are released.
        - `shuffle_delta` covers reports of randomized response. `shuffle_epsilon_bound` covers reports of any local
          randomizer.

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
    r"""Draws the number of ones in a shuffled batch of binary randomized responses; the batch reveals nothing else.

    The result has the distribution of `randomized_response(key, bits, local_epsilon).sum()` for `batch` bits with
    `ones` ones. The time does not depend on the batch.

    Args:
        key: a PRNG key.
        ones: [...] integers in [0, batch], number of users who have a 1. For other integers the result is meaningless.
        local_epsilon: [] float > 0, may be traced: the budget of each report before it is shuffled. At infinity, and
            for a traced NaN, reports are the bits themselves, without privacy.
        batch: number of users shuffled together, >= 1, static.

    Returns:
        [...] int32, or int64 if ones are int64, in [0, batch].

    Raises:
        ValueError: if batch is not an integer >= 1, ones are not integers, or local_epsilon is not a scalar, or is a
            Python or NumPy number that is not > 0.

    Privacy:
        - Claim: (epsilon, delta)-DP in the shuffle model with delta = shuffle_delta(epsilon, local_epsilon, batch).
        - Unit: one bit; adjacency: replace one.

    Source:
        Warner (1965); Cheu et al. (2019), the protocol for sums of bits.

    Deviations:
        Counts are drawn by `jaxdp.random.binomial`, in float32 with relative errors of about 1e-5 in probabilities.
        The probability that a bit is flipped is rounded up.

    Math:
        With $x$ ones among $n$ users, the number is

        $$
        \mathrm{Binomial}(x, p) + \mathrm{Binomial}(n - x, 1 - p), \quad p = \frac{1}{1 + e^{-\varepsilon_0}}
        $$

        where $\varepsilon_0$ is `local_epsilon`.

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
