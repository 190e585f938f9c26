"""Lanes in tiles of fixed size: the unit that is compiled, so that results do not depend on how lanes are scheduled.

A lane is one (grid point, seed). Its key is a function of the root key and the seed's index only: differences between
grid points are paired, and every estimator and every epsilon meets the same data.
"""

import os
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from jaxdp.random import fast
from jaxdp.simulation.run import Run

Device = Any  # jax.Device, which type checkers do not take for a type
Tile = Callable[[np.ndarray, np.ndarray], Any]
# A tile per core is faster than every small kernel split over the cores, and what is not split cannot depend on them.
COMPILER_OPTIONS: dict[str, Any] = {"cpu": {"xla_cpu_multi_thread_eigen": False}}


def stack_params(points: Sequence[Any]) -> tuple[Any, Any]:
    """Stacks grid points' parameters.

    Args:
        points: pytrees of one structure.

    Returns:
        (varying, fixed), each with the points' structure and None where the other has the leaf. A varying leaf gains a
        leading axis of grid points; a leaf that is the same object at every point is fixed, and is held once.

    Raises:
        ValueError: if the points differ in structure, or a leaf in shape.
    """
    trees = [jax.tree.flatten(point) for point in points]
    structure = trees[0][1]
    for index, (_, other) in enumerate(trees):
        if other != structure:
            raise ValueError(f"params must have one structure, got {structure} and {other} at grid point {index}")
    varying, fixed = [], []
    for leaves in zip(*(leaves for leaves, _ in trees), strict=True):
        same = all(leaf is leaves[0] for leaf in leaves) and np.ndim(leaves[0]) > 0
        shapes = {np.shape(leaf) for leaf in leaves}
        if len(shapes) > 1:
            raise ValueError(f"params must have leaves of one shape, got {sorted(shapes)}")
        varying.append(None if same else np.stack(leaves))
        fixed.append(leaves[0] if same else None)
    return jax.tree.unflatten(structure, varying), jax.tree.unflatten(structure, fixed)


def compile_tile(
    run: Run, key: jax.Array, points: Sequence[Any], tile_size: int, devices: Sequence[Device]
) -> list[Tile]:
    """Compiles a run for tiles of lanes, once for each device.

    Every device has its own program for whole tiles. One program partitioned over CPU devices would deadlock in batched
    eigh, svd and qr.

    Args:
        run: what a lane does.
        key: the root key.
        points: parameters of each grid point.
        tile_size: lanes in a tile.
        devices: where tiles will run.

    Returns:
        For each device, (point indices, seed indices), both [tile_size] -> outputs with a leading axis of lanes.
    """
    varying, fixed = stack_params(points)

    def lane(key, varying, fixed, point, seed):
        mine = jax.tree.map(lambda leaf: leaf[point], varying)
        params = jax.tree.map(
            lambda left, right: right if left is None else left, mine, fixed, is_leaf=lambda leaf: leaf is None
        )
        return run(jax.random.fold_in(key, seed), params)

    tile = jax.jit(jax.vmap(lane, in_axes=(None, None, None, 0, 0)))
    indices = np.zeros(tile_size, np.uint32)

    def lower_for(device: Device) -> Callable[[], Tile]:
        shared = jax.device_put((fast(key), varying, fixed), device)  # the fast key has the same values
        lowered = tile.lower(*shared, *jax.device_put((indices, indices), device))

        def finish() -> Tile:
            compiled = lowered.compile(COMPILER_OPTIONS.get(device.platform))
            return lambda point, seed: compiled(*shared, *jax.device_put((point, seed), device))

        return finish

    lowered = [lower_for(device) for device in devices]  # traced once, and then compiled side by side
    with ThreadPoolExecutor(len(devices)) as pool:
        return list(pool.map(lambda finish: finish(), lowered))


def run_lanes(
    tiles: Sequence[Tile],
    outputs: Mapping[str, np.ndarray],
    *,
    in_flight: int,
    num_seeds: int,
    tile_size: int,
    chunk_tiles: int,
    advance: Callable[[int], object],
) -> None:
    """Runs all lanes, a chunk of tiles at a time.

    Args:
        tiles: from `compile_tile`, one for each device; every device takes the next tile when it is free.
        outputs: filled in place; each has a leading axis of lanes, a grid point's seeds side by side.
        in_flight: tiles at a time on each device.
        num_seeds: seeds of each grid point.
        tile_size: lanes in a tile; the last tile is padded with repeats of the last lane, which are dropped.
        chunk_tiles: tiles whose results are held on the device at a time.
        advance: called with the number of lanes done since the last call.
    """
    num_lanes = len(next(iter(outputs.values())))
    idle: queue.SimpleQueue[Tile] = queue.SimpleQueue()
    for tile in [*tiles] * in_flight:
        idle.put(tile)

    def compute(start: int) -> dict[str, np.ndarray]:
        lane = np.minimum(np.arange(start, start + tile_size), num_lanes - 1)
        point, seed = (index.astype(np.uint32) for index in np.divmod(lane, num_seeds))
        tile = idle.get()
        try:
            return jax.device_get(tile(point, seed))
        finally:
            idle.put(tile)

    with ThreadPoolExecutor(min(chunk_tiles, idle.qsize())) as pool:
        for chunk in _chunks(range(0, num_lanes, tile_size), chunk_tiles):
            for start, results in zip(chunk, pool.map(compute, chunk), strict=True):
                stop = min(start + tile_size, num_lanes)
                for name, values in outputs.items():
                    values[start:stop] = results[name][: stop - start]
                advance(stop - start)


def tiles_in_flight(devices: Sequence[Device]) -> int:
    """How many tiles each device should have at a time.

    A CPU device runs small kernels on one core: together, as many tiles as cores. Another device has a second tile to
    go on with while the results of the first are copied.
    """
    if devices[0].platform != "cpu":
        return 2
    return max(1, (os.cpu_count() or 1) // len(devices))


def _chunks(starts: range, size: int) -> Iterator[range]:
    for first in range(0, len(starts), size):
        yield starts[first : first + size]
