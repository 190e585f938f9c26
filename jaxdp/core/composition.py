"""Claims of several releases, and of persons who hold several privacy units."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from jaxdp.validation import INT64_MAX, check_count, check_delta

if TYPE_CHECKING:
    from jaxdp.core.guarantee import Guarantee


def composed(claim: "Guarantee", other: "Guarantee", delta: float | None = None) -> "Guarantee":
    """Returns the claim of releasing both results; `Guarantee.compose` has the duties."""
    made = type(claim)
    for name in ("trust_model", "privacy_unit", "adjacency", "unit_leaves", "batch"):
        mine, theirs = getattr(claim, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(f"{name} must be the same to compose two guarantees, got {mine!r} and {theirs!r}")
    seen = claim.sees & other.sees
    if not seen and claim.trust_model != "joint":
        raise ValueError(f"sees must have something in common to compose, got {claim.sees} and {other.sees}")
    about: dict[str, Any] = {
        "trust_model": claim.trust_model,
        "privacy_unit": claim.privacy_unit,
        "adjacency": claim.adjacency,
        "argument": f"composition of: {claim.argument}; {other.argument}",
        "sees": seen,
        "unit_leaves": claim.unit_leaves,
        "batch": claim.batch,
        "numerical_delta": _below_one(_both(claim.numerical_delta, other.numerical_delta)),
    }
    if claim.local_epsilon is not None and other.local_epsilon is not None:  # a user sends both reports
        about["local_epsilon"] = claim.local_epsilon + other.local_epsilon
    pair = {claim.kind, other.kind}
    if "none" in pair:
        return made.none(**about)
    if pair <= {"pure", "approximate"}:
        total = claim.delta + other.delta
        if total >= 1:
            return made.none(**about)
        return made.approximate(claim.epsilon + other.epsilon, total, **about)
    if pair == {"gaussian"}:
        return made.gaussian(math.hypot(claim.mu or 0.0, other.mu or 0.0), **about)
    if "zcdp" in pair and "approximate" not in pair:
        return made.zcdp(_rho(claim) + _rho(other), **about)
    if delta is None:
        raise ValueError(f"delta must be given to compose a {claim.kind} claim with a {other.kind} one, got None")
    check_delta(delta)
    return composed(_as_approximate(claim, delta), _as_approximate(other, delta))


def of_person(claim: "Guarantee", units: int, privacy_unit: str) -> "Guarantee":
    """Returns the claim for a person who holds several units; `Guarantee.of_person` has the duties."""
    made = type(claim)
    units = check_count("units", units, maximum=INT64_MAX)
    is_local = claim.trust_model == "local"
    how = "the reports of up to {} units compose" if is_local else "group privacy of up to {} units"
    about: dict[str, Any] = {
        "trust_model": claim.trust_model,
        "privacy_unit": privacy_unit,
        "adjacency": claim.adjacency,
        "argument": claim.argument if units == 1 else f"{how.format(units)}: {claim.argument}",
        "sees": claim.sees,
        "unit_leaves": claim.unit_leaves,
        "batch": claim.batch,
        "numerical_delta": _of_units(claim, units, is_local),
    }
    if claim.local_epsilon is not None:
        about["local_epsilon"] = units * claim.local_epsilon
    if not claim.is_private:
        return made.none(**about)
    if claim.rho is not None:
        return made.zcdp(claim.rho * units * (1 if is_local else units), **about)
    if claim.mu is not None:
        return made.gaussian(claim.mu * (math.sqrt(units) if is_local else units), **about)
    epsilon = units * claim.epsilon
    delta = claim.delta and claim.delta * (units if is_local else _chain(claim.epsilon, units))
    return made.none(**about) if delta >= 1 else made.approximate(epsilon, delta, **about)


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _below_one(delta: float | None) -> float | None:
    """None for a bound that says nothing."""
    return delta if delta is not None and delta < 1 else None


def _of_units(claim: "Guarantee", units: int, is_local: bool) -> float | None:
    """The numerical delta of several units."""
    if not claim.numerical_delta or units == 1:
        return claim.numerical_delta
    if is_local:
        return _below_one(units * claim.numerical_delta)
    return _below_one(_chain(claim.epsilon, units) * claim.numerical_delta) if math.isfinite(claim.epsilon) else None


def _as_approximate(claim: "Guarantee", delta: float) -> "Guarantee":
    if claim.kind in ("pure", "approximate"):
        return claim
    epsilon = max(claim.epsilon_at(delta), math.ulp(0.0))  # a claim's is > 0
    if epsilon == math.inf:
        return dataclasses.replace(claim, kind="none", rho=None, mu=None)
    return dataclasses.replace(claim, kind="approximate", epsilon=epsilon, delta=delta, rho=None, mu=None)


def _chain(epsilon: float, units: int) -> float:
    """The sum of e^(i epsilon) over i < units; infinity where it overflows."""
    try:
        return math.expm1(units * epsilon) / math.expm1(epsilon)
    except OverflowError:
        return math.inf


def _rho(claim: "Guarantee") -> float:
    if claim.rho is not None:
        return claim.rho
    budget = claim.epsilon if claim.mu is None else claim.mu
    return budget * budget / 2  # its power would not overflow to infinity
