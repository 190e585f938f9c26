"""Reference values of the convex bandits, from their NumPy versions.

Run this file to make convex_reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.convex.one_point.golden import one_point
from tests.algorithms.bandits.convex.two_point.golden import two_point

PATH = Path(__file__).with_name("convex_reference.json")
HORIZON, LANES = 120, 10_000
LINEAR = {"dim": 3, "radius": 2.0, "slope": 0.4}
BOWL = {"dim": 2, "radius": 1.0, "curvature": 0.5, "target": 0.6}
BOX = {"dim": 3, "radius": 0.8, "curvature": 0.5, "target": 1.5, "domain": "box"}  # with the best point in a corner
CURVED = {"strong": 0.5, "lipschitz": 0.8}
CASES = {  # function, world, its arguments
    "fkm": ("one_point", LINEAR, {"epsilon": 2.0, "bound": 0.8, "lipschitz": 0.4, "noise": 0.5}),
    "fkm_clear": ("one_point", LINEAR, {"epsilon": math.inf, "bound": 0.8, "lipschitz": 0.4}),
    "fkm_gaussian": (
        "one_point",
        BOWL,
        {"epsilon": 2.0, "bound": 0.6, "lipschitz": 0.8, "report": "gaussian", "stddev": 0.9},
    ),
    "strongly_convex_one_point": ("one_point", BOWL, {"epsilon": 2.0, "bound": 0.6, **CURVED}),
    "two_point": ("two_point", LINEAR, {"epsilon": 1.0, "lipschitz": 0.3}),
    "two_point_clear": ("two_point", LINEAR, {"epsilon": math.inf, "lipschitz": 0.4}),
    "two_point_paper": (
        "two_point",
        BOWL,
        {"epsilon": 2.0, "lipschitz": 0.8, "report": "gaussian", "stddev": 1.1, "constants": "paper"},
    ),
    "two_point_strongly_convex": ("two_point", BOWL, {"epsilon": 2.0, **CURVED}),
    "fkm_box": ("one_point", {**LINEAR, "domain": "box"}, {"epsilon": 4.0, "bound": 1.4, "lipschitz": 0.4}),
    "strongly_convex_one_point_box": (
        "one_point",
        BOX,
        {"epsilon": 4.0, "bound": 1.2, "strong": 0.5, "lipschitz": 1.0},
    ),
    "two_point_box": ("two_point", {**LINEAR, "domain": "box"}, {"epsilon": 4.0, "lipschitz": 0.4}),
}


FUNCTIONS = {"one_point": one_point, "two_point": two_point}


def make():
    generator = np.random.default_rng(20201)
    reference = {}
    for name, (function, world, case) in CASES.items():
        found = FUNCTIONS[function](generator, LANES, world, horizon=HORIZON, **case)
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
