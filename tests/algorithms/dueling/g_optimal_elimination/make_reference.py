"""Reference values of elimination by optimal designs, from the independent NumPy version.

Run `python -m tests.algorithms.dueling.g_optimal_elimination.make_reference` from the repository's root to make
reference.json again; it takes a minute on one core.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from tests.algorithms.dueling.g_optimal_elimination.golden import Played, g_optimal_elimination

PATH = Path(__file__).with_name("reference.json")
SEED = 20240901
# Four arms in general position: whichever are left, every pair of them has the same weight in the one optimal design.
FEATURES = [[0.9, 0.0, 0.1], [0.3, 0.8, 0.0], [-0.4, 0.2, 0.7], [-0.2, -0.7, -0.3]]
WEIGHTS = [0.7, 0.5, 0.3]
OPTIONS: dict[str, Any] = {"failure_prob": 0.1, "radius": 1.0}
MULTIPLIERS = {0.5: 0.004, 2.0: 0.004, math.inf: 0.004}  # such that arms are dropped, some of them wrongly
PHASES = 4
LANES, FEW = 40_000, 200


def play(epsilon: float, lanes: int = LANES) -> Played:
    """Plays from the start of its own random numbers."""
    generator = np.random.default_rng([SEED, list(MULTIPLIERS).index(epsilon)])
    return g_optimal_elimination(
        generator,
        epsilon,
        features=FEATURES,
        weights=WEIGHTS,
        multiplier=MULTIPLIERS[epsilon],
        phases=PHASES,
        lanes=lanes,
        **OPTIONS,
    )


def statistics(played: Played) -> dict[str, np.ndarray]:
    """Returns the statistics to compare, [lanes] each."""
    found = {f"model_{i}": played.first[:, i] for i in range(played.first.shape[1])}
    found["model_norm"] = np.linalg.norm(played.first, axis=1)
    for arm in range(played.active.shape[1]):
        found |= {f"kept_{arm}": played.kept_first[:, arm], f"left_{arm}": played.active[:, arm]}
    found["decided"] = played.active.sum(1) == 1
    return {name: np.asarray(values, float) for name, values in (found | {"rounds": played.rounds}).items()}


def summary(found: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Returns the mean, its standard error and the mean of squares of each."""
    return {
        name: [
            round(float(values.mean()), 6),
            round(float(values.std() / math.sqrt(len(values))), 6),
            round(float((values**2).mean()), 6),
        ]
        for name, values in found.items()
    }


def check(found: dict[str, np.ndarray], reference: dict[str, list[float]]) -> None:
    """Checks means within five standard errors; rounds get 2% more, because designs are within 2% of the optimum."""
    assert set(found) == set(reference)
    for name, (mean, error, square) in reference.items():
        values = found[name]
        own = math.hypot(error, math.sqrt(max(square - mean**2, 0) / len(values)))
        slack = 0.02 * mean if name == "rounds" else 1e-5
        assert abs(values.mean() - mean) <= 5 * own + slack, (name, values.mean(), mean, own)


def main() -> None:
    reference = {str(epsilon): summary(statistics(play(epsilon))) for epsilon in MULTIPLIERS}
    PATH.write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()
