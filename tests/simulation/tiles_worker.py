"""Sweeps with the tile of a GPU on one and on two emulated devices, and by one and by three processes of a store.

Usage: python -m tests.simulation.tiles_worker FOLDER. It prints the tile sizes, and fails if bits differ.
"""

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"

import jax
import numpy as np

import jaxdp
from jaxdp.simulation.sweeps import plan, tiles

NUM_SEEDS = 1_500  # two tiles, the second one not full


def main(folder: Path) -> None:
    """Runs sweeps, and compares them."""
    choose = tiles.default_tile_size
    plan.default_tile_size = lambda platform, *others: choose("gpu", *others)
    tiles.MOST = 2_048
    learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=6)
    run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=8)

    def sweep(**options):
        return jaxdp.sweep(run, axes={"epsilon": [0.5, 1.0]}, num_seeds=NUM_SEEDS, key=jax.random.key(0), **options)

    found = [sweep(devices=jax.devices()[:count]) for count in (1, 2)]
    found += [sweep(store=folder / "store", process_index=index, num_processes=3) for index in range(3)][2:]
    for results in found:
        print(results.attrs["provenance"].split('"tile_size": ')[1].split(",")[0])
        np.testing.assert_array_equal(results.pseudo_regret, found[0].pseudo_regret)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
