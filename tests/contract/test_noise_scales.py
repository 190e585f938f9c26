"""Noise that docstrings display is evaluated at several epsilons, and compared with the noise that the code adds."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from jaxdp import mechanisms
from tests.contract import noise_cases
from tests.contract.formula_cases import CASES
from tests.contract.latex import TOKEN, Symbols, definition, evaluate, laplace_scales, math_section, parts
from tests.contract.noise_cases import DELTA, EPS, GAUSSIANS, Noise
from tests.contract.test_math import FACTORIES

ROOT = Path(__file__).parents[2]
NOISES = dict(noise_cases.NOISES)
for file in sorted((ROOT / "tests/algorithms").rglob("noise_cases.py")):
    NOISES |= importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)).NOISES

# Formulas with epsilon that are compared in another way, or are no noise.
ELSEWHERE = {
    "successive_elimination_central": {"c"},  # test_math evaluates it in the margin
    "ebs_shuffle": {"c"},  # test_math evaluates it in the margin
    "imed_central": {r"d_\varepsilon(x, y)"},  # an index
    "adap_klucb": {r"\bar\mu_i"},  # an index
    "ucb_central": {"q_i"},  # a bound on noise, and an index
    "rucb": {"u_{ij}"},  # an index
    "g_optimal_elimination": {r"\tilde O(z)"},  # its Laplace scale is compared
    "gaussian": {r"\delta"},  # GAUSSIANS
    "toeplitz_counter": {r"\sigma"},  # the variance V is compared
}


def at(noise: Noise, epsilon: float) -> dict[str, Any]:
    """Returns the values of a case's symbols."""
    values = {name: each(epsilon) if callable(each) else each for name, each in noise.symbols.items()}
    return {EPS: epsilon, **values}


def value(noise: Noise, latex: str, epsilon: float) -> float:
    """Evaluates a formula, with other symbols from the docstring."""
    return evaluate(latex, Symbols(noise.function, **at(noise, epsilon)))


def wrong_constants(latex: str) -> list[str]:
    """Returns the formula with one wrong constant, for each of its constants; twice the formula if it has none."""
    tokens = TOKEN.findall(latex.replace(r"\mathrm{round}", r"\round"))
    numerals = [index for index, token in enumerate(tokens) if re.fullmatch(r"\d+\.?\d*", token)]
    wrong = [[*tokens[:index], repr(float(tokens[index]) + 1), *tokens[index + 1 :]] for index in numerals]
    return [" ".join(each) for each in wrong] or [f"2 ( {latex} )"]


@pytest.mark.parametrize("name", NOISES)
def test_a_displayed_noise_is_the_noise_of_the_code_and_wrong_constants_are_seen(name):
    noise = NOISES[name]
    numbers = {epsilon: float(noise.number(epsilon)) for epsilon in noise.epsilons}

    def agrees(latex: str, epsilon: float) -> bool:
        return value(noise, latex, epsilon) == pytest.approx(numbers[epsilon], rel=noise.tolerance)

    assert all(agrees(noise.latex, epsilon) for epsilon in numbers), (name, numbers)
    for wrong in wrong_constants(noise.latex):
        assert not all(agrees(wrong, epsilon) for epsilon in numbers), wrong


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_noise_solves_the_displayed_formula_and_less_noise_does_not(name):
    stddev, sensitivity = GAUSSIANS[name]
    latex = definition(mechanisms.gaussian, r"\delta")

    def delta(stddev: float, epsilon: float) -> float:
        return evaluate(latex, Symbols(**{EPS: epsilon, r"\sigma": stddev, r"\Delta": sensitivity}))

    for epsilon in (0.5, 2.0):
        scale = float(stddev(epsilon))
        assert delta(scale, epsilon) == pytest.approx(DELTA, rel=1e-3)
        assert delta(0.99 * scale, epsilon) > 1.05 * DELTA
    for wrong in wrong_constants(latex):
        assert evaluate(wrong, Symbols(**{EPS: 2.0, r"\sigma": scale, r"\Delta": sensitivity})) != pytest.approx(
            DELTA, rel=0.05
        )


def test_a_wrong_constant_in_any_compared_formula_is_seen():
    """Plants constants in all formulas of `CASES`; a min or max may hide one in some cases, but not in all."""
    seen, hidden = set(), set()
    for case in CASES.values():
        right = definition(case.function, case.symbol)
        number = evaluate(right, Symbols(case.function, **case.symbols))  # test_math compares it with the code
        for wrong in wrong_constants(right):
            found = evaluate(wrong, Symbols(case.function, **case.symbols))
            place = (case.function.__name__, wrong)
            (hidden if found == pytest.approx(number, rel=case.tolerance) else seen).add(place)
    for noise in NOISES.values():  # these are seen, by the test above
        seen |= {(noise.function.__name__, wrong) for wrong in wrong_constants(noise.latex)}
    assert len(seen) > 150
    assert hidden <= seen


def evaluated_symbols(noises: dict[str, Noise]) -> dict[str, set[str]]:
    """Returns, for each docstring, the symbols and the positions of Laplace scales that some case evaluates."""
    found: dict[str, set[str]] = {}

    def add(function: Any, latex: str, symbols: dict[str, float], name: str | int) -> None:
        values = Symbols(function, **symbols)
        given = set(values)
        evaluate(latex, values)
        found.setdefault(function.__name__, set()).update({str(name)} | set(values) - given)

    for case in CASES.values():
        add(case.function, definition(case.function, case.symbol), case.symbols, case.symbol)
    for noise in noises.values():
        add(noise.function, noise.latex, at(noise, 0.5), noise.name)
    return found


def not_compared(factory: Any, noises: dict[str, Noise]) -> list[str]:
    """Returns the noise that a factory's docstring displays and no case evaluates."""
    missing = []
    done = evaluated_symbols(noises).get(factory.__name__, set()) | ELSEWHERE.get(factory.__name__, set())
    for position, scale in enumerate(laplace_scales(factory)):
        if not {str(position), scale} & done:
            missing.append(f"Laplace({scale})")
    for part in parts(factory):
        symbol = next((name for name in done if part.startswith(f"{name} = ")), part.partition(" = ")[0])
        if " = " in part and re.search(r"\\varepsilon(?!_)|\\delta", part.partition(" = ")[2]) and symbol not in done:
            missing.append(symbol)
    if "N(0," in math_section(factory) and factory.__name__ not in GAUSSIANS and r"\sigma" not in done:
        missing.append("N(0, .)")
    return missing


@pytest.mark.parametrize("name", FACTORIES)
def test_every_displayed_noise_is_compared(name):
    missing = not_compared(FACTORIES[name], NOISES)
    assert not missing, (
        f"{name} displays {', '.join(missing)} as a function of epsilon: add a case to NOISES in noise_cases.py of its "
        "folder of tests (as that of ucb), or name the symbol in ELSEWHERE if it is no noise"
    )


@pytest.mark.parametrize(("name", "symbol"), [("ebs_phased", r"Laplace(1 / \varepsilon)"), ("thompson", "c")])
def test_a_displayed_noise_without_a_case_is_seen(name, symbol):
    noise = NOISES[name]
    assert not_compared(noise.function, {other: each for other, each in NOISES.items() if other != name}) == [symbol]
