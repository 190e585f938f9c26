"""Tile sizes of studies."""

import jax


def cpu_tile(lanes: int) -> int | None:
    """Returns the tile size `lanes`, which fits a CPU's caches; None if JAX's default device is not a CPU.

    With None, the sweep chooses the tile size.
    """
    return lanes if jax.default_backend() == "cpu" else None
