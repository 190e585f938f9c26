"""Warnings about data that are not plausible under the planned test."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betainc, expit

from jaxdp.abtests._effects import Effect
from jaxdp.abtests._fixed import Setting
from jaxdp.validation import warn_caller

FARTHEST_BY_CHANCE = 5  # a deviation of at most this number of standard errors is attributed to chance
UNLIKELY_SPLIT = 1e-4
UNLIKELY_NOISE = 1e-9
FARTHEST_ODDS = 4.0  # odds of a rate may differ from the planned odds by this factor
NAMES = ("control", "treatment")
LIKELIER_TOTALS = 3.0  # a likelihood ratio of running totals to disjoint batches above this factor causes a warning


def warn_of_split(users: Sequence[int]) -> None:
    """Warns if an exact binomial test rejects, at p < 1e-4, that a fair coin assigned the users to the arms."""
    smaller, larger = sorted(users)
    chance = min(1.0, 2 * float(betainc(larger, smaller + 1, 0.5)))  # bdtr is NaN from 2^31 users on
    if chance < UNLIKELY_SPLIT:
        warn_caller(
            f"control has {users[0]:,} users and treatment {users[1]:,}, which a fair coin gives with p = {chance:.2g}:"
            " if you did not plan unequal arms, users of one arm are missing, and the result may be biased"
        )


def warn_of_impossible_shares(setting: Setting, shares: Sequence[float], users: Sequence[float]) -> None:
    """Warns if an arm's fraction of ones is impossible for randomized responses, even with sampling error.

    The expected fraction of ones is in [1 / (1 + e^epsilon), e^epsilon / (1 + e^epsilon)]. A curator's counts are not
    checked.
    """
    if setting.trust == "central":
        return
    least = float(expit(-setting.epsilon))
    for name, share, size in zip(NAMES, shares, users, strict=True):
        slack = FARTHEST_BY_CHANCE * math.sqrt(least * (1 - least) / size)
        if not least - slack <= share <= 1 - least + slack:
            warn_caller(
                f"the share of ones among the reports of {name} is {share:.3g}, but reports at epsilon "
                f"{setting.epsilon:g} have a share in [{least:.3g}, {1 - least:.3g}]: these bits are not randomized, "
                "or were randomized at another epsilon"
            )


def warn_of_unplanned_rates(setting: Setting, effect: Effect, users: Sequence[float], noise_variance: float) -> None:
    """Warns if an estimated rate is far outside the range of the planned rates.

    If exchanging 0 and 1 would explain the rate, the warning says so. `noise_variance` is the variance of the noise in
    each arm's count.
    """
    low, high = sorted(setting.true_rates)
    shrink = math.tanh(setting.epsilon / 2) if setting.trust == "local" else 1.0

    def distance(rate: float) -> float:
        return max(low - rate, rate - high)

    rates = (effect.control.estimate, effect.treatment.estimate)
    for name, planned, rate, size in zip(NAMES, setting.true_rates, rates, users, strict=True):
        if distance(rate) <= FARTHEST_BY_CHANCE * math.sqrt(0.25 / size + noise_variance / size**2) / shrink:
            continue
        sentence = f"the estimated rate of {name} is {rate:.3g}, but the plan says {planned:.3g}: "
        if distance(rate) > 2 * distance(1 - rate):
            warn_caller(
                f"{sentence}perhaps 0 and 1 are exchanged (the rate would then be {1 - rate:.3g}), or the plan is wrong"
            )
        elif not _odds(low) / FARTHEST_ODDS <= _odds(rate) <= _odds(high) * FARTHEST_ODDS:
            warn_caller(
                f"{sentence}perhaps the bits are not randomized, or another epsilon was used, or the plan is wrong"
            )


def _odds(rate: float) -> float:
    return rate / (1 - rate) if rate < 1 else math.inf


def warn_of_sorted_reports(name: str, reports: np.ndarray) -> None:
    """Warns if an arm's reports seem to be sorted.

    Reports seem to be sorted if they change between 0 and 1 less than half as often as expected, and chance does not
    explain the difference.
    """
    size, ones = reports.size, float(reports.sum())
    expected = 2 * ones * (size - ones) / size
    changes = int(np.count_nonzero(np.diff(reports)))
    if changes < expected / 2 and expected - changes > FARTHEST_BY_CHANCE * expected / math.sqrt(size):
        warn_caller(
            f"the reports of {name} change {changes:,} times between 0 and 1, where reports in the order of arrival "
            f"change about {expected:,.0f} times: if the reports are sorted, the result is wrong"
        )


def warn_of_impossible_releases(
    pairs: np.ndarray, leads: np.ndarray, discordant: np.ndarray, lead_epsilon: float, discordant_epsilon: float
) -> None:
    """Warns if S and D of an epoch (see `AnytimeCentral`) are too far from feasible sums for plausible noise."""
    log_chance = math.log(2 / UNLIKELY_NOISE)
    lead_noise, discordant_noise = log_chance / lead_epsilon, log_chance / discordant_epsilon
    is_wrong = (
        (discordant < -discordant_noise)
        | (discordant > pairs + discordant_noise)
        | (np.abs(leads) > np.minimum(pairs, discordant + discordant_noise) + lead_noise)
    )
    if is_wrong.any():
        epoch = int(np.flatnonzero(is_wrong)[0])
        warn_caller(
            f"epoch {epoch + 1} of {pairs[epoch]:.0f} pairs has the lead {leads[epoch]:.0f} and "
            f"{discordant[epoch]:.0f} discordant pairs, which no bits can give with this noise: are these sums of "
            "another plan, or running totals?"
        )


def warn_of_totals(users: np.ndarray, control: np.ndarray, treatment: np.ndarray) -> None:
    """Warns if three or more batches look like running totals.

    They do if users grow from batch to batch, the ones of each arm never decrease and never grow by more than the
    users, and the increases are too regular for disjoint batches.
    """
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
        both = users[1:] + users[:-1]  # the variances of disjoint batches add up
        log_ratio += float(np.sum(np.log(both / added) / 2 - squares / 2 * (1 / added - 1 / both)))
    if log_ratio > math.log(LIKELIER_TOTALS):
        warn_caller(
            f"sizes, control and treatment grow from batch to batch as running totals do (sizes {users[0]:.0f}, "
            f"{users[1]:.0f}, ...): if each batch contains the batches before it, the p-value is wrong; pass only the "
            "new users and ones of each batch"
        )
