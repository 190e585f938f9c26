"""Sweeps that grow in tests, and the content of their stores."""

import functools
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.simulation import Run
from jaxdp.simulation.store.seal import METADATA

KEY = partial(jax.random.key, 0)
SMALL: Callable[[], dict] = functools.cache(
    lambda: {"axes": {"a": [1.0, 3.0]}, "num_seeds": 6, "tile_size": 16, "chunk_size": 4, "key": KEY()}
)
LARGE: Callable[[], dict] = functools.cache(
    lambda: {**SMALL(), "axes": {"a": [0.5, 1.0, math.inf, 3.0]}, "num_seeds": 9}
)


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


def as_before_checksums(store: Path, lost: str = "labels") -> None:
    """Makes a store describe itself as earlier versions did; their layout lacked one more entry at first."""
    for file in (store / METADATA, store / "computed" / METADATA):
        content = json.loads(file.read_text())
        arrays = content.get("consolidated_metadata", {}).get("metadata", {"computed": content})
        notes = arrays["computed"]["attributes"]
        layout = json.loads(notes["layout"])
        notes["layout"] = json.dumps({name: layout[name] for name in layout if name not in ("labels", lost)})
        del notes["checksum"], notes["provenance"]
        file.write_text(json.dumps(content))
