"""Reference values of RUCB and double Thompson sampling by blocks, from the independent NumPy versions.

Run `python -m tests.algorithms.dueling.make_pair_blocks_reference` from the repository's root to make
pair_blocks_reference.json again (some minutes on one core).
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.algorithms.dueling.double_thompson.golden_blocks import double_thompson_blocks
from tests.algorithms.dueling.golden_duels import Played
from tests.algorithms.dueling.make_duels_reference import MATRIX, SAMPLE, summary
from tests.algorithms.dueling.rucb.golden_blocks import rucb_blocks

PATH = Path(__file__).with_name("pair_blocks_reference.json")
SEED = 20240927
EPSILONS = (0.5, 2.0, math.inf)
LANES = 10_000
ROUNDS, FEW_ROUNDS = 200, 60
CASES: dict[str, tuple[Callable[..., Played], dict[str, Any]]] = {
    "rucb": (rucb_blocks, {"matrix": MATRIX, "horizon": ROUNDS, "alpha": 0.51}),
    "double_thompson": (double_thompson_blocks, {"matrix": MATRIX, "horizon": FEW_ROUNDS, "alpha": 0.51}),
}


def play(name: str, epsilon: float, lanes: int) -> Played:
    """Plays a case from the start of its own random numbers."""
    algorithm, options = CASES[name]
    generator = np.random.default_rng([SEED, list(CASES).index(name), EPSILONS.index(epsilon)])
    return algorithm(generator, epsilon, lanes=lanes, **options)


def sample(name: str, epsilon: float) -> list[Any]:
    """Returns the duels of the first few lanes that the same random numbers give."""
    return play(name, epsilon, SAMPLE).duels.tolist()


def make(name: str, epsilon: float) -> dict[str, Any]:
    """Makes the file's entry for a case."""
    found = summary(play(name, epsilon, LANES), CASES[name][1]["matrix"])
    return {"lanes": LANES, "sample": sample(name, epsilon), "statistics": found}


def main() -> None:
    lines = []
    for name in CASES:
        cases = [f'  "{epsilon}": {json.dumps(make(name, epsilon))}' for epsilon in EPSILONS]
        lines.append(f' "{name}": {{\n' + ",\n".join(cases) + "\n }")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
