"""Computes the claim for two releases, and the claim for a person who contributes several privacy units."""

import dataclasses
import math
from typing import Any

from jaxdp.validation import INT64_MAX, check_count, check_delta


def compose_claims(claim: Any, other: Any, delta: float | None = None) -> Any:
    """Returns the claim for two mechanisms together, by adaptive composition.

    Converts a zCDP or Gaussian claim to (epsilon, delta) at `delta` if the two kinds cannot be composed otherwise.
    """
    cls = type(claim)
    if not isinstance(other, cls):
        raise ValueError(f"other must be a jaxdp.Guarantee, got {type(other).__name__}")
    for name in ("trust_model", "unit", "privacy_unit", "adjacency", "sensitive_fields", "batch"):
        first, second = getattr(claim, name), getattr(other, name)
        if first != second:
            raise ValueError(f"{name} must be the same to compose two guarantees, got {first!r} and {second!r}")
    common_view = claim.adversary_view & other.adversary_view
    if not common_view and claim.trust_model != "joint":
        raise ValueError(
            "adversary_view must have a part in common to compose two guarantees, got "
            f"{claim.adversary_view} and {other.adversary_view}"
        )
    fields: dict[str, Any] = {
        "trust_model": claim.trust_model,
        "privacy_unit": claim.privacy_unit,
        "unit": claim.unit,
        "adjacency": claim.adjacency,
        "argument": f"composition of: {claim.argument}; {other.argument}",
        "adversary_view": common_view,
        "sensitive_fields": claim.sensitive_fields,
        "batch": claim.batch,
        "numerical_delta": _below_one(_sum_or_none(claim.numerical_delta, other.numerical_delta)),
    }
    if claim.local_epsilon is not None and other.local_epsilon is not None:  # a user sends both reports
        fields["local_epsilon"] = claim.local_epsilon + other.local_epsilon
    pair = {claim.kind, other.kind}
    if "none" in pair:
        return cls.none(**fields)
    if pair <= {"pure", "approximate"}:
        total = claim.delta + other.delta
        if total >= 1:
            return cls.none(**fields)
        return cls.approximate(claim.epsilon + other.epsilon, total, **fields)
    if pair == {"gaussian"}:
        return cls.gaussian(math.hypot(claim.mu or 0.0, other.mu or 0.0), **fields)
    if "zcdp" in pair and "approximate" not in pair:
        return cls.zcdp(_rho(claim) + _rho(other), **fields)
    if delta is None:
        raise ValueError(f"delta must be given to compose a {claim.kind} claim with a {other.kind} one, got None")
    check_delta(delta)
    return compose_claims(_as_approximate(claim, delta), _as_approximate(other, delta))


def at_user_level(claim: Any, units: int, privacy_unit: str) -> Any:
    """Returns the claim for a person who contributes at most `units` privacy units.

    `privacy_unit` names the person's data. In the local model the reports of a person compose; in all other models the
    person is a group of units.
    """
    cls = type(claim)
    units = check_count("units", units, maximum=INT64_MAX)
    if claim.unit == "person":
        raise ValueError(
            f"at_user_level needs a claim for one record, got a claim that is for a person already: {claim}"
        )
    is_local = claim.trust_model == "local"
    argument_form = "the reports of up to {} units compose" if is_local else "group privacy of up to {} units"
    fields: dict[str, Any] = {
        "trust_model": claim.trust_model,
        "privacy_unit": privacy_unit,
        "unit": "person",
        "adjacency": claim.adjacency,
        "argument": claim.argument if units == 1 else f"{argument_form.format(units)}: {claim.argument}",
        "adversary_view": claim.adversary_view,
        "sensitive_fields": claim.sensitive_fields,
        "batch": claim.batch,
        "numerical_delta": _numerical_delta(claim, units, is_local),
    }
    if claim.local_epsilon is not None:
        fields["local_epsilon"] = units * claim.local_epsilon
    if not claim.is_private:
        return cls.none(**fields)
    if claim.rho is not None:
        return cls.zcdp(claim.rho * units * (1 if is_local else units), **fields)
    if claim.mu is not None:
        return cls.gaussian(claim.mu * (math.sqrt(units) if is_local else units), **fields)
    epsilon = units * claim.epsilon
    delta = claim.delta and claim.delta * (units if is_local else sum_over_chain(claim.epsilon, units))
    return cls.none(**fields) if delta >= 1 else cls.approximate(epsilon, delta, **fields)


def _sum_or_none(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _below_one(delta: float | None) -> float | None:
    """Returns `delta`, or None if it is at least 1, as such a bound proves nothing."""
    return delta if delta is not None and delta < 1 else None


def _numerical_delta(claim: Any, units: int, is_local: bool) -> float | None:
    """Returns a claim's numerical delta for a person with `units` units; None if no bound below 1 is known."""
    if not claim.numerical_delta or units == 1:
        return claim.numerical_delta
    if is_local:
        return _below_one(units * claim.numerical_delta)
    return (
        _below_one(sum_over_chain(claim.epsilon, units) * claim.numerical_delta)
        if math.isfinite(claim.epsilon)
        else None
    )


def _as_approximate(claim: Any, delta: float) -> Any:
    if claim.kind in ("pure", "approximate"):
        return claim
    epsilon = max(claim.epsilon_at(delta), math.ulp(0.0))  # a claim's epsilon is > 0
    if epsilon == math.inf:
        return dataclasses.replace(claim, kind="none", rho=None, mu=None)
    return dataclasses.replace(claim, kind="approximate", epsilon=epsilon, delta=delta, rho=None, mu=None)


def sum_over_chain(epsilon: float, units: int) -> float:
    """Returns the sum of e^(i epsilon) over i < units; infinity if it overflows."""
    try:
        return math.expm1(units * epsilon) / math.expm1(epsilon)
    except OverflowError:
        return math.inf


def _rho(claim: Any) -> float:
    if claim.rho is not None:
        return claim.rho
    budget = claim.epsilon if claim.mu is None else claim.mu
    return budget * budget / 2  # overflows to infinity, where `**` would raise
