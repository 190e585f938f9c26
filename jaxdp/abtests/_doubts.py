"""Warnings about data that the planned test does not expect."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from jaxdp.abtests._effects import Effect
from jaxdp.abtests._fixed import Setting
from jaxdp.validation import warn_caller

FARTHEST_BY_CHANCE = 5  # standard errors by which a share may lie beyond its limits
UNLIKELY_SPLIT = 1e-4
NAMES = ("control", "treatment")
LIKELIER_TOTALS = 3.0  # likelihood ratio of running totals to disjoint batches


def warn_of_split(users: Sequence[int]) -> None:
    """Warns if the arms' numbers of users are not compatible with a fair coin, by an exact binomial test."""
    chance = min(1.0, 2 * float(binom.cdf(min(users), sum(users), 0.5)))
    if chance < UNLIKELY_SPLIT:
        warn_caller(
            f"control has {users[0]:,} users and treatment {users[1]:,}, which a fair coin gives with p = {chance:.2g}:"
            " if you did not plan unequal arms, users of one arm are missing, and the result may be biased"
        )


def warn_of_impossible_shares(setting: Setting, shares: Sequence[float], users: Sequence[float]) -> None:
    """Warns if reports have fewer or more ones than randomized responses can have, beyond chance."""
    if setting.trust == "central":
        return
    least = 1 / (1 + math.exp(setting.epsilon))
    for name, share, size in zip(NAMES, shares, users, strict=True):
        slack = FARTHEST_BY_CHANCE * math.sqrt(least * (1 - least) / size)
        if not least - slack <= share <= 1 - least + slack:
            warn_caller(
                f"the share of ones among the reports of {name} is {share:.3g}, but reports at epsilon "
                f"{setting.epsilon:g} have a share in [{least:.3g}, {1 - least:.3g}]: these bits are not randomized, "
                "or at another epsilon"
            )


def warn_of_exchanged_bits(setting: Setting, effect: Effect, width: float) -> None:
    """Warns if a rate is far from both planned rates, and much nearer to them with 0 and 1 exchanged."""
    low, high = sorted(setting.true_rates)

    def distance(rate: float) -> float:
        return max(low - rate, rate - high)

    for name, planned, rate in zip(NAMES, setting.true_rates, (effect.control, effect.treatment), strict=True):
        slack = FARTHEST_BY_CHANCE / width * (rate.high - rate.low) / 2
        if distance(rate.estimate) > max(slack, 2 * distance(1 - rate.estimate)):
            warn_caller(
                f"the estimated rate of {name} is {rate.estimate:.3g}, but the plan says {planned:.3g}: perhaps 0 and 1"
                f" are exchanged (the rate would then be {1 - rate.estimate:.3g}), or the plan is wrong"
            )


def warn_of_totals(users: np.ndarray, control: np.ndarray, treatment: np.ndarray) -> None:
    """Warns if batches look like running totals: all grow, and their differences vary too little for new batches."""
    added = np.diff(users)
    if len(users) < 3 or not np.all(added > 0):
        return
    log_ratio = 0.0
    for ones in (control, treatment):
        increments = np.diff(ones)
        if not np.all((increments >= 0) & (increments <= added)):
            return
        rate = ones[-1] / users[-1]
        variance = max(rate * (1 - rate), 1 / users[-1])
        squares = (increments - rate * added) ** 2 / variance
        both = users[1:] + users[:-1]  # of disjoint batches the variances add up
        log_ratio += float(np.sum(np.log(both / added) / 2 - squares / 2 * (1 / added - 1 / both)))
    if log_ratio > math.log(LIKELIER_TOTALS):
        warn_caller(
            f"sizes, control and treatment grow from batch to batch as running totals do (sizes {users[0]:.0f}, "
            f"{users[1]:.0f}, ...): if each batch contains the batches before it, the p-value is wrong; pass only the "
            "new users and ones of each batch"
        )
