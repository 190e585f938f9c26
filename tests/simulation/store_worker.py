"""Run as a process of its own, to be killed, interrupted or starved: one sweep of a softmax learner with a store.

Usage: python -m tests.simulation.store_worker STORE JSON, with the sweep's other arguments and `pause`, seconds after
every tile. Prints "lanes N" as lanes are done, and "done" at the end.
"""

import json
import math
import sys
import time

import jax
import numpy as np

import jaxdp
from jaxdp.simulation import Run

TILE = 4
SWEEP: dict = {
    "axes": {"epsilon": [0.5, 2.0, math.inf]},
    "static_axes": {"num_experts": [3, 5]},
    "num_seeds": 41,
    "tile_size": TILE,
    "chunk_size": 8,
}
NUM_LANES = 2 * 3 * 41


def build(num_experts: int) -> Run:
    """Builds exponential weights: a softmax has last bits that depend on how lanes are vectorised."""
    learner = jaxdp.experts.exponential_weights(num_experts=num_experts, horizon=60)
    losses = jaxdp.experts.adaptive_losses(np.linspace(0.2, 0.8, num_experts), penalty=0.2)
    return jaxdp.simulator(learner, losses, 60, checkpoints=3)


def main(store: str, arguments: str) -> None:
    given = json.loads(arguments)
    pause = given.pop("pause", 0.0)

    def tell(progress) -> None:
        print(f"lanes {progress.lanes}", flush=True)
        time.sleep(pause)

    jaxdp.sweep(build, **{**SWEEP, **given}, key=jax.random.key(0), store=store, progress=tell)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
