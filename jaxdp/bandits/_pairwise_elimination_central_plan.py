"""The stakes and the lengths of epochs of `pairwise_elimination_central`, which are fixed in advance."""

import math

import numpy as np

from jaxdp.core import default_float
from jaxdp.validation import check_positive, check_within

NUM_STAKES = 16  # without an anticipated effect, each stake is half of the previous one
SLOPE_SHARE = 0.85  # largest slope / epsilon; at 1 the moment generating function of the noise is infinite
LARGEST_SLOPE = 3.0
NUM_EPOCHS = 1024  # enough for 2^62 rounds with the least growth


def stakes_and_weights(epsilon: float, log_odds_ratio: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the stakes of the e-value, and the weights of the stakes, [NUM_STAKES] float each.

    `log_odds_ratio` is the anticipated effect, > 0; if None, the stakes cover effects of all sizes. A total's slope is
    at most -log(1 - stake). All stakes are small enough that this is at most min(0.85 epsilon, 3).
    """
    largest = -math.expm1(-min(SLOPE_SHARE * epsilon, LARGEST_SLOPE))
    if log_odds_ratio is None:
        return largest * 0.5 ** np.arange(NUM_STAKES), np.full(NUM_STAKES, 1 / NUM_STAKES)
    limits = np.finfo(default_float())  # the smallest stake is an eighth of the effect, and must not underflow
    check_within("log_odds_ratio", check_positive("log_odds_ratio", log_odds_ratio), 8 * limits.tiny, limits.max / 8)
    planned = log_odds_ratio / 2
    nearby = planned * np.exp(np.linspace(-math.log(4), math.log(4), NUM_STAKES - 1))
    weights = nearby * np.exp(-np.square(nearby / (1.5 * planned)) / 2)
    return np.minimum(np.append(planned, nearby), largest), np.append(0.5, 0.5 * weights / weights.sum())


def ends_of_epochs(pilot: int, first_look: int, growth: float, spacing: float, largest: int) -> np.ndarray:
    """Returns the number of plays of each active arm at the end of each epoch, [NUM_EPOCHS] integer.

    The first two ends are `pilot` and `first_look`. After `plays` plays, an epoch adds the maximum of growth * plays,
    min(plays, spacing * sqrt(plays)) and 1. The first end above half of `largest` and all later ends are replaced by
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
