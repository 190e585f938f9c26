"""Lanes in tiles of fixed size. A tile is the compiled unit, so that results do not depend on how lanes are scheduled.

A lane is one (grid point, seed). Its key depends on the root key and the seed's index only. Differences between grid
points are therefore paired: every estimator and every epsilon meets the same data.
"""

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.numerics.platforms import trace_for
from jaxdp.random import fast_key
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.stacking import stack_params
from jaxdp.simulation.store.identity import calls_back, constant_bytes, program_hash, tree_hash
from jaxdp.simulation.store.processor import blas_threads, cores, settings
from jaxdp.simulation.sweeps.executables import EXECUTABLES
from jaxdp.simulation.sweeps.tiles import lane_bytes

Device = Any  # jax.Device, which type checkers do not accept as a type
Tile = Callable[[np.ndarray, np.ndarray], Any]
COMPILER_OPTIONS: dict[str, dict[str, Any]] = {
    # A tile per core is faster than small kernels split over cores; without splits, results cannot depend on cores.
    "cpu": {"xla_cpu_multi_thread_eigen": False, "xla_disable_hlo_passes": "cpu-parallel-task-assigner"},
    # No autotuning: the fastest kernel, and with it the bits, would differ between runs.
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_exclude_nondeterministic_ops": True},
}
# Makes loops that end by a decision of the host parts of a CUDA graph. Both options are needed: the first alone is
# slower than XLA's default.
GRAPHS: dict[str, Any] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION",
    "xla_gpu_graph_min_graph_size": 1,
}


def compiler_options(platform: str) -> dict[str, Any]:
    """Returns the compiler options of a kind of device.

    If the environment has JAXDP_GPU_GRAPHS=1, loops on a GPU are parts of CUDA graphs.
    """
    with_graphs = platform == "gpu" and os.environ.get("JAXDP_GPU_GRAPHS", "") not in ("", "0")
    return COMPILER_OPTIONS.get(platform, {}) | (GRAPHS if with_graphs else {})


class Compiled(NamedTuple):
    """A compiled program for tiles of lanes.

    Attributes:
        tiles: for each device, (point indices, seed indices), both [tile_size] uint32 -> outputs with a leading axis of
            lanes.
        devices: where they run.
        tile_size: lanes in a tile.
        tile_bytes: memory that a tile needs while it runs, including its results.
    """

    tiles: list[Tile]
    devices: list[Device]
    tile_size: int
    tile_bytes: int


class Program:
    """A run over a grid, traced for tiles of lanes and not yet compiled."""

    def __init__(self, run: Run, key: jax.Array, points: Sequence[Any], tile_size: int, devices: Sequence[Device]):
        """Traces.

        Args:
            run: simulates a lane.
            key: the root key.
            points: parameters of each grid point.
            tile_size: lanes in a tile.
            devices: where tiles will run.
        """
        self._params = stack_params(points)
        self._devices = list(devices)
        self._tile_size = tile_size
        self._fast_key = fast_key(key)  # draws the same values
        shared, self._structure = jax.tree.flatten((self._fast_key, *self._params))

        def simulate_lane(key, varying, fixed, point, seed):
            varies = jax.tree.map(lambda leaf: leaf[point], varying)
            params = jax.tree.map(
                lambda left, right: right if left is None else left, varies, fixed, is_leaf=lambda leaf: leaf is None
            )
            return run(jax.random.fold_in(key, seed), params)

        def lane(*arguments):  # without the parameters' classes, which a notebook's cell defines again
            return simulate_lane(*jax.tree.unflatten(self._structure, arguments[:-2]), *arguments[-2:])

        # Unused arguments stay, so that the text shows which of two similar arguments is read.
        self._tile = jax.jit(jax.vmap(lane, in_axes=(*[None] * len(shared), 0, 0)), keep_unused=True)

    def hashes(self) -> dict[str, Any]:
        """Returns hashes of this program and of its stacked parameters.

        If it factorizes large matrices on a CPU, `blas_threads`, which its results depend on, is added.
        """
        hashes = {"program": self._hash, "params": tree_hash(self._params)}
        threads = blas_threads(self._text)
        return hashes if threads is None else {**hashes, "blas_threads": threads}

    def outputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Returns shapes of a lane's outputs, by name. JAX caches the trace, so that `trace` does not trace again."""
        indices = np.zeros(self._tile_size, np.uint32)
        shared = jax.tree.leaves((self._fast_key, *self._params))  # on the host; moved to devices when needed
        tiles = self._trace(*shared, indices, indices).out_info
        return {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in tiles.items()}

    def trace_without_arrays(self, sharding: Any) -> Any:
        """Traces for the device of `sharding`, which need not exist: for example to count a GPU's operations."""
        indices = np.zeros(self._tile_size, np.uint32)

        leaves = (*jax.tree.leaves((self._fast_key, *self._params)), indices, indices)
        shapes = jax.eval_shape(lambda *leaves: leaves, *leaves)
        (device,) = sharding.device_set
        with trace_for(device.platform):
            return self._tile.trace(*(jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding) for s in shapes))

    def lane_bytes(self) -> int:
        """Returns about how much memory a lane needs, as `tiles.lane_bytes`; may trace."""
        indices = np.zeros(self._tile_size, np.uint32)
        traced = self._trace(*jax.tree.leaves((self._fast_key, *self._params)), indices, indices)
        return lane_bytes(traced.jaxpr, self._tile_size)

    def trace(self) -> None:
        """Traces for the first device, if that is not done yet."""
        _ = self._lowering

    def compile(self) -> Compiled:
        """Compiles the program for each device, unless this process has compiled it before.

        Every device has its own program for whole tiles. One program partitioned over CPU devices would deadlock in
        batched eigh, svd and qr.
        """
        lowered = [self._lowering, *(self._lower(device) for device in self._devices[1:])]
        with ThreadPoolExecutor(len(lowered)) as pool:  # traced one after the other, compiled side by side
            executables = list(pool.map(self._finish, lowered, self._devices))
        return Compiled([tile for tile, _ in executables], self._devices, self._tile_size, executables[0][1])

    @functools.cached_property
    def _lowering(self) -> tuple[Any, Any, Any]:
        return self._lower(self._devices[0])

    @functools.cached_property
    def _text(self) -> str:
        return self._lowering[1].as_text()

    @functools.cached_property
    def _hash(self) -> str:
        return program_hash(self._lowering[0], self._text)

    def _lower(self, device: Device) -> tuple[Any, Any, Any]:
        """Returns (traced, lowered, arguments that all tiles share)."""
        indices = np.zeros(self._tile_size, np.uint32)
        shared = jax.device_put(jax.tree.leaves((self._fast_key, *self._params)), device)
        traced = self._trace(*shared, *jax.device_put((indices, indices), device))
        return traced, traced.lower(), shared

    def _trace(self, *arguments: Any) -> Any:
        with trace_for(self._devices[0].platform):
            return self._tile.trace(*arguments)

    def _finish(self, lowered: tuple[Any, Any, Any], device: Device) -> tuple[Tile, int]:
        traced, _, shared = lowered
        options = compiler_options(device.platform)

        def compile_it() -> Any:
            return lowered[1].compile(options)

        if calls_back(traced.jaxpr):  # the text does not identify the called functions
            compiled = compile_it()
        else:
            signature = traced.in_avals, traced.out_tree
            key = self._hash, device, repr(signature), repr((options, settings()))
            compiled = EXECUTABLES.get(key, constant_bytes(traced), compile_it)
        memory = compiled.memory_analysis()
        tile_bytes = 0 if memory is None else memory.temp_size_in_bytes + memory.output_size_in_bytes
        return lambda point, seed: compiled(*shared, *jax.device_put((point, seed), device)), tile_bytes


def tiles_in_flight(devices: Sequence[Device]) -> int:
    """Returns how many tiles each device should run at a time, if memory allows.

    A CPU device runs small kernels on one core, so CPU devices together run a tile per core. Another device runs one
    program after the other, and a second tile would only take memory.
    """
    if devices[0].platform != "cpu":
        return 1
    return max(1, cores() // len(devices))
