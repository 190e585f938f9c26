"""The default number of lanes in a tile, and the number that fits."""

import math
from collections.abc import Callable
from typing import Any

from jaxdp.numerics.equations import equations

ON_CPU = 256
MULTIPLE, MOST = 1024, 2**16  # of lanes on a GPU
MOST_BYTES = 2**32  # of a GPU's memory for the states and outputs of a tile's lanes: half of a small card's
CPU_BYTES, GPU_BYTES = 5e9, 1e12  # of loops' states that a core, or a GPU, reads and writes per second, about
GPU_ROUND = 15e-6  # seconds for some ten small kernels, by a model: it was not measured
PROBE = 8191  # lanes in a program for `lane_bytes`: a length that other arrays seldom have


def default_tile_size(platform: str, num_lanes: int, lane_bytes: Callable[[], int]) -> int:
    """Returns the default number of lanes in a tile for a kind of device.

    A CPU's tile stays near its caches. A GPU takes as long for a round of few lanes as of many, so a tile has all lanes
    of a program if they fit. This compiles nothing. It depends neither on the number of devices nor on their memory,
    since the tile size is a part of a store's identity.

    Args:
        platform: "cpu", or another kind of device.
        num_lanes: of one program.
        lane_bytes: returns about the memory of a lane, as `lane_bytes`; called only off the CPU.
    """
    if platform == "cpu":
        return ON_CPU
    all_lanes = min(-(-num_lanes // MULTIPLE) * MULTIPLE, MOST)
    return min(all_lanes, whole_tile(MOST_BYTES // max(lane_bytes(), 1)))


def tile_seconds(platform: str, rounds: int, lanes: int, lane_bytes: int) -> float:
    """Returns about how many seconds a tile takes to play round by round.

    It is right to a factor of five: samplers that repeat draws take longer.

    Args:
        platform: "cpu", or another kind of device.
        rounds: of the horizon.
        lanes: of the tile.
        lane_bytes: as `lane_bytes` returns it.
    """
    if platform == "cpu":
        return rounds * lanes * lane_bytes / CPU_BYTES
    return rounds * max(GPU_ROUND, lanes * lane_bytes / GPU_BYTES)


def whole_tile(lanes: int) -> int:
    """Returns the largest convenient tile of at most `lanes` lanes: a multiple of 1,024, otherwise a power of two."""
    return lanes // MULTIPLE * MULTIPLE or 1 << max(lanes.bit_length() - 1, 0)


def lane_bytes(jaxpr: Any, num_lanes: int) -> int:
    """Returns about how much memory a lane needs: the most that one operation, or one loop, reads and writes.

    Args:
        jaxpr: the traced program of `num_lanes` lanes side by side.
        num_lanes: a length that no other axis has. Arrays without such an axis are shared by all lanes.
    """

    def size(variables: Any) -> int:
        arrays = [equation.aval for equation in variables if num_lanes in getattr(equation.aval, "shape", ())]
        return sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays) // num_lanes

    return max((size([*equation.invars, *equation.outvars]) for equation in equations(jaxpr)), default=0)
