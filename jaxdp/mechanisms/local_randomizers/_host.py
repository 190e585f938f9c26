"""Builds claims of local randomizers, and rounds their noise scales up, on the host."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxdp.core import Guarantee, default_float, scalar_leaf
from jaxdp.mechanisms.calibration import round_up


def rounded_up(name: str, value: float) -> np.floating:
    """Converts a sensitivity or a noise scale to a `Params` leaf that is never rounded down.

    Args:
        name: name in the error.
        value: >= 0 and finite.

    Returns:
        A NumPy scalar of JAX's default float type.

    Raises:
        ValueError: if the value is outside the range of JAX's default float type.
    """
    scalar_leaf(name, value)
    return round_up(value, default_float())


def local_claim(
    unit: str, argument: str, adversary_view: Iterable[str] | None = None, numerical_delta: float | None = None
) -> Callable[..., Guarantee]:
    """Builds the claim of a randomizer that is calibrated to epsilon, or to (epsilon, delta).

    Args:
        unit: the privacy unit.
        argument: the sentence that says why the claim holds.
        adversary_view: see `Guarantee.adversary_view`; None is the default of `Guarantee`.
        numerical_delta: see `Guarantee.numerical_delta`.

    Returns:
        (epsilon, delta=0.0) -> Guarantee, in the local model.
    """
    limits: dict[str, Any] = {} if adversary_view is None else {"adversary_view": frozenset(adversary_view)}

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        fields = {"trust_model": "local", "privacy_unit": unit, "argument": argument, **limits}
        return Guarantee.approximate(epsilon, delta, **fields, numerical_delta=numerical_delta)

    return claim
