"""The unrolled Threefry gives JAX's own values, word for word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.random import fast, key
from jaxdp.random.threefry import hash_words

MILLION = 10**6
SAMPLERS = {
    "bits8": lambda k: jax.random.bits(k, (1001,), jnp.uint8),
    "bits16": lambda k: jax.random.bits(k, (7, 11), jnp.uint16),
    "bits32": lambda k: jax.random.bits(k, (3, 5, 7)),
    "scalar": jax.random.bits,
    "empty": lambda k: jax.random.bits(k, (0, 3)),
    "split": lambda k: jax.random.key_data(jax.random.split(k, (5, 3))),
    "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 2**31 + 7)),
    "normal": lambda k: jax.random.normal(k, (31,)),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (31,)),
    "laplace": lambda k: jax.random.laplace(k, (31,)),
    "randint": lambda k: jax.random.randint(k, (31,), 0, 1000),
    "permutation": lambda k: jax.random.permutation(k, 31),
    "gamma": lambda k: jax.random.gamma(k, 0.3, (5,)),
}


def builtin(seed):
    return jax.random.key(seed, impl="threefry2x32")


def same(ours, theirs):
    """Words and decisions are equal; floats computed from them may be fused otherwise, and differ in the last bits."""
    if jnp.issubdtype(ours.dtype, jnp.floating):
        np.testing.assert_allclose(ours, theirs, rtol=1000 * float(jnp.finfo(ours.dtype).eps))
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_agree_eagerly_under_jit_and_under_vmap(name):
    sampler = SAMPLERS[name]
    for seed in (0, 2**31 - 1):
        same(jax.jit(sampler)(key(seed)), jax.jit(sampler)(builtin(seed)))
        keys = jax.random.split(builtin(seed), 3)
        same(jax.jit(jax.vmap(sampler))(fast(keys)), jax.jit(jax.vmap(sampler))(keys))
    same(sampler(key(1)), sampler(builtin(1)))


def test_a_million_words_agree():
    draw = jax.jit(lambda k: jax.random.bits(k, (MILLION,)))
    np.testing.assert_array_equal(draw(key(42)), draw(builtin(42)))


def test_a_million_words_of_many_keys_agree():
    keys = jax.random.split(builtin(42), 250)
    draw = jax.jit(jax.vmap(lambda k: jax.random.bits(k, (MILLION // 250,))))
    np.testing.assert_array_equal(draw(fast(keys)), draw(keys))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 25, 26, 33, 96, 1001])
def test_every_way_to_shape_the_hashes_agrees(size):
    """Sizes on both sides of those at which the words or keys are computed in another arrangement."""

    def draw(k):
        return jax.random.bits(k, (size,)), jax.random.key_data(jax.random.split(k, size))

    keys = jax.random.split(builtin(5), 3)
    for ours, theirs in ((key(5), builtin(5)), (fast(keys), keys)):
        mapped = jax.jit(jax.vmap(draw) if ours.ndim else draw)
        for words, expected in zip(mapped(ours), mapped(theirs), strict=True):
            np.testing.assert_array_equal(words, expected)


def test_a_loop_that_folds_in_and_splits_agrees():
    def lane(k):
        def step(t, words):
            first, second = jax.random.split(jax.random.fold_in(k, t))
            return words ^ jax.random.bits(first, (64,), jnp.uint32) ^ jax.random.bits(second, (), jnp.uint32)

        return jax.lax.fori_loop(0, 5, step, jnp.zeros(64, jnp.uint32))

    keys = jax.random.split(builtin(9), 17)
    run = jax.jit(jax.vmap(lane))
    np.testing.assert_array_equal(run(fast(keys)), run(keys))


def operations(function):
    analysis = jax.jit(function).lower(key(0)).compile().cost_analysis()
    assert analysis is not None
    return analysis["flops"]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on CPU the words are stored")
@pytest.mark.parametrize("size", [5, 4096])
def test_words_with_two_consumers_are_hashed_once(size):
    def once(k):
        return jax.random.uniform(k, (size,))

    def twice(k):
        uniform = once(k)
        return uniform * 2, uniform - 1

    assert operations(twice) < 1.3 * operations(once)


def test_other_platforms_may_fuse_the_words():
    trace = jax.jit(lambda k: jax.random.uniform(jax.random.split(jax.random.fold_in(k, 3))[0], (4096,))).trace(key(0))
    assert "inlineable" in trace.lower(lowering_platforms=("cpu",)).as_text()
    assert "inlineable" not in trace.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.skipif(not jax.config.read("jax_enable_x64"), reason="64-bit words need x64")
@pytest.mark.parametrize("size", [33, 1001])
def test_64_bit_words_agree(size):
    np.testing.assert_array_equal(
        jax.random.bits(key(3), (size,), jnp.uint64), jax.random.bits(builtin(3), (size,), jnp.uint64)
    )


def test_known_answers():
    """Random123's kat_vectors for threefry2x32, 20 rounds."""
    ones, pi = np.uint32(0xFFFFFFFF), [np.uint32(w) for w in (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)]
    zero = np.uint32(0)
    for words, expected in (
        ((zero, zero, zero, zero), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones, ones, ones), (0x1CB996FC, 0xBB002BE7)),
        (pi, (0xC4923A9C, 0x483DF7A0)),
    ):
        hashed = hash_words(*(jnp.asarray(w) for w in words))
        assert tuple(int(word) for word in hashed) == expected


def test_fast_leaves_other_implementations_alone():
    other = jax.random.key(0, impl="rbg")
    assert fast(other) is other
    assert jax.random.key_impl(fast(builtin(0))) == jax.random.key_impl(key(0))
