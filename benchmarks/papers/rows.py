"""Rows of a reproduction: a paper's statement, its measures, and the rule that compares them.

A row's measures are intervals. Each is made so that the claim is a statement about a plain number: a ratio to a bound,
an exponent, a difference. A rule names the numbers that agree with the claim. The whole interval decides; if it has
numbers of both kinds, nothing is decided.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax

AGREES, DIFFERS, UNDECIDED, NOT_MEASURED = "agrees", "differs", "undecided", "not measured"
SIZES = ("small", "quick", "full")
FULL = 8  # times the repetitions of the default
ROUNDING = 1e-9  # below it a number is shown as 0


class Interval(NamedTuple):
    """A number that was measured, with its 95% interval.

    Attributes:
        value: the number.
        low: lower limit; the number itself where it is exact. -infinity where nothing bounds it from below.
        high: upper limit, likewise.
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Interval":
        """Returns a number without error: by a formula, or by an exact distribution."""
        return cls(float(value), float(value), float(value))

    def __str__(self) -> str:
        if self.low == self.high:
            return number(self.value)
        return f"{number(self.value)} ({number(self.low)} to {number(self.high)})"


class Size(NamedTuple):
    """How much is simulated, and from which seed. Measures of equal sizes share their simulations.

    Attributes:
        name: "small" (seconds, for tests), "quick" (the default) or "full" (8 times its repetitions).
        seed: root seed, in [0, 2**32).
    """

    name: str = "quick"
    seed: int = 0

    @property
    def key(self) -> jax.Array:
        """The root key."""
        return jax.random.key(self.seed)

    def repeats(self, quick: int, small: int = 4) -> int:
        """Returns the number of repetitions: seeds, trials, or any other factor of a measure's time."""
        return {"small": small, "quick": quick, "full": FULL * quick}[self.name]


class Rule(NamedTuple):
    """The numbers that agree with a claim.

    Attributes:
        low: the least of them.
        high: the largest of them.
        refutes: whether other numbers contradict the claim; else they leave it undecided, as where an order, with its
            unspecified constant, is compared at sizes that are too small for it.
    """

    low: float = -math.inf
    high: float = math.inf
    refutes: bool = True

    def judge(self, found: Interval) -> str:
        """Judges whether a measured number agrees with the claim, differs from it, or may do either."""
        if not found.low <= found.value <= found.high:  # NaN fails
            return UNDECIDED
        if self.low <= found.low and found.high <= self.high:
            return AGREES
        return DIFFERS if self.refutes and (found.high < self.low or found.low > self.high) else UNDECIDED

    def __str__(self) -> str:
        return self._numbers() + ("" if self.refutes else ", else undecided")

    def _numbers(self) -> str:
        if self.low == -math.inf:
            return f"<= {number(self.high)}"
        if self.high == math.inf:
            return f">= {number(self.low)}"
        return number(self.low) if self.low == self.high else f"{number(self.low)} to {number(self.high)}"


def at_most(high: float, *, refutes: bool = True) -> Rule:
    """Makes the rule that the claim holds for numbers up to this one."""
    return Rule(high=high, refutes=refutes)


def at_least(low: float) -> Rule:
    """Makes the rule that the claim holds for numbers from this one on."""
    return Rule(low=low)


def between(low: float, high: float) -> Rule:
    """Makes the rule that the claim holds for numbers from `low` to `high`."""
    return Rule(low, high)


Measures = Mapping[str, Interval]
Measure = Callable[[Size], Measures]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A statement of a paper.

    Attributes:
        number: its number in the paper, as "Thm 4.2"; for an erratum its place, as "Alg. 1, line 4".
        claim: the paper's statement, in a sentence.
        measured: the measured quantity, in a sentence; "" if there is none.
        measure: Size -> intervals by name, those of the rules and perhaps more; None where nothing is measured.
        rules: of the claim, by the name of a measure.
        corrected: the right statement if the claim is wrong, in a sentence; "" if the row is no erratum.
        corrected_rules: of the corrected form, by the name of a measure.
        why: why nothing is measured, why the claim differs, or a limit of the numbers.

    Raises:
        ValueError: if a row with a measure has no rule, or one without has no reason.
    """

    number: str
    claim: str
    measured: str = ""
    measure: Measure | None = None
    rules: Mapping[str, Rule]
    corrected: str = ""
    corrected_rules: Mapping[str, Rule]
    why: str = ""

    def __post_init__(self) -> None:
        if self.measure is None and not self.why:
            raise ValueError(f"why must give the reason why {self.number} has no measure, got ''")
        if (self.measure is None) != (not self.rules) or bool(self.measured) != bool(self.rules):
            raise ValueError(
                f"rules, measured and measure must be given together or not at all, got {self.rules} for {self.number}"
            )
        if bool(self.corrected) < bool(self.corrected_rules):
            raise ValueError(f"corrected must be given with corrected_rules, got '' for {self.number}")


def row(
    number: str,
    claim: str,
    measured: str = "",
    measure: Measure | None = None,
    rules: Mapping[str, Rule] | None = None,
    *,
    corrected: str = "",
    corrected_rules: Mapping[str, Rule] | None = None,
    why: str = "",
) -> Row:
    """Makes a row, in reading order. The arguments are the attributes of `Row`."""
    return Row(
        number=number,
        claim=claim,
        measured=measured,
        measure=measure,
        rules=rules or {},
        corrected=corrected,
        corrected_rules=corrected_rules or {},
        why=why,
    )


def verdict(rules: Mapping[str, Rule], found: Measures) -> str:
    """Returns the verdict of all rules: "differs" if one does, else "undecided" if one is, else "agrees".

    Raises:
        ValueError: if something that a rule is about was not measured.
    """
    if not rules:
        return NOT_MEASURED
    if missing := rules.keys() - found.keys():
        raise ValueError(f"measures must have {sorted(missing)}, got {sorted(found)}")
    judged = {rule.judge(found[name]) for name, rule in rules.items()}
    return next((worse for worse in (DIFFERS, UNDECIDED) if worse in judged), AGREES)


def number(value: float) -> str:
    """Formats a number for people: three digits, thousands with commas."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "?")
    if abs(value) < ROUNDING:
        return "0"
    if 1e-3 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.2e}"
