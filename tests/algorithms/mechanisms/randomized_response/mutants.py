"""Mistakes of `randomized_response`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import randomized_response
from tests.privacy.case import Case, claim


def coin_twice(key, epsilon, label):
    """Keeps the label with the probability of telling the truth, else reports a coin: which may be the truth again."""
    key_keep, key_coin = jax.random.split(key)
    kept = jax.random.bernoulli(key_keep, jax.nn.sigmoid(epsilon))
    return jnp.where(kept, label, jax.random.bernoulli(key_coin).astype(label.dtype))


def wrong_randomized_response() -> Case:
    labels, epsilon = (np.int32(0), np.int32(1)), np.float32(1)
    right = Attack(randomized_response, epsilon, labels, claim(1.0))
    return Case(
        wrong=right._replace(release=coin_twice),
        right=(right._replace(release=lambda key, epsilon, label: randomized_response(key, label, epsilon)),),
        trials=2_000,
    )


CASES = {
    "randomized response at the wrong probability": wrong_randomized_response,
}
