"""Formulas of docstrings are evaluated, and compared with numbers that the code computes from the same values."""

import math
from typing import Any

import pytest

from jaxdp import bandits, dueling, experts
from jaxdp.mechanisms.calibration import zcdp_rho
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from tests.contract.formula_cases import CASES
from tests.contract.formula_numbers import SPENT
from tests.contract.latex import Symbols, definition, evaluate, formulas, parts, value_of

WRAPPED = {"g_optimal_elimination": dueling.g_optimal_elimination}  # the registry's factory chooses the features
REGISTERED: list[Any] = [entry.factory for entries in (LEARNERS, ESTIMATORS, MECHANISMS) for entry in entries.values()]
FACTORIES = {f"{each.__module__}.{each.__name__}": WRAPPED.get(each.__name__, each) for each in REGISTERED}


@pytest.mark.parametrize("name", CASES)
def test_a_formula_gives_the_number_of_the_code(name):
    case = CASES[name]
    found = value_of(case.function, case.symbol, **case.symbols)
    assert found == pytest.approx(float(case.number()), rel=case.tolerance)


@pytest.mark.parametrize("name", FACTORIES)
def test_every_factory_displays_a_formula(name):
    assert formulas(FACTORIES[name]), f"{name} needs a section `Math` with a displayed formula"


def test_the_cost_of_lazy_weights_is_within_the_budget_and_uses_most_of_it():
    spent = value_of(experts.lazy_weights, r"\rho", **SPENT)
    assert 0.9 * zcdp_rho(1.0, 1e-6) < spent <= zcdp_rho(1.0, 1e-6) * (1 + 1e-9)


def test_the_epochs_of_successive_elimination_are_as_short_as_their_formula_allows():
    params = bandits.successive_elimination_central(num_arms=4).params(epsilon=0.5)
    symbols = {"S": 4, "k": 5, r"\beta": 0.05, r"\varepsilon": 0.5}

    def error(plays: float) -> float:
        return sum(
            value_of(bandits.successive_elimination_central, symbol, R=plays, **symbols) for symbol in ("h", "c")
        )

    plays = float(params.plays[4, 4])
    assert error(plays) <= 2**-5 / 4 < error(plays - 1)


@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_the_phases_of_ebs_phased_are_as_short_as_their_formula_allows(epsilon):
    passes = dueling.ebs_phased(num_arms=4).params(epsilon=epsilon).passes[4, 3]
    (inequality,) = (part for part in parts(dueling.ebs_phased) if r"\frac{D}{4}" in part)
    error, _, limit = inequality.partition(r"\le")
    symbols: Any = {"x": math.log(8 * 3 * 5**2 / 0.05), "D": 2.0**-5, r"\varepsilon": epsilon}

    def fits(error: str, passes: float) -> bool:
        return evaluate(error, Symbols(n=3 * passes, **symbols)) <= evaluate(limit, Symbols(**symbols))

    assert fits(error, passes)
    assert not fits(error, passes - 1)
    wrong = error.replace("2 n", "n") if epsilon > 1 else error.replace("{x}{", "{2 x}{")
    assert wrong != error
    assert not fits(wrong, passes)


def test_the_margins_of_shuffled_phases():
    params = dueling.ebs_shuffle(num_arms=3).params(epsilon=1.0, delta=1e-6)
    symbols = {"n": params.passes[2, 3] * 3, "D": 2.0**-3, r"\varepsilon_0": float(params.local_epsilon[2, 3])}
    assert value_of(dueling.ebs_shuffle, "m", **symbols) == params.margins[2, 3]


def test_a_wrong_digit_is_seen():
    """Plants wrong formulas; the evaluation also refuses symbols without a value, and what it cannot read."""
    right, sizes = definition(bandits.exp3, r"\eta"), Symbols(K=5, T=900)
    assert evaluate(right.replace("2", "3", 1), sizes) != pytest.approx(evaluate(right, sizes), rel=1e-3)
    assert evaluate(r"\frac{1}{2} + 3 x^2 - \sqrt{4 y}", Symbols(x=2.0, y=4.0)) == pytest.approx(0.5 + 12 - 4)
    assert evaluate(r"-\ln(e^{x}) / 4", Symbols(x=2.0)) == pytest.approx(-0.5)
    assert evaluate(r"\max( 2, \; \lceil x_1 / 2 \rceil )", Symbols(x_1=5.0)) == 3
    with pytest.raises(KeyError):
        evaluate(right, Symbols(K=5))
    for unreadable in ("4!", "x_{1} + 2", "[2]"):
        with pytest.raises(AssertionError, match="cannot read"):
            evaluate(unreadable, Symbols(x=2.0))


def test_displayed_formulas_have_matching_braces():
    for factory in FACTORIES.values():
        for formula in formulas(factory):
            assert formula.count("{") == formula.count("}")
            assert formula.count("(") == formula.count(")")
