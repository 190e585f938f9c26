"""Words of simulated worlds: uniform, and independent within a round's key and between the keys of rounds."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import stats

import jaxdp
from jaxdp.random import simulation_bits
from jaxdp.random._simulation_bits import words_of, world_normals, world_uniforms
from jaxdp.random.key_bits import GOLDEN, mix

KEYS, SIZE = 2**17, 80  # 10^7 words
FEW = 2**14  # keys, by which bad words are seen
LIMIT = 5.5  # standard deviations, of the largest of some thousands


def unmixed(data, index):
    return data[1] ^ (data[0] + index * GOLDEN)


def half_mixed(data, index):
    word = data[1] ^ (data[0] + index * GOLDEN)
    return (word ^ lax.shift_right_logical(word, np.uint32(16))) * np.uint32(0x85EBCA6B)


def blind_to_half_the_key(data, index):
    return mix(mix(data[0] + index * GOLDEN)) & np.uint32(0xFFFFFFFE) | data[1] & np.uint32(1)


def drawn(function, keys):
    """Returns [keys, SIZE] uint32, for the keys of a lane's rounds as a simulation makes them."""
    root, index = jax.random.key(7), jnp.arange(SIZE, dtype=jnp.uint32)
    data = jax.random.key_data(jax.vmap(lambda t: jax.random.fold_in(root, t))(jnp.arange(keys, dtype=jnp.uint32)))
    return np.asarray(jax.jit(jax.vmap(lambda each: function(each, index)))(data))


def excess(cells, num_cells):
    """Returns by how many standard deviations chi-square exceeds its mean, if all cells are equally likely."""
    counts = np.bincount(cells.ravel(), minlength=num_cells)
    expected = cells.size / num_cells
    return (np.sum((counts - expected) ** 2) / expected - (num_cells - 1)) / np.sqrt(2 * (num_cells - 1))


def digits(words, shift, bits):
    return (words >> np.uint32(shift) & np.uint32(2**bits - 1)).astype(np.int64)


def pairs(words):
    """Pairs words of one key, of neighbouring keys at one position, and across."""
    for apart in (1, 2, 3, 8, 16):
        yield words[:, apart:], words[:, :-apart]
    yield words[1:], words[:-1]
    yield words[1:, 1:], words[:-1, :-1]
    yield words[1:, :-1], words[:-1, 1:]


def largest_departure(words):
    """Returns the largest departure from joint distributions of digits, of bits and of the words as numbers."""
    found = [excess(digits(words, shift, 16), 2**16) for shift in (0, 8, 16)]
    for one, other in pairs(words):
        for shift, shifted in ((24, 24), (0, 0), (24, 0), (11, 20)):
            found.append(excess(digits(one, shift, 8) * 256 + digits(other, shifted, 8), 2**16))
        numbers = [each.ravel() / 2.0**32 - 0.5 for each in (one, other)]
        found.append(12 * np.mean(numbers[0] * numbers[1]) * np.sqrt(one.size))
    three = [words[:, place : place + SIZE - 2] for place in range(3)]
    for shift in (27, 0, 14):
        cells = sum(digits(each, shift, 5) << (5 * place) for place, each in enumerate(three))
        found.append(excess(cells, 2**15))
    # Bits of four places of a key, and of the same place of the next key, against one another.
    places = [words[:-1, 0], words[:-1, 1], words[:-1, 9], words[:-1, 64], words[1:, 0]]
    bits = np.concatenate([(each[:, None] >> np.arange(32, dtype=np.uint32) & 1) for each in places], axis=1)
    centred = (2.0 * bits - 1).astype(np.float32)
    joint = centred.T @ centred / np.sqrt(len(centred))
    found.extend((joint[np.triu_indices(len(joint), 1)]).tolist())
    return np.abs(found).max()


@pytest.mark.parametrize("keys", [FEW, KEYS])
def test_words_are_uniform_and_independent(keys):
    assert largest_departure(drawn(words_of, keys)) < LIMIT


@pytest.mark.parametrize("function", [unmixed, half_mixed, blind_to_half_the_key])
def test_words_that_are_mixed_badly_are_seen(function):
    assert largest_departure(drawn(function, FEW)) > 2 * LIMIT


def test_words_of_seeds_that_are_counted_up_do_for_a_first_look():
    data = jax.random.key_data(jax.vmap(jax.random.key)(jnp.arange(KEYS, dtype=jnp.uint32)))
    words = np.asarray(jax.jit(jax.vmap(lambda each: words_of(each, jnp.arange(4, dtype=jnp.uint32))))(data))
    for place, shift in itertools.product(range(4), (0, 16)):
        assert abs(excess(digits(words[:, place], shift, 8), 256)) < LIMIT
        cells = digits(words[1:, place], shift, 6) * 64 + digits(words[:-1, place], shift, 6)
        assert abs(excess(cells, 64 * 64)) < LIMIT


def test_a_key_gives_its_words():
    key = jax.random.fold_in(jax.random.key(3), 5)
    words = np.asarray(simulation_bits(key, 9))
    assert words.dtype == np.uint32
    np.testing.assert_array_equal(words, np.asarray(simulation_bits(jaxdp.random.fast_key(key), 40))[:9])
    np.testing.assert_array_equal(
        words, np.asarray(words_of(jax.random.key_data(key), jnp.arange(9, dtype=jnp.uint32)))
    )
    np.testing.assert_array_equal(simulation_bits(jax.random.key(1, impl="rbg"), 3).shape, (3,))


@pytest.mark.parametrize("distribution", ["uniform", "norm"])
def test_variates_follow_their_distribution(distribution):
    root, rounds = jax.random.key(7), 4000
    keys = jax.vmap(lambda t: jax.random.fold_in(root, t))(jnp.arange(rounds, dtype=jnp.uint32))
    draw = world_uniforms if distribution == "uniform" else world_normals
    found = np.asarray(jax.jit(jax.vmap(lambda key: draw(key, (3, 7))))(keys), float)
    assert found.shape == (rounds, 3, 7)
    assert stats.kstest(found.ravel(), distribution).pvalue > 1e-6
    assert stats.kstest(found.ravel() * 1.05, distribution).pvalue < 1e-6
    flat = found.reshape(rounds, -1)
    apart = np.corrcoef(flat.T)[np.triu_indices(21, 1)] * np.sqrt(rounds)
    assert np.abs(apart).max() < 5
    if distribution == "uniform":
        assert 0 <= found.min() <= found.max() < 1


def test_short_floats_are_refused():
    for draw in (world_uniforms, world_normals):
        with pytest.raises(ValueError, match="dtype must be float32 or float64, got float16"):
            draw(jax.random.key(0), 3, jnp.float16)
