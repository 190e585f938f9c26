"""Sums in fixed point that need more digits than a float64: one step more in the sum is one step less in the noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import _grid, laplace, noisy_leads, noisy_min
from jaxdp.mechanisms.continual_counting import steps
from jaxdp.numerics.fixed_point import UNITS, Sum, in_64_bits, to_float

pytestmark = pytest.mark.precision

INTEGER = jnp.result_type(int)
LIMIT = 2**31 if jnp.int32 == INTEGER else 2**53
WHOLES = sorted({sign * min(whole, LIMIT - 64) for whole in (2**24, 2**33, 2**40, 2**53) for sign in (1, -1)})
STEPS = [2.0**-16, 2.0**-3, 1.0, 8.0]


def to_sum(units) -> Sum:
    """Converts Python integers, numbers of units, to sums."""
    return Sum(
        *(jnp.asarray(np.asarray(word), INTEGER) for word in ([u // UNITS for u in units], [u % UNITS for u in units]))
    )


def neighbours_and_noise(units: int, step: float) -> tuple[list[int], np.ndarray]:
    """Returns seven sums, in units, that are one step apart, and noise, in steps, that makes them equal."""
    more = np.arange(-3, 4)
    size = int(step * UNITS)
    return [(units // size + int(k)) * size for k in more], -more.astype(np.float64)


@in_64_bits
def release(exact, noise, step):
    grid = _grid.Grid(*(jnp.float64(number) for number in (step, 1 / step, 1.0, 1.0)))
    return _grid.noisy_values(exact, jnp.asarray(noise), grid, jnp.float64)


@in_64_bits
def release_of_floats(exact, noise, step):
    return (jnp.round(to_float(exact, jnp.float64) / step) + noise) * step


def laplace_of_floats(key, exact, epsilon, *, l1_sensitivity):
    return laplace(key, to_float(exact, jnp.float64), epsilon, l1_sensitivity=l1_sensitivity)


@in_64_bits
def count(exact, noise, step):
    grid = _grid.Grid(*(jnp.float64(number) for number in (step, 1 / step, 1.0, 1.0)))
    return steps.with_error(exact, jnp.asarray(noise), grid, jnp.dtype(jnp.float64))


@in_64_bits
def lead(exact, noise, step):
    """Returns the leads of each sum with noise and of the middle sum without noise."""
    grid = _grid.Grid(*(jnp.float64(number) for number in (step, 1 / step, 1.0, 1.0)))
    size = len(noise)
    pairs = jax.tree.map(lambda word: jnp.stack([word, jnp.full(size, word[size // 2])], -1), exact)
    noise = jnp.stack([jnp.asarray(noise), jnp.zeros(size)], -1)
    return _grid.noisy_leads(pairs, noise, grid, None, jnp.dtype(jnp.float64))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("add", [release, count, lead])
def test_a_release_depends_on_sum_and_noise_together(add, step):
    wholes = [whole for whole in WHOLES if add is not lead or abs(whole) < 2.0**60 * step]  # leads beyond are clipped
    for whole in wholes:
        for part in (0, 1, UNITS // 2 + 1, UNITS - 1):
            units, noise = neighbours_and_noise(whole * UNITS + part, step)
            released = np.asarray(add(to_sum(units), noise, step))
            np.testing.assert_array_equal(released, np.broadcast_to(released[3], released.shape))


@pytest.mark.skipif(jnp.int32 == INTEGER, reason="float64 holds these sums")
def test_sums_as_floats_are_found_wrong():
    units, noise = neighbours_and_noise((2**53 - 1) * UNITS + UNITS // 2, 2.0**-16)
    released = np.asarray(release_of_floats(to_sum(units), noise, 2.0**-16))
    assert (released != released[3]).any()


def test_sums_beyond_the_largest_are_clipped_as_wholes():
    """Checks that a carry at the end moves no clipped sum: the part of one range would be a change of its own."""
    if jnp.int32 == INTEGER:
        pytest.skip("these sums have 64 bits")
    for whole in (2**53, 2**60, -(2**60)):
        ends = [np.asarray(release(to_sum([whole * UNITS + part]), np.zeros(1), 2.0**-3)) for part in (0, 5, UNITS - 1)]
        assert ends[0] == ends[1] == ends[2]


@pytest.mark.skipif(jnp.int32 == INTEGER, reason="a released float32 has fewer digits")
@pytest.mark.parametrize(("add", "hides"), [(laplace, True), (laplace_of_floats, False)])
def test_noise_hides_a_range_in_a_large_sum(add, hides):
    """Attacks the claim epsilon = 1, for sums near 2^52 ranges that differ by one range."""
    keys = jax.random.split(jax.random.key(0), 4000)

    def chance(whole: int) -> float:
        exact = Sum(jnp.asarray(whole, INTEGER), jnp.asarray(UNITS // 2, INTEGER))
        noisy = jax.vmap(lambda key: add(key, exact, 1.0, l1_sensitivity=1.0))(keys)
        return float(jnp.mean(noisy >= 2.0**52 + 2))

    low, high = chance(2**52), chance(2**52 + 1)
    assert (high <= np.e * low + 5 * np.sqrt((np.e**2 * low + high) / 4000)) == hides


def test_selection_sees_each_unit_of_a_large_sum():
    """Checks that the least of large sums that differ by one unit is selected."""
    losses = to_sum([(LIMIT - 1) * UNITS + part for part in (7, 6, UNITS - 1)])
    assert noisy_min(jax.random.key(0), losses, float("inf")) == 1


@pytest.mark.parametrize("sensitivity", [1.0, 2.0**-20])
def test_leads_of_large_totals_are_exact_without_noise(sensitivity):
    """Checks the leads of integers near the largest, and of sums up to 2^40: clipped totals would be equal."""
    counts = jnp.asarray(np.asarray([LIMIT - 8, LIMIT - 1]), INTEGER)
    sums = to_sum([min(LIMIT, 2**40) * UNITS - 8, min(LIMIT, 2**40) * UNITS - 1])
    for totals, expected in ((counts, [-7, 0]), (sums, [-7 / UNITS, 0])):
        leads = noisy_leads(jax.random.key(0), totals, float("inf"), l1_sensitivity=sensitivity)
        np.testing.assert_array_equal(leads, expected)
