"""Computes checkpoints, the rounds after which a simulation records its outputs."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jaxdp.validation import check_count


@dataclass(frozen=True)
class LogSpaced:
    """A number of checkpoints up to the horizon, evenly spaced in the logarithm of the round."""

    count: int


def log_spaced(count: int) -> LogSpaced:
    """Returns a value for `checkpoints` that means rounds from 1 to the horizon, evenly spaced in log scale.

    Args:
        count: number of checkpoints, >= 1; a single checkpoint is the horizon. Checkpoints that round to the same
            integer are recorded once.

    Raises:
        ValueError: if count is not an integer >= 1.
    """
    return LogSpaced(check_count("count", count))


def resolve(checkpoints: int | Sequence[int] | LogSpaced | None, horizon: int) -> list[int]:
    """Returns the rounds after which a simulation records its outputs.

    Args:
        checkpoints: increasing rounds, a number of evenly spaced rounds (all rounds if the number is above the
            horizon), or `log_spaced(n)`; None means only the horizon.
        horizon: number of rounds, >= 1.

    Returns:
        Increasing integers in [1, horizon].

    Raises:
        ValueError: if there are no checkpoints, or if they are not increasing integers in [1, horizon]; if a number of
            checkpoints is not an integer >= 1.
    """
    if checkpoints is None:
        return [horizon]
    if isinstance(checkpoints, LogSpaced):
        spaced = np.geomspace(1, horizon, checkpoints.count) if checkpoints.count > 1 else np.asarray([horizon])
        return sorted({min(round(float(value)), horizon) for value in spaced} | {horizon})
    if not isinstance(checkpoints, Iterable) or np.ndim(checkpoints) == 0:
        count = min(check_count("checkpoints", checkpoints), horizon)  # pyright: ignore[reportArgumentType]
        return [horizon * (index + 1) // count for index in range(count)]
    rounds = checkpoints.tolist() if isinstance(checkpoints, np.ndarray | jax.Array) else list(checkpoints)
    for value in rounds:
        check_count("checkpoints", value)
    if not rounds:
        raise ValueError("checkpoints must have at least one round, got none; use None for only the horizon")
    if any(later <= earlier for earlier, later in itertools.pairwise(rounds)):
        raise ValueError(f"checkpoints must be increasing, got {rounds}")
    if rounds[-1] > horizon:
        raise ValueError(f"checkpoints must be within the horizon {horizon}, got {rounds[-1]}")
    return [int(value) for value in rounds]
