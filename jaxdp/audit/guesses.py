"""A lower bound on epsilon from guesses: of which of two inputs an output is, where a fair coin chose the input.

Let P and Q be the laws of the output under either input, and (epsilon, delta) hold. At delta = 0 an output at which
"the first" is guessed is of the first input with probability P / (P + Q) <= s, where s = 1 / (1 + exp(-epsilon)), and
likewise of the second. The coins are independent, so of n guesses no more are right than a binomial of n and s has
successes, whatever the outputs were. The Clopper-Pearson limit on s bounds epsilon: no event is counted under one input
with a limit from below, and under the other with one from above, each of which must hold.

Of an output of P the part max(0, P - exp(epsilon) Q), of mass delta at most, is set aside; so much of Q is, where "the
second" is guessed. What remains obeys the argument above. How many outputs were set aside is at most binomial; a limit
on that number is taken from the guesses that were right.

Source:
    Steinke, Nasr & Jagielski (2023), "Privacy Auditing with One (1) Training Run", Theorem 3.1 and, for delta, the
    decomposition in its proof, here with independent trials, where it needs no correction for many canaries.
"""

import math

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

from jaxdp.audit.intervals import check_counts

ASIDE = 0.2  # of the error: that more outputs were set aside than is allowed for


def guess_bound(right: int, guesses: int, coins: int, *, sides: int, delta: float, error: float) -> float:
    """The lower bound on epsilon; above the true one with probability at most `error`.

    Args:
        right: whole number in [0, guesses], of the guesses that were right.
        guesses: whole number in [0, coins]. For which outputs is guessed what was chosen without these outputs.
        coins: outputs in all, of either input by independent fair coins.
        sides: 1 if only one of the inputs is ever guessed, 2 if both are.
        delta: in [0, 1), that the claim allows.
        error: in (0, 1).

    Returns:
        The bound; -inf where nothing is proved.

    Raises:
        ValueError: if a count is negative or above its total.

    Examples:
        >>> round(guess_bound(7_310, 10_000, 10_000, sides=2, delta=0.0, error=0.05), 3)  # of randomized response
        0.962
    """
    if not guesses:
        return -math.inf
    check_counts(guesses, coins)
    check_counts(right, guesses)
    aside = set_aside(coins, sides=sides, delta=delta, error=error)
    kept, successes = guesses - aside, right - aside
    if successes <= 0:
        return -math.inf
    limit = float(betaincinv(successes, kept - successes + 1, error if delta == 0 else (1 - ASIDE) * error))
    return math.log(limit) - math.log1p(-limit)


def set_aside(coins: int, *, sides: int, delta: float, error: float) -> int:
    """The smallest number that a binomial of `coins` and sides / 2 times delta exceeds seldom enough."""
    rate = sides * delta / 2
    low, high = -1, coins
    if rate == 0:
        return 0
    while high - low > 1:  # it is exceeded too often at `low`, and seldom enough at `high`
        middle = (low + high) // 2
        if middle >= coins or betainc(middle + 1, coins - middle, rate) <= ASIDE * error:
            high = middle
        else:
            low = middle
    return high


def roughly(right: np.ndarray, wrong: np.ndarray, coins: int, *, sides: int, delta: float, error: float) -> np.ndarray:
    """About `guess_bound`, quickly, for comparing many guesses: with Wilson's limit.

    Args:
        right: [...] float, of guesses that were right.
        wrong: [...] float, of those that were not.
        coins: as for `guess_bound`.
        sides: as for `guess_bound`.
        delta: as for `guess_bound`.
        error: as for `guess_bound`.

    Returns:
        [...] float64; -inf where nothing is proved.
    """
    successes = right - set_aside(coins, sides=sides, delta=delta, error=error)
    kept, z = successes + wrong, -float(ndtri(error if delta == 0 else (1 - ASIDE) * error))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = z * np.sqrt(successes * wrong / kept + z * z / 4)
        found = np.log((successes + z * z / 2 - spread) / (wrong + z * z / 2 + spread))
    return np.where(successes > 0, found, -math.inf)
