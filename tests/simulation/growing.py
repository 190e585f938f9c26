"""Sweeps that grow in tests, and what is in their stores."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.simulation import Run

KEY = jax.random.key(0)
SMALL: dict = {"axes": {"a": [1.0, 3.0]}, "num_seeds": 6, "tile_size": 16, "chunk_size": 4, "key": KEY}
LARGE: dict = {**SMALL, "axes": {"a": [0.5, 1.0, math.inf, 3.0]}, "num_seeds": 9}


def run(scale=1.0, parts=2) -> Run:
    def simulate(key, a):
        draw = scale * jax.random.normal(key, dtype=jnp.float32) + a
        return {"x": draw, "path": jnp.stack([draw] * parts)}

    return Run(
        simulate=simulate,
        params=lambda a: np.float32(a),
        guarantee=lambda a: {},
        dims={"x": (), "path": ("part",)},
        coords={"part": list(range(parts))},
    )


def content(store: Path) -> dict[str, bytes]:
    return {str(file.relative_to(store)): file.read_bytes() for file in store.rglob("*") if file.is_file()}
