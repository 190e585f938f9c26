"""Computes lower bounds on epsilon: a fair coin chooses the input of each output, and a rule guesses the input.

Under the claim, the number of correct guesses is stochastically at most binomial with success probability 1 / (1 +
exp(-epsilon)), up to outputs of total probability at most delta that are set aside. A lower confidence limit on the
success probability gives a lower bound on epsilon. Proof: `docs/proofs/guesses.md`.

Source:
    Steinke, Nasr & Jagielski (2023), "Privacy Auditing with One (1) Training Run", Theorem 3.1 and, for delta, the
    decomposition in its proof. The trials here are independent, so no correction for many canaries is needed.
"""

import math

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

from jaxdp.audit.intervals import check_counts

ASIDE = 0.2  # fraction of the error probability for the limit on the number of outputs that are set aside


def guess_bound(right: int, guesses: int, coins: int, *, sides: int, delta: float, error: float) -> float:
    """Returns a lower bound on epsilon; it exceeds the true epsilon with probability at most `error`.

    Args:
        right: integer in [0, guesses], number of correct guesses.
        guesses: integer in [0, coins], number of guesses. The rule must not depend on these outputs.
        coins: number of outputs; for each output an independent fair coin chose the input.
        sides: 1 if the rule guesses only one of the inputs, 2 if it guesses both inputs.
        delta: claimed delta, in [0, 1).
        error: in (0, 1).

    Returns:
        The bound, which may be negative; -inf if no correct guess is left after outputs are set aside.

    Raises:
        ValueError: if guesses > 0, and right or guesses is not an integer in its range.

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
        right: [...] float, number of correct guesses.
        wrong: [...] float, number of wrong guesses.
        coins: number of outputs; for each output an independent fair coin chose the input.
        sides: 1 if the rule guesses only one of the inputs, 2 if it guesses both inputs.
        delta: claimed delta, in [0, 1).
        error: probability with which the bound may exceed the true epsilon.

    Returns:
        [...] float64, which may be negative; -inf where no correct guess is left after outputs are set aside.
    """
    successes = right - largest_set_aside(coins, sides=sides, delta=delta, error=error)
    remaining, z = successes + wrong, -float(ndtri(error if delta == 0 else (1 - ASIDE) * error))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = z * np.sqrt(successes * wrong / remaining + z * z / 4)
        bounds = np.log((successes + z * z / 2 - spread) / (wrong + z * z / 2 + spread))
    return np.where(successes > 0, bounds, -math.inf)
