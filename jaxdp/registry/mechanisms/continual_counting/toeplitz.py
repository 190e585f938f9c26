"""The entry of `toeplitz_counter`."""

from jaxdp.mechanisms import toeplitz_counter
from jaxdp.mechanisms.numerical import TOEPLITZ_STEPS, gaussian_rho, normal_delta
from jaxdp.registry.mechanisms.continual_counting._counters import LONGEST, counter_entry

ORDER = 110  # position of the entries in lists


def _numerical_delta(epsilon: float, delta: float, horizon: int) -> float | None:
    """Returns a bound on the delta that floating-point error adds to the whole stream; None if there is no bound."""
    return normal_delta(max(horizon, LONGEST), rho=gaussian_rho(epsilon, delta), steps=TOEPLITZ_STEPS)


ENTRIES = {
    "toeplitz_counter": counter_entry(
        "estimates all prefix sums of a stream with correlated Gaussian noise",
        toeplitz_counter,
        "Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024)",
        "analytic Gaussian mechanism on C x; estimates are a function of the result",
        _numerical_delta,
        values={"delta": 1e-3},
    ),
}
USES = {  # shown on pages of the site
    "toeplitz_counter": {
        "use": (
            "Use it for prefix sums under zCDP with a known horizon: nearly the optimal variance, in constant memory."
        ),
        "not": "It has no pure claim; use `tree_counter`.",
    },
}
