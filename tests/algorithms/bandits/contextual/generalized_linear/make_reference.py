"""Reference values of generalized_linear, from its NumPy version.

Run this file to make reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.contextual.generalized_linear import golden as numpy_generalized

PATH = Path(__file__).with_name("reference.json")
LANES = 1000
LONG = [
    {"dim": dim, "num_arms": 4, "horizon": 2000, "epsilon": epsilon, "delta": 1e-3, "report": "gaussian"}
    for dim in (2, 5)
    for epsilon in (0.5, 2.0, math.inf)
]
CASES = [
    {"dim": 2, "num_arms": 4, "horizon": 200, "epsilon": 8.0, "delta": 1e-2, "report": "gaussian"},
    {"dim": 2, "num_arms": 4, "horizon": 200, "epsilon": 4.0, "delta": 0.0, "report": "l2_ball", "link": "probit"},
    {"dim": 2, "num_arms": 4, "horizon": 200, "epsilon": math.inf, "delta": 1e-2, "report": "gaussian"},
    *LONG,
    {"dim": 5, "num_arms": 4, "horizon": 2000, "epsilon": 2.0, "delta": 0.0, "report": "l2_ball"},
]


def summary(values):
    return {
        "mean": float(values.mean()),
        "standard_error": float(values.std(ddof=1) / math.sqrt(len(values))),
        "quartiles": [float(value) for value in np.quantile(values, [0.25, 0.5, 0.75])],
    }


def make():
    reference = []
    for index, case in enumerate(CASES):
        generator = np.random.default_rng([20260601, index])
        found = numpy_generalized.generalized_linear(generator, LANES, **case)
        reference.append({output: summary(values) for output, values in zip(("regret", "excess"), found, strict=True)})
    return reference


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n")
