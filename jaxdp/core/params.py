"""Tools for `Params`: a decorator, conversion of Python numbers to leaves, and selection of accepted values."""

import inspect
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

from jaxdp.validation import check_number

Class = TypeVar("Class")
Scalar = float | np.floating | np.integer | jax.Array  # types of a scalar leaf of `Params`


@dataclass_transform(frozen_default=True, kw_only_default=True)
def pytree_dataclass(cls: type[Class]) -> type[Class]:
    """Turns a `Params` class into a frozen dataclass with keyword-only fields, and registers it as a pytree."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True, kw_only=True)(cls))


def default_float() -> np.dtype:
    """Returns JAX's default float type: float64 in 64-bit mode, and float32 otherwise."""
    return np.dtype(jax.dtypes.canonicalize_dtype(float))


def scalar_leaf(name: str, value: float | Fraction) -> np.floating:
    """Returns a host number as a `Params` leaf.

    Args:
        name: name of the value, for the error.
        value: a number; infinity and NaN are accepted.

    Returns:
        A NumPy scalar of JAX's default float type, rounded to nearest.

    Raises:
        ValueError: if a finite value overflows in that type, or a value that is not 0 becomes 0 or subnormal.
    """
    dtype = default_float()
    with np.errstate(over="ignore", under="ignore"):
        leaf = dtype.type(value)
    # Subnormal numbers are rejected, too, because compiled programs flush them to 0.
    if (math.isfinite(value) and not np.isfinite(leaf)) or (value != 0 and abs(leaf) < np.finfo(dtype).smallest_normal):
        raise ValueError(f"{name} must be within the range of {dtype}, got {float(value)}")
    return leaf


def leaf_rounded_down(name: str, value: float | Fraction) -> np.floating:
    """Returns a nonnegative value as a `scalar_leaf`, rounded down if it is not representable.

    Use it for a privacy budget, or for a rate that a budget bounds. A share of a budget may be a fraction, which is
    compared exactly: k shares epsilon / k are at most epsilon together.

    Examples:
        >>> float(leaf_rounded_down("epsilon", 0.1)) <= 0.1 < float(np.float32(0.1))
        True
    """
    leaf = scalar_leaf(name, value)
    if float(leaf) <= value:  # NumPy would round `value` in `leaf <= value`
        return leaf
    return scalar_leaf(name, float(np.nextafter(leaf, leaf.dtype.type(0))))  # it may be subnormal now


def interval_leaves(
    low: float, high: float, *, names: tuple[str, str] = ("low", "high")
) -> tuple[np.floating, np.floating]:
    """Returns the ends of an interval as `Params` leaves.

    Args:
        low: the lower end.
        high: the upper end.
        names: names of both ends, for errors.

    Returns:
        (low, high), rounded to nearest.

    Raises:
        ValueError: if an end is not finite, if not low < high after rounding, or if an end or high - low is outside the
            range of JAX's default float type.
    """
    lowest, highest = (scalar_leaf(name, check_number(name, end)) for name, end in zip(names, (low, high), strict=True))
    scalar_leaf(f"{names[1]} - {names[0]}", float(highest) - float(lowest))
    if not lowest < highest:
        raise ValueError(f"{names[0]} must be < {names[1]}, as {lowest.dtype}, got {low} and {high}")
    return lowest, highest


def only(params: Callable[..., Any], names: Collection[str]) -> Callable[..., Any]:
    """Wraps `params` so that it accepts only these names. Among them, `delta` and `persons` have no default.

    The new function raises a TypeError for a missing or unknown value.

    Args:
        params: (**values) -> Params.
        names: names of the values to accept.
    """
    signature = inspect.signature(params)
    signature_left = signature.replace(
        parameters=[
            # `delta` and `persons` have placeholders as defaults, which are not valid, for variants without them.
            p.replace(default=p.empty) if p.name in ("delta", "persons") else p
            for p in signature.parameters.values()
            if p.name in names
        ]
    )

    def checked_params(**values: Any) -> Any:
        try:
            signature_left.bind(**values)
        except TypeError as error:
            raise TypeError(f"{params.__qualname__}(): {error}") from None
        return params(**values)

    checked_params.__signature__ = signature_left  # pyright: ignore[reportFunctionMemberAccess]
    return checked_params
