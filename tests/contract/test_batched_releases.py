"""Every registered release has the same types under `jax.vmap(jax.jit(release))` as alone.

JAX then batches a program that was traced before. Where the program is of 32 bits, an operation that names float64 as
the type of its result loses this type.
"""

import warnings

import jax
import jax.numpy as jnp
import pytest

from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, attacks

LANES = 3


def check_types(release, params, data):
    keys = jax.random.split(jax.random.key(0), LANES)
    alone = jax.eval_shape(release, keys[0], params, data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batched = jax.eval_shape(jax.vmap(jax.jit(release), (0, None, None)), keys, params, data)
    assert jax.tree.structure(alone) == jax.tree.structure(batched)
    for one, many in zip(jax.tree.leaves(alone), jax.tree.leaves(batched), strict=True):
        assert many.dtype == one.dtype
        assert many.shape == (LANES, *one.shape)


@pytest.mark.parametrize("name", [*MECHANISMS, *LEARNERS, *ESTIMATORS])
def test_a_release_that_is_batched_after_it_was_traced(name):
    for attack in attacks([name])[name].attacks.values():
        check_types(attack.release, attack.params, attack.neighbours[0])


@pytest.mark.skipif(jnp.result_type(float) == jnp.float64, reason="float64 is kept")
def test_a_product_that_loses_its_type_is_noticed():
    @in_64_bits
    def release(key, params, data):
        del params
        noise = jax.random.normal(key, data.shape, jnp.float32).astype(jnp.float64)
        return (noise * jnp.matmul(jnp.eye(len(data), dtype=jnp.float64), noise)).astype(jnp.float32)

    with pytest.raises((TypeError, UserWarning), match="float64"):
        check_types(release, (), jnp.ones(2, jnp.float32))
