"""The sparse vector technique: finds the first query above a threshold, at the same cost for any number of queries."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import leaf_rounded_down, scalar_leaf
from jaxdp.mechanisms._arrays import Scalar, float_array, positive_scalar
from jaxdp.mechanisms._grid import COARSEST, FEW, Exact, exact_values, shape_of, step_for, wide
from jaxdp.mechanisms._integer_noise import laplace_of, power_below
from jaxdp.mechanisms._traced import traced_once
from jaxdp.mechanisms.calibration import round_up
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.tape import Entry, amend, is_open, record, recording
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.validation import check_choice, check_number, check_positive

NAME = "above_threshold"
LARGEST_STEPS = 2.0**51 - 1  # largest noisy threshold; two 32-bit words can represent it
LARGEST_SCALE = 2.0**45  # in steps, a quarter of the largest scale of `laplace`
LARGEST_TIMES = 16.0  # for `check_laplace`: 4 for the smaller LARGEST_SCALE, times 4 for the scale of queries' noise
TAIL = 44.0  # noise is at most this number of scales, except with a probability of 2^-63
# fraction of epsilon for the threshold's noise: one half, or 1 : 2^(2/3) between threshold and queries
SPLITS = {"even": 0.5, "optimal": 1 / (1 + 2 ** (2 / 3))}


class AboveThreshold(NamedTuple):
    """State of a run of AboveThreshold. Secret: only the values `above` of `above_threshold_step` may be released.

    Attributes:
        noisy_threshold: [] the threshold plus noise that is drawn once, as an integer number of steps of the grid to
            which noise is rounded.
        sensitivity: [] float > 0, the declared sensitivity of each query.
        epsilon: [] float > 0, the budget of the run.
        query_scale: [] float >= 0, scale of each query's Laplace noise.
        halted: [] bool, whether a query was reported above the threshold. No later query is reported above it.
    """

    noisy_threshold: fixed_point.Sum
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
    """Starts a run of AboveThreshold by drawing the noisy threshold.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0, may be traced: the budget of the whole run. Infinity compares without noise. If a traced
            number is not > 0, results are meaningless; if it is negative, they are not private either.
        threshold: [] float, public, may be traced. A traced NaN gives meaningless results.
        sensitivity: [] float > 0, may be traced: the maximum change of any single query; queries may change in
            different directions.
        split: how epsilon is divided between threshold and queries: "even" (as in the textbook) or "optimal" (in the
            ratio 1 : 2^(2/3), which minimises the variance of the difference of threshold and query).

    Returns:
        The state for `above_threshold_step`, in epsilon's dtype.

    Raises:
        ValueError: if split is unknown, or an argument is not a scalar. For Python and NumPy numbers also if epsilon or
            sensitivity is not > 0, if the threshold is not finite, or if epsilon is so small that the noise would
            overflow integers (below about 2e-10).

    Privacy:
        - As for `above_threshold`.

    Source:
        As for `above_threshold`.

    Deviations:
        As for `above_threshold`.
    """
    share = SPLITS[check_choice("split", split, tuple(SPLITS))]
    number, epsilon = epsilon, positive_scalar("epsilon", epsilon)
    if not isinstance(number, jax.Array):
        budget = check_laplace(float(number), times=LARGEST_TIMES)
        epsilon = jnp.asarray(leaf_rounded_down("epsilon", budget), epsilon.dtype)
    if not isinstance(sensitivity, jax.Array):
        scalar_leaf("sensitivity", check_positive("sensitivity", sensitivity))  # refuses numbers beyond float32
        sensitivity = round_up(float(sensitivity), epsilon.dtype)
    sensitivity = positive_scalar("sensitivity", sensitivity, epsilon.dtype)
    if not isinstance(threshold, jax.Array):
        check_number("threshold", threshold)
    elif threshold.ndim != 0:
        raise ValueError(f"threshold must be a scalar, got shape {threshold.shape}")
    threshold = jnp.asarray(threshold, epsilon.dtype)
    query_scale = _query_scale(sensitivity, epsilon, share, epsilon.dtype)
    return AboveThreshold(
        noisy_threshold=_draw_threshold(key, threshold, sensitivity, epsilon, share, query_scale),
        sensitivity=sensitivity,
        epsilon=epsilon,
        query_scale=query_scale,
        halted=jnp.asarray(False),
    )


def restart(fresh: jax.Array, started: AboveThreshold, running: AboveThreshold) -> AboveThreshold:
    """Returns the run `started` if `fresh` ([] bool) is true, otherwise `running`.

    Both runs must have the same sensitivity, epsilon and noise scale. The result has these fields of `running`, so
    under `jax.vmap` they keep one value for the whole batch.
    """
    threshold = jax.tree.map(
        lambda start, run: jnp.where(fresh, start, run), started.noisy_threshold, running.noisy_threshold
    )
    return running._replace(noisy_threshold=threshold, halted=jnp.where(fresh, started.halted, running.halted))


def above_threshold_step(
    key: jax.Array, state: AboveThreshold, query: ArrayLike | fixed_point.Sum
) -> tuple[AboveThreshold, jax.Array]:
    """Compares one query with the noisy threshold; for use inside a scan.

    Args:
        key: a PRNG key, a new one for every query.
        state: from `above_threshold_init` or the last step.
        query: [] float, integer or `jaxdp.numerics.fixed_point.Sum`, the exact answer. It may depend on
            `above` of all earlier steps. A query of NaN is never reported above.

    Returns:
        (state, above). `above`, [] bool, is true if the noisy answer reached the noisy threshold and the run had not
        halted.

    Raises:
        ValueError: if query is not a single number or a `Sum` of shape [], or is an integer of a wider type than JAX's
            default.

    Privacy:
        - As for `above_threshold`.

    Source:
        As for `above_threshold`.

    Deviations:
        As for `above_threshold`.
    """
    exact = exact_values("query", query)
    if shape_of(exact) != ():
        raise ValueError(f"query must be a single number, got shape {shape_of(exact)}")
    return ask(key, state, exact, grid_of(state))


class Grid(NamedTuple):
    """The grid of a run and the noise scale of its queries. They do not change, so a loop computes them once.

    Attributes:
        per_one: [] float64, 1 divided by the length of a step of the grid.
        scale: [] float64, the scale of the noise of a query, in steps of the grid. It is computed for the sensitivity
            plus one step, because queries are rounded to the grid.
        drawn: [] float64, the scale at which noise is drawn, in steps: `scale` if it is valid and > 0, otherwise 2^16.
    """

    per_one: jax.Array
    scale: jax.Array
    drawn: jax.Array


@in_64_bits
def grid_of(state: AboveThreshold) -> Grid:
    """Returns the grid of a run, for `ask`."""
    per_one = _steps_per_one(state.query_scale, state.sensitivity)
    return Grid(per_one, *_scales(state.query_scale.astype(jnp.float64), per_one, state.sensitivity))


@in_64_bits
@traced_once("share")
def _draw_threshold(
    key: jax.Array,
    threshold: jax.Array,
    sensitivity: jax.Array,
    epsilon: jax.Array,
    share: float,
    query_scale: jax.Array,
) -> fixed_point.Sum:
    per_one = _steps_per_one(query_scale, sensitivity)
    threshold_scale = sensitivity.astype(jnp.float64) / (epsilon.astype(jnp.float64) * share)
    scale, drawn_scale = _scales(threshold_scale, per_one, sensitivity)
    noise = laplace_of(lambda noise, drawn_scale: noise, key, (), drawn_scale)
    # rounded up: a query on the grid reaches the threshold if it reaches the next step
    steps = jnp.ceil(threshold.astype(jnp.float64) * per_one)
    # the public threshold is clipped, never its sum with noise: at a clipped sum no noise would hide the queries
    limit = LARGEST_STEPS - TAIL * drawn_scale
    noisy = (jnp.clip(steps, -limit, limit) + jnp.where(scale == 0, 0, noise)).astype(jnp.int64)
    ranges, part = noisy >> fixed_point.BITS, noisy & (fixed_point.UNITS - 1)
    integer = jnp.int64 if epsilon.dtype == jnp.float64 else jnp.int32
    run = fixed_point.Sum(ranges.astype(integer), part.astype(integer))
    # a threshold that depends on the data is a query, too
    drawn = (noise / drawn_scale).astype(sensitivity.dtype)
    entry = Entry(f"{NAME}_init", threshold, "max", key, sensitivity, epsilon, noise=drawn, distribution="laplace")
    record(entry._replace(run=wide(run)))
    return run


@in_64_bits
@traced_once()
def ask(key: jax.Array, state: AboveThreshold, query: Exact, grid: Grid) -> tuple[AboveThreshold, jax.Array]:
    """Compares one query with the noisy threshold, as `above_threshold_step` does."""
    if is_open():
        noise = laplace_of(lambda noise, drawn_scale: noise, key, (), grid.drawn)
        drawn = (noise / grid.drawn).astype(state.sensitivity.dtype)
        entry = Entry(NAME, query, "max", key, state.sensitivity, state.epsilon, noise=drawn, distribution="laplace")
        recorded = record(entry._replace(run=wide(state.noisy_threshold)))
        above = _reaches(noise, grid.drawn, recorded, grid, state)
        amend(halted=state.halted, reported=above)
    else:
        above = laplace_of(_reaches, key, (), grid.drawn, query, grid, state)  # in one kernel
    return state._replace(halted=state.halted | above), above


def _reaches(
    noise: jax.Array,
    drawn_scale: jax.Array,
    query: Exact,
    grid: Grid,
    state: AboveThreshold,
) -> jax.Array:
    """Returns whether a query plus noise (in steps of the grid) reaches the threshold; False if the run has halted."""
    del drawn_scale
    noisy = jnp.round(wide(query) * grid.per_one) + jnp.where(grid.scale == 0, 0, noise)
    ranges, part = (word.astype(jnp.float64) for word in state.noisy_threshold)
    # the threshold is exact, so that rounding of the sum does not affect the result; NaN never reaches it
    is_above = noisy >= ranges * fixed_point.UNITS + part
    return is_above & (grid.scale <= LARGEST_SCALE) & ~state.halted


@in_64_bits
def _query_scale(sensitivity: jax.Array, epsilon: jax.Array, share: float, dtype: DTypeLike) -> jax.Array:
    """Returns the scale of each query's noise, rounded up to the dtype."""
    scale = 2 * (sensitivity.astype(jnp.float64) / epsilon.astype(jnp.float64)) / (1 - share)
    nearest = scale.astype(dtype)
    return jnp.where(nearest.astype(jnp.float64) < scale, jnp.nextafter(nearest, jnp.asarray(jnp.inf, dtype)), nearest)


def _steps_per_one(query_scale: jax.Array, sensitivity: jax.Array) -> jax.Array:
    """Returns 1 divided by the length of a step of the grid, [] float64."""
    finest = fixed_point.UNITS / power_below(sensitivity.astype(jnp.float64))
    return finest / step_for(query_scale.astype(jnp.float64) * finest, COARSEST * fixed_point.UNITS)


def _scales(scale: jax.Array, per_one: jax.Array, sensitivity: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns `Grid.scale` and `Grid.drawn` for noise of the given scale."""
    steps = scale * (per_one + 1 / sensitivity.astype(jnp.float64))
    return steps, jnp.where((steps > 0) & (steps <= LARGEST_SCALE), steps, FEW)


def above_threshold(
    key: jax.Array,
    queries: ArrayLike,
    epsilon: Scalar,
    *,
    threshold: Scalar,
    sensitivity: Scalar = 1.0,
    split: str = "even",
) -> jax.Array:
    r"""Returns the index of the first query with a noisy answer that reaches a noisy threshold.

    The threshold gets Laplace noise of scale sensitivity / e1 once. Each query gets fresh noise of scale
    2 * sensitivity / e2, with e1 + e2 = epsilon. The even split gives the textbook scales 2 * sensitivity / epsilon and
    4 * sensitivity / epsilon. Then with probability at least 1 - failure_prob, no comparison of K queries errs by more
    than 8 * sensitivity * log(2 K / failure_prob) / epsilon.

    Args:
        key: a PRNG key. The result equals a scan of `above_threshold_step`, with
            `key_threshold, key_queries = split(key)` and the keys `split(key_queries, K)`.
        queries: [K] float, the exact answers.
        epsilon: as for `above_threshold_init`.
        threshold: as for `above_threshold_init`.
        sensitivity: as for `above_threshold_init`.
        split: as for `above_threshold_init`.

    Returns:
        [] int32 in [0, K]; K if no query is reported above.

    Raises:
        ValueError: if queries are not a vector of at least one float, and as for `above_threshold_init`.

    Privacy:
        - epsilon-DP in the central model for the index, for any number of queries, for the unit and adjacency of the
          sensitivity.
        - Why: fix the noise of the queries that are not reported above. If the threshold's noise moves by the
          sensitivity (cost e1), these queries stay below. The query that is reported above stays above if its noise
          moves by twice the sensitivity (cost e2).
        - The run must end after the first query that is reported above: a second such query costs epsilon again. The
          noisy answer itself must not be released.

    Source:
        Dwork & Roth (2014), Algorithm 1 and Theorem 3.23; Lyu, Su & Li (2017), section 4.2, for the split.

    Deviations:
        Queries and noise are rounded to steps of 2^-21 to 2^-10 of the sensitivity, and compared as integers. Noise is
        calibrated for a sensitivity that is larger by one step. Before noise is added, the threshold is clipped to a
        range of 2^51 steps on either side of 0, less 44 times the scale of the threshold's noise. No query is reported
        above it if the scale of the query's noise exceeds 2^45 steps.

    Math:
        A run reports the first query $q_t$ with

        $$
        q_t + \nu_t \ge \tau + Z, \quad \nu_t \sim \mathrm{Laplace}(b), \quad Z \sim \mathrm{Laplace}(a)
        $$

        where $\tau$ is the threshold and $\Delta$ the sensitivity of a query. For the even split

        $$
        b = \frac{4 \Delta}{\varepsilon}, \quad a = \frac{2 \Delta}{\varepsilon}
        $$

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
    run = fixed_point.to_float(start.noisy_threshold, start.epsilon.dtype)
    recorded = record(Entry(NAME, queries, "max", key, start.sensitivity, start.epsilon, run=run))

    def ask(key: jax.Array, query: jax.Array) -> jax.Array:
        with recording():  # hides single queries, as the entry above has all of them
            return above_threshold_step(key, start, query)[1]

    above = jax.vmap(ask)(jax.random.split(key_queries, queries.shape[0]), recorded)
    first = jax.lax.argmax(above, 0, jnp.int32)
    return jnp.where(jnp.any(above), first, jnp.int32(queries.shape[0]))
