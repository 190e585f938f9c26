"""The kernels of the filter against its plain step, and planted wrong kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import _filter, _filter_columns, _filter_kernels, classes
from jaxdp.experts._filter import Flow
from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus

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


def stepped(form, flow):
    return jax.jit(jax.vmap(lambda *inputs: form.step(flow, *inputs)))(*states())


def off_by_one_percent(losses):
    """A wrong `exp_minus`."""
    change, power = exp_minus(losses)
    return 1.01 * change, power


def apart(left, right):
    """The largest relative difference of numbers, and whether anything else differs."""
    (one, removed), (other, also_removed) = jax.tree.map(np.asarray, (left, right))
    filled = (one.power > NOTHING // 2) | (other.power > NOTHING // 2)
    shift = np.where(filled, one.power - other.power, 0)
    ratio = np.where(filled, one.mantissa / other.mantissa, 1) * 2.0 ** np.clip(shift, -100, 100)
    return np.abs(ratio - 1).max(), (removed != also_removed).any()


@pytest.mark.parametrize("flow", FLOWS)
def test_kernels_equal_the_plain_step(flow, monkeypatch):
    plain = stepped(_filter, FLOWS[flow])
    error, others = apart(stepped(_filter_kernels, FLOWS[flow]), plain)
    assert error < TOLERANCE
    assert not others
    if flow == "none":
        monkeypatch.setattr(_filter_kernels, "exp_minus", off_by_one_percent)
        assert apart(stepped(_filter_kernels, FLOWS[flow]), plain)[0] > 100 * TOLERANCE
    if flow == "next row":  # a switch that is not counted
        monkeypatch.setattr(_filter_kernels, "_came", lambda flow, values, first: values)
        assert apart(stepped(_filter_kernels, FLOWS[flow]), plain)[0] > 100 * TOLERANCE


def test_kernels_have_the_same_gains(monkeypatch):
    sums, losses = states()

    def gains(form):
        return np.asarray(jax.jit(jax.vmap(form.gains))(sums, losses))

    plain, kernel = gains(_filter), gains(_filter_kernels)
    assert np.abs(kernel - plain).max() < 100 * TOLERANCE  # of gains of up to hundreds
    row_sums = _filter_kernels._row_sums
    monkeypatch.setattr(
        _filter_kernels, "_row_sums", lambda mantissa, power, top: row_sums(mantissa[:, :-1], power[:, :-1], top)
    )  # the last expert is left out
    assert not np.abs(gains(_filter_kernels) - plain).max() < 100 * TOLERANCE


def test_kernels_draw_the_same(monkeypatch):
    sums, _ = states()
    uniforms = jnp.asarray(np.random.default_rng(1).random((LANES, 2)), FLOAT)
    outlook = Scaled(jnp.asarray([1.0, 1.5, 1.25, 1.75], FLOAT), jnp.asarray([0, -3, 5, -200], jnp.int32))

    def alike():
        """How often a kernel draws the same expert, and the same row."""
        draws = [
            jax.jit(jax.vmap(lambda *inputs, form=form: form.drawn(*inputs, outlook)))(uniforms, sums)
            for form in (_filter, _filter_kernels)
        ]
        return [np.mean(np.asarray(plain) == np.asarray(kernel)) for plain, kernel in zip(*draws, strict=True)]

    assert min(alike()) > 0.98  # sums in another order may round otherwise
    monkeypatch.setattr(_filter_kernels, "_odds", lambda mantissa, power, *seen: mantissa)
    assert max(alike()) < 0.9


@pytest.mark.parametrize("odds", [None, np.asarray([1e-3])])
def test_the_columns_of_one_row_equal_the_plain_step(odds, monkeypatch):
    generator = np.random.default_rng(2)
    power = generator.integers(-400, 400, (LANES, 1, 37)) * generator.choice([0, 1], (LANES, 1, 37))
    sums = Scaled(jnp.asarray(generator.uniform(1, 2, power.shape), FLOAT), jnp.asarray(power, jnp.int32))
    losses = jnp.asarray(generator.normal(0, 1, (LANES, 37)), FLOAT)
    outlook = Scaled(jnp.ones(1, FLOAT), jnp.zeros(1, jnp.int32))

    def after(form):
        return jax.jit(jax.vmap(lambda *inputs: form.step(Flow(odds, 0), *inputs)))(sums, losses)

    plain = after(_filter)
    error, others = apart(after(_filter_columns), plain)
    assert error < TOLERANCE
    assert not others
    if odds is None:
        monkeypatch.setattr(_filter_columns, "exp_minus", off_by_one_percent)
        assert apart(after(_filter_columns), plain)[0] > 100 * TOLERANCE
    laws = [
        jax.jit(jax.vmap(lambda sums, form=form: form.columns(sums, outlook)))(sums)
        for form in (_filter, _filter_columns)
    ]
    np.testing.assert_allclose(*map(np.asarray, laws), rtol=TOLERANCE, atol=1e-30)


def test_sequences_of_no_switch_are_those_of_one_expert():
    """Also of so many experts that a class of one row has kernels of its own: a switch would lead out of the row."""
    for num in (10, 20):
        losses, laws = jnp.arange(num, dtype=FLOAT) / num, []
        for sequences in (classes.switching(num_switches=0), classes.static()):
            made = sequences(num_experts=num, horizon=9)
            weights = made.init()
            for round_ in range(9):
                weights = made.forward(weights, jnp.int32(round_), losses)
            laws.append(np.asarray(made.marginal(weights, jnp.int32(8))))
        np.testing.assert_allclose(*laws, rtol=TOLERANCE)
