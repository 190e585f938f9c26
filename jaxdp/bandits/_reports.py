"""Reports of rewards that users randomize on their devices."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from jaxdp.core import ClipFn, Guarantee, LocalRandomizer, PrivatizeFn, Space, interval_leaves, scalar_leaf
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.numerics import fixed_point
from jaxdp.validation import check_choice

REWARD = "one round's reward"  # the unit of privacy
REWARDS = ("binary", "bounded")
ENDS = ("reward_low", "reward_high")  # names of the values to which bounded rewards are clipped
MECHANISMS = {
    "rr": "randomized response",
    "laplace": "the Laplace mechanism",
    "gaussian": "the analytic Gaussian mechanism",
}


def check_report(report: str, known: tuple[str, ...]) -> str:
    """Returns `report` if it is among `known`, the reports that the learner supports.

    Raises:
        ValueError: if `report` is not among `known`.
    """
    if report == "laplace" and "laplace" not in known:
        raise ValueError(
            f"report must be one of {', '.join(known)}, got 'laplace': Laplace noise has no finite variance proxy, "
            "which this learner's confidence bounds need"
        )
    return check_choice("report", report, known)


def value_names(report: str, *others: str) -> tuple[str, ...]:
    """Returns the names of a learner's values: the names of its randomizer's values, then `others`."""
    return ("epsilon", *(("delta",) if report == "gaussian" else ()), *others)


def randomizer_values(values: Mapping[str, float]) -> dict[str, float]:
    """Renames a learner's values to the names that `scalar_randomizer` uses.

    Args:
        values: the values keyed by name, with the learner's names.

    Raises:
        ValueError: if reward_low and reward_high do not define an interval (see `interval_leaves`).
    """
    if ENDS[0] in values:
        interval_leaves(*(values[name] for name in ENDS), names=ENDS)
    return {name.removeprefix("reward_"): value for name, value in values.items()}


def integer_scale(low: np.floating, high: np.floating) -> np.floating:
    """Returns 2^20 / (high - low) as a leaf, the factor that converts rewards above `low` to integer units.

    Raises:
        ValueError: if the factor exceeds the largest default float.
    """
    width = float(high) - float(low)
    if not fixed_point.UNITS / width < float(np.finfo(low.dtype).max):
        raise ValueError(f"{ENDS[1]} - {ENDS[0]} must be > 2^20 divided by the largest {low.dtype}, got {width}")
    return scalar_leaf("scale", fixed_point.UNITS / width)


def local_claim(report: str, unit: str) -> Callable[..., Guarantee]:
    """Returns the claim of a learner that receives one locally randomized report in each round.

    Args:
        report: as for `scalar_randomizer`.
        unit: unit of privacy.

    Returns:
        (epsilon, delta=0.0) -> Guarantee, in the local model.
    """

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="local",
            privacy_unit=unit,
            argument=f"each report is one release of {MECHANISMS[report]}",
        )

    return claim


class Reports(NamedTuple):
    """A randomizer of rewards, with the names of its values, its parameters and its claim.

    Attributes:
        randomizer: randomizer for one reward.
        rewards: the space of rewards.
        names: names of the randomizer's values, as the learner calls them.
        params: (**values) -> ScalarParams; ignores values that the randomizer does not have.
        claim: (epsilon, delta=0.0) -> Guarantee.
    """

    randomizer: LocalRandomizer
    rewards: Space
    names: tuple[str, ...]
    params: Callable[..., ScalarParams]
    claim: Callable[..., Guarantee]


def reward_reports(report: str, rewards: str, known: tuple[str, ...]) -> Reports:
    """Returns the randomizer of the rewards that a learner receives.

    Args:
        report: one of `known`.
        rewards: "binary": integers, clipped to {0, 1}; or "bounded": floats, clipped to [reward_low, reward_high]; NaN
            becomes reward_low.
        known: names of the reports that the learner supports.

    Raises:
        ValueError: if report or rewards is not one of the names above.
    """
    binary = check_choice("rewards", rewards, REWARDS) == "binary"
    randomizer = scalar_randomizer(check_report(report, known), binary=binary)
    names = value_names(report, *(() if binary else ENDS))

    def params(**values: float) -> ScalarParams:
        return randomizer.params(**randomizer_values({name: values[name] for name in names}))

    return Reports(
        randomizer,
        Space("integers", (), 0, 1) if binary else Space("numbers"),
        names,
        params,
        local_claim(report, REWARD),
    )


def reward_clip(rewards: str) -> ClipFn | None:
    """Returns `Learner.clip` of a learner with the randomizer's params in `Params.report`; None for binary rewards."""
    return None if rewards == "binary" else lambda params: (params.report.low, params.report.high)


def feedback_privatizer(report: Callable[..., jax.Array], field: str = "report") -> PrivatizeFn:
    """Returns `Learner.privatize` for a learner that stores the randomizer's params in `field` of its `Params`.

    The result of `privatize` is the action and the user's report.
    """

    def privatize(key, params, public, context: None, action, feedback) -> tuple[jax.Array, jax.Array]:
        del public, context
        return action, report(key, getattr(params, field), feedback)

    return privatize
