"""The kernels of steps and draws against their plain forms, and planted wrong kernels."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import _scaled, _share_kernels, _shares
from jaxdp.experts._share_kernels import fold
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum

LANES = 32
FLOAT = jnp.result_type(float)
TOLERANCE = 1e-13 if jnp.float64 == FLOAT else 1e-5
SIZES = (10, 37)  # written out, and by columns with a rest


def states(num_experts):
    """Makes shares with sum 1, with an excess, and losses."""
    generator = np.random.default_rng(num_experts)
    shares = generator.dirichlet(np.full(num_experts, 0.3), LANES) * 0.999 + 0.001 / num_experts
    excess = generator.uniform(-1, 1, shares.shape) * shares * jnp.finfo(FLOAT).eps / 2
    losses = generator.uniform(0, 1, shares.shape)
    return tuple(jnp.asarray(each, FLOAT) for each in (shares, excess, losses))


def relative(left, right):
    left, right = (np.asarray(each, float) for each in (left, right))
    return np.max(np.abs(left - right) / np.maximum(np.abs(right), 1e-12))


def in_lanes(function, *inputs):
    return jax.jit(jax.vmap(function))(*inputs)


def without_the_last(operation, of, *inputs):
    """Builds a wrong `fold`, which leaves the last expert out."""
    return fold(operation, of, *(each[:-1] if jnp.ndim(each) else each for each in inputs))


@pytest.mark.parametrize("num_experts", [37, 3001])
def test_values_of_many_experts_are_folded(num_experts):
    values = jnp.asarray(np.random.default_rng(num_experts).normal(size=(LANES, num_experts)), FLOAT)
    for operation, plain in ((jnp.minimum, jnp.min), (jnp.maximum, jnp.max), (operator.add, jnp.sum)):
        found = in_lanes(lambda each, by=operation: fold(by, jnp.square, each), values)
        np.testing.assert_allclose(found, plain(values**2, 1), rtol=TOLERANCE)


@pytest.mark.parametrize("num_experts", SIZES)
@pytest.mark.parametrize("name", ["exponential_step", "fixed_share_step"])
def test_steps_equal_the_plain_ones(name, num_experts, monkeypatch):
    shares, _, losses = states(num_experts)
    more = () if name == "exponential_step" else (jnp.full(LANES, 0.05, FLOAT),)
    plain = in_lanes(getattr(_shares, name), shares, 3 * losses, *more)
    step = getattr(_share_kernels, name)
    assert relative(in_lanes(step, shares, 3 * losses, *more), plain) < TOLERANCE
    monkeypatch.setattr(_share_kernels, "fold", without_the_last)
    assert relative(in_lanes(step, shares, 3 * losses, *more), plain) > 100 * TOLERANCE


@pytest.mark.parametrize("num_experts", SIZES)
def test_the_exact_step_equals_the_plain_one(num_experts, monkeypatch):
    shares, excess, losses = states(num_experts)
    rate = jnp.full(LANES, 0.05, FLOAT)

    def moved(step, *inputs):
        def increment(total, excess, losses, rate):
            after = step(Sum(total, excess), losses / 8, rate)
            return (after.total - total) - (after.excess - excess)

        return in_lanes(increment, *inputs)

    inputs = (shares, excess, losses, rate)
    plain = moved(_shares.exact_fixed_share_step, *inputs)
    error = jnp.abs(moved(_share_kernels.exact_fixed_share_step, *inputs) - plain) / shares
    assert error.max() < TOLERANCE

    # Rounds of tiny steps, for which the sums are compensated.
    def many(step, *inputs):
        def body(_, shares):
            return step(shares, 1e-4 * inputs[1], inputs[2] * 1e-3)

        start = compensated.zero(inputs[0])._replace(total=inputs[0])
        return jax.lax.fori_loop(0, 300, body, start).total

    results = [
        in_lanes(lambda *each, step=form.exact_fixed_share_step: many(step, *each), shares, losses, rate)
        for form in (_shares, _share_kernels)
    ]
    assert relative(*results) < TOLERANCE / 10
    monkeypatch.setattr(_share_kernels, "fold", without_the_last)
    error = jnp.abs(moved(_share_kernels.exact_fixed_share_step, *inputs) - plain) / shares
    assert error.max() > 10 * TOLERANCE


def test_the_series_is_as_exact_as_floats_are():
    values = np.linspace(-0.36, 0.36, 20_001).astype(FLOAT)
    error = np.abs(np.asarray(_scaled.expm1_near_0(jnp.asarray(values)), float) - np.expm1(values.astype(float)))
    units = error[values != 0] / np.abs(np.spacing(np.expm1(values[values != 0].astype(float)).astype(FLOAT)))
    assert units.max() < (2 if jnp.float32 == FLOAT else 8)


@pytest.mark.parametrize("num_experts", SIZES)
def test_odds_of_totals_are_the_plain_ones(num_experts):
    shares, _excess, losses = states(num_experts)
    rate = jnp.full(LANES, 0.5, FLOAT)
    totals = 1e4 + 10 * losses
    plain = in_lanes(lambda total, excess, rate: _shares.odds(Sum(total, excess), rate), totals, shares, rate)
    found = in_lanes(lambda total, excess, rate: _share_kernels.odds(Sum(total, excess), rate), totals, shares, rate)
    assert relative(found, plain) < TOLERANCE
    planted = in_lanes(
        lambda total, rate: _share_kernels.odds(compensated.zero(total)._replace(total=total), rate), totals, rate
    )
    assert relative(planted, plain) > 100 * TOLERANCE  # excess left out
