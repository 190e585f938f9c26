"""What must be installed for what."""

import subprocess
import sys

import pytest

import jaxdp

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


LATER = """
import sys, jaxdp
later = ("audit", "plotting", "registry", "stats", "studies", "testing")
print([name for name in ("matplotlib", "zarr", *(f"jaxdp.{n}" for n in later)) if name in sys.modules])
print(set(later) <= set(dir(jaxdp)))
print(jaxdp.testing.check_learner.__module__, "jaxdp.registry" in sys.modules, "matplotlib" in sys.modules)
print([getattr(jaxdp, name).__name__ for name in later], "matplotlib" in sys.modules)
"""


def test_submodules_are_imported_when_they_are_used():
    result = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        "[]",
        "True",
        "jaxdp.testing.contracts False False",
        "['jaxdp.audit', 'jaxdp.plotting', 'jaxdp.registry', 'jaxdp.stats', 'jaxdp.studies', 'jaxdp.testing'] True",
    ], result.stderr


def test_a_name_that_jaxdp_does_not_have():
    with pytest.raises(AttributeError, match="module 'jaxdp' has no attribute 'bandit'"):
        _ = jaxdp.bandit  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(jaxdp, "__wrapped__")
