"""Says before a simulation that its seeds are too few for the question of a study."""

import warnings
from typing import Any

from jaxdp.validation import check_count

FEWEST_FOR_A_MEAN = 2  # of a single seed Student's limits are infinite


class TooFewSeeds(UserWarning):
    """A warning that a study will have no verdict."""


def warn_of_few_seeds(num_seeds: Any, needed: int, question: str) -> None:
    """Warns a study's caller if its seeds cannot answer a question, whatever they show.

    Args:
        num_seeds: repetitions.
        needed: see `jaxdp.stats.seeds_needed`.
        question: of the study, as the ending of "to say ...".

    Raises:
        ValueError: if num_seeds is no whole number >= 1.
    """
    if (seeds := check_count("num_seeds", num_seeds)) < needed:
        warnings.warn(f"num_seeds must be >= {needed} to say {question}, got {seeds}", TooFewSeeds, stacklevel=3)


def no_verdict(num_seeds: int, needed: int) -> str:
    """Returns what stands in a report in place of a verdict."""
    return f"no verdict: {needed} seeds or more are needed, and there {'is' if num_seeds == 1 else 'are'} {num_seeds}."
