"""Reference values of the bandits, from the independent NumPy versions.

Run `python -m tests.algorithms.bandits.make_arms_reference` from the repository's root to make arms_reference.json
again: means, standard errors and quantiles of the regret and of the plays of each arm.
"""

import json
import math
from pathlib import Path

import numpy as np

from tests.algorithms.bandits.adap_klucb.golden import adap_klucb
from tests.algorithms.bandits.exp3.golden import exp3
from tests.algorithms.bandits.imed_central.golden import imed_central
from tests.algorithms.bandits.successive_elimination_central.golden import successive_elimination_central
from tests.algorithms.bandits.thompson.golden import thompson
from tests.algorithms.bandits.thompson_central.golden import thompson_central
from tests.algorithms.bandits.tsallis_inf.golden import tsallis_inf
from tests.algorithms.bandits.ucb.golden import ucb
from tests.algorithms.bandits.ucb_central.golden import ucb_central_blocks, ucb_central_tree

PATH = Path(__file__).with_name("arms_reference.json")
SEED = 20260301
MEANS = np.array([0.8, 0.55, 0.2])
EPSILONS = (1.0, math.inf)
PROBABILITIES = (0.1, 0.5, 0.9)
LANES, FEW_LANES = 10_000, 3000
ROUNDS, MANY_ROUNDS = 60, 3000
NOISE = {"failure_prob": 0.1}
ELIMINATION = {"failure_prob": 0.1, "multiplier": 0.1}

# name: (function, lanes, arguments)
CASES = {
    "tsallis_inf": (tsallis_inf, LANES, {"horizon": ROUNDS}),
    "tsallis_inf_rv": (tsallis_inf, LANES, {"horizon": ROUNDS, "reduced": True}),
    "tsallis_inf_gaussian": (
        tsallis_inf,
        LANES,
        {"horizon": ROUNDS, "report": "gaussian", "delta": 0.1, **NOISE},
    ),
    "exp3": (exp3, LANES, {"horizon": ROUNDS}),
    "exp3_laplace": (exp3, LANES, {"horizon": ROUNDS, "report": "laplace", **NOISE}),
    "ucb": (ucb, LANES, {"horizon": ROUNDS, "rate": 0.5}),
    "ucb_gaussian": (ucb, LANES, {"horizon": ROUNDS, "rate": 0.5, "report": "gaussian", "delta": 0.1}),
    "thompson": (thompson, LANES, {"horizon": ROUNDS}),
    "thompson_debiased": (thompson, LANES, {"horizon": ROUNDS, "debiased": True}),
    "successive_elimination_central": (
        successive_elimination_central,
        FEW_LANES,
        {"horizon": MANY_ROUNDS, **ELIMINATION},
    ),
    "ucb_central": (ucb_central_blocks, FEW_LANES, {"horizon": MANY_ROUNDS, "rate": 1.0}),
    "ucb_central_tree": (ucb_central_tree, LANES, {"horizon": ROUNDS, "rate": 0.5}),
    "thompson_central": (thompson_central, LANES, {"horizon": ROUNDS, "growth": 0.5, "weight": 0.5}),
    "imed_central": (imed_central, FEW_LANES, {"horizon": MANY_ROUNDS, "growth": 0.5}),
    "imed_central_kl_ucb": (imed_central, FEW_LANES, {"horizon": MANY_ROUNDS, "growth": 0.5, "index": "kl_ucb"}),
    "adap_klucb": (adap_klucb, FEW_LANES, {"horizon": MANY_ROUNDS, "rate": 1.0}),
}


def epsilons(name):
    return EPSILONS[1:] if name == "ucb_central_tree" else EPSILONS


def statistics(played):
    """Returns the statistics to compare, [lanes] each."""
    found = {"regret": played @ (MEANS.max() - MEANS)}
    return found | {f"arm_{arm}": played[:, arm].astype(float) for arm in range(len(MEANS))}


def make(name, epsilon):
    function, lanes, arguments = CASES[name]
    generator = np.random.default_rng([SEED, list(CASES).index(name), EPSILONS.index(epsilon)])
    found = statistics(function(generator, epsilon, means=MEANS, lanes=lanes, **arguments))
    return {
        output: {
            "mean": round(float(values.mean()), 6),
            "standard_error": round(float(values.std(ddof=1) / math.sqrt(lanes)), 6),
            "quantiles": np.quantile(values, PROBABILITIES, method="inverted_cdf").round(6).tolist(),
        }
        for output, values in found.items()
    }


def check(played, expected, lanes):
    """Checks means within 5 standard errors, and distribution functions at the quantiles within theirs."""
    for output, values in statistics(np.asarray(played)).items():
        like = expected[output]
        error = math.hypot(values.std() / math.sqrt(len(values)), like["standard_error"])
        assert abs(values.mean() - like["mean"]) <= 5 * error + 1e-6, output
        for share, quantile in zip(PROBABILITIES, like["quantiles"], strict=True):
            error = math.sqrt(share * (1 - share) * (1 / len(values) + 1 / lanes))
            assert np.mean(values < quantile - 1e-3) <= share + 5 * error, (output, share)
            assert np.mean(values <= quantile + 1e-3) >= share - 5 * error, (output, share)


def main() -> None:
    lines = []
    for name in CASES:
        cases = [f'  "{epsilon}": {json.dumps(make(name, epsilon))}' for epsilon in epsilons(name)]
        lines.append(f' "{name}": {{\n' + ",\n".join(cases) + "\n }")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
