"""duelpy, the library of dueling bandits that people have, where the environment names a Python that has it."""

import json
import os
import subprocess
from pathlib import Path

import jax
import numpy as np

import jaxdp
from jaxdp.core import Learner
from jaxdp.dueling import matrix_duels

SCRIPT = Path(__file__).with_name("duelpy_duels.py")
LANES = 20  # one after the other, on one core
OUR_LANES = 1000


def print_duelpy(name: str, learner: Learner, matrix: np.ndarray, horizon: int, exploration_rate: float) -> None:
    """Prints duelpy's time and regret without privacy, if DUELPY_PYTHON names an interpreter; else nothing.

    Raises:
        AssertionError: if the regret of the mended duelpy is not ours.
    """
    python = os.environ.get("DUELPY_PYTHON")
    if not python:
        return
    run = jaxdp.simulator(learner, matrix_duels(matrix), horizon, engine="rounds")
    params = run.params(epsilon=np.inf, exploration_rate=exploration_rate)
    go = jax.jit(jax.vmap(run, (0, None)))
    ours = np.asarray(go(jax.random.split(jax.random.key(1), OUR_LANES), params)["strong_regret"])[:, -1]
    task = {"name": name, "matrix": matrix.tolist(), "horizon": horizon, "lanes": LANES, "seed": 1}
    task["exploration_rate"] = exploration_rate
    print(f"  without privacy: regret {ours.mean():.1f}")
    for mended in (False, True):
        command = [python, str(SCRIPT), json.dumps({**task, "mended": mended})]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        theirs = np.asarray(found["regrets"])
        nanoseconds = found["seconds"] * 1e9 / (LANES * horizon)
        error = theirs.std(ddof=1) / np.sqrt(LANES)
        who = "duelpy, mended" if mended else f"duelpy, {found['versions']}"
        print(f"  {who:<34} {nanoseconds:9.0f} ns a round, one core   regret {theirs.mean():.1f} +- {error:.1f}")
        if mended and not abs(ours.mean() - theirs.mean()) <= 5 * np.hypot(error, ours.std() / np.sqrt(OUR_LANES)):
            raise AssertionError(f"regrets of {name} must agree, got {ours.mean()} and duelpy's {theirs.mean()}")
