"""Stakes and lengths of epochs of `pairwise_elimination_central`, fixed in advance."""

import math

import numpy as np

from jaxdp.validation import check_finite, check_positive

NUM_STAKES = 16  # without a planned effect each stake is half of the stake before
SLOPE_SHARE = 0.85  # largest slope / epsilon; at 1 the moment generating function of the noise is infinite
LARGEST_SLOPE = 3.0
NUM_EPOCHS = 1024  # enough for 2^62 rounds with the least growth


def stakes_and_weights(epsilon: float, log_odds_ratio: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the stakes of the e-value and their weights, [NUM_STAKES] float each.

    `log_odds_ratio` is the planned effect, > 0; None for stakes that suit all effects. A total's slope is at most
    -log(1 - stake), and the stakes are so small that this is at most min(0.85 epsilon, 3).
    """
    largest = -math.expm1(-min(SLOPE_SHARE * epsilon, LARGEST_SLOPE))
    if log_odds_ratio is None:
        return largest * 0.5 ** np.arange(NUM_STAKES), np.full(NUM_STAKES, 1 / NUM_STAKES)
    check_positive("log_odds_ratio", log_odds_ratio)
    check_finite("log_odds_ratio", log_odds_ratio)
    planned = log_odds_ratio / 2
    nearby = planned * np.exp(np.linspace(-math.log(4), math.log(4), NUM_STAKES - 1))
    weights = nearby * np.exp(-np.square(nearby / (1.5 * planned)) / 2)
    return np.minimum(np.append(planned, nearby), largest), np.append(0.5, 0.5 * weights / weights.sum())


def ends_of_epochs(pilot: int, first_look: int, growth: float, spacing: float, largest: int) -> np.ndarray:
    """Returns the number of plays of each active arm at the end of each epoch, [NUM_EPOCHS] integer.

    The first two are `pilot` and `first_look`. An epoch with `plays` before it adds growth * plays or min(plays,
    spacing * sqrt(plays)), whichever is more, but at least 1. From the first end above half of `largest`, all ends are
    `largest`.
    """
    ends = [pilot, first_look]
    while len(ends) < NUM_EPOCHS:
        plays = ends[-1]
        longer = max(1, int(plays * growth), int(min(math.sqrt(plays) * spacing, plays)))
        if plays + longer > largest // 2:
            return np.asarray(ends + [largest] * (NUM_EPOCHS - len(ends)))
        ends.append(plays + longer)
    return np.asarray(ends)
