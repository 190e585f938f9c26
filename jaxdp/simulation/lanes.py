"""Lanes in tiles of fixed size: the unit that is compiled, so that results do not depend on how lanes are scheduled.

A lane is one (grid point, seed). Its key is a function of the root key and the seed's index only: differences between
grid points are paired, and every estimator and every epsilon meets the same data.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from jaxdp.random import fast
from jaxdp.simulation.run import Run


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
    run: Run, key: jax.Array, points: Sequence[Any], tile_size: int
) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Compiles a run for tiles of lanes, once.

    Args:
        run: what a lane does.
        key: the root key.
        points: parameters of each grid point.
        tile_size: lanes in a tile.

    Returns:
        (point indices, seed indices), both [tile_size] -> outputs with a leading axis of lanes.
    """
    varying, fixed = jax.device_put(stack_params(points))
    key = fast(key)  # the same values, sooner

    def lane(key, varying, fixed, point, seed):
        mine = jax.tree.map(lambda leaf: leaf[point], varying)
        params = jax.tree.map(
            lambda left, right: right if left is None else left, mine, fixed, is_leaf=lambda leaf: leaf is None
        )
        return run(jax.random.fold_in(key, seed), params)

    tile = jax.jit(jax.vmap(lane, in_axes=(None, None, None, 0, 0)))
    indices = np.zeros(tile_size, np.uint32)
    compiled = tile.lower(key, varying, fixed, indices, indices).compile()
    return lambda point, seed: compiled(key, varying, fixed, point, seed)


def run_lanes(
    tile: Callable[[np.ndarray, np.ndarray], Any],
    outputs: Mapping[str, np.ndarray],
    *,
    num_seeds: int,
    tile_size: int,
    chunk_tiles: int,
    advance: Callable[[int], object],
) -> None:
    """Runs all lanes, a chunk of tiles at a time.

    Args:
        tile: from `compile_tile`.
        outputs: filled in place; each has a leading axis of lanes, a grid point's seeds side by side.
        num_seeds: seeds of each grid point.
        tile_size: lanes in a tile; the last tile is padded with repeats of the last lane, which are dropped.
        chunk_tiles: tiles whose results are held on the device at a time.
        advance: called with the number of lanes done since the last call.
    """
    num_lanes = len(next(iter(outputs.values())))

    def compute(start: int) -> dict[str, np.ndarray]:
        lane = np.minimum(np.arange(start, start + tile_size), num_lanes - 1)
        point, seed = (index.astype(np.uint32) for index in np.divmod(lane, num_seeds))
        return jax.device_get(tile(point, seed))

    # A CPU device runs small kernels on one core; as many tiles as cores are in flight.
    with ThreadPoolExecutor(min(chunk_tiles, os.cpu_count() or 1)) as pool:
        for chunk in _chunks(range(0, num_lanes, tile_size), chunk_tiles):
            for start, results in zip(chunk, pool.map(compute, chunk), strict=True):
                stop = min(start + tile_size, num_lanes)
                for name, values in outputs.items():
                    values[start:stop] = results[name][: stop - start]
                advance(stop - start)


def _chunks(starts: range, size: int) -> Iterator[range]:
    for first in range(0, len(starts), size):
        yield starts[first : first + size]
