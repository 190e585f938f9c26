"""Tiles that suit a study."""

import jax


def cpu_tile(lanes: int) -> int | None:
    """Returns a tile size that suits a CPU's caches; None where JAX's default device is none: a sweep then chooses.

    Args:
        lanes: of the tile.
    """
    return lanes if jax.default_backend() == "cpu" else None
