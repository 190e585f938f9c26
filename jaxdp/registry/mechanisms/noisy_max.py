"""Registry entries of `noisy_max`."""

import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, perturb_entries
from jaxdp.mechanisms.numerical import selection_delta
from jaxdp.registry.distributions import noisy_max_distribution
from jaxdp.registry.entries import BUDGETS
from jaxdp.registry.mechanisms._releases import (
    NUMBERS,
    SENSITIVITIES,
    UNIT,
    Pair,
    claim,
    for_sensitivity,
    mechanism_entry,
)

ORDER = 30  # position of the entries in lists


def _numerical_delta(epsilon: float, num_scores: int) -> float | None:
    return selection_delta(max(num_scores, NUMBERS), epsilon)


def _noisy_max(key, params, data, *, noise):
    return mechanisms.noisy_max(key, data, params.epsilon, sensitivity=params.bound, noise=noise)


def _all_scores_move(num_scores: int, sensitivity: float = 1.0) -> Pair:
    """Returns two vectors of scores: in the second, the first score is lower and all others are higher.

    Each score changes by the sensitivity. The first score is 3 sensitivities below the others, so it is seldom
    selected at a large epsilon.
    """
    first = np.zeros(num_scores, np.float32)
    first[0] = -3 * sensitivity
    second = first + np.float32(sensitivity)
    second[0] = first[0] - np.float32(sensitivity)
    return first, second


def _scores_change(num_scores: int, sensitivity: float = 1.0) -> Domain:
    return perturb_entries((num_scores,), norm="max", by=sensitivity)


ENTRIES = {
    f"noisy_max_{noise}": mechanism_entry(
        summary=f"selects the largest score after adding {text}",
        source=source,
        factory=mechanisms.noisy_max,
        variant={"noise": noise},
        sizes={"num_scores": 3},
        values={"epsilon": 1.0},
        params=for_sensitivity,
        guarantee=claim(
            "central",
            UNIT,
            f"{text} of scale {{twice}} / epsilon on scores of sensitivity {{sensitivity}}",
            _numerical_delta,
        ),
        release=_noisy_max,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        other_sizes=({"num_scores": 8},),
        domain=_scores_change,
        neighbours=_all_scores_move,
        exact=None,  # ties are broken at random
        distribution=noisy_max_distribution,
    )
    for noise, text, source in (
        ("laplace", "Laplace noise", "Dwork & Roth (2014), Claim 3.9"),
        ("gumbel", "Gumbel noise (the exponential mechanism)", "Dwork & Roth (2014), Theorem 3.10"),
        (
            "exponential",
            "one-sided exponential noise (permute-and-flip)",
            "McKenna & Sheldon (2020), with Ding et al. (2021)",
        ),
    )
}
USES = {  # shown on pages of the site
    "noisy_max": {
        "use": (
            "Use it to select one of many options by private scores; exponential noise is never worse than Gumbel "
            "noise, the exponential mechanism."
        ),
        "not": "It releases the index, not the score: release the score separately, with its own budget.",
    },
}
