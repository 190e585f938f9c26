"""Reference values of the learners that find the best arm, from their NumPy versions.

Run this file to make best_arm_reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.lil_ucb.golden import lil_ucb
from tests.algorithms.bandits.successive_elimination.golden import successive_elimination

PATH = Path(__file__).with_name("best_arm_reference.json")
LANES = 10_000
BITS = {"means": [0.8, 0.3, 0.2]}
NORMAL = {"means": [0.8, 0.1, -0.3], "spread": 0.7, "low": -1.0, "high": 1.5}
CASES = {  # function, world and randomizer
    "lil_ucb": ("lil_ucb", {**BITS, "epsilon": 2.0, "failure_prob": 0.2, "constants": "theory"}),
    "lil_ucb_clear": ("lil_ucb", {**BITS, "epsilon": math.inf, "failure_prob": 0.2, "constants": "theory"}),
    "lil_ucb_gaussian": (
        "lil_ucb",
        {**NORMAL, "epsilon": 2.0, "stddev": 1.3, "failure_prob": 0.5, "constants": "heuristic"},
    ),
    "successive_elimination": (
        "successive_elimination",
        {**BITS, "epsilon": 2.0, "failure_prob": 0.2, "multiplier": 0.3},
    ),
    "successive_elimination_bounded": (
        "successive_elimination",
        {**NORMAL, "epsilon": 2.0, "failure_prob": 0.2, "multiplier": 0.3},
    ),
    "successive_elimination_gaussian": (
        "successive_elimination",
        {**NORMAL, "epsilon": 2.0, "stddev": 1.3, "failure_prob": 0.2, "multiplier": 0.3},
    ),
}


FUNCTIONS = {"lil_ucb": lil_ucb, "successive_elimination": successive_elimination}


def make():
    generator = np.random.default_rng(20142)
    reference = {}
    for name, (function, case) in CASES.items():
        found = FUNCTIONS[function](generator, LANES, **case)
        reference[name] = {
            output: {
                "mean": float(values.mean()),
                "standard_error": float(values.std(ddof=1) / math.sqrt(LANES)),
                "quartiles": [float(value) for value in np.quantile(values, [0.25, 0.5, 0.75])],
            }
            for output, values in found.items()
        }
    return reference


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n")
