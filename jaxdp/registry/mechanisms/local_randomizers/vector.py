"""Registry entries of `vector_randomizer`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.mechanisms import vector_randomizer
from jaxdp.registry.mechanisms.local_randomizers._randomizers import GAUSSIAN, HUGE, LAPLACE, entry

ORDER = 80  # position of the entries in lists

_L1_VECTORS = (np.asarray([np.inf, np.nan, 0, 0], np.float32), np.asarray([-np.inf, 0, 0, 0], np.float32))


def _l1_edge(data: jax.Array) -> jax.Array:
    """Clips a vector with one infinite entry to the L1 unit ball."""
    return jnp.where(jnp.isinf(data), jnp.sign(data), 0).astype(default_float())


def _far_corners(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns two opposite corners of a cube, [size] each; the squares of their entries overflow in float32."""
    return np.full(size, HUGE, np.float32), np.full(size, -HUGE, np.float32)


def _l2_edge(data: jax.Array) -> jax.Array:
    """Clips a vector to the L2 unit ball; its entries must be large and have equal absolute values."""
    return jnp.sign(data).astype(default_float()) / jnp.sqrt(jnp.asarray(data.size, default_float()))


ENTRIES = {
    "vector_randomizer_l1": entry(
        "reports a vector of bounded L1 norm with Laplace noise",
        vector_randomizer,
        LAPLACE,
        _L1_VECTORS,
        _l1_edge,
        variant={"shape": (4,), "norm": "l1"},
    ),
    "vector_randomizer_l2": entry(
        "reports a vector of bounded L2 norm with Gaussian noise",
        vector_randomizer,
        GAUSSIAN,
        _far_corners(4),
        _l2_edge,
        variant={"shape": (4,), "norm": "l2"},
        values={"delta": 1e-2},
    ),
}
USES = {  # shown on pages of the site
    "vector_randomizer": {
        "use": "Use it to report gradients or other vectors from a ball.",
        "not": "Noise grows with the dimension; report fewer coordinates if you can.",
    },
}
