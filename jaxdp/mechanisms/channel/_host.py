"""What the host does alike for every channel: claims, and scales that are rounded up."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxdp.core import Guarantee, default_float, scalar_leaf
from jaxdp.mechanisms.calibration import round_up


def rounded_up(name: str, value: float) -> np.floating:
    """A sensitivity or a noise scale as a `Params` leaf, never rounded down.

    Args:
        name: for the error.
        value: >= 0 and finite.

    Returns:
        A NumPy scalar of JAX's default float type.

    Raises:
        ValueError: if the value leaves the range of that type.
    """
    scalar_leaf(name, value)
    return round_up(value, default_float())


def local_claim(
    unit: str, argument: str, sees: Iterable[str] | None = None, numerical_delta: float | None = None
) -> Callable[..., Guarantee]:
    """The claim of a channel calibrated to epsilon, or to (epsilon, delta).

    Args:
        unit: what one report protects.
        argument: why.
        sees: as `Guarantee.sees`; None is its default.
        numerical_delta: as `Guarantee.numerical_delta`.

    Returns:
        (epsilon, delta=0.0) -> Guarantee, in the local model.
    """
    limits: dict[str, Any] = {} if sees is None else {"sees": frozenset(sees)}

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        about = {"trust_model": "local", "privacy_unit": unit, "argument": argument, **limits}
        return Guarantee.approximate(epsilon, delta, **about, numerical_delta=numerical_delta)

    return claim
