"""Reference values of the convex bandits with barriers, and of the one on an interval, from their NumPy versions.

Run this file to make barriers_reference.json again: means, standard errors and quartiles of the outputs.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.convex.golden_barriers import barrier
from tests.algorithms.bandits.convex.stochastic_1d.golden import stochastic_1d

PATH = Path(__file__).with_name("barriers_reference.json")
HORIZON, LANES = 150, 8000
LINEAR = {"dim": 3, "radius": 2.0, "slope": 0.4}
BOWL = {"dim": 2, "radius": 1.5, "curvature": 0.5, "target": 0.6}
BOX = {"dim": 3, "radius": 0.8, "curvature": 0.5, "target": 1.5, "domain": "box"}
LINE = {"dim": 1, "radius": 2.0, "curvature": 0.5, "target": 1.5}
GAUSSIAN = {"report": "gaussian", "stddev": 0.9}
LONG = 1500
CASES = {  # function, world, rounds, its arguments
    "barrier_smooth": ("barrier", LINEAR, HORIZON, {"epsilon": 2.0, "bound": 0.8, "smooth": 0.3, "noise": 0.5}),
    "barrier_smooth_clear": ("barrier", LINEAR, HORIZON, {"epsilon": math.inf, "bound": 0.8, "smooth": 0.3}),
    "barrier_smooth_gaussian": ("barrier", BOWL, HORIZON, {"epsilon": 2.0, "bound": 0.6, "smooth": 0.5, **GAUSSIAN}),
    "barrier_strongly_convex": (
        "barrier",
        BOWL,
        HORIZON,
        {"epsilon": 2.0, "bound": 0.6, "smooth": 0.7, "strong": 0.5, "noise": 0.2},
    ),
    "barrier_strongly_convex_clear": (
        "barrier",
        BOWL,
        HORIZON,
        {"epsilon": math.inf, "bound": 0.6, "smooth": 0.5, "strong": 0.5},
    ),
    "stochastic_1d": ("stochastic_1d", LINE, LONG, {"epsilon": 4.0, "bound": 3.0, "noise": 0.3}),
    "stochastic_1d_gaussian": ("stochastic_1d", LINE, LONG, {"epsilon": 2.0, "bound": 3.0, **GAUSSIAN}),
    "barrier_smooth_box": ("barrier", BOX, HORIZON, {"epsilon": 4.0, "bound": 1.2, "smooth": 0.5}),
    "barrier_strongly_convex_box": (
        "barrier",
        BOX,
        HORIZON,
        {"epsilon": 4.0, "bound": 1.2, "smooth": 0.5, "strong": 0.5},
    ),
}


FUNCTIONS = {"stochastic_1d": stochastic_1d, "barrier": barrier}


def make():
    generator = np.random.default_rng(20112)
    reference = {}
    for name, (function, world, horizon, case) in CASES.items():
        found = FUNCTIONS[function](generator, LANES, world, horizon=horizon, **case)
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
