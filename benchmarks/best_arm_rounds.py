"""Prints rounds until the best of four arms is found: `python benchmarks/best_arm_rounds.py [runs]`. Some minutes.

Rounds are of all arms together, at failure_prob = .05. After an error the arms that are left are equal and the run does
not end: such runs are counted as errors, and left out of the mean. `successive_elimination` and `lil_ucb` are played
only where their runs are short.
"""

import sys

import jax
import numpy as np

import jaxdp
from jaxdp.bandits import bernoulli_bandit, lil_ucb, pairwise_elimination, successive_elimination

HORIZON = 2**30
EPSILONS = (1.0, 4.0, float("inf"))
ARMS = 4
CASES = {  # the means, and what is played there
    (0.5, 0.45): {
        "pairwise_elimination": pairwise_elimination(num_arms=ARMS),
        "successive_elimination": successive_elimination(num_arms=ARMS),
        "lil_ucb": lil_ucb(num_arms=ARMS),
    },
    (0.022, 0.02): {
        "pairwise_elimination": pairwise_elimination(num_arms=ARMS),
    },
}


def print_case(best: float, other: float, learners: dict[str, jaxdp.Learner], num_runs: int) -> None:
    """Prints a row for each learner and epsilon."""
    print(f"\n{best:g} against {other:g} three times{'epsilon':>12}{'rounds':>15} +- {'':12}  errors")
    world = bernoulli_bandit([best, *[other] * (ARMS - 1)])
    for name, learner in learners.items():
        engine = "counts" if learner.counts else "auto"
        run = jaxdp.simulator(learner, world, HORIZON, engine=engine, checkpoints=[HORIZON])
        play = jax.jit(jax.vmap(run, (0, None)))
        for epsilon in EPSILONS:
            keys = jaxdp.lane_keys(jax.random.key(0), num_runs if learner.counts else num_runs // 10)
            outputs = {name: np.asarray(values) for name, values in play(keys, run.params(epsilon=epsilon)).items()}
            ended = ~outputs["censored"]
            rounds = outputs["rounds"][ended].astype(float)
            wrong = (~ended | ~outputs["correct"][:, -1]).mean()
            error = rounds.std() / np.sqrt(len(rounds))
            print(f"{name:30}{epsilon:9g}{rounds.mean():15,.0f} +- {error:<12,.0f}{wrong:8.2%}")


if __name__ == "__main__":
    for (best, other), learners in CASES.items():
        print_case(best, other, learners, int(sys.argv[1]) if len(sys.argv) > 1 else 400)
