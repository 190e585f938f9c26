"""Formulas of docstrings are evaluated, and compared with numbers that the code computes from the same values."""

import inspect
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import bandits, experts, mechanisms
from jaxdp.bandits import convex
from jaxdp.mechanisms.calibration import zcdp_gaussian, zcdp_rho
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS

FORMULA = re.compile(r"(?ms)^\$\$\n(.*?)\n\$\$$")


def formulas(function: Any) -> list[str]:
    """Returns the displayed formulas of a function's docstring, each on one line."""
    _, _, section = (inspect.getdoc(function) or "").partition("\nMath:\n")
    section = re.split(r"(?m)^\w+:$", section)[0]
    return [" ".join(found.split()) for found in FORMULA.findall(inspect.cleandoc(section))]


def definition(function: Any, symbol: str) -> str:
    """Returns the right side of the formula that defines a symbol."""
    for formula in formulas(function):
        for part in formula.split(r"\quad"):
            left, equals, right = part.strip().partition(" = ")
            if equals and left == symbol:
                return right.strip().rstrip(",")
    raise AssertionError(f"no formula defines {symbol} in {formulas(function)}")


def evaluate(latex: str, **symbols: float) -> float:
    """Evaluates a formula of fractions, roots, powers, logarithms, and products written side by side."""
    tokens = re.findall(r"\\[a-zA-Z]+|\\[,;]|\d+\.?\d*|[a-zA-Z](?:_\d)?|[-+*/^{}()|,]", latex)
    tokens = [token for token in tokens if token not in ("\\Big", "\\big", "\\,", "\\;")]
    value, position = _sum(tokens, 0, symbols)
    assert position == len(tokens), (latex, tokens[position:])
    return value


def _sum(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    sign = -1.0 if tokens[at] == "-" else 1.0
    value, at = _product(tokens, at + (tokens[at] == "-"), symbols)
    value *= sign
    while at < len(tokens) and tokens[at] in "+-":
        more, after = _product(tokens, at + 1, symbols)
        value, at = (value + more if tokens[at] == "+" else value - more), after
    return value, at


def _product(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    value, at = _power(tokens, at, symbols)
    while at < len(tokens) and tokens[at] not in "+-)},":
        divides = tokens[at] == "/"
        more, at = _power(tokens, at + divides, symbols)
        value = value / more if divides else value * more
    return value, at


def _power(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    value, at = _atom(tokens, at, symbols)
    if at < len(tokens) and tokens[at] == "^":
        exponent, at = _atom(tokens, at + 1, symbols)
        value **= exponent
    return value, at


def _atom(tokens: list[str], at: int, symbols: dict[str, float]) -> tuple[float, int]:
    token = tokens[at]
    if token in "({":
        value, at = _sum(tokens, at + 1, symbols)
        return value, at + 1
    if token == "\\frac":
        above, at = _atom(tokens, at + 1, symbols)
        below, at = _atom(tokens, at, symbols)
        return above / below, at
    if token == "\\sqrt":
        value, at = _atom(tokens, at + 1, symbols)
        return math.sqrt(value), at
    if token == "\\min":
        first, at = _sum(tokens, at + 2, symbols)
        second, at = _sum(tokens, at + 1, symbols)
        return min(first, second), at + 1
    if token == "\\ln":
        value, at = _atom(tokens, at + 1, symbols)
        return math.log(value), at
    if re.fullmatch(r"\d+\.?\d*", token):
        return float(token), at + 1
    return {"e": math.e, "\\pi": math.pi, **symbols}[token], at + 1


class Case(NamedTuple):
    """A symbol of a docstring's formula, values of its symbols, and the code's number."""

    function: Any
    symbol: str
    symbols: dict[str, float]
    number: Callable[[], Any]


def squared_width(epsilon: float) -> Any:
    """Returns the c of `ucb` from its parameters, where the variance proxy is c^2 / 4."""
    params: Any = bandits.ucb(num_arms=3).params(epsilon=epsilon, exploration_rate=2.0)
    return np.sqrt(params.squared_radius / (2 * 2.0 / 4))


def spread_of_reports(epsilon: float) -> float:
    """Returns the Laplace scale of `exponential_weights`: N / rate^2 = T (1/8 + s^2 / 2), s^2 = 2 b^2."""
    params: Any = experts.exponential_weights(num_experts=8, horizon=500).params(epsilon=epsilon)
    return math.sqrt(math.log(8) / float(params.learning_rate) ** 2 / 500 - 1 / 8)


def second_moment(epsilon: float) -> float:
    """Returns the second moment of randomized responses of losses in [-1, 1]."""
    return ((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)) ** 2


def laplace_scale(sensitivity: float, epsilon: float) -> Any:
    """Returns the scale of Laplace noise, from the mean of its absolute values."""
    zeros = jnp.zeros(400_000)
    noisy = mechanisms.laplace(jax.random.key(0), zeros, l1_sensitivity=sensitivity, epsilon=epsilon)
    return jnp.abs(noisy).mean()


EPSILON = 0.7
DESCENT = {"D": 1.0, "R": 1.0, "d": 3, "G": 1.0, "s": 4.0, "T": 400, "M_2": second_moment(EPSILON)}
CHOSEN: Any = experts.lazy_weights_parameters(epsilon=1.0, delta=1e-6, num_experts=4, horizon=1000)
SPENT = {"K": CHOSEN.budget, r"\eta": CHOSEN.learning_rate, "p": CHOSEN.fake_switch_prob}


def fkm() -> Any:
    return convex.fkm(dim=3, horizon=400).params(epsilon=EPSILON)


def two_point() -> Any:
    return convex.two_point(dim=3, horizon=400).params(epsilon=EPSILON)


CASES = {
    "exp3": Case(
        bandits.exp3,
        r"\eta",
        {"K": 5, "T": 900},
        lambda: bandits.exp3(num_arms=5, horizon=900).params(epsilon=1.0).learning_rate,
    ),
    "hedge": Case(
        experts.hedge,
        r"\eta",
        {"N": 7, "T": 900},
        lambda: experts.hedge(num_experts=7, horizon=900).params().learning_rate,
    ),
    "ucb": Case(bandits.ucb, "c", {r"\varepsilon": EPSILON}, lambda: squared_width(EPSILON)),
    "exponential_weights": Case(
        experts.exponential_weights, "b", {"N": 8, r"\varepsilon": 2.0}, lambda: spread_of_reports(2.0)
    ),
    "fkm, rho": Case(convex.fkm, r"\rho", DESCENT, lambda: fkm().exploration),
    "fkm, eta": Case(
        convex.fkm, r"\eta", {**DESCENT, r"\rho": float(fkm().exploration)}, lambda: fkm().step * fkm().exploration / 3
    ),
    "two_point, rho": Case(convex.two_point, r"\rho", DESCENT, lambda: two_point().exploration),
    "two_point, eta": Case(convex.two_point, r"\eta", DESCENT, lambda: two_point().step / 3),
    "laplace": Case(mechanisms.laplace, "b", {r"\Delta": 2.0, r"\varepsilon": 0.5}, lambda: laplace_scale(2.0, 0.5)),
    "gaussian": Case(
        mechanisms.gaussian,
        r"\rho",
        {r"\Delta": 2.0, r"\sigma": zcdp_gaussian(0.3, 2.0)},
        lambda: 0.3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_formula_gives_the_number_of_the_code(name):
    case = CASES[name]
    tolerance = 0.01 if name == "laplace" else 1e-4  # 4e5 draws: 6 standard errors
    assert evaluate(definition(case.function, case.symbol), **case.symbols) == pytest.approx(
        float(case.number()), rel=tolerance
    )


def test_the_cost_of_lazy_weights_is_within_the_budget_and_uses_most_of_it():
    formula = definition(experts.lazy_weights, "r")
    values = {**SPENT, "r": evaluate(formula, **SPENT)}
    spent = evaluate(definition(experts.lazy_weights, r"\rho"), **values)
    assert 0.9 * zcdp_rho(1.0, 1e-6) < spent <= zcdp_rho(1.0, 1e-6) * (1 + 1e-9)


def test_a_wrong_digit_is_seen():
    """Plants wrong formulas; the evaluation also refuses symbols without a value, and what it cannot read."""
    right = definition(bandits.exp3, r"\eta")
    assert evaluate(right.replace("2", "3", 1), K=5, T=900) != pytest.approx(evaluate(right, K=5, T=900), rel=1e-3)
    assert evaluate(r"\frac{1}{2} + 3 x^2 - \sqrt{4 y}", x=2.0, y=4.0) == pytest.approx(0.5 + 12 - 4)
    assert evaluate(r"-\ln(e^{x}) / 4", x=2.0) == pytest.approx(-0.5)
    with pytest.raises(KeyError):
        evaluate(right, K=5)


def test_displayed_formulas_have_matching_braces():
    for entries in (LEARNERS, ESTIMATORS, MECHANISMS):
        for entry in entries.values():
            for formula in formulas(entry.factory):
                assert formula.count("{") == formula.count("}")
                assert formula.count("(") == formula.count(")")
