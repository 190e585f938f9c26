"""Computes a lower bound on rho from counts, by the variational form of Rényi divergences.

For an order a > 1, two distributions P and Q and any function g of an output, Hölder's inequality gives

    log E_P[exp((a - 1) g)] / (a - 1) - log E_Q[exp(a g)] / a <= D_a(P || Q) / a <= rho,

with equality on the left at g = log(dP / dQ). Here g is constant on cells, the intervals between thresholds on a score.
One set of outputs chooses the cells, the values of g and the order. With fresh outputs, `mean_bound` bounds the two
means.
"""

import math
from typing import NamedTuple

import numpy as np

from jaxdp.audit.sampling import Score

# The divergence of the first order is nearly the Kullback-Leibler divergence, and its means have the smallest errors.
ORDERS = np.array([1.001, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0])
NUMBERS_OF_CELLS = (2, 4, 16, 64, 256, 1024)
LARGEST_STAKE = 0.9  # largest stake, relative to the stake at which one output could lose all money
ROUNDING = 1e-12  # relative rounding error that is subtracted from the bound
BISECTIONS = 100


class Cells(NamedTuple):
    """A function g of outputs, an order, and two stakes.

    `mean_bound` bounds the means of exp((order - 1) g) and exp(order g) by bets, and a stake says how much it bets.

    Attributes:
        score: the score of an output.
        thresholds: [T] ascending thresholds on the score.
        values: [T + 1] float64 <= 0, value of g in each cell; a cell's index is the number of thresholds below it.
        order: order of the divergence, > 1.
        first: True for the divergence of the first distribution from the second, False for the reverse.
        stakes: the stakes for the two means.
    """

    score: Score
    thresholds: np.ndarray
    values: np.ndarray
    order: float
    first: bool
    stakes: tuple[float, float]

    def __str__(self) -> str:
        number = len(np.unique(self.values))
        distributions = "first over second" if self.first else "second over first"
        return f"{self.score.name} in {number} cells, Rényi order {self.order:g}, {distributions}"


def choose_cells(
    scores: list[Score],
    thresholds: np.ndarray,
    shaping: tuple[np.ndarray, np.ndarray],
    judging: tuple[np.ndarray, np.ndarray],
    trials: int,
    *,
    error: float,
) -> Cells:
    """Chooses the score, direction, number of cells and order with the largest estimated lower bound on rho.

    Args:
        scores: S scores.
        thresholds: [S, T].
        shaping: [S, T + 1] counts of outputs in cells under the first and the second input; candidates for g are log
            ratios of these counts.
        judging: the same counts of other outputs; they choose the number of cells, the order, score and direction.
        trials: number of outputs on which the bound will be evaluated; the stakes depend on it.
        error: probability with which the bound on each mean may fail.

    Returns:
        The choice. The values of g are computed again from the shaping and the judging counts together.
    """
    odds = math.log(len(ORDERS) / error)  # the error is divided among all orders, as some of them look good by luck
    best, choice = -math.inf, (0, True, NUMBERS_OF_CELLS[0], ORDERS[0])
    for number in NUMBERS_OF_CELLS:
        for score in range(len(scores)):
            for first in (True, False):
                first_counts, second_counts = (side[score] for side in (shaping if first else shaping[::-1]))
                values = _log_ratios(first_counts, second_counts, number)
                first_counts, second_counts = (side[score] for side in (judging if first else judging[::-1]))
                merits = _merits(values, first_counts, second_counts, odds)
                if merits.max() > best:
                    best, choice = merits.max(), (score, first, number, ORDERS[np.argmax(merits)])
    score, first, number, order = choice
    counts = [a[score] + b[score] for a, b in zip(shaping, judging, strict=True)]
    first_counts, second_counts = counts if first else counts[::-1]
    values = _log_ratios(first_counts, second_counts, number)
    gains, losses = _variables(values, order)
    stakes = (_stake(gains, first_counts, trials, error), _stake(losses, second_counts, trials, error))
    return Cells(scores[score], thresholds[score], values, float(order), first, stakes)


def rho_bound(cells: Cells, counts: np.ndarray, other_counts: np.ndarray, *, error: float) -> float:
    """Returns a lower bound on rho from fresh counts; it is valid with probability at least 1 - 2 error.

    The counts are [T + 1] integers under the first and under the second input; `Cells` must not depend on them. The
    bound may be negative, or -inf.
    """
    first_counts, second_counts = (counts, other_counts) if cells.first else (other_counts, counts)
    gains, losses = _variables(cells.values, cells.order)
    gain = mean_bound(gains, first_counts, cells.stakes[0], error)
    loss = -mean_bound(-losses, second_counts, cells.stakes[1], error)
    with np.errstate(divide="ignore"):
        likely, unlikely = np.log(gain) / (cells.order - 1), np.log(loss) / cells.order
    return float(likely - unlikely - ROUNDING * (1 + abs(unlikely)))


def mean_bound(values: np.ndarray, counts: np.ndarray, stake: float, error: float) -> float:
    """Returns a lower bound on the mean of a variable with known values, by betting against smaller means.

    If the mean is m, a bet on each independent x multiplies a gambler's money by 1 + stake (x - m), which is 1 on
    average. By Markov's inequality the money reaches 1 / error times its start with probability at most `error`. If the
    money reaches this multiple, m is refuted. Every smaller mean is then refuted, too, since the money would have grown
    more.

    Args:
        values: [cells] values of the variable.
        counts: [cells] integers, how often each value occurred.
        stake: in (0, 1 / (largest value - smallest value)), chosen without the counts; 0 if all values are equal.
        error: probability with which the bound may exceed the mean, in (0, 1).

    Returns:
        The bound, at least the smallest value.

    Source:
        Waudby-Smith & Ramdas (2024), with one stake for all bets.

    Examples:
        >>> float(round(mean_bound(np.array([0.0, 1.0]), np.array([5000, 5000]), 0.05, 0.025), 3))
        0.486
    """
    low, high = float(values.min()), float(values.max())
    target = -math.log(error)

    def is_refuted(mean: float) -> bool:
        return float(counts @ np.log1p(stake * (values - mean))) >= target

    if not is_refuted(low):
        return low
    for _ in range(BISECTIONS):  # `low` is always refuted
        middle = low + (high - low) / 2
        if is_refuted(middle):
            low = middle
        else:
            high = middle
    return low


def _stake(values: np.ndarray, counts: np.ndarray, trials: int, error: float) -> float:
    """Returns a nearly optimal stake for bets on the mean of a variable that takes `values` with these counts."""
    spread = float(np.ptp(values))
    if spread == 0:
        return 0.0
    probabilities = (counts + 1 / len(counts)) / (counts.sum() + 1)
    variance = float(probabilities @ np.square(values - probabilities @ values))
    return min(LARGEST_STAKE / spread, math.sqrt(2 * -math.log(error) / (trials * variance)))


def _variables(values: np.ndarray, order: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns exp((order - 1) values) and exp(order values), which are in [0, 1] as `values` are <= 0."""
    return np.exp((order - 1) * values), np.exp(order * values)


def _log_ratios(counts: np.ndarray, other_counts: np.ndarray, number: int) -> np.ndarray:
    """Returns [T + 1] log ratios of counts, shifted so that the largest is 0.

    Cells are first merged into at most `number` groups of about equal mass; all cells of a group share a ratio.
    """
    mass = counts + other_counts
    slot = np.minimum(number - 1, ((np.cumsum(mass) - mass / 2) * (number / max(1, mass.sum()))).astype(int))
    # One half is added to each count: an outcome that occurred once is no evidence yet.
    likely, unlikely = (np.bincount(slot, weights=side, minlength=number) + 0.5 for side in (counts, other_counts))
    values = (np.log(likely) - np.log(unlikely))[slot]
    return values - values.max()


def _merits(values: np.ndarray, counts: np.ndarray, other_counts: np.ndarray, odds: float) -> np.ndarray:
    """Estimates the lower bound on rho at each of ORDERS, [orders] float64. Bounds <= 0 are rescaled."""
    # Bernstein's inequality with estimated variances replaces the bets. A bound that is not positive is divided by the
    # inequality's deduction: with more trials, the bound with the largest quotient becomes positive first.
    gains, losses = _variables(values, ORDERS[:, None])
    (gain, slack), (loss, other_slack) = _means(gains, counts, odds), _means(losses, other_counts, odds)
    estimate = _rate(gain, loss)
    bound = _rate(np.maximum(gains.min(axis=1), gain - slack), np.minimum(1.0, loss + other_slack))
    deduction = np.where(estimate > bound, estimate - bound, np.inf)
    return np.where(bound > 0, bound, np.where(deduction < np.inf, bound / deduction, -np.inf))


def _means(values: np.ndarray, counts: np.ndarray, odds: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns each row's mean under `counts`, and a one-sided error, exceeded with probability about exp(-odds)."""
    trials = max(1, counts.sum())
    probabilities = counts / trials
    mean = values @ probabilities
    variance = np.square(values - mean[:, None]) @ probabilities
    return mean, np.sqrt(2 * variance * odds / trials) + np.ptp(values, axis=1) * odds / (3 * trials)


def _rate(gain: np.ndarray, loss: np.ndarray) -> np.ndarray:
    tiny = math.ulp(0.0)
    return np.log(np.maximum(gain, tiny)) / (ORDERS - 1) - np.log(np.maximum(loss, tiny)) / ORDERS
