"""Simulates the stopping times of anytime tests, with binomial counts at each look, and chooses a curator's looks."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product, starmap
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from jaxdp.abtests._evidence import CentralEvidence, LocalEvidence, central_evidence, local_evidence, mean_discordant
from jaxdp.abtests._fixed import Setting, fixed_users
from jaxdp.abtests._rates import log_odds_ratio
from jaxdp.abtests._schedule import Schedule, local_looks

LONGEST = 100  # a run is cut off after this multiple of the fixed test's users
WEIGHTS = {1.0: 2.0, 2.0: 1.0, 4.0: 0.25}  # exponents by multiple of the planned log odds ratio; see `choose_schedule`
PILOT_RUNS, FINAL_RUNS = 200, 2_000
NUM_FINALISTS = 6
FIRST_LOOKS = (0.1, 0.2, 0.3, 0.5)  # fractions of the fixed test's users
GROWTHS = (0.05, 0.1, 0.3, 0.5)
SLOPE_SHARES = (1.0, 0.75)
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]  # S, D, log e-value of each run
Step = Callable[[int, np.ndarray, np.ndarray, int], Sums]  # (number of new pairs, S, D, number of the look) -> Sums


class Stopping(NamedTuple):
    """Simulated stopping times of the anytime test at the planned rates, as total numbers of users of both arms.

    Attributes:
        mean: mean number of users.
        stderr: standard error of the mean.
        quantile_95: number of users that is enough in 95% of runs.
        power_at_fixed: fraction of runs that stop by the fixed test's number of users.
        unfinished: fraction of runs that were cut off at 100 times the fixed test's number of users. In the other
            statistics, these runs stop at the cutoff.
    """

    mean: float
    stderr: float
    quantile_95: float
    power_at_fixed: float
    unfinished: float


class Needs(NamedTuple):
    """Total numbers of users that are needed, in both arms together.

    Attributes:
        fixed: number of users of the fixed test (the two-proportion z-test, which looks once).
        anytime: stopping times of the anytime test of pairs, which may stop at any look.
        lower_bound: lower bound on a test's expected number of users at the planned rates. It holds for any test that
            uses both arms equally often and stops only when it declares the arms different. The test must stop with
            probability 1 if the rates differ, and with probability at most `failure_prob` if the rates are equal. With
            a curator, the stopping time must also depend only on the releases, and all releases together must be
            epsilon-DP (see `docs/proofs/pairs.md`).
    """

    fixed: int
    anytime: Stopping
    lower_bound: float


def simulate_local(
    rates: tuple[float, float],
    evidence: LocalEvidence,
    threshold: float,
    max_users: float,
    num_runs: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Simulates runs without a curator's noise, and returns the total number of users at which each run stops.

    `rates` are the rates of reports, control first. A run stops when the log e-value reaches `threshold`. The result is
    infinity for runs that do not stop by `max_users` users in total.
    """

    def step(size: int, leads: np.ndarray, discordant: np.ndarray, epoch: int) -> Sums:
        del epoch
        control, treatment = (rng.binomial(size, rate, len(leads)) for rate in rates)
        leads, discordant = leads + (treatment - control), discordant + mean_discordant(size, control, treatment)
        return leads, discordant, evidence.log_value(leads, discordant)

    return _stops(local_looks(), step, threshold, max_users, num_runs)


def simulate_central(
    rates: tuple[float, float],
    evidence: CentralEvidence,
    schedule: Schedule,
    threshold: float,
    max_users: float,
    num_runs: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Simulates runs with a curator, and returns the total number of users at which each run stops.

    The curator releases S and D (see `AnytimeCentral`) of each epoch. `rates` are the rates of bits, control first. A
    run stops when the log e-value reaches `threshold`. The result is infinity for runs that do not stop by `max_users`
    users in total.
    """
    only_control, only_treatment = rates[0] * (1 - rates[1]), rates[1] * (1 - rates[0])

    def step(size: int, leads: np.ndarray, discordant: np.ndarray, epoch: int) -> Sums:
        pairs = rng.binomial(size, only_control + only_treatment, len(leads))
        won = rng.binomial(pairs, only_treatment / (only_control + only_treatment))
        leads = leads + (2 * won - pairs) + geometric_noise(evidence.lead_epsilon, len(leads), rng)
        discordant = discordant + pairs + geometric_noise(evidence.discordant_epsilon, len(leads), rng)
        return leads, discordant, evidence.log_value(leads, discordant, epoch)

    return _stops(schedule.looks(), step, threshold, max_users, num_runs)


def geometric_noise(epsilon: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws two-sided geometric noise, P(k) proportional to exp(-epsilon |k|), for simulations: it protects nobody."""
    success = -math.expm1(-epsilon)
    return rng.geometric(success, size) - rng.geometric(success, size)


def _stops(looks: Iterator[int], step: Step, threshold: float, max_users: float, num_runs: int) -> np.ndarray:
    leads, discordant, running = np.zeros(num_runs), np.zeros(num_runs), np.arange(num_runs)
    users, before = np.full(num_runs, np.inf), 0
    for epoch, pairs in enumerate(looks, start=1):
        if 2 * pairs > max_users or not len(running):
            return users
        leads, discordant, log_value = step(pairs - before, leads, discordant, epoch)
        before, has_stopped = pairs, log_value >= threshold
        if has_stopped.any():
            users[running[has_stopped]] = 2 * pairs
            leads, discordant, running = (part[~has_stopped] for part in (leads, discordant, running))
    raise AssertionError("schedules never end")


def choose_schedule(setting: Setting, rng: np.random.Generator) -> Schedule:
    """Returns the best of 32 schedules of a curator, by simulations that read only the plan.

    Let m(k) be the simulated mean number of users if the log odds ratio is k times the planned one; runs are cut off at
    20 times the fixed test's users. The cost of a schedule is m(1)^2 * m(2) * m(4)^0.25. Therefore a schedule with
    which the test stops early at larger lifts may be chosen, although it needs a few more users at the planned lift.
    Short simulations select the six schedules with the smallest costs, and longer simulations select the best of the
    six.
    """
    fixed, threshold = fixed_users(setting), math.log(1 / setting.failure_prob)
    control, treatment = setting.true_rates
    planned = log_odds_ratio(control, treatment)

    def log_mean(schedule: Schedule, num_runs: int, multiple: float) -> float:
        evidence = central_evidence(setting, schedule.slope_share)
        rates = control, float(expit(logit(control) + multiple * planned))
        users = simulate_central(rates, evidence, schedule, threshold, 20 * fixed, num_runs, rng)
        return math.log(np.minimum(users, 20 * fixed).mean())

    def cost(schedule: Schedule, num_runs: int) -> float:
        return sum(weight * log_mean(schedule, num_runs, multiple) for multiple, weight in WEIGHTS.items())

    candidates = product((max(1, round(share * fixed / 2)) for share in FIRST_LOOKS), GROWTHS, SLOPE_SHARES)
    finalists = sorted(starmap(Schedule, candidates), key=partial(cost, num_runs=PILOT_RUNS))
    return min(finalists[:NUM_FINALISTS], key=partial(cost, num_runs=FINAL_RUNS))


def simulate_stopping(setting: Setting, schedule: Schedule | None, num_runs: int, rng: np.random.Generator) -> Stopping:
    """Simulates independent runs of the anytime test at the planned rates.

    `schedule` is None if no curator adds noise.
    """
    threshold, fixed = math.log(1 / setting.failure_prob), fixed_users(setting)
    common = (threshold, LONGEST * fixed, num_runs, rng)
    if schedule is None:
        users = simulate_local(setting.rates, local_evidence(setting), *common)
    else:
        users = simulate_central(setting.rates, central_evidence(setting, schedule.slope_share), schedule, *common)
    unfinished = float(np.isinf(users).mean())
    by_fixed = float((users <= fixed).mean())
    users = np.minimum(users, LONGEST * fixed)
    stderr = float(users.std(ddof=1) / math.sqrt(num_runs))
    return Stopping(float(users.mean()), stderr, float(np.quantile(users, 0.95)), by_fixed, unfinished)
