"""Computes, on the host, how many users a shuffled batch needs for a confidence radius, and the users' local budget.

Consider n randomized responses at a local budget eps0. The fraction of ones among them, debiased by the factor c =
(e^eps0 + 1) / (e^eps0 - 1), is within c sqrt(x / (2 n)) of the mean, except with probability 2 exp(-x). A larger batch
hides each user better, so eps0 may be larger, and c is smaller. All numbers are float64.
"""

import functools
import math

from jaxdp.mechanisms import shuffle_epsilon_bound, shuffle_local_epsilon, shuffle_local_epsilon_bound
from jaxdp.mechanisms._shuffled_bits import is_delta_at_most
from jaxdp.validation import INT64_MAX

CALIBRATIONS = ("tight", "bound")
LARGEST_LOCAL = 8.0  # a larger budget costs users local privacy and gains almost nothing: at 8, c is below 1.0007
LARGEST_EXACT = 10_000  # largest batch for which the exact divergence is computed
LARGEST_BATCH = 1e30


@functools.lru_cache(maxsize=4096)
def local_budget(epsilon: float, delta: float, users: int, calibration: str) -> float:
    """Returns the largest local epsilon in [epsilon, max(epsilon, 8)] at which a batch is provably (epsilon, delta)-DP.

    Args:
        epsilon: > 0; infinity gives infinity.
        delta: in (0, 1).
        users: number of users in the batch, >= 1.
        calibration: "tight", by the exact divergence (for more than 10,000 users, by the exact divergence of 10,000
            users, or by the closed form if it allows more); or "bound", by the closed form.

    Raises:
        ValueError: for "bound", if `epsilon` is so large that the condition of the closed form fails.
    """
    if epsilon == math.inf:
        return math.inf
    if calibration == "tight":
        return max(epsilon, min(LARGEST_LOCAL, shuffle_local_epsilon(epsilon, delta, users)))
    if epsilon > (limit := _limit(delta, users)):
        raise ValueError(
            f"epsilon must be <= log(n / (16 log(2 / delta))) = {limit:.4g} for calibration='bound', in the smallest "
            f"batch of n = {users} users, got {epsilon}; calibration='tight' has no such condition"
        )
    return max(epsilon, min(LARGEST_LOCAL, shuffle_local_epsilon_bound(epsilon, delta, users)))


@functools.lru_cache(maxsize=256)
def smallest_batches(epsilon: float, delta: float, calibration: str, loads: tuple[float, ...]) -> dict[float, float]:
    """Finds, for each load, the smallest n with c sqrt(load / n) <= 1, where c belongs to the local budget of n users.

    Args:
        epsilon: > 0, may be infinite.
        delta: in (0, 1).
        calibration: as for `local_budget`.
        loads: positive numbers; a radius of D / 4 has the load 8 x / D^2.

    Returns:
        A dictionary with n for each load: an integer stored as a float, or infinity if n would be 10^30 or more.
    """
    # eps0 never decreases with n, so n / load never increases with the load: the result for a load bounds the result
    # for the next larger load.
    batches: dict[float, float] = {}
    before, users = 0.0, 0.0
    for load in sorted(set(loads)):
        lower, upper = (load / math.tanh(at / 2) / math.tanh(at / 2) for at in (max(epsilon, LARGEST_LOCAL), epsilon))
        if before:
            lower, upper = max(lower, users), min(upper, users * (load / before))
        if not upper < LARGEST_BATCH:
            upper = LARGEST_BATCH
        low, high = math.ceil(lower) - 1, math.ceil(upper)  # `low` users do not suffice, `high` users do
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _suffices(middle, epsilon, delta, calibration, load) else (middle, high)
        users = batches[load] = float(high) if high < LARGEST_BATCH else math.inf
        if users == math.inf:
            return {**dict.fromkeys(loads, math.inf), **batches}
        before = load
    return batches


def _suffices(users: int, epsilon: float, delta: float, calibration: str, load: float) -> bool:
    """Returns whether a batch is known to be (epsilon, delta)-DP at the local budget that the radius requires.

    Returns False if this local budget is above max(epsilon, 8).
    """
    share = math.sqrt(load / users)  # 1 / c
    needed = 2 * math.atanh(share) if share < 1 else math.inf
    if needed <= epsilon:
        return True
    if needed > LARGEST_LOCAL:
        return False
    if calibration == "tight":
        if users <= LARGEST_EXACT:
            return is_delta_at_most(delta, epsilon, needed, users)  # needs no search for the budget
        if needed <= local_budget(epsilon, delta, LARGEST_EXACT, calibration):
            return True
    users = min(users, INT64_MAX)  # the closed form takes at most this number; its bound falls with the number of users
    return needed <= _limit(delta, users) and shuffle_epsilon_bound(delta, needed, users) <= epsilon


def _limit(delta: float, users: int) -> float:
    """Returns the largest local epsilon for which the closed form is proven."""
    return math.log(users) - math.log(16 * math.log(2 / delta))
