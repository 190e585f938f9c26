"""Checks argument names, rejected values and claims of algorithms of all kinds, and compares outputs."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee


def check_arguments(functions: Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]]) -> None:
    """Checks that functions, given by name, have the expected argument names."""
    for name, (function, expected) in functions.items():
        names = tuple(inspect.signature(function).parameters)
        assert names == expected, f"arguments must be {expected}, got {names} in {name}"


def check_values(params: Callable[..., Any], guarantee: Callable[..., Guarantee]) -> None:
    """Checks that `params` and `guarantee` have the same argument names with the same defaults."""
    first, second = (
        {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
        for function in (params, guarantee)
    )
    assert first.keys() == second.keys(), (
        f"guarantee must take the names that params takes, got {[*second]}, {[*first]}"
    )
    for name, default in first.items():
        same = default is second[name] or np.array_equal(default, second[name])
        assert same, f"guarantee must have the defaults of params, got {second[name]} and {default} for {name}"


def check_refusals(params: Callable[..., Any], values: Mapping[str, float]) -> None:
    """Checks that `params` raises a ValueError that names epsilon, if epsilon is 0, -1 or NaN."""
    for epsilon in (0.0, -1.0, float("nan")):
        try:
            params(**{**values, "epsilon": epsilon})
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert "epsilon" in refusal, f"params must reject epsilon = {epsilon} and name it, got {refusal or 'no error'}"


def check_claim(
    guarantee: Callable[..., Guarantee], values: Mapping[str, float], multiple: float = 1.0, *, or_less: bool = False
) -> None:
    """Checks that a guarantee claims `multiple` times the epsilon of the values, at this epsilon and at infinity.

    Args:
        guarantee: (**values) -> Guarantee.
        values: a grid point with `epsilon`; also with `delta` for a zCDP or Gaussian claim, which must imply the
            claimed epsilon at this delta, up to rounding. If values have `delta`, the delta of an approximate claim
            must be at most this delta, up to rounding.
        multiple: the claimed epsilon divided by the epsilon of the values. If it is above 1, the delta of an
            approximate claim is not checked: the delta of a group is larger, too.
        or_less: whether a finite claim may be smaller.
    """
    for epsilon in (values["epsilon"], np.inf):
        claim, due = guarantee(**{**values, "epsilon": epsilon}), multiple * epsilon
        if claim.kind in ("zcdp", "gaussian"):  # calibrated so that it implies (epsilon, delta), up to rounding
            assert "delta" in values, f"values must have a delta, at which a claim of {claim} has an epsilon"
            implied = claim.epsilon_at(values["delta"])
            assert math.isclose(implied, due, rel_tol=1e-6) or (or_less and 0 < implied < due < np.inf), (
                f"guarantee must imply epsilon = {due} at delta = {values['delta']}, got {implied}"
            )
        else:
            less = or_less and 0 < claim.epsilon < due * (1 + 1e-6) < np.inf  # up to rounding
            assert claim.epsilon == due or less, f"guarantee must claim epsilon = {due}, got {claim.epsilon}"
            most = values.get("delta", np.inf) if multiple <= 1 and claim.is_private else np.inf
            assert claim.delta <= most * (1 + 1e-6), f"guarantee must claim delta <= {most}, got {claim.delta}"


def claim_at(guarantee: Callable[..., Guarantee], values: Mapping[str, float]) -> Guarantee:
    """Returns the claim at a grid point, after checking that it is a Guarantee."""
    claim = guarantee(**values)
    assert isinstance(claim, Guarantee), f"guarantee must return a Guarantee, got {claim!r}"
    return claim


def check_close(first: Any, second: Any, tolerance: float) -> None:
    """Checks that floats agree within a relative and absolute tolerance, and that all shapes and dtypes are equal.

    Integers and booleans are not compared: counts and decisions that depend on floats may differ by rounding.
    """
    chex.assert_trees_all_equal_shapes_and_dtypes(first, second)
    chex.assert_trees_all_close(_floats(first), _floats(second), rtol=tolerance, atol=tolerance)


def _floats(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}
