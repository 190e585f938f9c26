"""Noise on exact sums: against exact arithmetic, and that results depend on sum + noise alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import _grid as grid
from jaxdp.mechanisms import gaussian, laplace, noisy_leads, noisy_max, noisy_min
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.numerics.fixed_point import UNITS, Sum, in_64_bits, to_float

pytestmark = pytest.mark.precision

INTEGER, FLOAT = np.dtype(jnp.result_type(int)), np.dtype(jnp.result_type(float))
BITS, DIGITS = INTEGER.itemsize * 8, np.finfo(FLOAT).nmant + 1
LARGEST = 2 ** (BITS - 1) - 1
SUMS = [0, 100, 2**24, 2**27 + 8, 2**29 + 32, 2**31 - 2, -(2**29) - 32, 2**DIGITS + 1, LARGEST - 1, -LARGEST]
SCALES = [0.1, 1.0, 1e3, 1e6]


def cast_first(values, noise):
    return values.astype(noise.dtype) + noise


def draws(scale, size=2000):
    return (np.random.default_rng(0).laplace(size=size) * scale).astype(FLOAT)


def off(add):
    """Returns the largest error of noisy integers, in units in the last place."""
    worst = 0.0
    for total in SUMS:
        values = np.full(2000, total, INTEGER)
        cancels = [-FLOAT.type(total) + draws(40.0)] if abs(total) < LARGEST // 2 else []
        for noise in [*map(draws, SCALES), *cancels]:
            found = np.asarray(jax.jit(add)(values, noise)).astype(np.longdouble)
            exact = values.astype(np.longdouble) + noise.astype(np.longdouble)  # 64 bits: nearly exact
            places = np.spacing(np.maximum(np.abs(exact), 1e-30).astype(FLOAT)).astype(np.longdouble)
            worst = max(worst, float(np.max(np.abs(found - exact) / places)))
    return worst


def test_noisy_integers_are_rounded_once():
    assert off(add_noise) <= 1
    # Beyond 2^24 (2^53) the cast is off by half a place of the sum, which are many places once noise cancels the sum.
    assert off(cast_first) > 1


@pytest.mark.parametrize("scale", SCALES)
def test_small_integers_are_added_as_floats(scale):
    noise = draws(scale)
    values = np.arange(-1000, 1000).astype(INTEGER) * 1000
    np.testing.assert_array_equal(add_noise(jnp.asarray(values), jnp.asarray(noise)), values.astype(FLOAT) + noise)


@pytest.mark.parametrize(("add", "holds"), [(add_noise, True), (cast_first, False)])
def test_results_depend_on_sum_and_noise_together(add, holds):
    """Checks that one more in the sum and one less in the noise is the same: mechanisms' proofs shift so."""
    noise = np.round(draws(40.0) * 8) / 8
    same = []
    for total in SUMS:
        if abs(total) < LARGEST - 1:
            shifted = [
                add(jnp.full(noise.shape, total + k, INTEGER), jnp.asarray(noise - FLOAT.type(k))) for k in (0, 1)
            ]
            same.append(np.array_equal(*shifted))
    assert all(same) == holds


def test_nothing_wraps_and_nothing_is_lost_in_great_noise():
    for total in (LARGEST, -LARGEST - 1):
        for noise in (1e3, -1e3, 2.0 ** (BITS - 3), 1e30, -1e30, np.inf, np.nan):
            found = add_noise(jnp.asarray(total, INTEGER), jnp.asarray(noise, FLOAT))
            np.testing.assert_allclose(float(found), float(total) + noise, rtol=1e-6)


def held(numbers) -> Sum:
    """Sums of so many units each."""
    numbers = np.asarray(numbers, np.int64)
    return Sum(jnp.asarray(numbers >> 20, INTEGER), jnp.asarray(numbers & (UNITS - 1), INTEGER))


def floats_first(values, noise):
    return to_float(values, noise.dtype) + noise


UNIT_SUMS = [total * UNITS + part for total in (0, 2**24, 2**26, 2**30 - 1, -(2**29)) for part in (0, 5, UNITS - 1)]


def test_sums_in_fixed_point_are_rounded_once():
    noise = np.concatenate([draws(scale, 200) for scale in SCALES])
    for total in UNIT_SUMS:
        cancels = np.concatenate([noise, -FLOAT.type(total / UNITS) + draws(40.0, 200)])
        values = held(np.full(len(cancels), total))
        exact = np.longdouble(total) / UNITS + cancels.astype(np.longdouble)
        places = np.spacing(np.maximum(np.abs(exact), 1e-30).astype(np.float32)).astype(np.longdouble)
        found = [np.asarray(jax.jit(add)(values, cancels)) for add in (add_noise, floats_first)]
        worst = [float(np.max(np.abs(noisy.astype(np.longdouble) - exact) / places)) for noisy in found]
        assert worst[0] <= 0.51
        if np.float32 == FLOAT and abs(total) >= 2**24 * UNITS and total % UNITS:
            assert worst[1] > 1


@pytest.mark.parametrize(("add", "holds"), [(add_noise, True), (floats_first, False)])
def test_noisy_sums_in_fixed_point_depend_on_sum_and_noise_together(add, holds):
    if np.float64 == FLOAT and not holds:
        pytest.skip("float64 holds these sums")
    noise = np.round(draws(40.0) * 2**8) / 2**8
    same = []
    for total in UNIT_SUMS:
        for step in (1 << 12, UNITS):
            moved = [
                add(held(np.full(noise.shape, total + k * step)), jnp.asarray(noise - FLOAT.type(k * step / UNITS)))
                for k in (0, 1)
            ]
            same.append(np.array_equal(*moved))
    assert all(same) == holds


def reference_leads(values, noise, among):
    noisy = (values - values[0]).astype(np.longdouble) + noise.astype(np.longdouble)
    return noisy - noisy[among].max()


@in_64_bits
def leads(values, noise, among):
    """Computes leads on a grid of 2^-8, for noise on this grid."""
    step = jnp.asarray(2.0**-8, jnp.float64)
    steps = noise.astype(jnp.float64) / step
    return grid.noisy_leads(values, steps, grid.Grid(step, 1 / step, step, step), among, noise.dtype)


def leads_of_floats(values, noise, among):
    """Computes exact leads as floats, then adds noise, as the library did."""
    top = jnp.max(jnp.where(among, values, jnp.iinfo(values.dtype).min))
    noisy = (values - top).astype(noise.dtype) + noise
    return noisy - jnp.max(jnp.where(among, noisy, -jnp.inf))


def shifted_leads(compute):
    """Computes leads with one more in the sum and one less in the noise, of the largest total or another: no change."""
    top = 2 ** min(BITS - 2, 50)
    values = np.asarray([top + 5, top - 2 ** min(DIGITS + 2, 48) + 1, -(top // 2), 7], INTEGER)
    noise, among = np.asarray([0.5, -1.25, 8.0, 3.0], FLOAT), jnp.asarray([True, True, True, False])
    found = []
    for arm in (None, 0, 1, 2):
        step = np.asarray([arm == place for place in range(4)], INTEGER)
        found.append(compute(jnp.asarray(values + step), jnp.asarray(noise - step.astype(FLOAT)), among)[:3])
    return found


def test_leads():
    rng = np.random.default_rng(2)
    for total in (0, 2**24, 2**29 + 32, min(LARGEST, 2**52) - 10):
        values = (total + rng.integers(-10, 10, size=5)).astype(INTEGER)
        for scale in SCALES:
            noise, among = (
                np.round(draws(scale, 5) * 2**8) / 2**8,
                np.asarray([True, False, True, True, True], dtype=bool),
            )
            found = np.asarray(jax.jit(leads)(values, noise, among))
            np.testing.assert_allclose(
                found[among], reference_leads(values, noise, among)[among].astype(FLOAT), rtol=1e-6, atol=1e-5
            )
    first, *others = shifted_leads(leads)
    assert all(np.array_equal(first, other) for other in others)
    first, *others = shifted_leads(leads_of_floats)
    assert all(np.array_equal(first, other) for other in others) == (np.float64 == FLOAT)  # which holds these leads


def test_mechanisms_take_integers():
    counts, key = jnp.asarray([2**30, 2**30 + 1], jnp.int32), jax.random.key(0)
    inf = float("inf")
    assert noisy_max(key, counts, inf) == 1
    assert noisy_max(key, counts[::-1].reshape(1, 2), inf).tolist() == [0]
    assert noisy_leads(key, counts, inf, l1_sensitivity=1.0).tolist() == [-1.0, 0.0]
    for noisy in (laplace(key, counts, inf, l1_sensitivity=1.0), gaussian(key, counts, 0.0)):
        np.testing.assert_array_equal(noisy, counts.astype(FLOAT))
    with pytest.raises(ValueError, match="totals must be integers or a sum in fixed point, got dtype float"):
        noisy_leads(key, counts.astype(FLOAT), 1.0, l1_sensitivity=1.0)
    with pytest.raises(ValueError, match="epsilon must be > 0, got 0"):
        noisy_leads(key, counts, 0.0, l1_sensitivity=1.0)
    for empty in (counts[:0], counts[0]):
        with pytest.raises(ValueError, match="totals must have a last axis of at least one total"):
            noisy_leads(key, empty, 1.0, l1_sensitivity=1.0)


def test_integers_that_would_lose_their_upper_bits_are_refused():
    wide = np.asarray([2**33 + 5, 1])
    if jax.config.read("jax_enable_x64"):
        assert noisy_leads(jax.random.key(0), wide, float("inf"), l1_sensitivity=1.0)[1] == -(2.0**33) - 4
        return
    for release in (
        lambda values: laplace(jax.random.key(0), values, 1.0, l1_sensitivity=1.0),
        lambda values: gaussian(jax.random.key(0), values, 1.0),
        lambda values: noisy_leads(jax.random.key(0), values, 1.0, l1_sensitivity=1.0),
        lambda values: noisy_max(jax.random.key(0), values, 1.0),
    ):
        with pytest.raises(ValueError, match="must have a dtype that int32 holds, got int64"):
            release(wide)
        with pytest.raises(ValueError, match="must be within the range of int32"):
            release([2**33 + 5, 1])


def test_the_smallest_integers():
    info, key = jnp.iinfo(INTEGER), jax.random.key(0)
    for scores in ([info.min, 0], [0, info.max], [info.min, info.max]):
        assert noisy_min(key, jnp.asarray(scores, INTEGER), 1.0) == 0
        assert noisy_max(key, jnp.asarray(scores, INTEGER), 1.0) == 1
