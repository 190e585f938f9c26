"""Formulas of bounds are evaluated, and compared with the functions' results."""

import inspect
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from jaxdp.theory import contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking
from tests.contract.latex import Symbols, evaluate, formulas

EPSILON = 0.7
MODULES = (contextual, dueling, ldp_bandits, linear_dueling, reward_estimation, tracking)
# Constants in the bounds.
PARTS = ("coverage", "curvature", "largest_coverage", "plackett_luce_curvature")


class Case(NamedTuple):
    """A bound, values of its symbols, the arguments with the same values, and the formula among those displayed."""

    function: Any
    symbols: dict[str, float]
    arguments: dict[str, Any]
    which: int = 0


def arguments_of(function: Any, **more: Any) -> dict[str, Any]:
    """Returns the shared arguments that a function takes, and `more`."""
    taken = inspect.signature(function).parameters
    return {name: value for name, value in SHARED.items() if name in taken} | more


SHARED: dict[str, Any] = {
    "epsilon": EPSILON,
    "delta": 1e-3,
    "horizon": 1000,
    "dim": 3,
    "failure_prob": 0.05,
    "num_experts": 8,
    "num_switches": 5,
    "window": 100,
    "num_samples": 500,
    "num_actions": 4,
    "feature_norm": 0.8,
    "radius": 1.5,
    "coverage": 0.4,
    "noise_stddev": 2.5,
    "ridge": 0.3,
    "bias_scale": 2.0,
    "slope": 0.2,
    "second_moment": 9.0,
    "range_bound": 3.0,
    "lipschitz": 2.0,
    "strong_convexity": 0.6,
    "smoothness": 1.1,
    "loss_bound": 0.9,
    "regularizer": 2.0,
    "noise_proxy": 0.49,
    "num_arms": 6,
    "scale": 1.3,
}
TRACKING = {r"\varepsilon": EPSILON, r"\delta": 1e-3, "T": 1000, "N": 8, "S": 5, "w": 100, "b": 0.05}
REWARDS = {r"\varepsilon": EPSILON, r"\delta": 1e-3, "n": 500, "d": 3, "K": 4, "L": 0.8, "B": 1.5, "C": 1.0, "C'": 2.0}
REWARDS |= {r"\kappa": 0.4, r"\alpha": 0.05, r"\lambda": 0.3, r"\sigma": 2.5}
REWARDS |= {r"\gamma": float(reward_estimation.curvature(0.8, 1.5))}
RANKED = {name: value for name, value in REWARDS.items() if name != r"\gamma"}
ONE_PASS = {"failure_prob": 0.05}
CONVEX = {"T": 1000, "d": 3, "M_2": 9.0, "M": 3.0, "G": 2.0, "R": 1.5, "D": 1.5, "s": 4.0, r"\theta": 1.0}
CONVEX |= {r"\mu": 0.6, r"\beta": 1.1, "B": 0.9}
CONTEXTS = {r"\varepsilon": EPSILON, r"\delta": 1e-3, "T": 1000, "d": 3, r"\alpha": 0.05, r"\lambda": 2.0, "R": 0.7}
LINEAR = {r"\varepsilon": EPSILON, "T": 1000, "d": 3, "b": 0.05, r"\kappa": 0.2}
DUELS = {r"\varepsilon": EPSILON, "K": 2, "T": 1000, "g": 0.3}
FACTORS = {r"\varepsilon": EPSILON, "T": 1000, "K": 6}

CASES = [
    *(Case(getattr(tracking, name), TRACKING, {}) for name in tracking.__dict__ if name.endswith(("_upper", "_lower"))),
    Case(tracking.window_upper, TRACKING, {"corrected": True}, 1),
    *(
        Case(getattr(reward_estimation, name), RANKED if "plackett" in name or "semi_norm" in name else REWARDS, {})
        for name in reward_estimation.__all__
        if name not in PARTS
    ),
    *(Case(getattr(ldp_bandits, name), CONVEX, {}) for name in ldp_bandits.__dict__ if name.endswith("_upper")),
    Case(ldp_bandits.noise_factor, FACTORS, {}),
    Case(ldp_bandits.claimed_order, {**FACTORS, "a": 2 / 3, "b": 1}, {"problem": "smooth"}),
    Case(ldp_bandits.tuned_order, {**FACTORS, "a": 2 / 3, "b": 2 / 3}, {"problem": "smooth"}),
    *(Case(getattr(contextual, name), CONTEXTS, {}) for name in contextual.__dict__ if name.endswith("_order")),
    Case(contextual.oful_upper, CONTEXTS, {}),
    *(Case(getattr(linear_dueling, name), LINEAR, {}) for name in ("regret_upper", "corrected_regret_upper")),
    Case(linear_dueling.free_from, LINEAR, {}),
    Case(dueling.regret_upper, DUELS, {"gaps": [0.3]}),
    Case(dueling.regret_lower, DUELS, {"gaps": [0.3]}),
]
CASES = [case for case in CASES if case.function is not ldp_bandits.tsallis_inf_upper]


def bound_of(case: Case) -> float:
    """Evaluates the displayed bound; a sum over the arms except the best has one term."""
    formula = formulas(case.function)[case.which].split(r"\quad")[0].strip().rstrip(",")
    formula = formula.removeprefix(r"\sum_{i \ge 2}").replace(r"\Delta(1, i)", "g")
    return evaluate(formula.rpartition(" = ")[2], Symbols(case.function, **case.symbols))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.function.__module__}.{case.function.__name__}")
def test_a_displayed_bound_is_the_result_of_its_function(case):
    arguments = arguments_of(case.function, **case.arguments)
    scale = arguments.pop("scale", None)
    assert np.asarray(case.function(**arguments)) == pytest.approx(bound_of(case), rel=1e-9)
    if scale is not None and "bias_scale" not in arguments:
        assert case.function(**arguments, scale=scale) == pytest.approx(scale * bound_of(case), rel=1e-9)


@pytest.mark.parametrize(("index", "estimator"), [(0, "iw"), (1, "rv")])
def test_both_bounds_of_tsallis_inf(index, estimator):
    formula = formulas(ldp_bandits.tsallis_inf_upper)[0].split(r"\quad")[index].strip().rstrip(",")
    found = evaluate(formula, Symbols(ldp_bandits.tsallis_inf_upper, **FACTORS))
    bound = ldp_bandits.tsallis_inf_upper(EPSILON, 1000, 6, estimator=estimator)
    assert bound == pytest.approx(found, rel=1e-9)


def bounds_of(module: ModuleType) -> list[Any]:
    """Returns the public functions that a module of bounds defines."""
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def test_every_bound_is_compared():
    compared = {case.function for case in CASES} | {ldp_bandits.tsallis_inf_upper}
    missing = [bound for module in MODULES for bound in bounds_of(module) if bound not in compared]
    assert not missing


def test_a_wrong_constant_is_seen():
    right = formulas(tracking.window_upper)[0]
    wrong = evaluate(right.replace("16", "8"), Symbols(**TRACKING))
    assert wrong != pytest.approx(tracking.window_upper(**arguments_of(tracking.window_upper)), rel=1e-3)
