"""Registry entries of `laplace`, `gaussian`, `classical_gaussian` and `k_norm`."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, perturb_entries
from jaxdp.core import default_float
from jaxdp.mechanisms.numerical import vector_delta
from jaxdp.registry.entries import BUDGETS
from jaxdp.registry.mechanisms._releases import (
    NUMBERS,
    SENSITIVITIES,
    UNIT,
    Pair,
    checked_sensitivity,
    claim,
    for_sensitivity,
    itself,
    laplaces,
    mechanism_entry,
)

ORDER = 10  # position of the entries in lists


def _gaussian_numerical_delta(epsilon: float, delta: float, num_counts: int) -> float | None:
    return vector_delta(epsilon, delta, numbers=max(num_counts, NUMBERS))


def _k_norm_numerical_delta(epsilon: float, num_counts: int) -> float | None:
    return vector_delta(epsilon, None, numbers=max(num_counts, NUMBERS))


class GaussianParams(NamedTuple):
    """The params of a release with Gaussian noise.

    Attributes:
        noise_stddev: [] float.
        bound: [] float, the L2 sensitivity.
    """

    noise_stddev: np.ndarray
    bound: np.ndarray


def _gaussian_params(
    calibrate: Callable[..., float], *, epsilon: float, delta: float, sensitivity: float = 1.0
) -> GaussianParams:
    stddev = mechanisms.round_up(calibrate(epsilon, delta, sensitivity), default_float())
    return GaussianParams(np.asarray(stddev), checked_sensitivity(sensitivity))


def _laplace(key, params, data):
    return mechanisms.laplace(key, data, params.epsilon, l1_sensitivity=params.bound)


def _gaussian(key, params, data):
    return mechanisms.gaussian(key, data, params.noise_stddev, l2_sensitivity=params.bound)


def _k_norm(key, params, data):
    return mechanisms.k_norm(key, data, params.epsilon, sensitivity=params.bound)


def _one_counted(num_counts: int, sensitivity: float = 1.0) -> Pair:
    """Returns two vectors of `num_counts` counts: all are 0, or all except the last, which is `sensitivity`."""
    never = np.zeros(num_counts, np.float32)
    once = never.copy()
    once[-1] = sensitivity
    return never, once


def _l1_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return perturb_entries((num_counts,), norm="l1", by=sensitivity)


def _l2_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return perturb_entries((num_counts,), norm="l2", by=sensitivity)


LAPLACE = mechanism_entry(
    summary="adds Laplace noise of scale l1_sensitivity / epsilon",
    source="Dwork & Roth (2014), Definition 3.3 and Theorem 3.6",
    factory=mechanisms.laplace,
    sizes={"num_counts": 2},
    values={"epsilon": 1.0},
    params=for_sensitivity,
    guarantee=claim("central", UNIT, "Laplace mechanism at L1 sensitivity {sensitivity}", laplaces),
    release=_laplace,
    grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
    domain=_l1_change,
    neighbours=_one_counted,
    exact=itself,
)
ENTRIES = {
    "laplace": LAPLACE,
    "gaussian": replace(
        LAPLACE,
        summary="adds Gaussian noise, analytically calibrated to (epsilon, delta)",
        source="Balle & Wang (2018), Theorem 8 and Algorithm 1",
        factory=mechanisms.gaussian,
        values={"epsilon": 1.0, "delta": 1e-3},
        params=partial(_gaussian_params, mechanisms.analytic_gaussian),
        guarantee=claim(
            "central", UNIT, "analytic Gaussian mechanism at L2 sensitivity {sensitivity}", _gaussian_numerical_delta
        ),
        release=_gaussian,
        domain=_l2_change,
    ),
    "classical_gaussian": replace(
        LAPLACE,
        summary="adds Gaussian noise by the classical formula, which holds for epsilon < 1",
        source="Dwork & Roth (2014), Theorem 3.22 (A.1)",
        reached=0.4,  # the true fraction is 0.554, because the classical formula has too much noise
        factory=mechanisms.gaussian,
        values={"epsilon": 0.5, "delta": 1e-3},
        params=partial(_gaussian_params, mechanisms.classical_gaussian),
        guarantee=claim(
            "central",
            UNIT,
            "classical Gaussian mechanism at L2 sensitivity {sensitivity} and epsilon < 1",
            _gaussian_numerical_delta,
        ),
        release=_gaussian,
        grid={"epsilon": (0.1, 0.9), "sensitivity": SENSITIVITIES},
        domain=_l2_change,
    ),
    "k_norm": replace(
        LAPLACE,
        summary="adds noise in a uniform direction, with a Gamma-distributed norm, to a vector",
        source="Hardt & Talwar (2010), for the Euclidean ball",
        factory=mechanisms.k_norm,
        guarantee=claim(
            "central",
            UNIT,
            "K-norm mechanism of the Euclidean ball at L2 sensitivity {sensitivity}",
            _k_norm_numerical_delta,
        ),
        release=_k_norm,
        other_sizes=({"num_counts": 5},),
        domain=_l2_change,
    ),
}
USES = {  # shown on pages of the site
    "laplace": {
        "use": "Use it to release numbers with pure privacy, when their L1 sensitivity is small.",
        "not": (
            "For vectors with a small L2 sensitivity, `k_norm` (pure) or `gaussian` (δ > 0) has less noise. It draws "
            "simulated noise; releases of real data need the operating system's random words."
        ),
    },
    "gaussian": {
        "use": "Use it to release vectors with δ > 0 or under zCDP: it composes tightly over many releases.",
        "not": "For one number at moderate ε `laplace` has less noise, and a pure claim.",
    },
    "k_norm": {
        "use": "Use it to release a vector with pure privacy from its L2 sensitivity.",
        "not": "In many dimensions `gaussian` has far less noise if δ > 0 is acceptable.",
    },
}
