"""Compiles programs for tiles of a fixed number of lanes, so that results do not depend on how lanes are scheduled.

A lane is one grid point with one seed. Its key depends only on the root key and the index of the seed. Comparisons of
grid points are therefore paired: for the same seed, every estimator and every epsilon gets the same data.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from jaxdp.simulation.sweeps.compilation import count_hits
from jaxdp.simulation.sweeps.executables import EXECUTABLES
from jaxdp.simulation.sweeps.tiles import lane_bytes

Device = Any  # jax.Device, which type checkers do not accept as a type
Tile = Callable[[np.ndarray, np.ndarray], Any]
COMPILER_OPTIONS: dict[str, dict[str, Any]] = {
    # One tile per core is faster than splitting small kernels over cores. Without splits, results do not depend on the
    # number of cores.
    "cpu": {"xla_cpu_multi_thread_eigen": False, "xla_disable_hlo_passes": "cpu-parallel-task-assigner"},
    # Autotuning is off, because it may choose other kernels, with other last bits, in every run.
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_exclude_nondeterministic_ops": True},
}
# With these options, loops of unknown length are parts of a CUDA graph and do not wait for the host. Both options are
# needed; the first one alone is slower than XLA's default.
GRAPHS: dict[str, Any] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION",
    "xla_gpu_graph_min_graph_size": 1,
}
ADDED: dict[str, dict[str, Any]] = {}  # by kind of device; `added_options` changes it


def compiler_options(platform: str) -> dict[str, Any]:
    """Returns the compiler options for a kind of device.

    If the environment variable JAXDP_GPU_GRAPHS is set, but not to "" or "0", loops on a GPU are parts of CUDA graphs.
    """
    with_graphs = platform == "gpu" and os.environ.get("JAXDP_GPU_GRAPHS", "") not in ("", "0")
    return COMPILER_OPTIONS.get(platform, {}) | (GRAPHS if with_graphs else {}) | ADDED.get(platform, {})


@contextlib.contextmanager
def added_options(platform: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Adds compiler options for a kind of device, in all threads of this process, during a `with` block."""
    before = ADDED.get(platform, {})
    ADDED[platform] = {**before, **options}
    try:
        yield
    finally:
        ADDED[platform] = before


class Compiled(NamedTuple):
    """A compiled program for tiles of lanes.

    Attributes:
        tiles: for each device, a function of (point indices, seed indices), both [tile_size] uint32, that returns
            outputs with a leading axis of lanes.
        devices: the devices of `tiles`.
        tile_size: number of lanes in a tile.
        tile_bytes: memory of a running tile in bytes, including its results; 0 if it is unknown.
        from_cache: whether the program of the first device was read from JAX's cache on disk.
    """

    tiles: list[Tile]
    devices: list[Device]
    tile_size: int
    tile_bytes: int
    from_cache: bool = False


class Program:
    """An uncompiled program for tiles of lanes, which runs a `Run` at all grid points."""

    def __init__(self, run: Run, key: jax.Array, points: Sequence[Any], tile_size: int, devices: Sequence[Device]):
        """Stacks the parameters of grid points, for tiles of `tile_size` lanes on these devices. Traces nothing yet."""
        self._params = stack_params(points)
        self._devices = list(devices)
        self._tile_size = tile_size
        self._fast_key = fast_key(key)  # draws the same values as `key`
        shared, self._structure = jax.tree.flatten((self._fast_key, *self._params))

        def simulate_lane(key, varying, fixed, point, seed):
            varies = jax.tree.map(lambda leaf: leaf[point], varying)
            params = jax.tree.map(
                lambda left, right: right if left is None else left, varies, fixed, is_leaf=lambda leaf: leaf is None
            )
            return run(jax.random.fold_in(key, seed), params)

        def lane(*arguments):  # takes leaves, as rerunning a notebook's cell may redefine the parameters' classes
            return simulate_lane(*jax.tree.unflatten(self._structure, arguments[:-2]), *arguments[-2:])

        # Unused arguments are kept, so that the program's text shows which of two similar arguments the program reads.
        self._tile = jax.jit(jax.vmap(lane, in_axes=(*[None] * len(shared), 0, 0)), keep_unused=True)

    def hashes(self) -> dict[str, Any]:
        """Returns hashes of this program and of its stacked parameters.

        If the program factorizes large matrices on a CPU, its results depend on the number of BLAS threads. The dict
        then also contains this number, as `blas_threads`.
        """
        hashes = {"program": self._hash, "params": tree_hash(self._params)}
        threads = blas_threads(self._text)
        return hashes if threads is None else {**hashes, "blas_threads": threads}

    def outputs(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Returns shapes and dtypes of a lane's outputs keyed by name. JAX caches the trace, and `trace` reuses it."""
        indices = np.zeros(self._tile_size, np.uint32)
        shared = jax.tree.leaves((self._fast_key, *self._params))  # on the host; moved to devices when needed
        tiles = self._trace(*shared, indices, indices).out_info
        return {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in tiles.items()}

    def trace_without_arrays(self, sharding: Any) -> Any:
        """Traces the program from shapes, for the device of `sharding`. The device need not exist."""
        indices = np.zeros(self._tile_size, np.uint32)

        leaves = (*jax.tree.leaves((self._fast_key, *self._params)), indices, indices)
        shapes = jax.eval_shape(lambda *leaves: leaves, *leaves)
        (device,) = sharding.device_set
        with trace_for(device.platform):
            return self._tile.trace(*(jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding) for s in shapes))

    def lane_bytes(self) -> int:
        """Returns an estimate of a lane's memory in bytes. Traces the program if it is not traced yet."""
        indices = np.zeros(self._tile_size, np.uint32)
        traced = self._trace(*jax.tree.leaves((self._fast_key, *self._params)), indices, indices)
        return lane_bytes(traced.jaxpr, self._tile_size)

    def trace(self) -> None:
        """Traces and lowers the program for each device, unless that was done before."""
        _ = self._lowerings

    def compile(self) -> Compiled:
        """Compiles the program for each device, unless it is cached in `EXECUTABLES`.

        If another thread calls this, `trace` must come first, because settings such as `jax.enable_x64` and
        `jax.default_matmul_precision` in a `with` block hold only in the thread of that block.

        Programs that call the host are not cached. Each device has a separate program for whole tiles, because a
        program that is partitioned over CPU devices would deadlock in batched eigh, svd and qr.
        """
        with ThreadPoolExecutor(len(self._devices)) as pool:  # traced one after the other, compiled in parallel
            executables = list(pool.map(self._finish, self._lowerings, self._devices))
        tiles = [tile for tile, *_ in executables]
        return Compiled(tiles, self._devices, self._tile_size, *executables[0][1:])

    @functools.cached_property
    def _lowering(self) -> tuple[Any, Any, Any]:
        return self._lower(self._devices[0])

    @functools.cached_property
    def _lowerings(self) -> list[tuple[Any, Any, Any]]:
        return [self._lowering, *(self._lower(device) for device in self._devices[1:])]

    @functools.cached_property
    def _text(self) -> str:
        return self._lowering[1].as_text()

    @functools.cached_property
    def _hash(self) -> str:
        return program_hash(self._lowering[0], self._text)

    def _lower(self, device: Device) -> tuple[Any, Any, Any]:
        """Returns the traced program, the lowered program, and the arguments that all tiles share."""
        indices = np.zeros(self._tile_size, np.uint32)
        shared = jax.device_put(jax.tree.leaves((self._fast_key, *self._params)), device)
        traced = self._trace(*shared, *jax.device_put((indices, indices), device))
        return traced, traced.lower(), shared

    def _trace(self, *arguments: Any) -> Any:
        with trace_for(self._devices[0].platform):
            return self._tile.trace(*arguments)

    def _finish(self, lowered: tuple[Any, Any, Any], device: Device) -> tuple[Tile, int, bool]:
        """Compiles the lowered program for a device. Returns (tile, memory in bytes, whether JAX read it from disk)."""
        traced, _, shared = lowered
        options = compiler_options(device.platform)

        def compile_it() -> Any:
            return lowered[1].compile(options)

        with count_hits() as hits:
            if calls_back(traced.jaxpr):  # the program's text does not identify the functions on the host
                compiled = compile_it()
            else:
                signature = traced.in_avals, traced.out_tree
                key = self._hash, device, repr(signature), repr((options, settings()))
                compiled = EXECUTABLES.get(key, constant_bytes(traced), compile_it)
        memory = compiled.memory_analysis()
        tile_bytes = 0 if memory is None else memory.temp_size_in_bytes + memory.output_size_in_bytes
        return lambda point, seed: compiled(*shared, *jax.device_put((point, seed), device)), tile_bytes, bool(hits)


def tiles_in_flight(devices: Sequence[Device]) -> int:
    """Returns the number of tiles that each device should run at a time if memory allows.

    A CPU device runs small kernels on one core, so all CPU devices together run one tile per core. Any other device
    runs one program at a time, and a second tile would only take memory.
    """
    if devices[0].platform != "cpu":
        return 1
    return max(1, cores() // len(devices))
