"""Reference values of the learners that select from exact losses, from their NumPy versions.

Run this file to make tracking_reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.experts.limited_updates.golden import limited_updates
from tests.algorithms.experts.limited_updates_oblivious.golden import limited_updates_oblivious
from tests.algorithms.experts.svt_lazy.golden import svt_lazy
from tests.algorithms.experts.svt_restarts.golden import svt_restarts

PATH = Path(__file__).with_name("tracking_reference.json")
WORLD = {"before": [0.7, 0.2, 0.7], "after": [0.2, 0.9, 0.7], "shift": 150, "horizon": 300}
LEARNERS = {
    "limited_updates": [{"epsilon": 0.3}, {"epsilon": math.inf}],
    "limited_updates_oblivious": [{"rate": 0.02, "batch": 8}, {"rate": 0.2, "batch": 1}],
    "svt_restarts": [
        {"epsilon": epsilon, "failure_prob": 0.5, "margin": margin, "windows": windows, "check_every": every}
        for epsilon, margin, windows, every in (
            (4.0, 10.0, "dyadic", 1),
            (math.inf, -10.0, "all", 4),
        )
    ],
    "svt_lazy": [{"rate": 0.2, "budget": 0.5, "threshold": 20.0, "most": 12}],
}
LANES = {"svt_restarts": 2000}


def means_of_world():
    rounds = np.arange(WORLD["horizon"])[:, None]
    return np.where(rounds < WORLD["shift"], np.asarray(WORLD["before"]), np.asarray(WORLD["after"]))


FUNCTIONS = {
    "limited_updates": limited_updates,
    "svt_restarts": svt_restarts,
    "limited_updates_oblivious": limited_updates_oblivious,
    "svt_lazy": svt_lazy,
}


def make():
    generator = np.random.default_rng(20250501)
    reference = {}
    for name, cases in LEARNERS.items():
        lanes, reference[name] = LANES.get(name, 10_000), []
        for case in cases:
            found = FUNCTIONS[name](generator, lanes, means_of_world(), **case)
            reference[name].append(
                {
                    output: {
                        "mean": float(values.mean()),
                        "standard_error": float(values.std(ddof=1) / math.sqrt(lanes)),
                        "quartiles": [float(value) for value in np.quantile(values, [0.25, 0.5, 0.75])],
                    }
                    for output, values in found.items()
                }
            )
    return reference


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n")
