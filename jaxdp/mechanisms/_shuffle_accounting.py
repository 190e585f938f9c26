"""Amplification by shuffling: epsilon and delta of a shuffled batch of randomized reports, given their local epsilon.

All results are computed in float64 on the host and rounded to the safe side: delta and epsilon are rounded up, a local
epsilon is rounded down.
"""

import functools
import math

from jaxdp.core import Guarantee
from jaxdp.mechanisms._shuffled_bits import (
    LARGEST_LOCAL,
    LEFT_OUT,
    MARGIN,
    largest_exact,
    largest_true,
    odds,
    tail_epsilon,
    worst,
    worst_delta,
)
from jaxdp.validation import INT64_MAX, check_above, check_at_least, check_count, check_delta, check_epsilon

LARGEST_EXACT = 10_000  # users; the time of the exact computation grows at least quadratically


def shuffle_delta(epsilon: float, local_epsilon: float, batch: int) -> float:
    """Returns the smallest delta at which a shuffled batch of binary randomized responses is (epsilon, delta)-DP.

    Shuffled bits reveal only their number of ones. The two distributions of this number, for the two values of one
    user's bit, are compared in both directions, for every number of ones among the other users. The result is the
    largest delta. Often, but not always, it is attained if all other users have the same bit.

    The result never increases with epsilon or batch, and never decreases with local_epsilon: reports at a larger
    local_epsilon can be randomized further after shuffling, and a batch with one more user can be simulated by adding
    this user's report to the count.

    Args:
        epsilon: >= 0. At 0 the value is the total variation distance.
        local_epsilon: budget of one report before it is shuffled, > 0.
        batch: number of users shuffled together, >= 1. Above 10,000 the value for 10,000 is returned, which is also
            valid for larger batches.

    Returns:
        delta in [0, 1], rounded up by at most a relative 2e-10 plus 1e-35; 0 if epsilon >= local_epsilon; otherwise 1
        if local_epsilon > 500.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        The hockey-stick divergence of Barthe & Olmedo (2013), between the two distributions of the count.

    Deviations:
        None.

    Examples:
        >>> f"{shuffle_delta(1.0, local_epsilon=2.0, batch=100):.4g}"
        '0.0001363'
    """
    epsilon = check_at_least("epsilon", epsilon, 0.0)
    local_epsilon, batch = _check_local(local_epsilon), _check_batch(batch)
    return 0.0 if epsilon >= local_epsilon else worst_delta(epsilon, local_epsilon, min(batch, LARGEST_EXACT))[0]


def shuffle_worst_ones(epsilon: float, local_epsilon: float, batch: int) -> int:
    """Returns the number of ones among the other users at which `shuffle_delta` is attained: the auditor's worst case.

    Args:
        epsilon: in [0, local_epsilon).
        local_epsilon: budget of one report before it is shuffled, > 0.
        batch: number of users shuffled together, in [1, 10,000].

    Returns:
        k in [0, batch). If k of the other users have a one, a large count is the strongest evidence that the user's bit
        is 1. If batch - 1 - k of them have a one, a small count is equally strong evidence that the bit is 0.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        As for `shuffle_delta`.

    Deviations:
        None.

    Examples:
        >>> shuffle_worst_ones(1.0, local_epsilon=2.0, batch=100), shuffle_worst_ones(1.0, local_epsilon=5.0, batch=300)
        (99, 292)
    """
    epsilon, local_epsilon = check_at_least("epsilon", epsilon, 0.0), _check_local(local_epsilon)
    batch = _check_batch(batch)
    if not epsilon < local_epsilon:
        raise ValueError(f"epsilon must be < local_epsilon = {local_epsilon}, got {epsilon}")
    if batch > LARGEST_EXACT:
        raise ValueError(f"batch must be <= {LARGEST_EXACT}, got {batch}")
    return worst_delta(epsilon, local_epsilon, batch)[1]


def shuffle_epsilon(delta: float, local_epsilon: float, batch: int) -> float:
    """Returns the smallest epsilon at which a shuffled batch of binary randomized responses is (epsilon, delta)-DP.

    This function is the inverse of `shuffle_delta` in epsilon.

    Args:
        delta: in (0, 1).
        local_epsilon: budget of one report before it is shuffled, > 0.
        batch: number of users shuffled together, >= 1. Above 10,000 the result is the value for 10,000 users, or
            `shuffle_epsilon_bound` if this is smaller and local_epsilon is in the bound's range.

    Returns:
        epsilon in [0, local_epsilon], rounded up by about 1e-10. The result is local_epsilon if local_epsilon exceeds
        500, or if delta is at most 1e-35 and the batch has at most 10,000 users.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        As for `shuffle_delta`. The best event is a tail of the count (Neyman-Pearson), so epsilon is the largest
        log((P(tail) - delta) / P'(tail)).

    Deviations:
        None.

    Examples:
        >>> f"{shuffle_epsilon(1e-6, local_epsilon=1.0, batch=1000):.4f}"
        '0.1266'
    """
    delta, local_epsilon, batch = check_delta(delta), _check_local(local_epsilon), _check_batch(batch)
    if local_epsilon > LARGEST_LOCAL:
        return local_epsilon
    usable_delta = delta * (1 - MARGIN) - LEFT_OUT
    bounds = [local_epsilon]
    if usable_delta > 0:
        measure = functools.partial(tail_epsilon, usable_delta, *odds(local_epsilon))
        exact, _ = worst(measure, local_epsilon, min(batch, LARGEST_EXACT))
        bounds.append(max(0.0, exact + MARGIN * (1 + exact)))
    if batch > LARGEST_EXACT and local_epsilon <= _largest_local_epsilon_of_bound(delta, batch):
        bounds.append(shuffle_epsilon_bound(delta, local_epsilon, batch))
    return min(bounds)


def shuffle_local_epsilon(epsilon: float, delta: float, batch: int) -> float:
    """Returns the largest local epsilon with which a shuffled batch of randomized bits is (epsilon, delta)-DP.

    This function is the inverse of `shuffle_delta` in local_epsilon; it never decreases with epsilon, delta or batch.

    Args:
        epsilon: > 0; infinity gives infinity.
        delta: in (0, 1).
        batch: number of users shuffled together, >= 1. Above 10,000 the result is the value for 10,000 users, or
            `shuffle_local_epsilon_bound` if this is larger and batch is in the bound's range.

    Returns:
        A local epsilon >= epsilon, rounded down by a relative 1e-9.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        As for `shuffle_delta`.

    Deviations:
        None.

    Examples:
        >>> f"{shuffle_local_epsilon(0.5, 1e-6, batch=400):.4f}"
        '1.8452'
    """
    epsilon, delta, batch = check_epsilon(epsilon), check_delta(delta), _check_batch(batch)
    if epsilon == math.inf:
        return math.inf
    exact = largest_exact(epsilon, delta, min(batch, LARGEST_EXACT))
    if batch <= LARGEST_EXACT or _largest_local_epsilon_of_bound(delta, batch) <= 0:
        return exact
    return max(exact, shuffle_local_epsilon_bound(epsilon, delta, batch))


def shuffle_epsilon_bound(delta: float, local_epsilon: float, batch: int) -> float:
    """Returns an epsilon in closed form at which a shuffled batch of any reports is (epsilon, delta)-DP.

    The bound holds for every local_epsilon-DP local randomizer that all users share. For binary randomized response the
    exact `shuffle_epsilon` is several times smaller.

    Args:
        delta: in (0, 1).
        local_epsilon: budget of one report before it is shuffled, in (0, log(batch / (16 log(2 / delta)))].
        batch: number of users shuffled together, > 16 log(2 / delta).

    Returns:
        epsilon > 0, rounded up by a relative 1e-12. If it exceeds local_epsilon, local_epsilon is a smaller valid
        epsilon.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        Feldman, McMillan & Talwar (2021), "Hiding among the clones", Theorem 3.1.

    Deviations:
        None.

    Examples:
        >>> f"{shuffle_epsilon_bound(1e-6, local_epsilon=1.0, batch=1000):.4f}"
        '0.5662'
    """
    delta, local_epsilon, batch = check_delta(delta), _check_local(local_epsilon), _check_batch(batch)
    limit = _largest_local_epsilon_of_bound(delta, batch)
    if local_epsilon > limit:
        raise ValueError(
            f"local_epsilon must be <= log(batch / (16 log(2 / delta))) = {limit:.4g} for the closed form, got "
            f"{local_epsilon}; shuffle_epsilon has no such condition"
        )
    growth = math.exp(local_epsilon)
    spread = 8 * math.sqrt(growth * math.log(4 / delta) / batch) + 8 * growth / batch
    return math.log1p(math.tanh(local_epsilon / 2) * spread) * (1 + 1e-12)


def shuffle_local_epsilon_bound(epsilon: float, delta: float, batch: int) -> float:
    """Returns the largest local epsilon for which `shuffle_epsilon_bound` guarantees (epsilon, delta)-DP.

    Args:
        epsilon: > 0; infinity gives infinity.
        delta: in (0, 1).
        batch: number of users shuffled together, > 16 log(2 / delta).

    Returns:
        A local epsilon > 0, rounded down by a relative 1e-12. If it is below epsilon, epsilon is a larger valid local
        epsilon.

    Raises:
        ValueError: if batch is too small for the closed form, or an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        As for `shuffle_epsilon_bound`.

    Deviations:
        None.
    """
    epsilon, delta, batch = check_epsilon(epsilon), check_delta(delta), _check_batch(batch)
    limit = _largest_local_epsilon_of_bound(delta, batch)
    if not limit > 0:
        raise ValueError(
            f"batch must be > 16 log(2 / delta) = {16 * math.log(2 / delta):.4g} for the closed form, got {batch}; "
            "shuffle_local_epsilon has no such condition"
        )
    if epsilon == math.inf:
        return math.inf

    def holds(local_epsilon: float) -> bool:
        return shuffle_epsilon_bound(delta, local_epsilon, batch) <= epsilon

    if holds(limit):
        return limit
    low = limit
    while not holds(low):  # the bound tends to 0 with local_epsilon
        low /= 2
    return largest_true(holds, low, 2 * low)


def shuffle_guarantee(
    epsilon: float, delta: float, *, local_epsilon: float, batch: int, privacy_unit: str = "one bit"
) -> Guarantee:
    """Returns the privacy claim of a shuffled batch of binary randomized responses.

    Args:
        epsilon: > 0; at infinity the claim is empty.
        delta: in (0, 1).
        local_epsilon: budget of one report before it is shuffled, > 0.
        batch: number of users shuffled together, >= 1.
        privacy_unit: the data of one user.

    Returns:
        A claim of approximate DP in the shuffle model, which records batch and local_epsilon.

    Raises:
        ValueError: if the batch is not known to be (epsilon, delta)-DP, or an argument is outside its range or NaN.

    Examples:
        >>> print(shuffle_guarantee(1.0, 1e-3, local_epsilon=2.0, batch=100))
        (1, 0.001)-DP, shuffle, one bit
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    local_epsilon, batch = _check_local(local_epsilon), _check_batch(batch)
    if epsilon < math.inf and shuffle_delta(epsilon, local_epsilon, batch) > delta:
        least = shuffle_epsilon(delta, local_epsilon, batch)  # above 10,000 users the closed form may apply
        if least > epsilon:
            raise ValueError(
                f"epsilon must be >= {least:.6g} for a batch of {batch} at local_epsilon = {local_epsilon} and delta = "
                f"{delta}, got {epsilon}"
            )
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="shuffle",
        privacy_unit=privacy_unit,
        argument=f"randomized response at {local_epsilon:.6g}, in shuffled batches of {batch}",
        batch=batch,
        local_epsilon=local_epsilon,
    )


def _check_local(local_epsilon: float) -> float:
    return check_above("local_epsilon", local_epsilon, 0.0)


def _check_batch(batch: int) -> int:
    return check_count("batch", batch, maximum=INT64_MAX)


def _largest_local_epsilon_of_bound(delta: float, batch: int) -> float:
    """Returns the local epsilon up to which the closed form is proven."""
    return math.log(batch / (16 * math.log(2 / delta)))
