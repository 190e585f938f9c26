"""The distribution of integer noise, computed from the program itself.

Noise is monotone in the word that it is made from. So where it passes from one integer to the next is found by
bisection among all words, and the words between two such places are the integer's probability.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from jaxdp.mechanisms import _integer_noise as noise
from jaxdp.mechanisms._grid import laplace_grid
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits

WORDS = 2**63  # one bit of 64 is the sign


@in_64_bits
def digits_of(words: np.ndarray, scale: float, *, digit: int, dtype=jnp.float64) -> np.ndarray:
    """Returns the first or the second digit of noise of this scale, from words [n], Python integers below 2^63."""
    halves = [[word >> 31, (word & (2**31 - 1)) << 1] for word in words]
    pairs = jnp.asarray(np.asarray(halves, np.uint32).view(np.complex64)[:, 0])
    if dtype != jnp.float64:  # the planted mistake: one float32 logarithm
        uniform = noise._uniform(pairs).astype(dtype)
        return np.asarray(jnp.floor(-jnp.log(uniform) * scale).astype(jnp.float64))
    if scale <= noise.ONE_DIGIT:
        return np.asarray(noise.one_digit(pairs, jnp.float64(scale)))
    return np.asarray(noise.two_digits(pairs, pairs, jnp.float64(scale))[digit])


@in_64_bits
def base_of(scale: float) -> float:
    if scale <= noise.ONE_DIGIT:
        return 1.0
    none = jnp.zeros(1, jnp.complex64)
    return float(noise.two_digits(none, none, jnp.float64(scale))[2])


def words_at_least(values: np.ndarray, scale: float, *, digit: int, dtype=jnp.float64) -> list[int]:
    """Counts the words that give a digit of at least each value: the larger a word, the smaller the variate."""
    is_rising = digit == 1  # the second digit rises with its word
    low, high = [0] * len(values), [WORDS] * len(values)
    while any(left < right for left, right in zip(low, high, strict=True)):
        middle = [min((left + right) // 2, WORDS - 1) for left, right in zip(low, high, strict=True)]
        reached = digits_of(np.asarray(middle, object), scale, digit=digit, dtype=dtype) >= values
        for place, is_reached in enumerate(reached if not is_rising else ~reached):
            if low[place] < high[place]:
                low[place], high[place] = (
                    (middle[place] + 1, high[place]) if is_reached else (low[place], middle[place])
                )
    return [WORDS - count for count in low] if is_rising else low


def probabilities(values: np.ndarray, scale: float, *, digit: int, dtype=jnp.float64) -> np.ndarray:
    """Returns P(digit = value), float64."""
    above = words_at_least(values, scale, digit=digit, dtype=dtype)
    beyond = words_at_least(values + 1, scale, digit=digit, dtype=dtype)
    return np.asarray([(left - right) / WORDS for left, right in zip(above, beyond, strict=True)])


def excess(scale: float, shift: int, epsilon: float, *, dtype=jnp.float64, count: int = 60) -> float:
    """Estimates delta at epsilon, the sum of (P(k) - e^epsilon P(k + shift))+ over k >= 0.

    Half of the k are drawn by their distribution, and half uniformly: far out, words are few for an integer.
    """
    random = np.random.default_rng(1)
    far = 43 * scale
    numbers = np.floor(np.concatenate([random.exponential(scale, count // 2), random.uniform(0, far, count // 2)]))
    drawn = (np.exp(-numbers / scale) / scale + 1 / far) / 2
    base = base_of(scale) if dtype == jnp.float64 else 1.0
    both = []
    for values in (numbers, numbers + shift):
        first = probabilities(values // base, scale, digit=0, dtype=dtype)
        both.append(first * (probabilities(values % base, scale, digit=1) if base > 1 else 1.0))
    return float((np.maximum(0.0, both[0] - np.exp(epsilon) * both[1]) / drawn).mean())


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 1e-6])
def test_laplace_noise_is_private_to_a_billionth(epsilon, size):
    with jax.enable_x64(True):
        grid = laplace_grid(fixed_point.zero(size), jnp.float64(1.0), jnp.float64(epsilon))
        scale, shift = float(grid.scale), round(1 / float(grid.step))
    assert (scale > noise.ONE_DIGIT) == (epsilon == 1e-6 or (size > 1 and epsilon <= 1))
    assert excess(scale, shift, epsilon) < 1e-9


def test_noise_of_two_lanes_is_what_each_draws_alone():
    """Draws in two lanes: one needs two digits, the other one does not."""
    with jax.enable_x64(True):
        keys, scales = jax.random.split(jax.random.key(4), 2), jnp.array([2.0**16, 2.0**30])
        draw = jax.jit(lambda key, scale: noise.laplace_of(lambda noise, scale: noise, key, (3,), scale))
        both = jax.vmap(draw)(keys, scales)
        assert np.array_equal(both, jnp.stack([draw(*each) for each in zip(keys, scales, strict=True)]))


@pytest.mark.parametrize("scale", [0.25, 1.0, 2.0**30])
def test_geometric_noise(scale):
    """Checks the noise of two lanes, of this scale and of 3, against the distribution's moments."""

    def draw(key, scale):
        return noise.geometric_of(lambda noise, scale: noise, key, (2,), scale)

    draw_many = jax.vmap(draw, (0, None))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(6), 10_000)
        both = np.asarray(jax.vmap(draw_many, (None, 0))(keys, jnp.asarray([scale, 3.0])))
        alone = np.asarray(draw_many(keys, jnp.float64(3.0)))
    assert np.array_equal(both[1], alone)  # whatever scale another lane has
    for drawn, each in zip(both, (scale, 3.0), strict=True):
        assert np.array_equal(drawn, np.rint(drawn))
        variance = 0.5 / np.sinh(0.5 / each) ** 2
        fourth = variance + 6 * variance**2  # the fourth moment
        error = 5 * np.sqrt((fourth - variance**2) / drawn.size)
        assert abs(drawn.mean()) < 5 * np.sqrt(variance / drawn.size)
        assert abs(np.square(drawn).mean() - variance) < error
        assert abs(np.square(drawn * 1.2).mean() - variance) > error  # planted
        assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 5 / np.sqrt(len(drawn))


def test_logarithm():
    values = np.concatenate([np.random.default_rng(0).random(10_000), 2.0 ** -np.arange(1, 64), [1.0, 50.0]])
    found = in_64_bits(lambda: np.asarray(noise.log(jnp.asarray(values))))()
    np.testing.assert_allclose(found, np.log(values), rtol=2**-51, atol=2**-52)


def test_one_logarithm_in_float32_is_not():
    assert excess(2.0**21, 2**21, 1.0, dtype=jnp.float32) > 1e-6


def drawn_of(draw, key: jax.Array, scale: float) -> jax.Array:
    return draw(lambda noise, scale: noise / scale, key, (4,), jnp.float64(scale))


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (lambda key: drawn_of(noise.laplace_of, key, 2.0**16.3), laplace),
        (lambda key: drawn_of(noise.laplace_of, key, 2.0**23.1), laplace),
        (lambda key: drawn_of(noise.laplace_of, key, 2.0**46.9), laplace),
        (lambda key: drawn_of(noise.normal_of, key, 2.0**24.7), norm),
    ],
)
def test_noise_has_its_distribution(draw, distribution):
    keys = jax.random.split(jax.random.key(3), 5000)
    drawn = in_64_bits(lambda: np.asarray(jax.vmap(draw)(keys)))()
    assert kstest(drawn.ravel(), distribution.cdf).pvalue > 1e-3
    assert kstest(drawn.ravel() * 1.1, distribution.cdf).pvalue < 1e-3
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 5 / np.sqrt(len(drawn))


def test_values_of_a_grid_meet_the_same_outputs():
    """Releases numbers of one grid for a sum and a neighbour that is off by .3; their floats would differ."""
    keys = jax.random.split(jax.random.key(0), 2000)
    with jax.enable_x64(True):
        grid = laplace_grid(jnp.zeros(1, jnp.float32), jnp.float64(1.0), jnp.float64(1.0))
        steps = jax.vmap(lambda key: noise.laplace_of(lambda noise, scale: noise, key, (1,), grid.drawn))(keys)
        assert np.array_equal(steps, np.round(steps))
        assert len(np.unique(np.asarray(steps) % 1024)) > 500  # no number of the grid is left out
