"""Warns before a simulation if a study has too few seeds to answer its question."""

import warnings
from typing import Any

from jaxdp.validation import check_count

FEWEST_FOR_A_MEAN = 2  # seeds; with one seed, Student's limits are NaN


class TooFewSeeds(UserWarning):
    """Warning that a study has too few seeds to reach a verdict."""


def warn_of_few_seeds(num_seeds: Any, needed: int, question: str) -> None:
    """Warns if no results with this number of seeds could answer a study's question.

    The warning points to the call of the study.

    Args:
        num_seeds: number of repetitions.
        needed: minimum number of seeds that can answer the question: `jaxdp.stats.seeds_needed`, or 2 for a mean.
        question: words that complete "to say ...", for example "which epsilons come close to the non-private regret".

    Raises:
        ValueError: if num_seeds is not an integer >= 1.
    """
    if (seeds := check_count("num_seeds", num_seeds)) < needed:
        warnings.warn(f"num_seeds must be >= {needed} to say {question}, got {seeds}", TooFewSeeds, stacklevel=3)


def no_verdict(num_seeds: int, needed: int) -> str:
    """Returns the sentence that a report prints instead of a verdict."""
    return f"no verdict: at least {needed} seeds are needed, got {num_seeds}."
