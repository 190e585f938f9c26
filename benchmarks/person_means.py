"""Regret of explore-then-commit with one number a person, by counts: `python benchmarks/person_means.py [seeds]`.

Means are .5, .5, .5 and .6, in random order, and there are 10^6 rounds. For each number of people and epsilon, an
approximation by normal rewards chooses the best of 45 lengths of exploration. It is then played with all seeds, 10^5 by
default. Prints the best length, the mean regret with a standard error, and the approximate regret, for
`jaxdp.person_means`, for `per_person` with one report, and for `per_person` with the best of `CAPS` reports. Wins of
people with the same arm and number of visits are drawn as one binomial number. A minute.
"""

import sys
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

import jaxdp
from jaxdp import Visits

HORIZON = 10**6
MEANS = np.array([0.5, 0.5, 0.5, 0.6])
GAPS = MEANS.max() - MEANS
CASES = ((2_000, 1.0), (2_000, 0.1), (200, 1.0))  # people, epsilon
CAPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
LENGTHS, CHUNKS = 45, 100
UNITS = 2**20


class Exploration(NamedTuple):
    """Rounds until the arm is chosen, the number of contributions, the rewards in each, and the noise's scale."""

    rounds: int
    contributions: int
    rewards: np.ndarray
    noise_scale: float


def visits_before(visits: Visits, length: int) -> np.ndarray:
    """Returns the number of visits of each person in the first `length` rounds, in the order of first visits.

    People without a visit are left out.
    """
    params = jaxdp.person_means(num_arms=len(MEANS), visits=visits, phase_ends=[length]).params(epsilon=1.0)
    counts = params.before[1][np.argsort(params.rank)]
    return counts[counts > 0]


def exploration_of_people(visits: Visits, epsilon: float, length: int) -> Exploration:
    """Returns the exploration of `jaxdp.person_means` if its only phase ends after `length` rounds."""
    counts = visits_before(visits, length)
    return Exploration(length, len(counts), counts, 1 / epsilon)


def exploration_of_reports(visits: Visits, epsilon: float, length: int, reports: int) -> Exploration:
    """Returns the exploration by `per_person` that ends with the `length`-th heard round.

    `length` is first rounded down to a multiple of the number of arms. Rounds are heard if they are among a person's
    first `reports` visits.
    """
    length -= length % len(MEANS)
    end = int(np.flatnonzero(visits.nth < reports)[length - 1]) + 1
    return Exploration(end, length, np.ones(1), reports / epsilon)


def approximate_regret(exploration: Exploration) -> float:
    """Returns the expected regret if rewards were normal, and each arm had the same number of contributions."""
    each = exploration.contributions / len(MEANS)
    scale = exploration.noise_scale / each
    stddevs = np.sqrt(MEANS * (1 - MEANS) * np.mean(1 / exploration.rewards) / each)
    points = np.linspace(-1, 1, 2**12) * (1 + 30 * scale) + MEANS.mean()
    below = normal_laplace_cdf((points[:, None] - MEANS) / stddevs, scale / stddevs)
    others = np.prod(below[:, GAPS > 0], axis=1)
    error = 1 - np.sum(np.diff(below[:, GAPS.argmin()]) * (others[1:] + others[:-1]) / 2)
    return GAPS.mean() * exploration.rounds + error * GAPS.max() * (HORIZON - exploration.rounds)


def normal_laplace_cdf(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Returns the distribution function of a standard normal number plus a Laplace number of this scale."""
    upper, lower = (np.exp(0.5 / scale**2 + s * x / scale + norm.logcdf(-s * x - 1 / scale)) for s in (1, -1))
    return norm.cdf(x) + (upper - lower) / 2


def play_people(generator: np.random.Generator, exploration: Exploration, seeds: int) -> np.ndarray:
    """Returns [seeds] regrets of `jaxdp.person_means` with one phase; public coins are drawn `CHUNKS` times."""
    counts, regrets = exploration.rewards, []
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
            total = units / (64 * UNITS) + generator.laplace(0, exploration.noise_scale, len(means))
            means[:, arm] = total / len(visits_of_arm)
        explored = sum(GAPS[arm] * counts[arms == arm].sum() for arm in range(len(MEANS)))
        regrets.append(explored + GAPS[means.argmax(1)] * (HORIZON - exploration.rounds))
    return np.concatenate(regrets)


def play_reports(generator: np.random.Generator, exploration: Exploration, seeds: int) -> np.ndarray:
    """Returns [seeds] regrets of explore-then-commit by `per_person`."""
    wins = generator.binomial(exploration.contributions // len(MEANS), MEANS, (seeds, len(MEANS)))
    best = (wins + generator.laplace(0, exploration.noise_scale, wins.shape)).argmax(1)
    return GAPS.mean() * exploration.rounds + GAPS[best] * (HORIZON - exploration.rounds)


def main(seeds: int) -> None:
    """Prints the table."""
    for people, epsilon in CASES:
        visits = Visits.random(people=people, each=HORIZON // people)

        def explore(length: int, reports: int | None, visits=visits, epsilon=epsilon) -> Exploration:
            if reports is None:
                return exploration_of_people(visits, epsilon, length)
            return exploration_of_reports(visits, epsilon, length, reports)

        def best(reports: int | None, explore=explore, people=people) -> tuple[float, int]:
            most = 100 if reports is None else reports
            lengths = np.unique(np.geomspace(people / 8, people * most, LENGTHS).astype(int)).tolist()
            return min((approximate_regret(explore(length, reports)), length) for length in lengths)

        cap = min(CAPS, key=lambda reports: best(reports)[0])
        for name, reports in (("one number", None), ("one report", 1), (f"best cap, {cap} reports", cap)):
            approximate, length = best(reports)
            play = play_people if reports is None else play_reports
            regret = play(np.random.default_rng(2), explore(length, reports), seeds)
            error = regret.std(ddof=1) / np.sqrt(seeds)
            line = f"{people:5d} people, epsilon {epsilon:<3g} {name:22s} best length {length:6d}"
            print(f"{line} {regret.mean():8,.0f} +- {error:3,.0f}, approximately {approximate:8,.0f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
