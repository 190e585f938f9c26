"""Tile sizes of studies."""

import jax


def cpu_tile(lanes: int) -> int | None:
    """Returns `lanes` if JAX's default device is a CPU, and None otherwise: the sweep then chooses the tile size.

    Args:
        lanes: lanes in a tile, a number that suits a CPU's caches.
    """
    return lanes if jax.default_backend() == "cpu" else None
