"""Prints users needed by tests of two arms: `python benchmarks/users_needed.py [runs]`. About two minutes of one core.

First table: users of both arms together at a rate of .02 against .022, and of .5 against .55, for the test that looks
once, for the one that may stop at any look, and the lower bound. Second table: the same tests where the true lift is
another than the planned one, as multiples of the bound at the true lift.
"""

import math
import sys

import numpy as np

from jaxdp.abtests._evidence import central_evidence, local_evidence
from jaxdp.abtests._fixed import Setting, fixed_users
from jaxdp.abtests._report import mean_bound
from jaxdp.abtests._simulation import choose_schedule, simulate_central, simulate_local

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, math.inf)
MULTIPLES = (0.5, 1.0, 2.0, 4.0)
LONGEST = 400  # runs are cut off after this multiple of the planned users


def stopping_users(planned: Setting, true: Setting, num_runs: int) -> np.ndarray:
    """Returns the number of users in both arms at which a test stops, [num_runs]; runs are cut off as `LONGEST` says.

    The test is planned for the setting `planned`, and data are drawn from the setting `true`.
    """
    rng, threshold, most = np.random.default_rng(1), math.log(1 / planned.failure_prob), LONGEST * fixed_users(planned)
    if planned.trust == "local" or math.isinf(planned.epsilon):
        users = simulate_local(true.rates, local_evidence(planned), threshold, most, num_runs, rng)
    else:
        schedule = choose_schedule(planned, np.random.default_rng(0))
        evidence = central_evidence(planned, schedule.slope_share)
        users = simulate_central(true.rates, evidence, schedule, threshold, most, num_runs, rng)
    return np.minimum(users, most)


def print_users(rate: float, lift: float, num_runs: int) -> None:
    """Prints the first table."""
    print(f"\n{rate:g} against {rate * (1 + lift):g}: looks once, any look (mean +- standard error), 95%, lower bound")
    for trust in ("local", "central"):
        for epsilon in EPSILONS:
            setting = Setting(rate, lift, epsilon, trust, 0.8, 0.05)
            users = stopping_users(setting, setting, num_runs)
            stderr = users.std(ddof=1) / math.sqrt(num_runs)
            print(
                f"{trust:8}{epsilon:5g}{fixed_users(setting):15,}{users.mean():15,.0f} +- {stderr:<12,.0f}"
                f"{np.quantile(users, 0.95):15,.0f}{mean_bound(setting):15,.0f}"
            )


def print_wrong_plans(rate: float, lift: float, num_runs: int) -> None:
    """Prints the second table."""
    multiples = ", ".join(map(str, MULTIPLES))
    print(f"\n{rate:g}, planned lift {lift:g}; mean users over the bound at {multiples} times that lift")
    for trust, epsilon in (("local", 1.0), ("central", 1.0), ("central", 0.1)):
        planned = Setting(rate, lift, epsilon, trust, 0.8, 0.05)
        ratios = []
        for multiple in MULTIPLES:
            true = planned._replace(lift=multiple * lift)
            ratios.append(stopping_users(planned, true, num_runs).mean() / mean_bound(true))
        print(f"{trust:8}{epsilon:5g}" + "".join(f"{ratio:8.2f}" for ratio in ratios))


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for one_rate in (0.02, 0.5):
        print_users(one_rate, 0.1, runs)
        print_wrong_plans(one_rate, 0.1, runs)
