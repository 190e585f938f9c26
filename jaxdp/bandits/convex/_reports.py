"""Reports of a loss or a slope in the interval [-bound, bound], which users randomize on their devices."""

from jaxdp.validation import check_positive

UNIT = "one round's loss function"  # the unit of privacy


def randomizer_values(report: str, epsilon: float, delta: float, name: str, bound: float) -> dict[str, float]:
    """Returns the values of `scalar_randomizer(report)` for numbers in [-bound, bound].

    Args:
        report: as for `scalar_randomizer`.
        epsilon: the privacy budget.
        delta: only for Gaussian reports; ignored otherwise.
        name: name of the bound in error messages.
        bound: > 0 and finite.

    Raises:
        ValueError: if the bound is out of range.

    Examples:
        >>> randomizer_values("rr", 1.0, 0.0, "loss_bound", 2.0)
        {'epsilon': 1.0, 'low': -2.0, 'high': 2.0}
    """
    check_positive(name, bound)
    return {"epsilon": epsilon, **({"delta": delta} if report == "gaussian" else {}), "low": -bound, "high": bound}
