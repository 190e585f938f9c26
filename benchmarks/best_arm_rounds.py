"""Prints rounds until the best of four arms is found: `python benchmarks/best_arm_rounds.py [runs]`.

Rounds are of all arms together, at failure_prob = .05. After an error the arms that are left are equal and the run does
not end: such runs are counted as errors, and left out of the mean. `successive_elimination` and `lil_ucb` are played
only where their runs are short. A curator's learner is played for any effect, and planned for the true one.

Rounds +- standard error of 400 runs:

    .5 against .45 three times        epsilon = .1                1                4              inf
    pairwise_elimination     4,783,292 +- 101,644  54,637 +- 1,250     12,382 +- 262    11,702 +- 260
    pairwise_elimination_central   28,221 +- 351     13,850 +- 262     12,560 +- 261    12,885 +- 266
      planned for this effect      26,293 +- 454      9,021 +- 240      8,708 +- 221     8,695 +- 218
    successive_elimination                      443,052 +- 3,469     89,141 +- 737    82,602 +- 706
    lil_ucb (40 runs)                        2,292,215 +- 34,269  510,052 +- 9,416 490,029 +- 9,091

    .022 against .02 three times      epsilon = .1                1                4              inf
    pairwise_elimination              over 2^30  2.774e7 +- 5.9e5  1.152e6 +- 2.4e4  5.98e5 +- 1.3e4
    pairwise_elimination_central  1.227e6 +- 1.9e4  6.52e5 +- 1.4e4  6.74e5 +- 1.4e4  6.29e5 +- 1.3e4
      planned for this effect      9.05e5 +- 2.2e4  4.79e5 +- 1.2e4  4.57e5 +- 1.1e4  4.71e5 +- 1.2e4

Errors are 0% to .75% of runs, of the 5% allowed; "over 2^30" marks a row in which most runs did not end.
"""

import math
import sys

import jax
import numpy as np

import jaxdp
from jaxdp.bandits import (
    bernoulli_bandit,
    lil_ucb,
    pairwise_elimination,
    pairwise_elimination_central,
    successive_elimination,
)

HORIZON = 2**30
EPSILONS = (0.1, 1.0, 4.0, float("inf"))
ARMS = 4
ANY_EFFECT = {
    "pairwise_elimination": pairwise_elimination(num_arms=ARMS),
    "pairwise_elimination_central": pairwise_elimination_central(num_arms=ARMS),
}
SLOW = {"successive_elimination": successive_elimination(num_arms=ARMS), "lil_ucb": lil_ucb(num_arms=ARMS)}
CASES = {  # the means, what is played there, and a planned first look
    (0.5, 0.45): (ANY_EFFECT | SLOW, 800),
    (0.022, 0.02): (ANY_EFFECT, 40_000),
}


def print_case(best: float, other: float, learners: dict[str, jaxdp.Learner], first_look: int, num_runs: int) -> None:
    """Prints a row for each learner and epsilon."""
    print(f"\n{best:g} against {other:g} three times{'epsilon':>12}{'rounds':>15} +- {'':12}  errors")
    effect = math.log(best / (1 - best)) - math.log(other / (1 - other))
    plays = [(name, learner, {}) for name, learner in learners.items()]
    planned = {"log_odds_ratio": effect, "first_look": first_look}
    plays.append(("  planned for this effect", learners["pairwise_elimination_central"], planned))
    for name, learner, values in plays:
        print_rows(name, learner, [best, *[other] * (ARMS - 1)], values, num_runs)


def print_rows(name: str, learner: jaxdp.Learner, means: list[float], values: dict, num_runs: int) -> None:
    """Prints a row for each epsilon."""
    engine = "counts" if learner.counts else "auto"
    run = jaxdp.simulator(learner, bernoulli_bandit(means), HORIZON, engine=engine, checkpoints=[HORIZON])
    play = jax.jit(jax.vmap(run, (0, None)))
    for epsilon in EPSILONS[1:] if name in SLOW else EPSILONS:  # these would play for hours at the least epsilon
        keys = jaxdp.lane_keys(jax.random.key(0), num_runs if learner.counts else num_runs // 10)
        outputs = {key: np.asarray(each) for key, each in play(keys, run.params(epsilon=epsilon, **values)).items()}
        ended = ~outputs["censored"]
        rounds = outputs["rounds"][ended].astype(float)
        wrong = (~ended | ~outputs["correct"][:, -1]).mean()
        mean, error = (rounds.mean(), rounds.std() / np.sqrt(len(rounds))) if ended.any() else (math.nan, math.nan)
        print(f"{name:30}{epsilon:9g}{mean:15,.0f} +- {error:<12,.0f}{wrong:8.2%}", flush=True)


if __name__ == "__main__":
    for (best, other), (learners, first_look) in CASES.items():
        print_case(best, other, learners, first_look, int(sys.argv[1]) if len(sys.argv) > 1 else 400)
