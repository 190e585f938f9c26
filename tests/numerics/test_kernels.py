"""Kernels of their own: the values stay the same, and XLA on CPU computes them once for all consumers."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.numerics.kernels import (
    MAX_UNROLLED,
    across_lanes,
    any_lane,
    avoid_xla_tiling,
    lanes_last,
    lanes_slow,
    noinline,
    own_kernel,
    pairwise_reduce,
    separate_kernels,
    tree_reduce,
)

VALUES = np.arange(1, 257, dtype=np.uint32)


def scrambled(words):
    """Computes operations that XLA counts as cheap, so that it computes them twice rather than store them."""
    return (words << 7) ^ words


def consumed(words):
    """Uses the words in different shapes, which cannot share a loop."""
    return words + jnp.uint32(1), words.reshape(16, 16).sum(1, dtype=jnp.uint32)


@pytest.mark.parametrize("wrapper", [noinline, lambda function: partial(own_kernel, function)], ids=["noinline", "own"])
def test_values_are_the_same(wrapper):
    kept = wrapper(scrambled)
    for found in (kept(VALUES), jax.jit(kept)(VALUES), jax.vmap(kept)(VALUES)):
        np.testing.assert_array_equal(found, scrambled(VALUES))


def test_arguments_and_results_may_be_many():
    first, second = own_kernel(lambda x, y: (x + y, x - y), VALUES, VALUES)
    np.testing.assert_array_equal(first, 2 * np.asarray(VALUES))
    np.testing.assert_array_equal(second, 0)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on CPU")
def test_results_apart_read_only_what_they_need():
    """Checks that the sum needs both inputs, the double one: a kernel would copy the unused one."""

    def both(x, y):
        return x + y, jnp.where(x > 0, 2 * x, x)

    inputs = (jnp.asarray(VALUES), jnp.asarray(VALUES[::-1].copy()))
    for found, expected in zip(separate_kernels(both, *inputs), both(*inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
    steps = jax.make_jaxpr(partial(separate_kernels, both))(*inputs).eqns
    assert [len(step.invars) for step in steps if step.primitive.name in ("jit", "pjit")] == [2, 1]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on CPU")
def test_values_are_computed_once():
    def shifts(function):
        compiled = str(jax.jit(lambda words: consumed(function(words))).lower(VALUES).compile().as_text())
        return compiled.count(" shift-left(")

    assert shifts(partial(own_kernel, scrambled)) == 1
    # Not so as it is, nor, in older versions, behind a barrier: the purpose of the module.
    assert shifts(scrambled) == 2
    if jax.__version_info__ < (0, 11):
        assert shifts(lambda words: jax.lax.optimization_barrier(scrambled(words))) == 2


@pytest.mark.parametrize("size", [1, 2, 3, MAX_UNROLLED, MAX_UNROLLED + 1, 37, 64, 100])
def test_folded(size):
    values = np.random.default_rng(size).permutation(size).astype(np.int32) - 3
    everything = jnp.asarray(values)
    for operation, expected in ((jnp.minimum, values.min()), (jnp.maximum, values.max()), (jnp.add, values.sum())):
        assert int(tree_reduce(operation, everything)) == expected
    columns = jnp.stack([everything, -everything], 1)  # elements may be arrays
    np.testing.assert_array_equal(tree_reduce(jnp.maximum, columns), [values.max(), -values.min()])


def carried(values):
    """Runs a loop with lanes last in its state."""
    return jax.lax.fori_loop(0, 3, lambda _, state: lanes_last(state + tree_reduce(jnp.add, state)), values)


def test_lanes_last():
    """Checks the same values, under vmaps of vmaps, too, and without any."""
    values = jnp.arange(60.0).reshape(3, 5, 4)
    expected = jnp.stack([jnp.stack([carried(lane) for lane in lanes]) for lanes in values])
    np.testing.assert_array_equal(jax.vmap(jax.vmap(carried))(values), expected)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda both: lanes_last(both[0]), 1))(values), values[0])
    np.testing.assert_array_equal(jax.vmap(lambda x: lanes_last(values[0]) + x)(jnp.zeros(2))[1], values[0])
    assert lanes_last(values[0, 0, 0]) == values[0, 0, 0]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on CPU")
def test_lanes_are_the_fast_axis_of_what_a_loop_carries():
    def text(size):
        shape = jax.ShapeDtypeStruct((64, size), jnp.float32)
        return str(jax.jit(jax.vmap(carried)).lower(shape).compile().as_text())

    assert "f32[64,5]{0,1}) while(" in text(5)
    assert "f32[64,17]{1,0}) while(" in text(17)  # many: as they are


def test_all_lanes_at_once():
    """Checks vmap, also a nested one, with some arguments that all lanes share."""
    seen = []

    def shares(inputs):  # lanes last
        values, total = inputs
        seen.append(values.shape)
        return values / total[None], total + 1

    one = across_lanes(shares)
    values, total = jnp.arange(24.0).reshape(2, 3, 4), jnp.asarray(7.0)

    def check(found, expected):
        chex.assert_trees_all_close(found, (expected / 7, np.full(expected.shape[:-1], 8.0)), rtol=1e-6)

    check(one((values[0, 0], total)), np.asarray(values[0, 0]))
    check(jax.vmap(lambda v: one((v, total)))(values[0]), np.asarray(values[0]))
    check(jax.vmap(jax.vmap(lambda v: one((v, total))))(values), np.asarray(values))
    assert {(4, 1), (4, 3), (4, 6)} <= set(seen)
    by_both = jax.vmap(jax.vmap(lambda v, t: one((v, t)), (0, None)), (0, 0))(values, jnp.stack([total, total]))
    check(by_both, np.asarray(values))


def test_lanes_that_leave_a_loop_as_one():
    """Checks vmap, also a nested one: every lane counts as far as the slowest."""

    def count(needed):
        return jax.lax.while_loop(lambda n: any_lane(n < needed), lambda n: n + 1, jnp.int32(0))

    needed = jnp.array([[3, 1, 0], [2, 5, 4]], jnp.int32)
    assert count(needed[0, 1]) == 1
    assert jax.vmap(count)(needed[0]).tolist() == [3, 3, 3]
    assert jax.jit(jax.vmap(jax.vmap(count)))(needed).tolist() == [[5, 5, 5], [5, 5, 5]]
    assert jax.vmap(count, axis_size=2, in_axes=None)(needed[1, 2]).tolist() == [4, 4]  # shared by the lanes


@pytest.mark.parametrize("function", [avoid_xla_tiling, lanes_slow])
def test_how_a_kernel_is_compiled_changes_no_value(function):
    for values in (
        jnp.asarray([1.5, -0.0, jnp.nan, -jnp.inf, 1e-42], jnp.float32),
        jnp.asarray([3, -(2**31)], jnp.int32),
        jnp.asarray([True, False]),
    ):
        for found in (function(values), jax.jit(function)(values), jax.vmap(function)(values[None])[0]):
            assert found.dtype == values.dtype
            np.testing.assert_array_equal(np.asarray(found).tobytes(), np.asarray(values).tobytes())


def test_what_is_computed_in_vectors_has_a_gradient():
    assert jax.grad(lambda x: avoid_xla_tiling(x * x))(jnp.float32(3)) == 6


@pytest.mark.parametrize("count", [1, 2, 16, 17, 31, 40])
def test_terms_are_combined_in_the_order_of_an_array(count):
    values = jax.random.normal(jax.random.key(11), (count, 3))
    np.testing.assert_array_equal(pairwise_reduce(jnp.add, list(values)), tree_reduce(jnp.add, values))
