"""Builds the `guarantee` function of an algorithm from a claim and the algorithm's `params`."""

import inspect
from collections.abc import Callable
from typing import Any

from jaxdp.core.guarantee import Guarantee


def guarantee_for(params: Callable[..., Any], claim: Callable[..., "Guarantee"]) -> Callable[..., "Guarantee"]:
    """Builds the `guarantee` function of an algorithm, which raises an error for values that `params` rejects.

    Args:
        params: (**values) -> Params.
        claim: takes some of the values as keyword arguments and returns a Guarantee. `params` must take each argument
            of `claim` that has no default.

    Returns:
        A function with the signature of `params`.

    Raises:
        ValueError: if an argument of claim has no default and `params` does not take it.

    Examples:
        >>> from jaxdp.core import Guarantee
        >>> def params(*, epsilon: float, learning_rate: float = 0.1): ...
        >>> def claim(epsilon: float) -> Guarantee:
        ...     return Guarantee.pure(epsilon, trust_model="local", privacy_unit="one label", argument="noise")
        >>> print(guarantee_for(params, claim)(epsilon=0.5, learning_rate=0.2))
        0.5-DP, local, one label
    """
    signature, claim_parameters = inspect.signature(params), inspect.signature(claim).parameters
    for name, parameter in claim_parameters.items():
        if name not in signature.parameters and parameter.default is parameter.empty:
            raise ValueError(
                f"claim must only need values that params takes, {', '.join(signature.parameters)}, got {name}"
            )

    def guarantee(**values: Any) -> Guarantee:
        params(**values)
        bound = signature.bind(**values)
        bound.apply_defaults()
        return claim(**{name: value for name, value in bound.arguments.items() if name in claim_parameters})

    guarantee.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return guarantee
