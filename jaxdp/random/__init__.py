"""Random bits: JAX's own Threefry, several times faster on CPU; and exact samplers that `jax.random` lacks.

Keys are those of `jax.random`, or of `key`, which all its functions accept except `jax.random.poisson`.
"""

from jaxdp.random._binomial import binomial, multinomial
from jaxdp.random._normals import normals
from jaxdp.random._permuted import permuted
from jaxdp.random._world_words import world_words
from jaxdp.random.choice import fine_index, index_at, weighted_index
from jaxdp.random.gammas import beta, gamma
from jaxdp.random.own_words import key_uniform
from jaxdp.random.threefry import fast, key, key_from_data

__all__ = [
    "beta",
    "binomial",
    "fast",
    "fine_index",
    "gamma",
    "index_at",
    "key",
    "key_from_data",
    "key_uniform",
    "multinomial",
    "normals",
    "permuted",
    "weighted_index",
    "world_words",
]
