"""What a user reports of a loss: its number, or a slope, through a channel for the interval [-bound, bound]."""

from collections.abc import Callable

from jaxdp.core import Guarantee
from jaxdp.validation import check_positive

UNIT = "one round's loss function"  # of privacy

NAMES = {"rr": "randomized response", "laplace": "the Laplace mechanism", "gaussian": "the Gaussian mechanism"}


def channel_values(report: str, epsilon: float, delta: float, name: str, bound: float) -> dict[str, float]:
    """The values of `scalar_channel(report)` for numbers of [-bound, bound].

    >>> channel_values("rr", 1.0, 0.0, "loss_bound", 2.0)
    {'epsilon': 1.0, 'low': -2.0, 'high': 2.0}

    Args:
        report: as for `scalar_channel`.
        epsilon: the privacy budget.
        delta: of Gaussian reports; others ignore it.
        name: of the bound, for the error.
        bound: > 0 and finite.

    Raises:
        ValueError: if the bound is out of range.
    """
    check_positive(name, bound)
    return {"epsilon": epsilon, **({"delta": delta} if report == "gaussian" else {}), "low": -bound, "high": bound}


def value_names(report: str, *others: str) -> tuple[str, ...]:
    """Names of a learner's values: those of its channel that a user chooses, and others."""
    return ("epsilon", *(("delta",) if report == "gaussian" else ()), *others)


def local_claim(report: str) -> Callable[..., Guarantee]:
    """The claim of a learner that sees of each round one report.

    Args:
        report: as for `scalar_channel`.

    Returns:
        (epsilon, delta=0.0) -> Guarantee, in the local model.
    """

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="local",
            privacy_unit=UNIT,
            argument=f"each round is one release of {NAMES[report]}",
        )

    return claim
