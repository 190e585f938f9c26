"""Bounds of Table 1 of Asi et al. (2025) up to constant factors, for comparison with simulated regret."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxdp.studies.comparison import Line
from jaxdp.studies.tracking import ADVERSARIES, Setting
from jaxdp.theory import tracking as theory

ORDER_LABEL = "order of Table 1 (upper bound)"


class Order(NamedTuple):
    """A bound of Table 1.

    Attributes:
        text: the theorem's name in the paper, for captions.
        at: function(epsilon, setting, delta) that returns the bound, up to a constant factor.
    """

    text: str
    at: Callable[[float, Setting, float], np.ndarray]


def _sizes(setting: Setting) -> dict[str, int]:
    return {"horizon": setting.horizon, "num_experts": setting.num_experts, "num_switches": setting.num_switches}


def _lower(epsilon: float, setting: Setting, delta: float) -> np.ndarray:
    del delta
    if setting.num_switches > setting.num_experts:
        return np.array(np.nan)  # the bound's proof needs a different expert in each phase
    return theory.shifting_lower(epsilon, **_sizes(setting))


_LOWER = Order("lower bound of section 3.2", _lower)
ORDERS = {  # for each kind of adversary, the upper bound and then the lower bound
    "shifting": (
        Order("Thm 3.6", lambda epsilon, setting, delta: theory.shifting_upper(epsilon, **_sizes(setting))),
        _LOWER,
    ),
    "oblivious": (
        Order(
            "Cor 4.1.1, claimed",
            lambda epsilon, setting, delta: theory.oblivious_upper(epsilon, **_sizes(setting), delta=delta),
        ),
        _LOWER,
    ),
    "adaptive": (
        Order("Thm 5.2, claimed", lambda epsilon, setting, delta: theory.adaptive_upper(epsilon, **_sizes(setting))),
        Order(
            "Thm 5.1, lower bound",
            lambda epsilon, setting, delta: theory.adaptive_lower(epsilon, setting.horizon, setting.num_switches),
        ),
    ),
}


def orders_note(rows: Sequence[Setting]) -> str:
    """Returns a sentence that names the upper bounds for the adversaries of `rows`; "" if the first has no switches."""
    if not rows[0].num_switches:
        return ""
    texts = {ORDERS[ADVERSARIES[base.adversary].kind][0].text: None for base in rows}
    return f"Orders of bounds ({'; '.join(texts)}) pass through the lowest first mark: compare slopes."


def order_lines(x: Any, points: Sequence[tuple[float, Setting]], delta: float) -> list[Line]:
    """Returns a list with the upper bound of Table 1 as a line, scaled through the lowest of the curves' first marks.

    `x` has the horizontal position of each point (epsilon, setting). The list is empty unless the bound is positive and
    finite at every finite x.
    """
    order = ORDERS[ADVERSARIES[points[0][1].adversary].kind][0]
    bounds = heights(order, points, delta)
    if np.all((bounds > 0) & np.isfinite(bounds) | ~np.isfinite(np.asarray(x, float))):
        return [Line(x, bounds, ORDER_LABEL, "lowest")]
    return []


def heights(order: Order, points: Sequence[tuple[float, Setting]], delta: float) -> np.ndarray:
    """Returns a bound at each point (epsilon, setting), up to a constant factor; NaN where the bound does not apply."""

    def height(epsilon: float, setting: Setting) -> float:
        if not 0 < setting.num_switches < setting.horizon - 1:
            return float("nan")
        return float(order.at(epsilon, setting, delta))

    return np.array([height(epsilon, setting) for epsilon, setting in points])


def slope(x: np.ndarray, bound: np.ndarray) -> str:
    """Formats the fitted exponent of x in a bound; a dash unless the bound is known and positive at every point."""
    if not np.all(bound > 0):
        return "-"
    return f"{np.polyfit(np.log(np.asarray(x, float)), np.log(bound), 1)[0] + 0.0:.2f}"
