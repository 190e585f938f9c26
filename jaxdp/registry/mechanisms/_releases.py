"""Common parts of the entries of several mechanisms."""

from collections.abc import Callable, Iterable
from functools import partial
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np

from jaxdp.core import Guarantee, default_float, leaf_rounded_down
from jaxdp.mechanisms.calibration import round_up
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.registry.entries import MechanismEntry
from jaxdp.simulation.run.values import select_values, with_names
from jaxdp.validation import check_delta, check_epsilon, check_positive

Pair = tuple[np.ndarray, np.ndarray]
UNIT = "one record"


def claim(
    trust_model: str, unit: str, argument: str, added: Callable[..., float | None] = lambda: None
) -> Callable[..., Guarantee]:
    """Returns an entry's function `guarantee`, which returns a pure claim, or an approximate claim if it gets a delta.

    Args:
        trust_model: trust model of the claim.
        unit: privacy unit; {bound} in it stands for the value `bound`.
        argument: reason why the claim holds; {sensitivity} and {twice} in it stand for the value `sensitivity` and
            for twice this value.
        added: function of the values and sizes that it takes by name; returns a bound on the delta that floating-point
            error adds, or None if there is no bound.
    """

    def guarantee(
        *, epsilon: float, delta: float | None = None, sensitivity: float = 1.0, bound: float = 1.0, **sizes: Any
    ) -> Guarantee:
        check_positive("bound", bound)
        values = {"epsilon": epsilon, "delta": delta or 0.0, "sensitivity": check_positive("sensitivity", sensitivity)}
        return Guarantee.approximate(
            epsilon,
            0.0 if delta is None else check_delta(delta),
            trust_model=trust_model,
            privacy_unit=unit.format(bound=f"{bound:g}"),
            argument=argument.format(sensitivity=f"{sensitivity:g}", twice=f"{2 * sensitivity:g}"),
            numerical_delta=added(**select_values(added, values), **sizes),
        )

    return with_names(guarantee, [("guarantee", guarantee), ("added", added)])


mechanism_entry = partial(MechanismEntry, family="mechanisms", proof="proved")


def at_sizes(
    make: Callable[..., Any], sizes: Iterable[str], function: Callable[..., Any], *inputs: str
) -> Callable[..., Any]:
    """Returns a function that calls `make` with the keywords `sizes`, then `function` with the result.

    The result is the first argument of `function`. The function's other arguments are the positional arguments `inputs`
    and the remaining keyword arguments.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        mechanism = make(**{size: named.pop(size) for size in sizes})
        return function(mechanism, *arguments, **named)

    parameters = [
        *(Parameter(name, Parameter.POSITIONAL_ONLY) for name in inputs),
        *(Parameter(name, Parameter.KEYWORD_ONLY) for name in sizes),
        *([] if inputs else [Parameter("values", Parameter.VAR_KEYWORD)]),
    ]
    call.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return call


RELEASED = ("key", "params", "data")  # inputs of a release


NUMBERS = 8  # number of values for which a shorter release is claimed


def laplaces(epsilon: float, sensitivity: float, num_counts: int) -> float | None:
    numbers = max(num_counts, NUMBERS)
    return laplace_delta(epsilon, numbers=numbers, spread=numbers, l1_sensitivity=sensitivity)


class Params(NamedTuple):
    """The params of a mechanism that needs a budget and a bound on its input.

    Attributes:
        epsilon: [] float.
        bound: [] float, the sensitivity, or the largest absolute value of a scalar.
    """

    epsilon: np.ndarray
    bound: np.ndarray


def budget(*, epsilon: float) -> np.ndarray:
    return np.asarray(leaf_rounded_down("epsilon", check_epsilon(epsilon)))


def checked_sensitivity(sensitivity: float) -> np.ndarray:
    return np.asarray(round_up(check_positive("sensitivity", sensitivity), default_float()))


def for_sensitivity(*, epsilon: float, sensitivity: float = 1.0) -> Params:
    return Params(budget(epsilon=epsilon), checked_sensitivity(sensitivity))


def itself(data):
    return data


SENSITIVITIES = (0.3, 3.0)  # not powers of two
