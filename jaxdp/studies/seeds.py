"""Warnings, before a simulation, that a study has too few seeds to answer its question."""

import warnings
from typing import Any

from jaxdp.validation import check_count

FEWEST_FOR_A_MEAN = 2  # seeds; Student's limits of a single one are infinite


class TooFewSeeds(UserWarning):
    """A study has too few seeds to reach a verdict."""


def warn_of_few_seeds(num_seeds: Any, needed: int, question: str) -> None:
    """Warns a study's caller that no outcome of so few seeds could answer a question.

    Args:
        num_seeds: repetitions.
        needed: see `jaxdp.stats.seeds_needed`.
        question: the study's question, as the ending of "to say ...".

    Raises:
        ValueError: if num_seeds is not a whole number >= 1.
    """
    if (seeds := check_count("num_seeds", num_seeds)) < needed:
        warnings.warn(f"num_seeds must be >= {needed} to say {question}, got {seeds}", TooFewSeeds, stacklevel=3)


def no_verdict(num_seeds: int, needed: int) -> str:
    """Returns the sentence that a report prints in place of a verdict."""
    return f"no verdict: at least {needed} seeds are needed, got {num_seeds}."
