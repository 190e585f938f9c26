"""Random bits: JAX's own Threefry, several times faster on CPU; and exact samplers that `jax.random` lacks."""

from jaxdp.random.binomial import binomial, multinomial
from jaxdp.random.choice import weighted_index
from jaxdp.random.threefry import fast, key

__all__ = ["binomial", "fast", "key", "multinomial", "weighted_index"]
