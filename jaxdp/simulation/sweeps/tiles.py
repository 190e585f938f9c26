"""Computes the default number of lanes in a tile, and estimates a tile's memory and time."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from jaxdp.numerics.equations import equations
from jaxdp.simulation.run.lane_run import Run

ON_CPU = 256  # lanes of a tile on a CPU, if there are few lanes or the size of their states is unknown
# Lanes of a tile on a CPU if there are many lanes, and the maximum bytes of a lane's state for each size. A round
# starts tens of kernels, and the lanes of a tile share their fixed costs; but states should stay in a core's cache. No
# size is a power of two: rows of arrays that are a power of two apart share few sets of a cache.
CPU_SIZES = ((1056, 600), (528, 2000), (272, math.inf))
CPU_TILES = 8  # minimum number of tiles for these sizes, because each tile runs on one core
# On a GPU, tiles have a multiple of MULTIPLE lanes and at most MOST lanes; if fewer than MULTIPLE lanes fit, a power of
# two.
MULTIPLE, MOST = 1024, 2**16
MOST_BYTES = 2**32  # maximum memory for states and outputs of a tile on a GPU, half the memory of a small GPU
CPU_BYTES, GPU_BYTES = 5e9, 1e12  # approximate bytes of loop states per second, on a core and on a GPU
GPU_ROUND = 15e-6  # seconds of about ten small kernels; estimated, not measured
PROBE = 8191  # number of lanes in a program for `lane_bytes`; other axes rarely have this length


def default_tile_size(
    platform: str, num_lanes: int, lane_bytes: Callable[[], int], state_bytes: Callable[[], int | None]
) -> int:
    """Returns the default number of lanes in a tile for a kind of device.

    On a CPU, a tile is small enough for the caches of a core, and tiles of more than `ON_CPU` lanes are used only if
    there are at least `CPU_TILES` of them for the cores. On a GPU, the time of a round hardly depends on the number of
    lanes, so a tile contains all lanes of a program, up to fixed limits (`MOST`, `MOST_BYTES`). The tile size is a part
    of a store's identity, so it depends neither on the number of devices or cores nor on their actual memory. Nothing
    is compiled.

    Args:
        platform: "cpu", or another kind of device.
        num_lanes: number of lanes of one program.
        lane_bytes: returns the approximate memory of a lane in bytes; not called for a CPU.
        state_bytes: returns the size of a lane's state in bytes, None if it is unknown; called only for many lanes on a
            CPU.
    """
    if platform == "cpu":
        sizes = [(lanes, most_bytes) for lanes, most_bytes in CPU_SIZES if num_lanes >= CPU_TILES * lanes]
        size = state_bytes() if sizes else None
        return ON_CPU if size is None else next((lanes for lanes, most_bytes in sizes if size <= most_bytes), ON_CPU)
    all_lanes = min(-(-num_lanes // MULTIPLE) * MULTIPLE, MOST)
    return min(all_lanes, whole_tile(MOST_BYTES // max(lane_bytes(), 1)))


def keeps_tile(options: Mapping[str, Any]) -> bool:
    """Returns whether the options of `sweep` name an existing store, which keeps its tile size."""
    store = options.get("store")
    return store is not None and Path(str(store)).exists() and not options.get("overwrite")


def tile_seconds(platform: str, rounds: int, lanes: int, lane_bytes: int) -> float:
    """Estimates the time of a tile that is played round by round, in seconds, within a factor of about five.

    Programs with rejection samplers take longer. `lanes` is the tile size, and `lane_bytes` the memory of a lane.
    """
    if platform == "cpu":
        return rounds * lanes * lane_bytes / CPU_BYTES
    return rounds * max(GPU_ROUND, lanes * lane_bytes / GPU_BYTES)


def whole_tile(lanes: int) -> int:
    """Returns the largest tile of at most `lanes` lanes that is a multiple of 1,024 or, below 1,024, a power of two.

    The result is 1 if `lanes` is 0.
    """
    return lanes // MULTIPLE * MULTIPLE or 1 << max(lanes.bit_length() - 1, 0)


def lane_bytes(jaxpr: Any, num_lanes: int) -> int:
    """Estimates the memory of a lane in bytes, as the maximum that one operation or one loop reads and writes.

    `jaxpr` is the program of a batch of `num_lanes` lanes, and no other axis may have this length. Arrays without an
    axis of this length are shared by all lanes, and do not count.
    """

    def size(variables: Any) -> int:
        arrays = [equation.aval for equation in variables if num_lanes in getattr(equation.aval, "shape", ())]
        return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays) // num_lanes

    return max((size([*equation.invars, *equation.outvars]) for equation in equations(jaxpr)), default=0)


def state_bytes(run: Run, key: jax.Array, params: Any) -> int | None:
    """Returns the size of a lane's state before the first round in bytes, or None if the run has no `init`."""
    if run.init is None:
        return None
    leaves = jax.tree.leaves(jax.eval_shape(run.init, key, params))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
