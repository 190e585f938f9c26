"""One index with given odds: exact frequencies, and never an index of weight zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.random import fine_index, index_from_uniform, weighted_index
from jaxdp.random.choice import fine_entry

DRAWS = 100_000
# Compiled once for each number of weights.
INDICES = jax.jit(jax.vmap(weighted_index, (0, None)))
INDICES_AT = jax.jit(jax.vmap(index_from_uniform, (0, None)))


def draws(weights, seed=0):
    return np.asarray(INDICES(jax.random.split(jax.random.key(seed), DRAWS), weights))


def p_value(weights, indices):
    weights = np.asarray(weights, np.float64)
    expected = DRAWS * weights / weights.sum()
    counts = np.bincount(indices, minlength=len(weights))
    assert len(counts) == len(weights)
    likely = expected > 0
    assert counts[~likely].sum() == 0
    return stats.chisquare(counts[likely], expected[likely]).pvalue if likely.sum() > 1 else 1.0


@pytest.mark.precision
@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 37, 64, 300])
def test_frequencies(size):
    weights = jnp.asarray(np.random.default_rng(size).exponential(size=size) ** 2, float)
    assert p_value(weights, draws(weights)) > 1e-4


@pytest.mark.parametrize("size", [2, 16, 17, 300])
def test_finer_draws_are_the_same_but_for_rounding(size):
    weights = jnp.asarray(np.random.default_rng(size).exponential(size=size) ** 2, jnp.float32)
    keys = jax.random.split(jax.random.key(1), DRAWS // 10)
    fine, coarse = (
        np.asarray(jax.jit(jax.vmap(draw, (0, None)))(keys, weights)) for draw in (fine_index, weighted_index)
    )
    assert fine.dtype == np.int32
    assert np.count_nonzero(fine != coarse) <= 3
    assert np.count_nonzero(fine != np.roll(coarse, 1)) > 3


@pytest.mark.parametrize("shape", [(1, 5), (6, 10), (3, 20)])
def test_entries_are_drawn_by_their_weights(shape):
    weights = np.random.default_rng(sum(shape)).exponential(size=shape).astype(np.float32)
    weights[0, 1] = 0
    keys = jax.random.split(jax.random.key(2), DRAWS)
    row, column = (np.asarray(index) for index in jax.jit(jax.vmap(fine_entry, (0, None)))(keys, jnp.asarray(weights)))
    assert row.dtype == column.dtype == np.int32
    assert p_value(weights.ravel(), row * shape[1] + column) > 1e-4
    wrong = weights.copy()
    wrong[:, 2:4] = wrong[:, 3:1:-1]
    assert p_value(wrong.ravel(), row * shape[1] + column) < 1e-4


@pytest.mark.parametrize("size", [3, 40])
def test_an_unlikely_index_is_drawn_by_the_words_that_it_has(size):
    """Draws an index of probability 2^-40: possible with words of 53 bits, and never with words of 23."""
    weights = np.zeros(size, np.float32)
    weights[:3] = [0.5, 2.0**-40, 0.5]
    finely = in_64_bits(lambda word: int(index_from_uniform(jnp.float64(word), jnp.asarray(weights, jnp.float64))))
    start = 0.5 / (1 + 2.0**-40)
    assert [finely(start + step) for step in (-(2.0**-45), 2.0**-42, 2.0**-40 + 2.0**-45)] == [0, 1, 2]
    words = (2**22 + np.arange(-3, 4)).astype(np.float32) * np.float32(2.0**-23)
    assert 1 not in np.asarray(INDICES_AT(jnp.asarray(words), jnp.asarray(weights)))


def test_wrong_odds_are_seen():
    weights = jnp.asarray(np.random.default_rng(37).exponential(size=37), float)
    assert p_value(weights.at[20].mul(1.2), draws(weights)) < 1e-4


def test_an_index_of_weight_zero_is_never_drawn():
    weights = np.zeros(37)
    weights[[3, 19, 20]] = [1.0, 2.0, 1e-30]
    assert p_value(jnp.asarray(weights, float), draws(jnp.asarray(weights, float))) > 1e-4
    for only in (0, 15, 16, 36):
        assert (draws(jnp.zeros(37).at[only].set(1e-20)) == only).all()


def test_bad_weights():
    for weights in (jnp.zeros((2, 2)), jnp.zeros(0), jnp.arange(3)):
        with pytest.raises(ValueError, match="weights must be a vector of floats"):
            weighted_index(jax.random.key(0), weights)
        with pytest.raises(ValueError, match="weights must be a vector of floats"):
            fine_index(jax.random.key(0), weights)
    rules = {(-1, 2): "got 1 of 2 that", (0, 1e-40): "1.18e-38, got only"}
    for entries, rule in {**rules, (np.nan, 1): "got 1 of 2"}.items():
        for draw in (weighted_index, fine_index):
            with pytest.raises(ValueError, match=f"weights must (be|have) .*{rule}"):
                draw(jax.random.key(0), jnp.array(entries, jnp.float32))
    with pytest.raises(ValueError, match=r"weights must have a sum <= 1.7e\+38 in float32, got a larger one"):
        weighted_index(jax.random.key(0), jnp.array([2e38, 2e38], jnp.float32))
    assert fine_index(jax.random.key(0), jnp.array([1e-30, 2e38, 2e38], jnp.float32)) in (1, 2)


@pytest.mark.precision
@pytest.mark.parametrize("size", [1025, 1040, 5000, 40_003])
def test_many_weights_are_drawn_from_in_their_order(size):
    """Compares with sums in float64, in the order of columns.

    A sum within rounding of the threshold may go either way.
    """
    generator = np.random.default_rng(size)
    weights = generator.exponential(size=size) * (generator.random(size) < 0.1)
    weights[[0, size - 1]] = size / 10
    uniforms = np.append(generator.random(500), 0.0).astype(np.float32)
    found = np.asarray(INDICES_AT(jnp.asarray(uniforms), jnp.asarray(weights, jnp.float32)))
    order = np.concatenate([np.arange(column, size, 16) for column in range(16)])
    ends = np.cumsum(weights[order])
    places = np.argsort(order)[found]
    threshold, slack = uniforms * ends[-1], 1e-4 * ends[-1]
    assert (weights[found] > 0).all()
    assert (ends[places] > threshold - slack).all()
    assert (ends[places] - weights[found] <= threshold + slack).all()
    planted = np.roll(places, 1)
    assert not (ends[planted] > threshold - slack).all()
    extreme = jnp.resize(jnp.asarray([0.0, 0.5, 1 - 2.0**-23], jnp.float32), uniforms.shape)
    for only in (0, 17, size - 1):
        single = jnp.zeros(size, jnp.float32).at[only].set(1e-20)
        assert (np.asarray(INDICES_AT(extreme, single)) == only).all()


def test_programs_do_not_grow_with_the_weights():
    def lines(size):
        weights = jax.ShapeDtypeStruct((4, size), jnp.float32)
        uniforms = jax.ShapeDtypeStruct((4,), jnp.float32)
        return jax.jit(jax.vmap(index_from_uniform)).lower(uniforms, weights).as_text().count("\n")

    # One more level of groups takes about 150 lines, where a line for every 16 weights would take 60,000.
    assert lines(10**6) < lines(10**4) + 400 < 3000
