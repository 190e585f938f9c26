"""What must be installed for what."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

SWEEP = """
import sys
for name in ("zarr", "matplotlib", "dask", "distributed", "cloudpickle", "typer"):
    sys.modules[name] = None  # importing it fails
import jax, jaxdp
learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), 8)
print(jaxdp.sweep(lambda: run, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0)).sizes["seed"])
"""


def test_a_sweep_in_memory_needs_neither_zarr_nor_matplotlib_nor_dask():
    result = subprocess.run([sys.executable, "-c", SWEEP], capture_output=True, text=True, check=False)
    assert result.stdout == "2\n", result.stderr
