"""Random bits: JAX's own Threefry, several times faster on CPU; and exact samplers that `jax.random` lacks.

Keys are those of `jax.random`, or of `key`, which all its functions take but `jax.random.poisson`: hence `poisson`.
"""

from jaxdp.random.binomial import binomial, multinomial
from jaxdp.random.choice import weighted_index
from jaxdp.random.poisson import poisson
from jaxdp.random.threefry import fast, key, key_from_data

__all__ = ["binomial", "fast", "key", "key_from_data", "multinomial", "poisson", "weighted_index"]
