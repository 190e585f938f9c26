"""Words of simulated worlds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.random.own_words import GOLDEN, mixed
from jaxdp.random.world_words import world_normals, world_uniforms, world_words

ROUNDS, SIZE = 4000, 24


def round_keys(make=jax.random.key):
    return jax.vmap(lambda t: jax.random.fold_in(make(7), t))(jnp.arange(ROUNDS))


def one_word_only(key, shape):
    """Planted: the last word of the key does not enter."""
    return mixed(jax.random.key_data(key)[-2] + jax.lax.iota(jnp.uint32, shape) * GOLDEN)


def not_mixed(key, shape):
    """Planted: equidistant numbers, as they are."""
    return jax.random.key_data(key)[-2] + jax.lax.iota(jnp.uint32, shape) * GOLDEN


def weakly_mixed(key, shape):
    """Planted: a mixer without its second multiplication, whose low bits stay alike."""
    word = not_mixed(key, shape) * np.uint32(0x85EBCA6B)
    return (word ^ (word >> 13)) + jax.random.key_data(key)[-1]


def p_value(words, keys=None):
    """Whether bits are fair and independent, within a key and from key to key, and bytes uniform, also in pairs."""
    keys = round_keys() if keys is None else keys
    found = np.asarray(jax.jit(jax.vmap(lambda key: words(key, SIZE)))(keys))
    bits = (found[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    signs = 2.0 * bits.reshape(len(found), -1) - 1
    wide = signs[:, :: 3 * 8 + 1][:, :96], signs[:, : 3 * 32]  # bits of many places, and all of the first three
    scores = [signs.mean(0) * np.sqrt(len(signs))]
    for each in wide:
        scores += [(each.T @ each / np.sqrt(len(each)))[np.triu_indices(each.shape[1], 1)]]
        scores += [(each[:-1].T @ each[1:] / np.sqrt(len(each) - 1)).ravel()]
    largest = np.array([stats.kstest(score, "norm").pvalue for score in scores])
    tail = [2 * stats.norm.sf(np.abs(score).max()) * len(score) for score in scores]
    tests = [*largest, *tail]
    for shift in (0, 8, 24):
        piece = (found >> shift) & 15
        for first, second in ((piece[:, :-1], piece[:, 1:]), (piece[:-1], piece[1:])):
            counts = np.bincount((first * 16 + second).ravel()[::2], minlength=256)
            tests.append(stats.chisquare(counts).pvalue)
    return min(tests)


@pytest.mark.parametrize("make", [jax.random.key, lambda seed: jax.random.key(seed, impl="rbg")])
def test_words_are_fair_and_independent(make):
    assert p_value(world_words, round_keys(make)) > 1e-6


def test_many_lanes_of_one_round():
    keys = jax.vmap(lambda key: jax.random.fold_in(key, 5))(jax.random.split(jaxdp.random.key(3), ROUNDS))
    assert p_value(world_words, keys) > 1e-6


@pytest.mark.parametrize("wrong", [not_mixed, weakly_mixed])
def test_bad_mixers_are_found(wrong):
    assert p_value(wrong) < 1e-9


def test_either_word_of_the_key_matters():
    data = np.array(jax.random.key_data(jax.random.key(5)))
    for word in (-1, -2):
        other = data.copy()
        other[word] ^= 1
        first, second = (
            np.asarray(words(jax.random.wrap_key_data(jnp.asarray(each)), 1000))
            for each, words in ((data, world_words), (other, world_words))
        )
        assert abs(np.bitwise_count(first ^ second).mean() - 16) < 5 * np.sqrt(8 / 1000)
    alike = [one_word_only(jax.random.wrap_key_data(jnp.asarray([3, last], np.uint32)), 9) for last in (1, 2)]
    np.testing.assert_array_equal(*alike)  # what the planted one does


@pytest.mark.parametrize("law", ["uniform", "norm"])
def test_variates_follow_their_law(law):
    draw = world_uniforms if law == "uniform" else world_normals
    found = np.asarray(jax.jit(jax.vmap(lambda key: draw(key, (3, 7))))(round_keys()), float)
    assert found.shape == (ROUNDS, 3, 7)
    assert stats.kstest(found.ravel(), law).pvalue > 1e-6
    assert stats.kstest(found.ravel() * 1.05, law).pvalue < 1e-6
    flat = found.reshape(ROUNDS, -1)
    apart = np.corrcoef(flat.T)[np.triu_indices(21, 1)] * np.sqrt(ROUNDS)
    assert np.abs(apart).max() < 5
    if law == "uniform":
        assert 0 <= found.min() <= found.max() < 1


def test_short_floats_are_refused():
    for draw in (world_uniforms, world_normals):
        with pytest.raises(ValueError, match="dtype must be float32 or float64, got float16"):
            draw(jax.random.key(0), 3, jnp.float16)
