"""Bounds epsilon from below by guesses: a fair coin chooses the input of each output, and a rule guesses the input.

Let P and Q be the distributions of the output under the two inputs, and let (epsilon, delta)-DP hold. At delta = 0, an
output for which the first input is guessed comes from the first input with probability P / (P + Q) <= s, where s = 1 /
(1 + exp(-epsilon)); the same bound holds for the second input. The coins are independent. So, conditional on the
outputs, the number of right guesses out of n is stochastically at most binomial with n trials and success probability
s. A lower Clopper-Pearson limit on s gives the bound on epsilon. (A bound from event counts needs two limits that hold
at the same time, one under each input.)

At delta > 0, set aside the part max(0, P - exp(epsilon) Q) of P, which has mass at most delta, and the same part of Q
for guesses of the second input. The argument above holds for the remaining outputs. The number of outputs that are set
aside is stochastically at most binomial. An upper limit on this number is subtracted from the right guesses, and so
from all guesses.

Source:
    Steinke, Nasr & Jagielski (2023), "Privacy Auditing with One (1) Training Run", Theorem 3.1 and, for delta, the
    decomposition in its proof. The trials here are independent, so no correction for many canaries is needed.
"""

import math

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

from jaxdp.audit.intervals import check_counts

ASIDE = 0.2  # share of the error for the limit on the number of outputs that are set aside


def guess_bound(right: int, guesses: int, coins: int, *, sides: int, delta: float, error: float) -> float:
    """Returns a lower bound on epsilon; it exceeds the true epsilon with probability at most `error`.

    Args:
        right: integer in [0, guesses], number of right guesses.
        guesses: integer in [0, coins], number of guesses. The rule must not depend on these outputs.
        coins: number of outputs; for each output an independent fair coin chose the input.
        sides: 1 if the rule guesses only one of the inputs, 2 if it guesses both inputs.
        delta: claimed delta, in [0, 1).
        error: in (0, 1).

    Returns:
        The bound; -inf if nothing is proved.

    Raises:
        ValueError: unless guesses is 0, or 0 <= right <= guesses <= coins.

    Examples:
        >>> round(guess_bound(7_310, 10_000, 10_000, sides=2, delta=0.0, error=0.05), 3)  # true epsilon = 1
        0.962
    """
    if not guesses:
        return -math.inf
    check_counts(guesses, coins)
    check_counts(right, guesses)
    num_aside = largest_set_aside(coins, sides=sides, delta=delta, error=error)
    remaining, successes = guesses - num_aside, right - num_aside
    if successes <= 0:
        return -math.inf
    limit = float(betaincinv(successes, remaining - successes + 1, error if delta == 0 else (1 - ASIDE) * error))
    return math.log(limit) - math.log1p(-limit)


def largest_set_aside(coins: int, *, sides: int, delta: float, error: float) -> int:
    """Returns the smallest number that a Binomial(coins, sides delta / 2) exceeds with probability <= ASIDE * error."""
    rate = sides * delta / 2
    low, high = -1, coins
    if rate == 0:
        return 0
    while high - low > 1:  # the probability is too large at `low`, and small enough at `high`
        middle = (low + high) // 2
        if middle >= coins or betainc(middle + 1, coins - middle, rate) <= ASIDE * error:
            high = middle
        else:
            low = middle
    return high


def fast_guess_bound(
    right: np.ndarray, wrong: np.ndarray, coins: int, *, sides: int, delta: float, error: float
) -> np.ndarray:
    """Approximates `guess_bound` for arrays of counts, by Wilson's limit, to compare many guessing rules quickly.

    Args:
        right: [...] float, number of right guesses.
        wrong: [...] float, number of wrong guesses.
        coins: as for `guess_bound`.
        sides: as for `guess_bound`.
        delta: as for `guess_bound`.
        error: as for `guess_bound`.

    Returns:
        [...] float64; -inf if nothing is proved.
    """
    successes = right - largest_set_aside(coins, sides=sides, delta=delta, error=error)
    remaining, z = successes + wrong, -float(ndtri(error if delta == 0 else (1 - ASIDE) * error))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = z * np.sqrt(successes * wrong / remaining + z * z / 4)
        bounds = np.log((successes + z * z / 2 - spread) / (wrong + z * z / 2 + spread))
    return np.where(successes > 0, bounds, -math.inf)
