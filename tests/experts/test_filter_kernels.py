"""The kernels of the filter against its plain step, and planted wrong kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import _filter, _filter_columns, _filter_kernels
from jaxdp.experts._filter import Flow
from jaxdp.experts._scaled import NOTHING, Scaled

LANES, ROWS, EXPERTS = 64, 4, 5
FLOAT = jnp.result_type(float)
TOLERANCE = 1e-12 if jnp.float64 == FLOAT else 1e-5
FLOWS = {
    "none": Flow(None, 0),
    "next row": Flow(np.ones(ROWS), 1),
    "within rows": Flow(np.asarray([0.5, 0.1, 1e-3, 1e-6]), 0),
}


def states():
    """Sums far apart, equal ones, empty rows; and losses of any sign."""
    generator = np.random.default_rng(0)
    power = generator.integers(-400, 400, (LANES, ROWS, EXPERTS)) * generator.choice([0, 1, 1], (LANES, 1, 1))
    power[::4, 2:] = NOTHING
    mantissa = generator.uniform(1, 2, power.shape)
    losses = generator.normal(0, 1, (LANES, EXPERTS)) * generator.choice([0, 0.01, 1, 100], (LANES, 1))
    return Scaled(jnp.asarray(mantissa, FLOAT), jnp.asarray(power, jnp.int32)), jnp.asarray(losses, FLOAT)


def both(form, flow, losses_of=lambda losses: losses):
    sums, losses = states()
    return jax.jit(jax.vmap(lambda *inputs: form.step(flow, *inputs)))(sums, losses_of(losses))


def apart(left, right):
    """The largest relative difference of numbers, and whether anything else differs."""
    (one, removed), (other, also_removed) = jax.tree.map(np.asarray, (left, right))
    filled = (one.power > NOTHING // 2) | (other.power > NOTHING // 2)
    shift = np.where(filled, one.power - other.power, 0)
    ratio = np.where(filled, one.mantissa / other.mantissa, 1) * 2.0 ** np.clip(shift, -100, 100)
    return np.abs(ratio - 1).max(), (removed != also_removed).any()


@pytest.mark.parametrize("flow", FLOWS)
def test_kernels_equal_the_plain_step(flow):
    plain = both(_filter, FLOWS[flow])
    error, others = apart(both(_filter_kernels, FLOWS[flow]), plain)
    assert error < TOLERANCE
    assert not others
    planted = both(_filter_kernels, FLOWS[flow], lambda losses: 1.01 * losses)
    assert apart(planted, plain)[0] > 100 * TOLERANCE
    if flow == "next row":
        planted = both(_filter_kernels, Flow(np.ones(ROWS), 0))  # a switch that is not counted
        assert apart(planted, plain)[0] > 100 * TOLERANCE


def test_kernels_have_the_same_gains():
    sums, losses = states()

    def gains(form, losses):
        return np.asarray(jax.jit(jax.vmap(form.gains))(sums, losses))

    plain, kernel = gains(_filter, losses), gains(_filter_kernels, losses)
    assert np.abs(kernel - plain).max() < 100 * TOLERANCE  # of gains of up to hundreds
    assert np.abs(gains(_filter_kernels, 1.01 * losses) - plain).max() > 1000 * TOLERANCE


def test_kernels_draw_the_same():
    sums, _ = states()
    uniforms = jnp.asarray(np.random.default_rng(1).random((LANES, 2)), FLOAT)
    outlook = Scaled(jnp.asarray([1.0, 1.5, 1.25, 1.75], FLOAT), jnp.asarray([0, -3, 5, -200], jnp.int32))
    draws = [
        jax.jit(jax.vmap(lambda *inputs, form=form: form.drawn(*inputs, outlook)))(uniforms, sums)
        for form in (_filter, _filter_kernels)
    ]
    for plain, kernel in zip(*draws, strict=True):
        assert (np.asarray(plain) == np.asarray(kernel)).mean() > 0.98  # sums in another order may round otherwise


@pytest.mark.parametrize("odds", [None, np.asarray([1e-3])])
def test_the_columns_of_one_row_equal_the_plain_step(odds):
    generator = np.random.default_rng(2)
    power = generator.integers(-400, 400, (LANES, 1, 37)) * generator.choice([0, 1], (LANES, 1, 37))
    sums = Scaled(jnp.asarray(generator.uniform(1, 2, power.shape), FLOAT), jnp.asarray(power, jnp.int32))
    losses = jnp.asarray(generator.normal(0, 1, (LANES, 37)), FLOAT)
    outlook = Scaled(jnp.ones(1, FLOAT), jnp.zeros(1, jnp.int32))

    def stepped(form, scale=1.0):
        return jax.jit(jax.vmap(lambda *inputs: form.step(Flow(odds, 0), *inputs)))(sums, scale * losses)

    plain = stepped(_filter)
    error, others = apart(stepped(_filter_columns), plain)
    assert error < TOLERANCE
    assert not others
    assert apart(stepped(_filter_columns, 1.01), plain)[0] > 100 * TOLERANCE  # planted
    laws = [
        jax.jit(jax.vmap(lambda sums, form=form: form.columns(sums, outlook)))(sums)
        for form in (_filter, _filter_columns)
    ]
    np.testing.assert_allclose(*map(np.asarray, laws), rtol=TOLERANCE, atol=1e-30)
