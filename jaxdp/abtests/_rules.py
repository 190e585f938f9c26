"""Rules that evaluate the reports or releases of a test."""

import math
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from jaxdp.abtests._doubts import (
    warn_of_impossible_releases,
    warn_of_impossible_shares,
    warn_of_sorted_reports,
    warn_of_split,
    warn_of_totals,
    warn_of_unplanned_rates,
)
from jaxdp.abtests._effects import Effect, anytime_width, effect, fixed_width, pairs_effect
from jaxdp.abtests._evidence import central_evidence, local_evidence, mean_discordant
from jaxdp.abtests._fixed import MOST_USERS, Setting, count_noise_variance
from jaxdp.abtests._schedule import Schedule, local_looks
from jaxdp.abtests._simulation import geometric_noise
from jaxdp.validation import check_count, check_finite, refuse_masked, refuse_private, warn_caller

FARTHEST = 1.05  # the number of users may differ from the plan by this factor without a warning


class Verdict(NamedTuple):
    """The result of a test.

    Attributes:
        decision: "treatment is better", "control is better" or "undecided".
        p_value: two-sided p-value; for an anytime test, the minimum of 1 and of 1 / e-value at all looks so far, which
            is valid at every look. A look at which neither arm leads does not count.
        users: total number of users of both arms in the test.
        waiting: number of users who are not in the test yet, because they have no partner or are waiting for the next
            look. 0 if the rule received only counts or releases.
        stopped_at: total number of users at the first look with a decision; None if no look had a decision.
        rates: estimated rates of users' bits, control first; NaN if the releases do not determine them.
        effect: estimates of the rates, their difference and the lift, with intervals.
    """

    decision: str
    p_value: float
    users: int
    waiting: int
    stopped_at: int | None
    rates: tuple[float, float]
    effect: Effect


class FixedTest(NamedTuple):
    """The two-proportion z-test, which looks once, after the planned number of users.

    If there are many users, its type I error is close to `failure_prob`, but not bounded by it.

    Attributes:
        setting: the planned values.
        planned_users: planned total number of users of both arms.
    """

    setting: Setting
    planned_users: int

    def evaluate(self, users: Sequence[int], ones: Sequence[float]) -> Verdict:
        """Evaluates the counts of both arms.

        Args:
            users: `[2]`, number of users in the control and in the treatment arm; public.
            ones: `[2]`, control first. Local: the number of ones among the arm's reports. Central: the arm's number of
                ones, released with two-sided geometric noise at budget epsilon. Laplace noise is also possible; its
                variance exceeds the variance that the test assumes by at most 1 / 6.

        Returns:
            The verdict.

        Warns:
            UserWarning: if the number of users differs from the planned number by more than a factor of 1.05 (the
                test's type I error is valid only at the planned look); if the arms' sizes are not compatible with a
                fair coin (p < 1e-4); if reports have a fraction of ones that randomized responses cannot have; or if a
                rate is far from the planned rates, for example because 0 and 1 are exchanged.

        Raises:
            ValueError: if users or ones do not have two entries; if both are pandas Series with different labels, or
                with a different order of labels; if a number of users is not an integer in [1, 2^53]; or if ones are
                not finite or, for local trust, are outside [0, users].
        """
        _check_labels(users=users, ones=ones)
        sizes = [check_count("users", size, maximum=int(MOST_USERS)) for size in _pair("users", users)]
        counts = _pair("ones", ones).astype(np.float64)
        if self.setting.trust == "local":
            refuse_private("ones", "in [0, users]", (counts < 0) | (counts > np.asarray(sizes)))
        total = sum(sizes)
        if not 1 / FARTHEST <= total / self.planned_users <= FARTHEST:
            warn_caller(
                f"the fixed test looks once, at the planned {self.planned_users} users, got {total}: to look at other "
                'times, plan kind="anytime"'
            )
        pooled = float(np.clip(counts.sum() / total, 0.5 / total, 1 - 0.5 / total))
        noise = count_noise_variance(self.setting.epsilon) / 2 if self.setting.trust == "central" else 0.0
        variance = sum(pooled * (1 - pooled) / size + noise / size**2 for size in sizes)
        difference = float(counts[1] / sizes[1] - counts[0] / sizes[0])
        p_value = float(2 * ndtr(-abs(difference) / math.sqrt(variance)))
        width = fixed_width(self.setting)
        estimates = effect(self.setting, sizes, counts.tolist(), width, noise)
        warn_of_split(sizes)
        warn_of_impossible_shares(self.setting, (counts / np.asarray(sizes)).tolist(), sizes)
        warn_of_unplanned_rates(self.setting, estimates, sizes, noise)
        is_decided = p_value <= self.setting.failure_prob
        return Verdict(
            _decision(difference if is_decided else 0.0),
            p_value,
            total,
            0,
            total if is_decided else None,
            (estimates.control.estimate, estimates.treatment.estimate),
            estimates,
        )


class AnytimeLocal(NamedTuple):
    """The anytime test of randomized-response reports, in which the k-th reports of both arms form a pair.

    At infinite epsilon the reports are the users' bits. The test is valid if arms are assigned by a fair public coin,
    and arms, order and pairing are public. If the rate drifts, both reports of a pair must come from the same period,
    so pass each period as one batch to `evaluate_counts`.

    Attributes:
        setting: the planned values.
    """

    setting: Setting

    def evaluate(self, control: Any, treatment: Any) -> Verdict:
        """Evaluates reports in the order of arrival.

        Args:
            control: `[control users]` of 0 and 1, randomized-response reports.
            treatment: `[treatment users]` of 0 and 1, the same for the treatment arm.

        Returns:
            The verdict. The test looks after each of the first 200 pairs, and then whenever the number of pairs has
            grown by about 1%. Pairs after the last look are not in the test yet.

        Warns:
            UserWarning: if the arms' sizes are not compatible with a fair coin (p < 1e-4); if an arm's reports seem to
                be sorted; or if a fraction of ones is impossible, or a rate is far from the plan, as in
                `evaluate_counts`.

        Raises:
            ValueError: if an arm's reports are not a vector of 0 and 1 with at least one entry.
        """
        arms = [check_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        warn_of_split([*map(len, arms)])
        for name, arm in zip(("control", "treatment"), arms, strict=True):
            warn_of_sorted_reports(name, arm)
        pairs = min(map(len, arms))
        ends = [0, *takewhile(lambda look: look <= pairs, local_looks())]
        sums = [np.concatenate([[0], np.cumsum(arm, dtype=np.int64)])[ends] for arm in arms]
        verdict = self._evaluate(np.diff(ends), *(np.diff(arm) for arm in sums))
        return verdict._replace(waiting=sum(map(len, arms)) - 2 * ends[-1])

    def evaluate_counts(self, sizes: Any, control: Any, treatment: Any) -> Verdict:
        """Evaluates the numbers of ones of disjoint batches, each with the same number of users in both arms.

        The ends of batches must be public and independent of reports. Running totals are not disjoint batches, so their
        e-value would not be valid.

        Args:
            sizes: `[batches]`, number of users of each arm in each batch.
            control: `[batches]`, number of ones among the control arm's reports.
            treatment: `[batches]`, number of ones among the treatment arm's reports.

        Returns:
            The verdict, with one look at the end of each batch.

        Warns:
            UserWarning: if reports have a fraction of ones that randomized responses cannot have; if a rate is far from
                the planned rates, for example because 0 and 1 are exchanged; or if batches look like running totals.

        Raises:
            ValueError: if the arrays do not have the same shape [batches] with at least one batch; if pandas Series
                among them differ in labels or in their order; if a size is not an integer >= 1, or the sizes' sum
                exceeds 2^53; or if a count is not an integer in [0, size].
        """
        arrays = {"sizes": sizes, "control": control, "treatment": treatment}
        _check_labels(**arrays)
        users, *counts = (check_finite(name, values).astype(np.float64) for name, values in arrays.items())
        if users.ndim != 1 or not users.size or any(values.shape != users.shape for values in counts):
            shapes = ", ".join(str(values.shape) for values in (users, *counts))
            raise ValueError(f"sizes, control and treatment must have one shape, [batches], got {shapes}")
        if np.any((users < 1) | (users != np.floor(users))):
            raise ValueError(f"sizes must be integers >= 1, got {users[(users < 1) | (users != np.floor(users))][0]}")
        if users.sum() > MOST_USERS:
            raise ValueError(f"sizes must have a sum of at most 2^53, got {users.sum():g}")
        for name, values in zip(("control", "treatment"), counts, strict=True):
            refuse_private(name, "integers in [0, sizes]", (values < 0) | (values > users) | (values % 1 != 0))
        warn_of_totals(users, *counts)
        return self._evaluate(users, *counts)

    def _evaluate(self, users: np.ndarray, control: np.ndarray, treatment: np.ndarray) -> Verdict:
        leads = np.cumsum(treatment - control)
        discordant = np.cumsum(mean_discordant(users, control, treatment))
        pairs, ones = float(users.sum()), [float(control.sum()), float(treatment.sum())]
        width = anytime_width(self.setting, pairs)
        estimates = effect(self.setting, [pairs, pairs], ones, width)
        warn_of_impossible_shares(self.setting, [count / pairs for count in ones], [pairs, pairs])
        warn_of_unplanned_rates(self.setting, estimates, [pairs, pairs], 0.0)
        logs = local_evidence(self.setting).log_value(leads, discordant)
        return _anytime(self.setting, logs, leads, 2 * np.cumsum(users), estimates)


class AnytimeCentral(NamedTuple):
    """The anytime test of a curator's releases, which are two noisy integers S and D for each epoch.

    The k-th users of both arms form a pair. An epoch is the pairs between two looks. S is the number of the epoch's
    pairs in which only the treatment's bit is 1, minus the number of pairs in which only the control's bit is 1. D is
    the sum of these two numbers. S and D both have sensitivity 1 with respect to one bit. S has two-sided geometric
    noise with budget `lead_epsilon`, and D with budget `discordant_epsilon`; together they spend the planned epsilon.

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
        """Returns the numbers of pairs at the scheduled looks, up to `pairs`."""
        return list(takewhile(lambda look: look <= pairs, self.schedule.looks()))

    def evaluate(self, leads: Any, discordant: Any) -> Verdict:
        """Evaluates the releases of all epochs so far, in the order of the epochs.

        Args:
            leads: `[epochs]`, the released S of each epoch.
            discordant: `[epochs]`, the released D of each epoch.

        Returns:
            The verdict; its rates and lift are NaN, because S and D do not determine the rates of single arms. S and D
            also do not show whether 0 and 1 are exchanged, which would reverse the decision.

        Warns:
            UserWarning: if an epoch's releases are too far from possible sums to be explained by their noise.

        Raises:
            ValueError: if the arrays do not have the same shape [epochs] with at least one epoch; if a release is not
                an integer; or if a sum of releases is infinite in float64.
        """
        arrays = {"leads": leads, "discordant": discordant}
        released = [check_finite(name, values).astype(np.float64) for name, values in arrays.items()]
        if released[0].ndim != 1 or not released[0].size or released[0].shape != released[1].shape:
            raise ValueError(
                f"leads and discordant must have one shape, [epochs], got {released[0].shape} and {released[1].shape}"
            )
        for name, values in zip(("leads", "discordant"), released, strict=True):
            if np.any(values % 1 != 0):
                raise ValueError(f"{name} must be integers, got {values[values % 1 != 0][0]}")
        epochs = np.arange(1, released[0].size + 1)
        with np.errstate(over="ignore"):
            totals = [np.cumsum(values) for values in released]
        for name, sums in zip(("leads", "discordant"), totals, strict=True):
            check_finite(f"the sum of {name}", sums)
        evidence = central_evidence(self.setting, self.schedule.slope_share)
        logs = evidence.log_value(totals[0], totals[1], epochs)
        pairs = np.asarray([look for _, look in zip(epochs, self.schedule.looks(), strict=False)])
        new_pairs = np.diff(pairs, prepend=0)
        warn_of_impossible_releases(
            new_pairs, released[0], released[1], evidence.lead_epsilon, evidence.discordant_epsilon
        )
        noise_variance = len(epochs) * count_noise_variance(evidence.lead_epsilon) / 2
        width = anytime_width(self.setting, float(pairs[-1]))
        estimates = pairs_effect(float(pairs[-1]), float(totals[0][-1]), float(totals[1][-1]), noise_variance, width)
        return _anytime(self.setting, logs, totals[0], 2 * pairs, estimates)

    def simulate_releases(self, control: Any, treatment: Any, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Simulates the releases of these bits at the scheduled looks; the simulated noise protects nobody.

        Args:
            control: `[control users]` of 0 and 1, in the order of arrival.
            treatment: `[treatment users]` of 0 and 1, the same for the treatment arm.
            seed: seed of NumPy's generator, which is not a source of secret noise.

        Returns:
            The released S and D, `[epochs]` each.

        Warns:
            UserWarning: always, because this is only a simulation; and again if the arms' sizes are not compatible with
                a fair coin (p < 1e-4).

        Raises:
            ValueError: if an arm's bits are not a vector of 0 and 1, if fewer pairs are given than the first look
                needs, or if seed is negative.
        """
        arms = [check_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        pairs = min(map(len, arms))
        ends = [0, *self.looks(pairs)]
        if len(ends) == 1:
            raise ValueError(f"control and treatment must have >= {self.schedule.first} users each, got {pairs} pairs")
        warn_caller("simulation: this noise protects nobody, because its generator is public")
        warn_of_split([*map(len, arms)])
        rng = np.random.default_rng(seed)
        lead = arms[1][:pairs].astype(np.int64) - arms[0][:pairs]
        batches = [slice(*bounds) for bounds in pairwise(ends)]
        leads = np.asarray([lead[batch].sum() for batch in batches])
        discordant = np.asarray([np.abs(lead[batch]).sum() for batch in batches])
        return (
            leads + geometric_noise(self.lead_epsilon, len(batches), rng),
            discordant + geometric_noise(self.discordant_epsilon, len(batches), rng),
        )


def _anytime(setting: Setting, logs: np.ndarray, leads: np.ndarray, users: np.ndarray, estimates: Effect) -> Verdict:
    """Returns the verdict after the looks with the log e-values `logs`.

    The decision is made at the first look with an e-value of at least 1 / failure_prob. The p-value is the minimum over
    all looks. Looks at which neither arm leads count for neither.
    """
    logs = np.where(leads == 0, -np.inf, logs)
    deciding = np.flatnonzero(logs >= math.log(1 / setting.failure_prob))
    first = int(deciding[0]) if deciding.size else None
    return Verdict(
        _decision(0.0 if first is None else float(leads[first])),
        math.exp(-max(0.0, logs.max())),
        int(users[-1]),
        0,
        None if first is None else int(users[first]),
        (estimates.control.estimate, estimates.treatment.estimate),
        estimates,
    )


def _decision(difference: float) -> str:
    return "undecided" if difference == 0 else f"{'treatment' if difference > 0 else 'control'} is better"


def _check_labels(**arrays: Any) -> None:
    """Raises ValueError if pandas Series differ in labels or in their order, because entries are read by position."""
    indices = {name: getattr(values, "index", None) for name, values in arrays.items()}
    labels = {name: list(index) for name, index in indices.items() if index is not None and not callable(index)}
    first = next(iter(labels), "")
    for name, ordered_labels in labels.items():
        if ordered_labels != labels[first]:
            raise ValueError(f"{name} must have the labels of {first} in the same order, got other labels")


def _pair(name: str, values: Any) -> np.ndarray:
    pair = check_finite(name, values)
    if pair.shape != (2,):
        raise ValueError(f"{name} must have two entries, control and treatment, got shape {pair.shape}")
    return pair


def check_bits(name: str, values: Any) -> np.ndarray:
    """Checks bits, and returns them as [users] int8, so that sums are exact for any dtype of the values.

    Raises:
        ValueError: if values are not a vector of 0 and 1 with at least one entry, or have masked entries.
    """
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array [users] of 0 and 1, got rows of different lengths") from error
    bits = check_finite(name, array.astype(np.int8) if array.dtype == bool else array, is_private=True)
    if bits.ndim != 1 or not bits.size:
        raise ValueError(f"{name} must be an array [users] with at least one entry, got shape {bits.shape}")
    refuse_private(name, "0 or 1", (bits != 0) & (bits != 1))
    return bits.astype(np.int8)
