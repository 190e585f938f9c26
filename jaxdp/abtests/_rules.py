"""Rules that evaluate the reports or releases of a test."""

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from jaxdp.abtests._evidence import central_evidence, local_evidence, mean_discordant
from jaxdp.abtests._fixed import Setting, count_noise_variance
from jaxdp.abtests._schedule import Schedule, local_looks
from jaxdp.abtests._simulation import geometric_noise
from jaxdp.validation import check_count, check_finite, refuse_private

FARTHEST = 1.05  # the number of users may differ from the plan by this factor without a warning
FARTHEST_BY_CHANCE = 5  # standard errors by which a share of reports may lie beyond its limits


class Verdict(NamedTuple):
    """The result of a test.

    Attributes:
        decision: "treatment is better", "control is better" or "undecided".
        p_value: two-sided p-value; for an anytime test, the least 1 / e-value so far, which is valid at every look.
        users: number of users, of both arms, in the test.
        waiting: number of users who are not in the test yet: they have no partner, or the next look has not come.
        stopped_at: number of users, of both arms, at the first look that decided; None if no look did.
        rates: estimated shares of ones among users, control first; NaN if the releases do not determine them.
    """

    decision: str
    p_value: float
    users: int
    waiting: int
    stopped_at: int | None
    rates: tuple[float, float]


class FixedTest(NamedTuple):
    """The two-proportion z-test, which looks once, at the planned number of users; its error is asymptotic.

    Attributes:
        setting: the planned values.
        planned_users: planned number of users, of both arms together.
    """

    setting: Setting
    planned_users: int

    def evaluate(self, users: Sequence[int], ones: Sequence[float]) -> Verdict:
        """Evaluates the counts of both arms.

        Args:
            users: `[2]`, number of users in the control and in the treatment arm; public.
            ones: `[2]`, control first. Local: the number of ones among the arm's reports, whole numbers. Central: the
                released counts, each with two-sided geometric or Laplace noise at the whole epsilon.

        Returns:
            The verdict.

        Warns:
            UserWarning: if the number of users differs from the planned number by more than 5%: the test's error holds
                only at the planned look; if reports have a share of ones that randomized responses cannot have.

        Raises:
            ValueError: if a number of users is not whole and > 0, or reported ones lie outside [0, users].
        """
        sizes = [check_count("users", size, maximum=2**53) for size in _pair("users", users)]
        counts = check_finite("ones", _pair("ones", ones))
        if self.setting.trust == "local":
            refuse_private("ones", "in [0, users]", (counts < 0) | (counts > np.asarray(sizes)))
        total = sum(sizes)
        if not 1 / FARTHEST <= total / self.planned_users <= FARTHEST:
            warnings.warn(
                f"the fixed test looks once, at the planned {self.planned_users} users, got {total}: whoever looks at "
                'other times plans kind="anytime"',
                UserWarning,
                stacklevel=2,
            )
        collected = np.clip(counts / np.asarray(sizes), 0.0, 1.0)
        pooled = float(np.clip(counts.sum() / total, 0.5 / total, 1 - 0.5 / total))
        variance = pooled * (1 - pooled) * sum(1 / size for size in sizes)
        if self.setting.trust == "central":
            variance += count_noise_variance(self.setting.epsilon) / 2 * sum(1 / size**2 for size in sizes)
        difference = float(counts[1] / sizes[1] - counts[0] / sizes[0])
        p_value = float(2 * norm.sf(abs(difference) / math.sqrt(variance)))
        _warn_of_impossible_shares(self.setting, collected.tolist(), sizes)
        is_decided = p_value <= self.setting.failure_prob
        return Verdict(
            _decision(difference if is_decided else 0.0),
            p_value,
            total,
            0,
            total if is_decided else None,
            _true_rates(self.setting, float(collected[0]), float(collected[1])),
        )


class AnytimeLocal(NamedTuple):
    """The anytime test of randomized-response reports: the k-th reports of both arms form a pair.

    The test is valid if arms are assigned by a fair public coin, and arms, order and pairing are public. If the rate
    drifts, both reports of a pair must come from the same period: then evaluate periods as batches.

    Attributes:
        setting: the planned values.
    """

    setting: Setting

    def evaluate(self, control: Any, treatment: Any) -> Verdict:
        """Evaluates reports in the order of arrival.

        Args:
            control: `[control users]` of 0 and 1, randomized-response reports.
            treatment: `[treatment users]`, the same for the treatment arm.

        Returns:
            The verdict of looks after 1, 2, ..., 200 pairs, and then after about 1% more each. Pairs after the last
            look wait.

        Raises:
            ValueError: if a report is not 0 or 1, or an arm has no reports.
        """
        arms = [_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        pairs = min(map(len, arms))
        ends = [0, *takewhile(lambda look: look <= pairs, local_looks())]
        sums = [np.concatenate([[0], np.cumsum(arm, dtype=np.int64)])[ends] for arm in arms]
        verdict = self.evaluate_counts(np.diff(ends), *(np.diff(arm) for arm in sums))
        return verdict._replace(waiting=sum(map(len, arms)) - 2 * ends[-1])

    def evaluate_counts(self, sizes: Any, control: Any, treatment: Any) -> Verdict:
        """Evaluates the ones of disjoint batches, each with equally many users of both arms.

        The ends of batches must be public and independent of reports. Running totals are not disjoint batches, so their
        e-value would not be valid.

        Args:
            sizes: `[batches]`, number of users of each arm in each batch.
            control: `[batches]`, number of ones among the control arm's reports.
            treatment: `[batches]`, number of ones among the treatment arm's reports.

        Warns:
            UserWarning: if reports have a share of ones that randomized responses cannot have.

        Raises:
            ValueError: if shapes differ, or a count lies outside [0, size].
        """
        users = check_finite("sizes", sizes)
        counts = [check_finite(name, values) for name, values in (("control", control), ("treatment", treatment))]
        if users.ndim != 1 or not users.size or any(values.shape != users.shape for values in counts):
            shapes = ", ".join(str(values.shape) for values in (users, *counts))
            raise ValueError(f"sizes, control and treatment must have one shape, [batches], got {shapes}")
        if np.any((users < 1) | (users != np.floor(users))):
            raise ValueError(
                f"sizes must be whole numbers >= 1, got {users[(users < 1) | (users != np.floor(users))][0]}"
            )
        for name, values in zip(("control", "treatment"), counts, strict=True):
            refuse_private(name, "whole numbers in [0, sizes]", (values < 0) | (values > users) | (values % 1 != 0))
        leads = np.cumsum(counts[1] - counts[0])
        discordant = np.cumsum(mean_discordant(users, *counts))
        shares = [float(values.sum() / users.sum()) for values in counts]
        _warn_of_impossible_shares(self.setting, shares, [float(users.sum())] * 2)
        logs = local_evidence(self.setting).log_value(leads, discordant)
        return _anytime(self.setting, logs, leads, 2 * np.cumsum(users), _true_rates(self.setting, *shares))


class AnytimeCentral(NamedTuple):
    """The anytime test of a curator's releases: each epoch releases S and D of its new pairs once, with integer noise.

    The k-th users of both arms form a pair. S is the number of pairs in which only the treatment's bit is 1, minus the
    number of pairs in which only the control's bit is 1; D is the sum of these two numbers. Replacing one bit changes
    each by at most 1. S has two-sided geometric noise at `lead_epsilon`, D at `discordant_epsilon`; together they spend
    the planned epsilon.

    Attributes:
        setting: the planned values.
        schedule: the public looks.
    """

    setting: Setting
    schedule: Schedule

    @property
    def lead_epsilon(self) -> float:
        """The privacy budget of each released S."""
        return central_evidence(self.setting, self.schedule.slope_share).lead_epsilon

    @property
    def discordant_epsilon(self) -> float:
        """The privacy budget of each released D."""
        return central_evidence(self.setting, self.schedule.slope_share).discordant_epsilon

    def looks(self, pairs: int) -> list[int]:
        """Returns the looks, as numbers of pairs, up to a number of pairs."""
        return list(takewhile(lambda look: look <= pairs, self.schedule.looks()))

    def evaluate(self, leads: Any, discordant: Any) -> Verdict:
        """Evaluates the releases of all epochs so far, in order.

        Args:
            leads: `[epochs]`, the released S of each epoch.
            discordant: `[epochs]`, the released D of each epoch.

        Returns:
            The verdict; its rates are NaN, since S and D do not determine the rates of single arms.

        Raises:
            ValueError: if shapes differ, or a release is not a whole number.
        """
        released = [check_finite(name, values) for name, values in (("leads", leads), ("discordant", discordant))]
        if released[0].ndim != 1 or not released[0].size or released[0].shape != released[1].shape:
            raise ValueError(
                f"leads and discordant must have one shape, [epochs], got {released[0].shape} and {released[1].shape}"
            )
        for name, values in zip(("leads", "discordant"), released, strict=True):
            if np.any(values % 1 != 0):
                raise ValueError(f"{name} must be whole numbers, got {values[values % 1 != 0][0]}")
        epochs = np.arange(1, released[0].size + 1)
        totals = [np.cumsum(values, dtype=np.float64) for values in released]
        logs = central_evidence(self.setting, self.schedule.slope_share).log_value(totals[0], totals[1], epochs)
        pairs = np.asarray([look for _, look in zip(epochs, self.schedule.looks(), strict=False)])
        return _anytime(self.setting, logs, totals[0], 2 * pairs, (math.nan, math.nan))

    def simulate_releases(self, control: Any, treatment: Any, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Simulates the releases of these bits at the scheduled looks; the noise protects nobody.

        Args:
            control: `[control users]` of 0 and 1, in the order of arrival.
            treatment: `[treatment users]`, the same for the treatment arm.
            seed: seed of NumPy's generator, which is not a source of secret noise.

        Returns:
            The released S and D, `[epochs]` each.

        Warns:
            UserWarning: always, because this is only a simulation.

        Raises:
            ValueError: if a bit is not 0 or 1, or fewer pairs are given than the first look needs.
        """
        arms = [_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        pairs = min(map(len, arms))
        ends = [0, *self.looks(pairs)]
        if len(ends) == 1:
            raise ValueError(f"control and treatment must have {self.schedule.first} users each, got {pairs} pairs")
        warnings.warn("simulation: this noise protects nobody, because its generator is public", stacklevel=2)
        rng = np.random.default_rng(seed)
        lead = arms[1][:pairs].astype(np.int64) - arms[0][:pairs]
        batches = [slice(*bounds) for bounds in pairwise(ends)]
        leads = np.asarray([lead[batch].sum() for batch in batches])
        discordant = np.asarray([np.abs(lead[batch]).sum() for batch in batches])
        return (
            leads + geometric_noise(self.lead_epsilon, len(batches), rng),
            discordant + geometric_noise(self.discordant_epsilon, len(batches), rng),
        )


def _anytime(
    setting: Setting, logs: np.ndarray, leads: np.ndarray, users: np.ndarray, rates: tuple[float, float]
) -> Verdict:
    """Returns the verdict of the first look that decides, or of the last look."""
    deciding = np.flatnonzero(logs >= math.log(1 / setting.failure_prob))
    first = int(deciding[0]) if deciding.size else None
    return Verdict(
        _decision(0.0 if first is None else float(leads[first])),
        float(min(1.0, math.exp(-logs.max()))),
        int(users[-1]),
        0,
        None if first is None else int(users[first]),
        rates,
    )


def _decision(difference: float) -> str:
    return "undecided" if difference == 0 else f"{'treatment' if difference > 0 else 'control'} is better"


def _true_rates(setting: Setting, control: float, treatment: float) -> tuple[float, float]:
    """Estimates the users' rates from the rates of their reports, clipped to [0, 1]."""
    if setting.trust == "central":
        return control, treatment
    shrink = math.tanh(setting.epsilon / 2)
    first, second = (min(max(0.5 + (rate - 0.5) / shrink, 0.0), 1.0) for rate in (control, treatment))
    return first, second


def _warn_of_impossible_shares(setting: Setting, shares: Sequence[float], users: Sequence[float]) -> None:
    """Warns if reports have fewer or more ones than randomized responses can have, beyond chance."""
    if setting.trust == "central":
        return
    least = 1 / (1 + math.exp(setting.epsilon))
    for name, share, size in zip(("control", "treatment"), shares, users, strict=True):
        slack = FARTHEST_BY_CHANCE * math.sqrt(least * (1 - least) / size)
        if not least - slack <= share <= 1 - least + slack:
            warnings.warn(
                f"the share of ones among the reports of {name} is {share:.3g}, but reports at epsilon "
                f"{setting.epsilon:g} have a share in [{least:.3g}, {1 - least:.3g}]: these bits are not randomized, "
                "or at another epsilon",
                UserWarning,
                stacklevel=3,
            )


def _pair(name: str, values: Any) -> Sequence[Any]:
    if len(values) != 2:
        raise ValueError(f"{name} must have two entries, control and treatment, got {len(values)}")
    return values


def _bits(name: str, values: Any) -> np.ndarray:
    bits = check_finite(name, np.asarray(values) + 0, is_private=True)
    if bits.ndim != 1 or not bits.size:
        raise ValueError(f"{name} must be an array [users] with at least one entry, got shape {bits.shape}")
    refuse_private(name, "0 or 1", (bits != 0) & (bits != 1))
    return bits
