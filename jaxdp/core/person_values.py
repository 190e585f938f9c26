"""Computes the parameter values of a learner from the privacy that a person with several records should get."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxdp.core.composition import sum_over_chain
from jaxdp.core.guarantee import Guarantee
from jaxdp.core.params import default_float, leaf_rounded_down

PERSON = "one person"
STEPS = 200  # maximum number of steps of a bisection in float64


def person_claim(guarantee: Callable[..., Guarantee], values: Mapping[str, Any], reports: int) -> Guarantee:
    """Returns the privacy claim for a person, if a learner gets only the first `reports` visits of each person.

    Args:
        guarantee: the `guarantee` of the learner, which computes a claim from parameter values.
        values: the parameter values that the user requests for a person, such as epsilon.
        reports: number of visits of a person that reach the learner, >= 1.
    """
    requested = guarantee(**values)
    group = guarantee(**record_values(guarantee, values, reports)).at_user_level(reports, privacy_unit=PERSON)
    how = "the first visit" if reports == 1 else f"the first {reports} visits"
    return dataclasses.replace(
        group,
        **{name: getattr(requested, name) for name in ("kind", "epsilon", "delta", "rho", "mu")},
        argument=f"{how} of a person, by a public schedule, reach the learner; {group.argument}",
    )


def record_values(guarantee: Callable[..., Guarantee], values: Mapping[str, Any], reports: int) -> dict[str, Any]:
    """Returns parameter values for single records, so that `reports` records together cost at most the given budget.

    The claim for `reports` records at the returned values is at most the claim that `guarantee` computes from `values`.
    For pure and approximate claims epsilon is divided by `reports`. A delta is divided by `reports` in the local model,
    and otherwise by the factor by which `Guarantee.at_user_level` multiplies it. For claims in rho or mu, the epsilon
    at the given delta is found by bisection in float64. All budgets are rounded down to JAX's default float type. If
    `reports` is 1, or the values claim nothing, the values are returned unchanged.

    Raises:
        ValueError: if the values have no epsilon, or no epsilon gives a small enough claim, for example because a
            budget becomes too small.
    """
    requested, requested_values = guarantee(**values), dict(values)
    if reports == 1 or not requested.is_private:
        return requested_values
    if "epsilon" not in values:
        raise ValueError(f"values must have an epsilon to divide among {reports} reports, got {', '.join(values)}")

    def with_budgets(epsilon: float, delta: float) -> dict[str, Any]:
        return requested_values | {"epsilon": epsilon} | ({"delta": delta} if "delta" in requested_values else {})

    def is_kept(candidate: Mapping[str, Any]) -> bool:
        claim = guarantee(**candidate)
        return claim.is_private and _is_within(claim.at_user_level(reports, privacy_unit=PERSON), requested)

    epsilon, delta = float(values["epsilon"]) / reports, float(values.get("delta", 0.0))
    if requested.kind == "approximate":
        is_local = requested.trust_model == "local"
        delta /= reports if is_local else sum_over_chain(requested.epsilon / reports, reports)
    if requested.kind in ("zcdp", "gaussian"):
        low, high = 0.0, float(values["epsilon"])
        for _ in range(STEPS):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if is_kept(with_budgets(middle, delta)) else (low, middle)
        epsilon = low
    for _ in range(STEPS):  # some claims are rounded up in their last digits
        if requested.delta and delta < np.finfo(default_float()).smallest_normal:
            break
        rounded = with_budgets(float(leaf_rounded_down("epsilon", epsilon)), _round_down(delta))
        if is_kept(rounded):
            return rounded
        epsilon, delta = (float(number - abs(number) * np.finfo(np.float32).eps) for number in (epsilon, delta))
    raise ValueError(f"values must have a claim that can be divided among {reports} reports, got {requested}")


def _round_down(delta: float) -> float:
    return float(leaf_rounded_down("delta", delta)) if delta else delta


def _is_within(claim: Guarantee, requested: Guarantee) -> bool:
    return claim.kind == requested.kind and all(
        (getattr(claim, name) or 0.0) <= (getattr(requested, name) or 0.0) for name in ("epsilon", "delta", "rho", "mu")
    )
