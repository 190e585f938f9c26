"""Reference values of the dueling algorithms, from the independent NumPy versions.

Run `python -m tests.algorithms.dueling.make_duels_reference` from the repository's root to make duels_reference.json
again, with names of cases to make only those (all take a quarter of an hour on one core).
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.algorithms.dueling.double_thompson.golden import double_thompson
from tests.algorithms.dueling.ebs_elimination.golden import ebs_elimination
from tests.algorithms.dueling.ebs_local.golden import ebs_local
from tests.algorithms.dueling.ebs_phased.golden import ebs_phased
from tests.algorithms.dueling.ebs_shuffle.golden import ebs_shuffle
from tests.algorithms.dueling.golden_duels import Played, gaussian_stddev
from tests.algorithms.dueling.rucb.golden import rucb
from tests.algorithms.dueling.versatile_sparring.golden import versatile_sparring

PATH = Path(__file__).with_name("duels_reference.json")
SEED = 20240701
MATRIX = np.array([[0.5, 0.65, 0.9], [0.35, 0.5, 0.7], [0.1, 0.3, 0.5]])
FAR_MATRIX = np.array([[0.5, 0.85, 0.95], [0.15, 0.5, 0.8], [0.05, 0.2, 0.5]])  # for the larger noise of trees
EPSILONS = (0.5, 2.0, math.inf)
PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9)
LANES = 20_000
FEW_LANES = 4000  # of what plays one lane and one round at a time
SAMPLE = 3  # lanes whose duels are all in the file
ROUNDS, FEW_ROUNDS = 150, 60
PHASED = {"failure_prob": 0.1, "multiplier": 0.04}
SPLIT = {"failure_prob": 0.1, "multiplier": 0.02}
SHUFFLED = {"delta": 1e-3, "failure_prob": 0.1, "multiplier": 0.08}
LOCAL = {"failure_prob": 0.1, "multiplier": 0.4}
GAUSSIAN = {"delta": 1e-2, "failure_prob": 0.05}
ELIMINATION = {"horizon": 300, "looks": range(15, 301, 15), "failure_prob": 0.1}
ARITIES = {"tight": 3, "paper": 2, "gaussian": 4}
MULTIPLIERS = {  # such that arms are dropped, some of them wrongly
    "tight": {0.5: 0.3, 2.0: 0.25, math.inf: 0.7},
    "paper": {0.5: 0.004, 2.0: 0.005, math.inf: 0.5},
    "gaussian": {0.5: 0.4, 2.0: 0.4, math.inf: 0.7},
}
LOOKS = {  # rounds after which it is recorded which arms are left
    "ebs_phased": (100, 300, 1000, 2000, 5000),
    "ebs_shuffle": (100, 300, 1000, 2000, 5000),
    "ebs_local": tuple(range(15, ROUNDS + 1, 15)),
}


def _elimination(generator, epsilon, *, kind, **options) -> Played:
    constants = "paper" if kind == "paper" else "tight"
    options |= {"multiplier": MULTIPLIERS[kind][epsilon], "arity": ARITIES[kind], "constants": constants}
    return ebs_elimination(generator, epsilon, **options)


def _gaussian_sparring(generator, epsilon, *, delta, failure_prob, **options) -> Played:
    stddev = gaussian_stddev(epsilon, delta)
    shift = stddev * math.sqrt(2 * math.log(2 * options["horizon"] / failure_prob))
    return versatile_sparring(generator, epsilon, reduced=False, stddev=stddev, shift=shift, **options)


# name: (algorithm, lanes, arguments)
CASES: dict[str, tuple[Callable[..., Played], int, dict[str, Any]]] = {
    "ebs_elimination": (_elimination, FEW_LANES, {**ELIMINATION, "matrix": FAR_MATRIX, "kind": "tight"}),
    "ebs_elimination_paper": (_elimination, FEW_LANES, {**ELIMINATION, "matrix": FAR_MATRIX, "kind": "paper"}),
    "ebs_phased": (ebs_phased, LANES, {**PHASED, "matrix": MATRIX, "horizon": 5000, "looks": LOOKS["ebs_phased"]}),
    "ebs_local": (ebs_local, LANES, {**LOCAL, "matrix": MATRIX, "horizon": ROUNDS, "looks": LOOKS["ebs_local"]}),
    "rucb": (rucb, LANES, {"matrix": MATRIX, "horizon": ROUNDS, "alpha": 0.51}),
    "double_thompson": (double_thompson, LANES, {"matrix": MATRIX, "horizon": FEW_ROUNDS, "alpha": 0.51}),
    "sparring": (versatile_sparring, LANES, {"matrix": MATRIX, "horizon": ROUNDS, "reduced": False}),
    "sparring_reduced": (versatile_sparring, LANES, {"matrix": MATRIX, "horizon": ROUNDS, "reduced": True}),
    "sparring_gaussian": (_gaussian_sparring, LANES, {**GAUSSIAN, "matrix": MATRIX, "horizon": ROUNDS}),
    "ebs_elimination_gaussian": (
        _elimination,
        FEW_LANES,
        {**ELIMINATION, "matrix": FAR_MATRIX, "kind": "gaussian", "delta": GAUSSIAN["delta"]},
    ),
    "ebs_phased_split": (
        ebs_phased,
        LANES,
        {**SPLIT, "matrix": MATRIX, "horizon": 5000, "looks": LOOKS["ebs_phased"], "constants": "split"},
    ),
    "ebs_shuffle": (ebs_shuffle, LANES, {**SHUFFLED, "matrix": MATRIX, "horizon": 5000, "looks": LOOKS["ebs_shuffle"]}),
}


def play(name: str, epsilon: float, lanes: int) -> Played:
    """Plays a case from the start of its own random numbers."""
    algorithm, _, options = CASES[name]
    generator = np.random.default_rng([SEED, list(CASES).index(name), EPSILONS.index(epsilon)])
    return algorithm(generator, epsilon, lanes=lanes, **options)


def statistics(regret, left, right, best, active=None) -> dict[str, np.ndarray]:
    """Returns the statistics to compare, [lanes] each.

    Args:
        regret: [lanes], strong.
        left: [lanes, num_arms], how often each arm was on the left.
        right: [lanes, num_arms], on the right.
        best: [lanes], duels of the best arm with itself.
        active: [lanes, num_looks, num_arms], the arms that were left; or None.
    """
    found = {"regret": regret, "best_duels": best}
    for arm in range(left.shape[1]):
        found |= {f"left_{arm}": left[:, arm], f"right_{arm}": right[:, arm]}
    if active is not None:
        lasted = active.sum(1)  # looks, [lanes, num_arms]
        found |= {f"lasted_{arm}": lasted[:, arm] for arm in range(lasted.shape[1])}
        found |= {"kept": active[:, -1, 0], "last_goes_first": lasted[:, -1] < lasted[:, -2]}
    return {name: np.asarray(values, float) for name, values in found.items()}


def summary(played: Played, matrix: np.ndarray) -> dict[str, dict[str, Any]]:
    """Returns means, their standard errors, and quantiles."""
    duels, active = played
    regret = (duels * (matrix[0][:, None] + matrix[0] - 1)).sum((1, 2))
    found = statistics(regret, duels.sum(2), duels.sum(1), duels[:, 0, 0], active)
    return {
        name: {
            "mean": round(float(values.mean()), 6),
            "standard_error": round(float(values.std(ddof=1) / math.sqrt(len(values))), 6),
            "quantiles": np.quantile(values, PROBABILITIES, method="inverted_cdf").round(6).tolist(),
        }
        for name, values in found.items()
    }


def sample(name: str, epsilon: float) -> list[Any]:
    """Returns the duels of the first few lanes that the same random numbers give."""
    return play(name, epsilon, SAMPLE).duels.tolist()


def make(name: str, epsilon: float) -> dict[str, Any]:
    """Makes the file's entry for a case."""
    _, lanes, options = CASES[name]
    found = summary(play(name, epsilon, lanes), options["matrix"])
    return {"lanes": lanes, "sample": sample(name, epsilon), "statistics": found}


def check(found: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    """Checks means within 5 standard errors, and distribution functions at the quantiles within theirs."""
    assert set(found) == set(expected["statistics"])
    for name, reference in expected["statistics"].items():
        values = found[name]
        error = math.hypot(values.std() / math.sqrt(len(values)), reference["standard_error"])
        assert abs(values.mean() - reference["mean"]) <= 5 * error + 1e-5, name
        for probability, quantile in zip(PROBABILITIES, reference["quantiles"], strict=True):
            variance = probability * (1 - probability) * (1 / len(values) + 1 / expected["lanes"])
            tolerance = 1e-3 + 1e-6 * abs(quantile)  # of float32
            assert np.mean(values < quantile - tolerance) <= probability + 5 * math.sqrt(variance), (name, probability)
            assert np.mean(values <= quantile + tolerance) >= probability - 5 * math.sqrt(variance), (name, probability)


def main() -> None:
    reference = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in sys.argv[1:] or CASES:
        reference[name] = {}
        for epsilon in EPSILONS:
            print(name, epsilon, flush=True)
            reference[name][str(epsilon)] = make(name, epsilon)
    lines = []
    for name, found in reference.items():
        cases = [f'  "{epsilon}": {json.dumps(case)}' for epsilon, case in found.items()]
        lines.append(f' "{name}": {{\n' + ",\n".join(cases) + "\n }")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
