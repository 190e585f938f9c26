"""The sparse vector technique: the first query above a threshold, at a price that does not grow with them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, float_array, positive_scalar
from jaxdp.mechanisms.tape import Entry, amend, record, recording
from jaxdp.validation import check_choice

NAME = "above_threshold"
# The share of epsilon that the threshold's noise gets: one half, or 1 : 2^(2/3) between threshold and queries.
SPLITS = {"even": 0.5, "optimal": 1 / (1 + 2 ** (2 / 3))}


class AboveThreshold(NamedTuple):
    """One run of AboveThreshold. Secret: only what `above_threshold_step` reports may be released.

    Attributes:
        noisy_threshold: [] float, drawn once.
        sensitivity: [] float > 0, declared of each query.
        epsilon: [] float > 0, of the run.
        query_scale: [] float >= 0, of each query's Laplace noise.
        halted: [] bool, whether a query has been reported above; from then on none is, whatever its value.
    """

    noisy_threshold: jax.Array
    sensitivity: jax.Array
    epsilon: jax.Array
    query_scale: jax.Array
    halted: jax.Array


def above_threshold_init(
    key: jax.Array,
    epsilon: Scalar,
    *,
    threshold: Scalar,
    sensitivity: Scalar = 1.0,
    split: str = "even",
) -> AboveThreshold:
    """Starts a run: draws the noisy threshold.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0, may be traced: of the whole run. Infinity compares exactly. Zero or NaN traced gives
            meaningless reports, and a negative one noise of the wrong sizes, which is not private.
        threshold: [] float, public, may be traced.
        sensitivity: [] float > 0, may be traced: the largest change of any one query, where queries may move in
            different directions.
        split: how epsilon is shared between threshold and queries: "even" (the textbook's) or "optimal" (1 : 2^(2/3),
            which minimises the variance of their difference).

    Returns:
        The state for `above_threshold_step`, of epsilon's dtype.

    Raises:
        ValueError: if split is unknown, an argument is not a scalar, or epsilon or sensitivity is a Python or NumPy
            number that is not > 0.

    Privacy:
        - As `above_threshold`.

    Source:
        As `above_threshold`.

    Deviations:
        As `above_threshold`.
    """
    share = SPLITS[check_choice("split", split, tuple(SPLITS))]
    epsilon = positive_scalar("epsilon", epsilon)
    if jnp.ndim(threshold) != 0:
        raise ValueError(f"threshold must be a scalar, got shape {jnp.shape(threshold)}")
    sensitivity = positive_scalar("sensitivity", sensitivity, epsilon.dtype)
    threshold = jnp.asarray(threshold, epsilon.dtype)
    unit = sensitivity / epsilon
    noise = jax.random.laplace(key, (), epsilon.dtype)
    noisy_threshold = threshold + unit / share * noise
    # A threshold that follows the data is a query, too.
    entry = Entry(f"{NAME}_init", threshold, "max", key, sensitivity, epsilon, noise=noise, law="laplace")
    record(entry._replace(run=noisy_threshold))
    return AboveThreshold(
        noisy_threshold=noisy_threshold,
        sensitivity=sensitivity,
        epsilon=epsilon,
        query_scale=2 * unit / (1 - share),
        halted=jnp.asarray(False),
    )


def above_threshold_step(key: jax.Array, state: AboveThreshold, query: ArrayLike) -> tuple[AboveThreshold, jax.Array]:
    """Asks one query; for use inside a scan.

    Args:
        key: a PRNG key, a new one for every query.
        state: from `above_threshold_init` or the last step.
        query: [] float, the exact answer. It may depend on all earlier reports. NaN is never reported above.

    Returns:
        (state, above): [] bool, whether the noisy answer reached the noisy threshold; False once the run has halted.

    Raises:
        ValueError: if query is not a float.

    Privacy:
        - As `above_threshold`.

    Source:
        As `above_threshold`.

    Deviations:
        As `above_threshold`.
    """
    query = float_array("query", query).astype(state.query_scale.dtype)
    noise = jax.random.laplace(key, (), query.dtype)
    entry = Entry(NAME, query, "max", key, state.sensitivity, state.epsilon, noise=noise, law="laplace")
    noisy_query = record(entry._replace(run=state.noisy_threshold)) + state.query_scale * noise
    above = (noisy_query >= state.noisy_threshold) & ~state.halted
    amend(halted=state.halted, reported=above)
    return state._replace(halted=state.halted | above), above


def above_threshold(
    key: jax.Array,
    queries: ArrayLike,
    epsilon: Scalar,
    *,
    threshold: Scalar,
    sensitivity: Scalar = 1.0,
    split: str = "even",
) -> jax.Array:
    """Index of the first query whose noisy answer reaches a noisy threshold.

    The threshold gets Laplace noise of scale sensitivity / e1, once; each query its own of scale 2 sensitivity / e2,
    with e1 + e2 = epsilon. An even split is the textbook's 2 and 4 sensitivity / epsilon. With probability
    1 - failure_prob no noise among K queries misleads by more than 8 sensitivity log(2 K / failure_prob) / epsilon.

    Args:
        key: a PRNG key. Equals a scan of `above_threshold_step`: `key_threshold, key_queries = split(key)`, and one key
            of `split(key_queries, K)` a query.
        queries: [K] float, the exact answers.
        epsilon: as for `above_threshold_init`.
        threshold: as for `above_threshold_init`.
        sensitivity: as for `above_threshold_init`.
        split: as for `above_threshold_init`.

    Returns:
        [] int32 in [0, K]; K if no query is reported above.

    Raises:
        ValueError: if queries are not a vector of floats; else as `above_threshold_init`.

    Privacy:
        - epsilon-DP in the central model for the one index, however many queries, for the unit and adjacency that the
          sensitivity refers to.
        - Given the noise of the queries, all comparisons before the first above stay as they are if the threshold moves
          by the sensitivity (cost e1), and the first above stays above if its noise moves by twice the sensitivity
          (cost e2).
        - The run must end there: a second report above costs as much again, and the noisy answer itself must not be
          released.

    Source:
        Dwork & Roth (2014), Algorithm 1 and Theorem 3.23; Lyu, Su & Li (2017), section 4.2, for the split.

    Deviations:
        floating-point noise, as in `laplace`.

    Examples:
        >>> queries = jnp.array([0.0, 3.0, 5.0, 9.0], jnp.float32)
        >>> int(above_threshold(jax.random.key(0), queries, float("inf"), threshold=4.0))  # no privacy, no noise
        2
    """
    queries = float_array("queries", queries)
    if queries.ndim != 1 or queries.shape[0] == 0:
        raise ValueError(f"queries must have shape [K] with K >= 1, got {queries.shape}")
    key_threshold, key_queries = jax.random.split(key)
    start = above_threshold_init(key_threshold, epsilon, threshold=threshold, sensitivity=sensitivity, split=split)
    run = start.noisy_threshold
    queries = record(Entry(NAME, queries, "max", key, start.sensitivity, start.epsilon, run=run))

    def ask(key: jax.Array, query: jax.Array) -> jax.Array:
        with recording():  # each query by itself, which the entry above has
            return above_threshold_step(key, start, query)[1]

    above = jax.vmap(ask)(jax.random.split(key_queries, queries.shape[0]), queries)
    first = jax.lax.argmax(above, 0, jnp.int32)
    return jnp.where(jnp.any(above), first, jnp.int32(queries.shape[0]))
