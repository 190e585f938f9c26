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
CHUNKS = {1: (400,), 2: (5,)}  # lanes, by number of devices
WATCHDOG_SECONDS = 300  # batched eigh in one program over two CPU devices never returns


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{number of devices: {(run, chunk): {output: array}}}."""
    found = {}
    for num_devices, chunks in CHUNKS.items():
        folder = tmp_path_factory.mktemp(f"devices-{num_devices}")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.simulation.placement_worker",
                str(num_devices),
                str(folder),
                *map(str, chunks),
            ],
            check=True,
            cwd=REPOSITORY,
            timeout=WATCHDOG_SECONDS,
        )
        found[num_devices] = {
            (name, chunk): pickle.loads((folder / f"{name}-{chunk}.pickle").read_bytes())
            for name in NAMES
            for chunk in chunks
        }
    return found


@pytest.mark.parametrize("name", NAMES)
def test_bit_identical_for_every_chunk_and_number_of_devices(results, name):
    """27 lanes in tiles of 4: the last tile is padded, and devices get unequal shares."""
    expected = results[1][name, 400]
    assert all(np.isfinite(values).all() for values in expected.values())
    assert any(len(np.unique(values)) > 3 for values in expected.values())
    for num_devices, found in results.items():
        for chunk in CHUNKS[num_devices]:
            assert found[name, chunk].keys() == expected.keys()
            for output, values in expected.items():
                np.testing.assert_array_equal(found[name, chunk][output], values, err_msg=f"{num_devices}, {chunk}")


def test_as_many_tiles_in_flight_as_cores():
    device, cores = jax.devices("cpu")[0], os.cpu_count() or 1
    assert tiles_in_flight([device]) == cores
    assert tiles_in_flight([device] * cores) == 1
    assert tiles_in_flight([device] * (2 * cores)) == 1
