"""Reference values of contextual learners, from their NumPy versions.

Run this file to make reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.contextual.linear_ucb.golden import linear_ucb

PATH = Path(__file__).with_name("reference.json")
LANES = 1000
LINEAR = [
    {"dim": dim, "num_arms": 4, "horizon": 2000, "epsilon": epsilon, "delta": 1e-3, "report": report}
    for report in ("gaussian", "l2_ball")
    for dim in (2, 5)
    for epsilon in (0.5, 2.0, math.inf)
    if report == "gaussian" or epsilon < math.inf
]
LEARNERS = {"linear_ucb": (("regret", "excess"), LINEAR)}


def summary(values):
    return {
        "mean": float(values.mean()),
        "standard_error": float(values.std(ddof=1) / math.sqrt(len(values))),
        "quartiles": [float(value) for value in np.quantile(values, [0.25, 0.5, 0.75])],
    }


FUNCTIONS = {"linear_ucb": linear_ucb}


def make(names=tuple(LEARNERS)):
    reference = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in names:
        outputs, cases = LEARNERS[name]
        reference[name] = []
        for index, case in enumerate(cases):
            generator = np.random.default_rng([20260501, index])
            found = FUNCTIONS[name](generator, LANES, **case)
            reference[name].append({output: summary(values) for output, values in zip(outputs, found, strict=True)})
    return reference


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(tuple(sys.argv[1:]) or tuple(LEARNERS)), indent=1) + "\n")
