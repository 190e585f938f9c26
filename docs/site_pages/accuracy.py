"""Computes what pictures of mechanisms that select, compare or flip show: probabilities and errors, by exact formulas.

Integrals over one noise are sums on a grid of its quantiles.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from jaxdp.registry import MechanismEntry

LEAD = 5.0  # of the largest score or total over each other one, and of queries beside the threshold
USERS = 100  # reports in a debiased mean


class Shown(NamedTuple):
    """The quantity that the picture of a mechanism shows.

    Attributes:
        label: the name of the vertical axis.
        meaning: the quantity, in words.
        value: (entry, epsilon) -> the quantity at the variant, values and sizes of the entry.
        is_probability: whether the vertical axis is linear, not logarithmic.
    """

    label: str
    meaning: str
    value: Callable[[MechanismEntry, float], float]
    is_probability: bool = False


def _quantiles(noise: str) -> np.ndarray:
    """Returns standard noise at the middles of intervals of equal probability."""
    at = (np.arange(200_000) + 0.5) / 200_000
    if noise == "exponential":
        return -np.log1p(-at)
    if noise == "gumbel":
        return -np.log(-np.log(at))
    return np.where(at < 0.5, np.log(2 * at), -np.log(2 * (1 - at)))


def distribution_function(noise: str, at: np.ndarray) -> np.ndarray:
    """Returns the probability that standard noise is at most `at`."""
    if noise == "exponential":
        return -np.expm1(-np.maximum(at, 0))
    if noise == "gumbel":
        return np.exp(-np.exp(-at))
    tail = np.exp(-np.abs(at)) / 2
    return np.where(at < 0, tail, 1 - tail)


def probability_of_largest(noise: str, count: int, lead: float) -> float:
    """Returns the probability that the largest of `count` scores stays the largest, `lead` noise scales above each."""
    return float(np.mean(distribution_function(noise, _quantiles(noise) + lead) ** (count - 1)))


def probability_of_wrong_answer(count: int, threshold_scale: float, query_scale: float) -> float:
    """Returns the probability that another answer is reported than the last of `count` queries.

    Only this query is above the threshold, by LEAD; the others are below it by LEAD.
    """
    noise = threshold_scale * _quantiles("laplace")
    others_stay_below = distribution_function("laplace", (LEAD + noise) / query_scale) ** (count - 1)
    return 1 - float(np.mean(others_stay_below * distribution_function("laplace", (LEAD - noise) / query_scale)))


def _noisy_max(entry: MechanismEntry, epsilon: float) -> float:
    return probability_of_largest(entry.variant["noise"], entry.sizes["num_scores"], LEAD * epsilon / 2)


def _noisy_leads(entry: MechanismEntry, epsilon: float) -> float:
    return probability_of_largest("laplace", entry.sizes["num_counts"], LEAD * epsilon)


def _above_threshold(entry: MechanismEntry, epsilon: float) -> float:
    share = 0.5 if entry.variant["split"] == "even" else 1 / (1 + 2 ** (2 / 3))
    return probability_of_wrong_answer(entry.sizes["num_queries"], 1 / (epsilon * share), 2 / (epsilon * (1 - share)))


def _truthful(entry: MechanismEntry, epsilon: float) -> float:
    labels = {**entry.variant, **entry.sizes}["num_labels"]
    return 1 / (1 + (labels - 1) * math.exp(-epsilon))


def _mean_of_scalars(entry: MechanismEntry, epsilon: float) -> float:
    del entry
    return 1 / (math.tanh(epsilon / 2) * math.sqrt(USERS))


def _count_of_ones(entry: MechanismEntry, epsilon: float) -> float:
    users = entry.sizes["num_users"]
    local = float(entry.make().params(**{**entry.values, "epsilon": epsilon}))
    return math.sqrt(users) / (2 * math.sinh(local / 2))


SHOWN: Mapping[str, Shown] = {
    "noisy_max": Shown(
        "P(largest score is selected)",
        f"the probability that the largest score is selected, {LEAD:g} sensitivities above each other score",
        _noisy_max,
        is_probability=True,
    ),
    "noisy_leads": Shown(
        "P(largest total has lead 0)",
        f"the probability that the largest total has the lead 0, {LEAD:g} sensitivities above each other total",
        _noisy_leads,
        is_probability=True,
    ),
    "above_threshold": Shown(
        "P(wrong answer)",
        f"the probability of a wrong answer: the last query is {LEAD:g} sensitivities above the threshold, and each "
        "other query as much below",
        _above_threshold,
        is_probability=True,
    ),
    "randomized_response": Shown(
        "P(report is true)",
        "the probability that a report is the user's own label",
        _truthful,
        is_probability=True,
    ),
    "randomize_scalar": Shown(
        "standard error of the mean",
        f"the standard error of the mean of {USERS} debiased bits, for values 0 and the bound 1",
        _mean_of_scalars,
    ),
    "shuffled_ones": Shown(
        "standard error of the count",
        "the standard error of the debiased count of ones",
        _count_of_ones,
    ),
}


def accuracies(algorithm: str, entries: Mapping[str, MechanismEntry], budgets: tuple[float, ...]) -> dict[str, list]:
    """Returns, for each entry, the quantity of `SHOWN` at each budget; NaN if the mechanism refuses it."""

    def value(entry: MechanismEntry, epsilon: float) -> float:
        try:
            return SHOWN[algorithm].value(entry, epsilon)
        except ValueError:
            return math.nan

    return {name: [value(entry, epsilon) for epsilon in budgets] for name, entry in entries.items()}
