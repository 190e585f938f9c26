"""duelpy, the library of dueling bandits that people have, beside ours without privacy.

Run as `DUELPY_PYTHON=duelpy/bin/python python benchmarks/peers/duelpy_peer.py`, with a Python that has duelpy. It takes
milliseconds a round on one core, so it is no peer of a row, where calls take turns.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import jaxdp
from benchmarks.measure import machine
from benchmarks.rows.dueling import EXPLORATION_RATE, MATRIX
from benchmarks.rows.dueling import ROWS as DUELS
from jaxdp.core import Learner
from jaxdp.dueling import matrix_duels

SCRIPT = Path(__file__).with_name("duelpy_duels.py")
LANES = 20  # one after the other, on one core
OUR_LANES = 1000


def print_duelpy(name: str, learner: Learner, matrix: np.ndarray, horizon: int, exploration_rate: float) -> None:
    """Prints duelpy's time and regret without privacy.

    Raises:
        AssertionError: if the regret of the mended duelpy is not ours.
    """
    python = os.environ["DUELPY_PYTHON"]
    run = jaxdp.simulator(learner, matrix_duels(matrix), horizon, engine="rounds")
    params = run.params(epsilon=np.inf, exploration_rate=exploration_rate)
    go = jax.jit(jax.vmap(run, (0, None)))
    ours = np.asarray(go(jax.random.split(jax.random.key(1), OUR_LANES), params)["strong_regret"])[:, -1]
    task = {"name": name, "matrix": matrix.tolist(), "horizon": horizon, "lanes": LANES, "seed": 1}
    task["exploration_rate"] = exploration_rate
    print(f"{name} without privacy: regret {ours.mean():.1f}")
    for mended in (False, True):
        command = [python, str(SCRIPT), json.dumps({**task, "mended": mended})]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        theirs = np.asarray(found["regrets"])
        nanoseconds = found["seconds"] * 1e9 / (LANES * horizon)
        error = theirs.std(ddof=1) / np.sqrt(LANES)
        who = "duelpy, repaired" if mended else f"duelpy, {found['versions']}"
        print(f"  {who:<34} {nanoseconds:9.0f} ns a round, one core   regret {theirs.mean():.1f} +- {error:.1f}")
        if mended and not abs(ours.mean() - theirs.mean()) <= 5 * np.hypot(error, ours.std() / np.sqrt(OUR_LANES)):
            raise AssertionError(f"regrets of {name} must agree, got {ours.mean()} and duelpy's {theirs.mean()}")


if __name__ == "__main__":
    print(machine())
    for row in DUELS:
        algorithm = row.name.partition(",")[0]
        if algorithm in ("rucb", "double_thompson"):
            print_duelpy(algorithm, row.learner(row.horizon), MATRIX, row.horizon, EXPLORATION_RATE)
