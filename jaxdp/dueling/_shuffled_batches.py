"""How many users a shuffled batch needs for a confidence radius, and what each may report: float64 on the host.

The share of ones among n randomized responses at a local budget eps0, debiased by c = (e^eps0 + 1) / (e^eps0 - 1), is
within c sqrt(x / (2 n)) of the mean but for probability 2 exp(-x). A larger batch hides each of its users better, so
that eps0 may be larger, and c is smaller.
"""

import functools
import math

from jaxdp.mechanisms import shuffle_delta, shuffle_epsilon_bound, shuffle_local_epsilon, shuffle_local_epsilon_bound

CALIBRATIONS = ("tight", "bound")
LARGEST_LOCAL = 8.0  # beyond it c is below 1.0007, and users would give up for nothing what no shuffler can lose
LARGEST_EXACT = 10_000  # users; up to here the exact divergence is computed for the very batch
LARGEST_BATCH = 1e30


@functools.lru_cache(maxsize=4096)
def local_budget(epsilon: float, delta: float, users: int, calibration: str) -> float:
    """The largest local epsilon in [epsilon, max(epsilon, 8)] known to make a batch (epsilon, delta)-DP.

    Args:
        epsilon: > 0; infinity gives infinity.
        delta: in (0, 1).
        users: in the batch, >= 1.
        calibration: "tight", by the exact divergence (from 10,000 users on that of 10,000, or the closed form where
            that allows more); or "bound", by the closed form alone.

    Raises:
        ValueError: if the condition of the closed form fails at epsilon itself, for "bound".
    """
    if epsilon == math.inf:
        return math.inf
    if calibration == "tight":
        return max(epsilon, min(LARGEST_LOCAL, shuffle_local_epsilon(epsilon, delta, users)))
    if epsilon > (limit := _limit(delta, users)):
        raise ValueError(
            f"epsilon must be <= log(n / (16 log(2 / delta))) = {limit:.4g} for calibration='bound', whose condition "
            f"this is in the smallest batch of n = {users} users, got {epsilon}; calibration='tight' has none"
        )
    return max(epsilon, min(LARGEST_LOCAL, shuffle_local_epsilon_bound(epsilon, delta, users)))


@functools.lru_cache(maxsize=256)
def smallest_batches(epsilon: float, delta: float, calibration: str, loads: tuple[float, ...]) -> dict[float, float]:
    """The smallest n with c sqrt(load / n) <= 1 at the local budget of such a batch, for each of many loads.

    As eps0 never decreases with n, neither does n / load increase with the load: one result bounds the next.

    Args:
        epsilon: > 0, may be infinite.
        delta: in (0, 1).
        calibration: as for `local_budget`.
        loads: > 0; for a radius of D / 4 they are 8 x / D^2.

    Returns:
        A whole number for each load, or infinity where it would be above 10^30.
    """
    found: dict[float, float] = {}
    before, users = 0.0, 0.0
    for load in sorted(set(loads)):
        least, most = (load / math.tanh(at / 2) / math.tanh(at / 2) for at in (max(epsilon, LARGEST_LOCAL), epsilon))
        if before:
            least, most = max(least, users), min(most, users * (load / before))
        if not most < LARGEST_BATCH:
            most = LARGEST_BATCH
        low, high = math.ceil(least) - 1, math.ceil(most)  # low does not suffice, and high does
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _suffices(middle, epsilon, delta, calibration, load) else (middle, high)
        users = found[load] = float(high) if high < LARGEST_BATCH else math.inf
        if users == math.inf:
            return {**dict.fromkeys(loads, math.inf), **found}
        before = load
    return found


def _suffices(users: int, epsilon: float, delta: float, calibration: str, load: float) -> bool:
    """Whether a batch may report at the budget that the radius needs."""
    share = math.sqrt(load / users)  # 1 / c
    needed = 2 * math.atanh(share) if share < 1 else math.inf
    if needed <= epsilon:
        return True
    if needed > LARGEST_LOCAL:
        return False
    if calibration == "tight":
        if users <= LARGEST_EXACT:
            return shuffle_delta(epsilon, needed, users) <= delta  # at once, in place of a search for the budget
        if needed <= local_budget(epsilon, delta, LARGEST_EXACT, calibration):
            return True
    return needed <= _limit(delta, users) and shuffle_epsilon_bound(delta, needed, users) <= epsilon


def _limit(delta: float, users: int) -> float:
    """The local epsilon up to which the closed form is proved."""
    return math.log(users) - math.log(16 * math.log(2 / delta))
