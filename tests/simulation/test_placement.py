"""Results do not depend on where lanes run: real processes with one and with two CPU devices."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxdp.simulation.sweeps.lanes import tiles_in_flight

pytestmark = pytest.mark.optimised

REPOSITORY = Path(__file__).parents[2]
NAMES = ("commit", "experts", "cholesky", "eigenvalues")
ALWAYS = ("cholesky", "eigenvalues")  # what `make test` runs
CHUNKS = {1: 400, 2: 5}  # lanes, by number of devices
WATCHDOG_SECONDS = 300  # batched eigh in one program over two CPU devices never returns


def sweep(name, num_devices, chunk_size, file):
    """Returns the outputs of a sweep, by a process that has so many devices."""
    arguments = [name, str(num_devices), str(chunk_size), str(file)]
    command = [sys.executable, "-m", "tests.simulation.placement_worker", *arguments]
    subprocess.run(command, check=True, cwd=REPOSITORY, timeout=WATCHDOG_SECONDS)
    return pickle.loads(file.read_bytes())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.always] if name in ALWAYS else []) for name in NAMES]
)
def test_bit_identical_for_every_chunk_and_number_of_devices(tmp_path, name):
    """Uses 27 lanes in tiles of 4: the last tile is padded, and devices get unequal shares."""
    expected, found = (sweep(name, devices, chunk, tmp_path / str(devices)) for devices, chunk in CHUNKS.items())
    assert all(np.isfinite(values).all() for values in expected.values())
    assert any(len(np.unique(values)) > 3 for values in expected.values())
    assert found.keys() == expected.keys()
    for output, values in expected.items():
        np.testing.assert_array_equal(found[output], values, err_msg=output)


def test_as_many_tiles_in_flight_as_cores():
    device, cores = jax.devices("cpu")[0], os.cpu_count() or 1
    assert tiles_in_flight([device]) == cores
    assert tiles_in_flight([device] * cores) == 1
    assert tiles_in_flight([device] * (2 * cores)) == 1
