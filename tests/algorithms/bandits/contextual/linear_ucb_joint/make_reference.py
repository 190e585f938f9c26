"""Reference values of linear UCB under joint privacy, from its NumPy version.

Run this file to make reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.contextual.linear_ucb.make_reference import summary
from tests.algorithms.bandits.contextual.linear_ucb_joint.golden import linear_ucb_joint

PATH = Path(__file__).with_name("reference.json")
LANES = 500
SIZES = {"num_arms": 4, "delta": 1e-3}
CASES = [
    {**SIZES, "dim": 2, "horizon": 300, "epsilon": 2.0, "counter": "toeplitz"},
    {**SIZES, "dim": 2, "horizon": 300, "epsilon": 2.0, "counter": "tree"},
    *(
        {**SIZES, "dim": dim, "horizon": 2000, "epsilon": epsilon, "counter": "toeplitz"}
        for dim in (2, 5)
        for epsilon in (0.5, 2.0, math.inf)
    ),
    {**SIZES, "dim": 5, "horizon": 1023, "epsilon": 0.5, "counter": "tree"},
]


def make():
    found = []
    for index, case in enumerate(CASES):
        outputs = linear_ucb_joint(np.random.default_rng([20261123, index]), LANES, **case)
        found.append({name: summary(values) for name, values in zip(("regret", "excess"), outputs, strict=True)})
    return found


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n")
