"""The kernels of the filter against its plain step, and planted wrong kernels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import classes
from jaxdp.experts._filter import _filter
from jaxdp.experts._filter import columns as _filter_columns
from jaxdp.experts._filter import kernels as _filter_kernels
from jaxdp.experts._filter._filter import Flow
from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus

LANES, ROWS, EXPERTS = 64, 3, 3
FLOAT = jnp.result_type(float)
TOLERANCE = 1e-12 if jnp.float64 == FLOAT else 1e-5
FLOWS = {
    "none": Flow(None, 0),
    "next row": Flow(np.ones(ROWS), 1),
    "within rows": Flow(np.asarray([0.5, 1e-3, 1e-6]), 0),
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
    return jax.jit(jax.vmap(lambda *inputs: form.step(FLOWS[flow], *inputs)))(*states())


@functools.cache
def plainly_stepped(flow):
    return stepped(_filter, flow)


def off_by_one_percent(losses):
    """Builds a wrong `exp_minus`."""
    change, power = exp_minus(losses)
    return 1.01 * change, power


def apart(left, right):
    """Returns the largest relative difference of numbers, and whether anything else differs."""
    (one, removed), (other, also_removed) = jax.tree.map(np.asarray, (left, right))
    filled = (one.power > NOTHING // 2) | (other.power > NOTHING // 2)
    shift = np.where(filled, one.power - other.power, 0)
    ratio = np.where(filled, one.mantissa / other.mantissa, 1) * 2.0 ** np.clip(shift, -100, 100)
    return np.abs(ratio - 1).max(), (removed != also_removed).any()


@pytest.mark.parametrize("flow", FLOWS)
def test_kernels_equal_the_plain_step(flow):
    error, others = apart(stepped(_filter_kernels, flow), plainly_stepped(flow))
    assert error < TOLERANCE
    assert not others


WRONG = {
    "losses": ("none", "exp_minus", off_by_one_percent),
    "a switch that is not counted": ("next row", "_inflow", lambda flow, values, first: values),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_is_noticed(wrong, monkeypatch):
    flow, name, replacement = WRONG[wrong]
    monkeypatch.setattr(_filter_kernels, name, replacement)
    assert apart(stepped(_filter_kernels, flow), plainly_stepped(flow))[0] > 100 * TOLERANCE


def gained(form):
    return np.asarray(jax.jit(jax.vmap(form.gains))(*states()))


def test_kernels_have_the_same_gains():
    assert np.abs(gained(_filter_kernels) - gained(_filter)).max() < 100 * TOLERANCE  # of gains of up to hundreds


def test_wrong_gains_are_noticed(monkeypatch):
    row_sums = _filter_kernels._row_sums
    monkeypatch.setattr(
        _filter_kernels, "_row_sums", lambda mantissa, power, top: row_sums(mantissa[:, :-1], power[:, :-1], top)
    )  # the last expert is left out
    assert not np.abs(gained(_filter_kernels) - gained(_filter)).max() < 100 * TOLERANCE


def drawn(form):
    """Returns the experts and the rows."""
    uniforms = jnp.asarray(np.random.default_rng(1).random((LANES, 2)), FLOAT)
    outlook = Scaled(jnp.asarray([1.0, 1.5, 1.75], FLOAT), jnp.asarray([0, -3, -200], jnp.int32))
    return np.asarray(jax.jit(jax.vmap(lambda *inputs: form.draw(*inputs, outlook)))(uniforms, states()[0]))


def test_kernels_draw_the_same():
    alike = (drawn(_filter) == drawn(_filter_kernels)).mean(1)
    assert alike.min() > 0.98  # sums in another order may round otherwise


def test_wrong_draws_are_noticed(monkeypatch):
    monkeypatch.setattr(_filter_kernels, "_odds", lambda mantissa, power, *seen: mantissa)
    assert (drawn(_filter) == drawn(_filter_kernels)).mean(1).max() < 0.9


def one_row():
    """Sums of so many experts that a row has kernels of its own, and losses."""
    generator = np.random.default_rng(2)
    power = generator.integers(-400, 400, (LANES, 1, 37)) * generator.choice([0, 1], (LANES, 1, 37))
    sums = Scaled(jnp.asarray(generator.uniform(1, 2, power.shape), FLOAT), jnp.asarray(power, jnp.int32))
    return sums, jnp.asarray(generator.normal(0, 1, (LANES, 37)), FLOAT)


def stepped_row(form, odds):
    return jax.jit(jax.vmap(lambda *inputs: form.step(Flow(odds, 0), *inputs)))(*one_row())


@pytest.mark.parametrize("odds", [None, np.asarray([1e-3])])
def test_the_step_of_one_row_equals_the_plain_one(odds):
    error, others = apart(stepped_row(_filter_columns, odds), stepped_row(_filter, odds))
    assert error < TOLERANCE
    assert not others


def test_a_wrong_step_of_one_row_is_noticed(monkeypatch):
    monkeypatch.setattr(_filter_columns, "exp_minus", off_by_one_percent)
    assert apart(stepped_row(_filter_columns, None), stepped_row(_filter, None))[0] > 100 * TOLERANCE


def test_the_columns_of_one_row_equal_the_plain_ones():
    outlook = Scaled(jnp.ones(1, FLOAT), jnp.zeros(1, jnp.int32))
    distributions = [
        jax.jit(jax.vmap(lambda sums, form=form: form.columns(sums, outlook)))(one_row()[0])
        for form in (_filter, _filter_columns)
    ]
    np.testing.assert_allclose(*map(np.asarray, distributions), rtol=TOLERANCE, atol=1e-30)


def test_sequences_of_no_switch_are_those_of_one_expert():
    """Checks also so many experts that a class of one row has special kernels: a switch would leave the row."""
    for num in (10, 20):
        losses, distributions = jnp.arange(num, dtype=FLOAT) / num, []
        for sequences in (classes.switching(num_switches=0), classes.static()):
            made = sequences(num_experts=num, horizon=9)
            weights = made.init()
            for round_ in range(9):
                weights = made.forward(weights, jnp.int32(round_), losses)
            distributions.append(np.asarray(made.marginal(weights, jnp.int32(8))))
        np.testing.assert_allclose(*distributions, rtol=TOLERANCE)


@pytest.mark.always
def test_a_step_and_gains_in_ordinary_numbers():
    """Compares a round with flow to the next row with arithmetic on the numbers themselves."""
    sums = Scaled(jnp.asarray([[1, 1.5], [1.25, 1]], FLOAT), jnp.asarray([[0, -1], [-2, 1]], jnp.int32))
    losses = jnp.asarray([0, 0.875], FLOAT)
    flow = Flow(np.asarray([0.5, 0.25]), 1)

    @jax.jit
    def run(sums, losses):
        return _filter.step(flow, sums, losses), _filter.gains(sums, losses), _filter.gains(sums, losses + 4096)

    (after, removed), gains, shifted = jax.tree.map(np.asarray, run(sums, losses))
    numbers = np.asarray(sums.mantissa) * 2.0 ** np.asarray(sums.power)
    kept = numbers * np.exp(-np.asarray(losses))
    expected = np.stack([kept[0], kept[1] + 0.5 * kept[0, ::-1]])
    np.testing.assert_allclose(after.mantissa * 2.0 ** (after.power + removed), expected, rtol=TOLERANCE)
    np.testing.assert_allclose(np.diff(gains), np.diff(np.log2(kept.sum(1) / numbers.sum(1))), rtol=TOLERANCE)
    np.testing.assert_array_equal(gains, shifted)
