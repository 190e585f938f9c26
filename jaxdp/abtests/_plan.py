"""The plan of an A/B test: the users needed, the lift that is detected, and the rule that evaluates reports."""

import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from jaxdp.abtests import _fixed
from jaxdp.abtests._fixed import Setting, fixed_power, fixed_users
from jaxdp.abtests._release import CentralRelease
from jaxdp.abtests._report import TRUSTS, figure, mean_bound, other_trust, table
from jaxdp.abtests._rules import AnytimeCentral, AnytimeLocal, FixedTest
from jaxdp.abtests._schedule import Schedule
from jaxdp.abtests._simulation import Needs, choose_schedule, simulate_stopping
from jaxdp.validation import (
    check_choice,
    check_count,
    check_epsilon,
    check_flag,
    check_number,
    check_probability,
    warn_caller,
)

KINDS = ("fixed", "anytime")
NUM_RUNS = 4_000
FEWEST_RUNS = 100
LARGE_LIFT = 1.0  # a larger or equal lift causes a warning: 20, typed for 20%, is valid at any rate below 1 / 21


class Plan(NamedTuple):
    """A planned test; `print(plan)` prints its table.

    Attributes:
        rate: planned probability of a 1 in the control arm.
        lift: planned relative difference of the rates; the treatment arm's rate is `rate * (1 + lift)`.
        epsilon: privacy budget of each user's bit; infinity for a non-private test.
        trust: "local" or "central".
        power: planned probability that the fixed test detects the lift.
        failure_prob: type I error, the probability of declaring equal arms different.
        needs: users needed with the planned trust model.
        other_trust: users needed with the other trust model.
        without_privacy: users needed by the non-private test.
        schedule: the numbers of pairs at which a curator looks at the data. None if no curator adds noise (local trust,
            or infinite epsilon). In this case the anytime test looks after each of the first 200 pairs, and then
            whenever the number of pairs has grown by about 1%.
    """

    rate: float
    lift: float
    epsilon: float
    trust: str
    power: float
    failure_prob: float
    needs: Needs
    other_trust: Needs
    without_privacy: Needs
    schedule: Schedule | None

    @property
    def setting(self) -> Setting:
        """The planned values."""
        return Setting(self.rate, self.lift, self.epsilon, self.trust, self.power, self.failure_prob)

    def power_at(self, users: float) -> float:
        """Returns the power of the fixed test with `users` users in total, in both arms together.

        Raises:
            ValueError: if users is not a number in [2, 2^53].
        """
        return fixed_power(self.setting, _check_users(users))

    def smallest_lift(self, users: float) -> float:
        """Returns the minimum detectable lift of the fixed test with `users` users in total.

        This is the lift nearest to 0 that has the planned sign and is detected with the planned power. NaN if no lift
        is.

        Raises:
            ValueError: if users is not a number in [2, 2^53].
        """
        return _fixed.smallest_lift(self.setting, _check_users(users))

    def least_epsilon(self, users: float) -> float:
        """Returns the minimum epsilon at which the fixed test with `users` users in total has the planned power.

        The result is at least 1e-9. It is infinity if only the non-private test has this power, and NaN if even the
        non-private test has less.

        Raises:
            ValueError: if users is not a number in [2, 2^53].
        """
        return _fixed.least_epsilon(self.setting, _check_users(users))

    @overload
    def test(self, kind: str, *, release: Literal[False] = False) -> FixedTest | AnytimeLocal | AnytimeCentral: ...

    @overload
    def test(self, kind: str, *, release: Literal[True]) -> CentralRelease: ...

    def test(self, kind: str, *, release: bool = False) -> FixedTest | AnytimeLocal | AnytimeCentral | CentralRelease:
        """Returns the rule that evaluates the reports or releases.

        Args:
            kind: "fixed" for the test that looks once, after `needs.fixed` users; "anytime" for the test that may stop
                at any look.
            release: if True, the rule takes users' true bits, and releases sums of the bits with discrete Laplace
                noise, which is sampled exactly from the operating system's random words. If False, the rule takes
                reports or sums that are already private.

        Raises:
            ValueError: if kind is neither "fixed" nor "anytime", or release is not a bool. With release=True also if
                epsilon is infinite, or if trust is local: then each device randomizes its user's bit, by
                `jaxdp.mechanisms.secret_randomized_response`.
        """
        rule: FixedTest | AnytimeLocal | AnytimeCentral
        if check_choice("kind", kind, KINDS) == "fixed":
            rule = FixedTest(self.setting, self.needs.fixed)
        else:
            rule = AnytimeLocal(self.setting) if self.schedule is None else AnytimeCentral(self.setting, self.schedule)
        if not check_flag("release", release):
            return rule
        if self.trust == "local":
            raise ValueError(
                "trust must be central for a release, got local: reports are private when they leave the devices "
                "(jaxdp.mechanisms.secret_randomized_response), and are evaluated without noise"
            )
        if isinstance(rule, AnytimeLocal) or math.isinf(self.epsilon):
            raise ValueError(f"epsilon must be finite for a release, got {self.epsilon}")
        return CentralRelease(rule)

    def table(self) -> str:
        """Returns the plan as text, with lines of at most 100 characters unless several numbers have 16 digits."""
        return table(self.setting, (self.needs, self.other_trust, self.without_privacy), self.schedule)

    __str__ = table

    def plot(self) -> Any:
        """Returns a figure of the users needed against epsilon, for both trust models."""
        return figure(self.setting, (self.needs, self.other_trust))


def abtest(
    *,
    rate: float,
    lift: float,
    epsilon: float,
    trust: str,
    power: float = 0.8,
    failure_prob: float = 0.05,
    num_runs: int = NUM_RUNS,
    seed: int = 0,
) -> Plan:
    """Plans an A/B test on private bits, such as conversions.

    Two tests are planned. The fixed test is the two-proportion z-test. It looks once, after a planned number of users,
    and its type I error is close to `failure_prob`. The anytime test may stop at any look, and its type I error over
    all looks is at most `failure_prob`. It pairs the k-th users of both arms, so it needs no knowledge of rates or
    variances.

    Args:
        rate: planned probability of a 1 in the control arm, in (0, 1).
        lift: relative difference of the rates, not 0; the treatment arm's rate is `rate * (1 + lift)`, in (0, 1).
        epsilon: privacy budget of each user's bit, > 0; infinity for a non-private test.
        trust: "local" for randomized-response reports of the bits, "central" for a curator who sees the bits and
            releases noisy counts.
        power: probability that the fixed test detects the lift, in (failure_prob, 1).
        failure_prob: type I error, the probability of declaring equal arms different, in (0, 0.5).
        num_runs: number of simulated runs of the anytime test, >= 100.
        seed: seed of the simulation.

    Returns:
        The plan. It contains the numbers of users needed at this epsilon, with this and with the other trust model, and
        by the non-private test. For any other number of users, its methods compute the power, the minimum detectable
        lift, and the minimum epsilon. `test` returns the rule that evaluates the reports or releases.

    Warns:
        UserWarning: if the lift is 1 or more, because it may have been meant in percent.

    Raises:
        ValueError: if a value is out of range, or more than 2^53 users are needed.

    Privacy:
        - Unit: one user's bit; adjacency: replace one bit. Arms, order and pairing are public.
        - Local: each report is epsilon-DP. Central, anytime test: each look releases two sums over the new pairs, with
          budgets that add up to epsilon (see `AnytimeCentral`), and each pair is new at only one look. Central, fixed
          test: each user is in one of two counts, each with budget epsilon.
        - Planning reads no data. Only the rules of `Plan.test(..., release=True)` draw noise that protects users.

    Source:
        Wald (1947), "Sequential Analysis", chapter 6; Robbins (1970), DOI 10.1214/aoms/1177696786. Deviations: batches
        of pairs (by Jensen's inequality) and noisy counts (by the noise's moment generating function), see
        `docs/proofs/pairs.md`.

    Examples:
        >>> plan = abtest(rate=0.5, lift=0.1, epsilon=1.0, trust="central")
        >>> plan.needs.fixed, round(plan.power_at(2_000), 2)
        (3146, 0.61)
    """
    check_probability("rate", rate)
    if check_number("lift", lift) == 0 or not 0 < rate * (1 + lift) < 1:
        raise ValueError(f"lift must not be 0, and rate * (1 + lift) must be in (0, 1), got lift={lift} at rate={rate}")
    if lift >= LARGE_LIFT:
        warn_caller(f"lift is relative to the rate, not in percent: {lift:g} means {lift:+,.0%}, and 0.2 means +20%")
    check_choice("trust", trust, TRUSTS)
    if check_probability("failure_prob", failure_prob) >= 0.5:
        raise ValueError(f"failure_prob must be in (0, 0.5), got {failure_prob}")
    if check_probability("power", power) <= failure_prob:
        raise ValueError(f"power must be > failure_prob = {failure_prob:g}, got {power}")
    check_count("num_runs", num_runs, FEWEST_RUNS)
    check_count("seed", seed, 0)
    setting = Setting(float(rate), float(lift), check_epsilon(epsilon), trust, float(power), float(failure_prob))
    schedule = _schedule(setting, seed)
    other = setting._replace(trust=other_trust(trust))
    return Plan(
        *setting,
        needs=_needs(setting, schedule, num_runs, seed),
        other_trust=_needs(other, _schedule(other, seed), num_runs, seed),
        without_privacy=_needs(setting._replace(epsilon=math.inf, trust="local"), None, num_runs, seed),
        schedule=schedule,
    )


def _schedule(setting: Setting, seed: int) -> Schedule | None:
    """Returns the curator's schedule; None if no curator adds noise to the bits or reports."""
    if setting.trust == "local" or math.isinf(setting.epsilon):
        return None
    return choose_schedule(setting, np.random.default_rng([seed, 0]))


def _needs(setting: Setting, schedule: Schedule | None, num_runs: int, seed: int) -> Needs:
    stopping = simulate_stopping(setting, schedule, num_runs, np.random.default_rng([seed, 1]))
    return Needs(fixed_users(setting), stopping, mean_bound(setting))


def _check_users(users: float) -> float:
    if not 2 <= check_number("users", users) <= _fixed.MOST_USERS:
        raise ValueError(f"users must be in [2, 2^53], of both arms together, got {users}")
    return float(users)
