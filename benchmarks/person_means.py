"""Regret of explore-then-commit with one number a person, by counts: `python benchmarks/person_means.py [seeds]`.

Means are .5, .5, .5 and .6, and there are 10^6 rounds. For each number of people and epsilon, 45 lengths of exploration
are tried with a tenth of the seeds, 10^5 by default. The best one is then played with all seeds. Prints the best length
and the mean regret with a standard error, for `jaxdp.person_means` and for `per_person` with one report. Wins of
people with the same arm and number of visits are drawn as one binomial number. Some minutes.
"""

import sys

import numpy as np

import jaxdp
from jaxdp import Visits

HORIZON = 10**6
MEANS = np.array([0.5, 0.5, 0.5, 0.6])
GAPS = MEANS.max() - MEANS
CASES = ((2_000, 1.0), (2_000, 0.1), (200, 1.0))  # people, epsilon
LENGTHS, CHUNKS = 45, 100
UNITS = 2**20


def person_means(generator: np.random.Generator, visits: Visits, epsilon: float, length: int, seeds: int) -> np.ndarray:
    """Returns [seeds] regrets of `jaxdp.person_means` with one phase; public coins are drawn `CHUNKS` times."""
    params = jaxdp.person_means(num_arms=len(MEANS), visits=visits, phase_ends=[length]).params(epsilon=epsilon)
    counts = params.before[1][np.argsort(params.rank)]  # visits in the phase, by order of first visits
    counts = counts[counts > 0]
    regrets = []
    for _ in range(CHUNKS):
        rotations = generator.integers(len(MEANS), size=-(-len(counts) // len(MEANS)))
        people = np.arange(len(counts))
        arms = (people + rotations[people // len(MEANS)]) % len(MEANS)
        means = np.empty((seeds // CHUNKS, len(MEANS)))
        for arm, mean in enumerate(MEANS):
            visits_of_arm = counts[arms == arm]
            units = np.zeros(len(means))
            for size, number in zip(*np.unique(visits_of_arm, return_counts=True), strict=True):
                units += generator.binomial(size * number, mean, len(means)) * (64 * UNITS // size)
            total = units / (64 * UNITS) + generator.laplace(0, 1 / epsilon, len(means))
            means[:, arm] = total / len(visits_of_arm)
        explored = sum(GAPS[arm] * counts[arms == arm].sum() for arm in range(len(MEANS)))
        regrets.append(explored + GAPS[means.argmax(1)] * (HORIZON - length))
    return np.concatenate(regrets)


def one_report(generator: np.random.Generator, visits: Visits, epsilon: float, length: int, seeds: int) -> np.ndarray:
    """Returns [seeds] regrets of explore-then-commit by `per_person`, which explores in `length` first visits."""
    length -= length % len(MEANS)
    end = int(np.flatnonzero(visits.nth == 0)[length - 1]) + 1  # rounds until these are over; the rest play arm 0
    wins = generator.binomial(length // len(MEANS), MEANS, (seeds, len(MEANS)))
    best = (wins + generator.laplace(0, 1 / epsilon, wins.shape)).argmax(1)
    return GAPS.mean() * length + GAPS[0] * (end - length) + GAPS[best] * (HORIZON - end)


def main(seeds: int) -> None:
    """Prints the table."""
    for people, epsilon in CASES:
        visits = Visits.random(people=people, each=HORIZON // people)
        for name, play, most in (("one number", person_means, 100), ("one report", one_report, 1)):
            tried = np.unique(np.geomspace(people / 8, people * most, LENGTHS).astype(int))
            few = [play(np.random.default_rng(1), visits, epsilon, length, seeds // 10).mean() for length in tried]
            length = int(tried[np.argmin(few)])
            regret = play(np.random.default_rng(2), visits, epsilon, length, seeds)
            error = regret.std(ddof=1) / np.sqrt(seeds)
            line = f"{people:5d} people, epsilon {epsilon:<3g} {name}: best length {length:6d}"
            print(f"{line} {regret.mean():8,.0f} +- {error:,.0f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
