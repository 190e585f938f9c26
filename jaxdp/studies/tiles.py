"""Tile sizes of studies."""

from collections.abc import Mapping
from typing import Any

import jax

from jaxdp.simulation.sweeps.tiles import keeps_tile


def cpu_tile(lanes: int, scheduling: Mapping[str, Any] = {}) -> int | None:
    """Returns the tile size `lanes`, which fits a CPU's caches; None if the sweep chooses the tile size.

    The sweep chooses the tile size if JAX's default device is not a CPU, or if `scheduling` (options of `sweep`) names
    an existing store and does not overwrite it.
    """
    return None if keeps_tile(scheduling) or jax.default_backend() != "cpu" else lanes
