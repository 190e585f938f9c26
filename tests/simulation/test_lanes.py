"""Programs of tiles: no kernel is split over cores, which changes no result, and all devices get the same program."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.sweeps import lanes
from jaxdp.simulation.sweeps.lanes import COMPILER_OPTIONS, Program

pytestmark = pytest.mark.optimised

TILE, SIZE = 64, 4000  # so much that XLA would split
SPLIT = '"outer_dimension_partitions"'
OPTIONS = COMPILER_OPTIONS["cpu"]
UNSPLIT = {name: value for name, value in OPTIONS.items() if name != "xla_disable_hlo_passes"}


def simulate(key, params):
    values = jnp.exp(jnp.sin(params["scale"] * jax.random.normal(jaxdp.random.fast_key(key), (SIZE,), jnp.float32)))
    weights = jax.nn.softmax(values)
    return {"total": values.sum(), "mean": weights @ values, "values": jnp.log1p(values) / weights}


def results(monkeypatch, options):
    """Returns the results of a tile of lanes under these options."""
    monkeypatch.setitem(lanes.COMPILER_OPTIONS, "cpu", options)
    run = Run(simulate=simulate, params=dict, guarantee=dict, dims={})
    program = Program(run, jax.random.key(0), [{"scale": np.float32(0.7)}], TILE, jax.devices("cpu")[:1])
    tile = program.compile().tiles[0]
    return jax.device_get(tile(np.zeros(TILE, np.uint32), np.arange(TILE, dtype=np.uint32)))


def test_results_do_not_depend_on_whether_kernels_are_split(monkeypatch):
    """Checks also the name of a pass that does not exist, as in another version of XLA."""
    expected = results(monkeypatch, OPTIONS)
    for options in (UNSPLIT, {**UNSPLIT, "xla_disable_hlo_passes": "no-such-pass"}):
        for name, values in results(monkeypatch, options).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_kernels_are_not_split():
    """Checks that the option is needed: if XLA does not split kernels without it, it is superfluous or renamed."""
    lowered = jax.jit(lambda x: jnp.exp(jnp.sin(x))).lower(jnp.zeros((TILE, SIZE)))
    assert SPLIT not in str(lowered.compile(OPTIONS).as_text())
    if lanes.tiles_in_flight(jax.devices("cpu")[:1]) > 1:
        assert SPLIT in str(lowered.compile(UNSPLIT).as_text())


def test_every_device_gets_the_program_of_the_thread_that_traced_it():
    run = Run(simulate=lambda key, params: params, params=dict, guarantee=dict, dims={})
    with jax.enable_x64(True):
        devices = jax.devices("cpu")[:1] * 2  # stand for two devices
        program = Program(run, jax.random.key(0), [{"scale": jnp.asarray(0.1)}], 2, devices)
        program.trace()
        with ThreadPoolExecutor(1) as pool:  # settings of the `with` block around it do not hold in the thread
            tiles = pool.submit(program.compile).result().tiles
        values = [np.asarray(tile(*np.zeros((2, 2), np.uint32))["scale"]) for tile in tiles]
    assert [one.tolist() for one in values] == [[0.1, 0.1]] * 2
