"""The layouts of learners that keep losses, and the windows of restarts, equal the plain forms bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts import _counter_weights, _hedge, _lane_kernels, classes
from jaxdp.experts._lazy_weights import _lazy_weights
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from tests.algorithms.experts.lane_kernels import equal, in_lanes

LANES = 500
FLOAT = jnp.result_type(float)
SIZES = [2, 5, 16, 17, 40]  # up to 16 experts lanes are the fast axis


@pytest.mark.parametrize("num_experts", SIZES)
def test_layouts_keep_values(num_experts):
    random = np.random.default_rng(num_experts)
    total, excess, losses = (jnp.asarray(each, FLOAT) for each in random.normal(size=(3, LANES, num_experts)))
    table = jnp.asarray(random.normal(size=(LANES, 4, num_experts)), FLOAT)
    flags, totals = jnp.asarray(random.integers(0, 2, LANES), bool), Sum(total, excess * jnp.finfo(FLOAT).eps)

    assert equal(in_lanes(_lane_kernels.keep_lane_layout, (totals, table)), (totals, table))
    assert not equal(in_lanes(lambda state: jax.tree.map(lambda x: x[::-1], state), (totals, table)), (totals, table))
    plain = in_lanes(compensated.add, totals, losses)
    assert equal(in_lanes(_lane_kernels.add_losses, totals, losses), plain)
    assert not equal(in_lanes(lambda totals, losses: Sum(totals.total + losses, 0 * losses), totals, losses), plain)

    def either(form):
        return in_lanes(form, flags, (totals, table), (plain, -table))

    plain_choice = either(lambda flag, *both: jax.tree.map(lambda one, other: jnp.where(flag, one, other), *both))
    assert equal(either(_lane_kernels.select), plain_choice)
    assert not equal(
        either(lambda flag, one, other: jax.tree.map(lambda *two: jnp.where(flag, *two), other, one)), plain_choice
    )


LEARNERS = {
    "hedge": (lambda: _hedge.hedge(num_experts=4, horizon=60), {}),
    "lazy_weights": (
        lambda: _lazy_weights.lazy_weights(num_experts=4, horizon=60, sequences=classes.switching(num_switches=2)),
        {"epsilon": 1.0, "delta": 1e-3, "batch": 3},
    ),
    "counter_weights": (
        lambda: _counter_weights.counter_weights(num_experts=4, horizon=60),
        {"epsilon": 1.0, "delta": 1e-3},
    ),
}


def losses_of_plays(learner, values):
    world = jaxdp.experts.stochastic_losses([0.2, 0.4, 0.6, 0.8])
    run = jaxdp.simulator(learner, world, 60, checkpoints=[10, 30, 60])
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(93), 50), run.params(**values))


@pytest.mark.parametrize("name", LEARNERS)
def test_runs_are_equal(name, monkeypatch):
    make, values = LEARNERS[name]
    kernels = losses_of_plays(make(), values)
    plain = {
        "keep_lane_layout": lambda state, *layout: state,
        "add_losses": compensated.add,
        "select": lambda flag, *both: jax.tree.map(lambda one, other: jnp.where(flag, one, other), *both),
    }
    for module in (_hedge, _lazy_weights, _counter_weights):
        for step, function in plain.items():
            if hasattr(module, step):
                monkeypatch.setattr(module, step, function)
    assert equal(kernels, losses_of_plays(make(), values))
