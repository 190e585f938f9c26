"""Kernels of their own: the values stay the same, and XLA on CPU computes them once for all consumers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.kernels import WRITTEN_OUT, folded, own_kernel, stored

VALUES = jnp.arange(1, 257, dtype=jnp.uint32)


def scrambled(words):
    """Cheap by its count of operations, so that XLA would rather compute it twice than store it."""
    return (words << 7) ^ words


def consumed(words):
    """Consumers of different shapes cannot share a loop."""
    return words + jnp.uint32(1), words.reshape(16, 16).sum(1, dtype=jnp.uint32)


@pytest.mark.parametrize("wrapper", [stored, lambda function: partial(own_kernel, function)], ids=["stored", "own"])
def test_values_are_the_same(wrapper):
    kept = wrapper(scrambled)
    for found in (kept(VALUES), jax.jit(kept)(VALUES), jax.vmap(kept)(VALUES)):
        np.testing.assert_array_equal(found, scrambled(VALUES))


def test_arguments_and_results_may_be_many():
    first, second = own_kernel(lambda x, y: (x + y, x - y), VALUES, VALUES)
    np.testing.assert_array_equal(first, 2 * np.asarray(VALUES))
    np.testing.assert_array_equal(second, 0)


@pytest.mark.once
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on CPU")
def test_values_are_computed_once():
    def shifts(function):
        compiled = jax.jit(lambda words: consumed(function(words))).lower(VALUES).compile().as_text()
        return compiled.count(" shift-left(")

    assert shifts(partial(own_kernel, scrambled)) == 1
    # Not so as it is, nor behind a barrier: what the module is for. If this fails, it may be superfluous.
    assert shifts(scrambled) == 2
    assert shifts(lambda words: jax.lax.optimization_barrier(scrambled(words))) == 2


@pytest.mark.parametrize("size", [1, 2, 3, WRITTEN_OUT, WRITTEN_OUT + 1, 37, 64, 100])
def test_folded(size):
    values = np.random.default_rng(size).permutation(size).astype(np.int32) - 3
    everything = jnp.asarray(values)
    for operation, expected in ((jnp.minimum, values.min()), (jnp.maximum, values.max()), (jnp.add, values.sum())):
        assert int(folded(operation, everything)) == expected
    columns = jnp.stack([everything, -everything], 1)  # elements may be arrays
    np.testing.assert_array_equal(folded(jnp.maximum, columns), [values.max(), -values.min()])
