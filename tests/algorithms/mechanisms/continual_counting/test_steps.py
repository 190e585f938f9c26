"""Integer noise of counters: the change of noise that makes a neighbour's stream release the same, step by step."""

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, norm

from jaxdp.core import default_float
from jaxdp.mechanisms import toeplitz_counter, tree_counter
from jaxdp.mechanisms.continual_counting import gaussian_tree, steps, toeplitz
from jaxdp.mechanisms.continual_counting.buffers import find_buffers
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import UNITS, in_64_bits

LENGTH, CHANGED, RHO = 60, 17, 0.1
INTEGER = jnp.result_type(int)
MAKE = {
    "gaussian tree": lambda: tree_counter(horizon=63, arity=3, noise="gaussian"),
    "toeplitz": lambda: toeplitz_counter(horizon=63),
}


def integers(numbers) -> list[int]:
    return np.ravel(numbers).view(np.int64).tolist()


def released(state, step: float) -> int:
    """Returns the exact sum plus its error in steps, as `with_error` adds them, before conversion to a float."""
    whole = Fraction(int(state.total.whole)) + Fraction(int(state.total.part), UNITS)
    error = sum(integers(state.errors)) if hasattr(state, "errors") else noise_of(state.sums)
    found = whole / Fraction(step) + error
    if step > 1 / UNITS:
        return round(whole / Fraction(step)) + error
    assert found.denominator == 1
    return int(found)


@functools.cache
def weights_of_sums() -> np.ndarray:
    weights = find_buffers(63, None)[0].astype(default_float()).astype(np.float64)
    return weights / weights.sum()


def noise_of(sums: jax.Array) -> int:
    """Returns the noise of a Toeplitz counter's estimate, as `toeplitz.noise_of`; the first sum must be whole."""
    first, *others = integers(sums)
    assert first % 2**toeplitz.PARTS == 0
    known = sum(weight * (each - first) for weight, each in zip(weights_of_sums()[1:], others, strict=True))
    return first // 2**toeplitz.PARTS + round(known * 2.0**-toeplitz.PARTS)


def words(number: int) -> jax.Array:
    return jnp.asarray(np.array([number]).view(np.complex64)[0])


def cost(name: str, start: int, change: float, monkeypatch, *, rounds_sums: bool = False) -> float:
    """Returns the squared norm of the change of a neighbour's noise, in standard deviations, over the claim's."""
    counter, grids, scales, fresh = MAKE[name](), [], [], []
    params = counter.params(rho=RHO, l2_sensitivity=change)
    module = toeplitz if name == "toeplitz" else gaussian_tree

    def drawn(key, scale, shape, is_added=None):
        scales.append(scale)
        return in_64_bits(steps.numbers)(fresh[-1])

    def kept_grid(*arguments, **named):
        grids.append(steps.noise_grid(*arguments, **named))
        return grids[-1]

    monkeypatch.setattr(module, "normal_steps", drawn)
    monkeypatch.setattr(module, "noise_grid", kept_grid)

    @jax.jit
    def feed(params, state, value, noise):
        fresh.append(noise)
        state = counter.feed(jax.random.key(0), params, state, value)
        return state, (grids[-1].step * 2.0**30).astype(jnp.float32), scales[-1].astype(jnp.float32)

    random = np.random.default_rng(0)
    entries = np.round(random.uniform(size=LENGTH) * UNITS) / UNITS
    streams = entries.copy(), entries.copy()
    streams[0][CHANGED], streams[1][CHANGED] = 0.5 + change / 2, 0.5 - change / 2
    noises = [int(each) for each in random.normal(size=LENGTH) * 2.0**25]
    first, second = (counter.init(None, params, (), dtype=float) for _ in range(2))
    first, second = (state._replace(total=state.total._replace(whole=INTEGER.type(start))) for state in (first, second))
    total = 0.0

    def fed(state, value, noise):
        state, step, scale = feed(params, state, jnp.asarray(value, float), words(noise))
        if rounds_sums:  # the planted mistake
            whole = jnp.float32(float(state.total.whole) + float(state.total.part) / UNITS)
            state = state._replace(total=fixed_point.Sum(whole.astype(int), jnp.zeros((), int)))
        return state, float(step) * 2.0**-30, float(scale)

    for noise, left, right in zip(noises, *streams, strict=True):
        first, step, scale = fed(first, left, noise)
        needed = released(first, step) - released(fed(second, right, 0)[0], step)
        second = fed(second, right, needed)[0]
        assert released(second, step) == released(first, step)
        total += ((noise - needed) / scale) ** 2
    return total / (2 * RHO)


@pytest.mark.parametrize("start", [2**24, 2**26, 2**30 - 1])
@pytest.mark.parametrize("name", MAKE)
def test_a_replaced_entry_costs_what_is_claimed(name, start, monkeypatch):
    assert 0.2 < cost(name, start, 1.0, monkeypatch) <= 1.0


@pytest.mark.parametrize("name", MAKE)
def test_a_sum_that_is_rounded_costs_more(name, monkeypatch):
    assert cost(name, 2**23, 0.25, monkeypatch, rounds_sums=True) > 1.0


def test_words_hold_integers():
    some = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**52, -(2**52)]
    there = in_64_bits(lambda: steps.add_steps(steps.zero_steps((len(some),)), jnp.asarray(some, jnp.float64)))()
    assert integers(there) == some
    assert in_64_bits(lambda: steps.numbers(there).tolist())() == some


@pytest.mark.parametrize("start", [0, 2**31 - 1, -(2**31), 2**61 - 1, -(2**61)])
@pytest.mark.parametrize("more", [1, -1, 2**31, -(2**31) - 1, 2**52 - 1, -(2**52)])
def test_sums_of_words_are_those_of_integers(start, more):
    there = in_64_bits(lambda: steps.add_steps(words(start), jnp.float64(more)))()
    assert integers(there) == [start + more]
    assert in_64_bits(lambda: steps.numbers(there).item())() == float(start + more)


@pytest.mark.parametrize("scale", [2.0**24.3, 2.0**31.8, 2.0**40.1])
def test_noise_of_any_scale_is_normal(scale):
    draw = in_64_bits(lambda: np.asarray(steps.normal_steps(jax.random.key(3), jnp.float64(scale), (20_000,))) / scale)
    drawn = draw()
    assert kstest(drawn, norm.cdf).pvalue > 1e-3
    assert kstest(drawn * 1.05, norm.cdf).pvalue < 1e-3  # a wrong scale
