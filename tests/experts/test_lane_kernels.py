"""The layouts of learners that keep losses, and the windows of restarts, equal the plain forms bit for bit."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts import _counter_weights, _hedge, _lane_kernels, _lazy_weights, classes
from jaxdp.experts._restart_windows import KERNELS, PLAIN, Dyadic, wide
from jaxdp.numerics import compensated, fixed_point
from jaxdp.numerics.compensated import Sum

LANES = 500
FLOAT = jnp.result_type(float)
THIRD = fixed_point.UNITS // 3
EMPTY = fixed_point.zero()
SIZES = [2, 5, 16, 17, 40]  # up to 16 experts lanes are the fast axis


def in_lanes(function, *inputs):
    return jax.jit(jax.vmap(function))(*inputs)


def equal(left, right):
    same = jax.tree.map(lambda one, other: bool(np.array_equal(one, other)), left, right)
    return all(jax.tree.leaves(same))


# ---- windows ---------------------------------------------------------------------------------------------------------
def played(steps, num_experts, checks=100):
    """The largest excess and the memory after some questions, of walks with equal values among them."""
    random = np.random.default_rng(num_experts)
    walks = jnp.asarray(random.integers(-2, 3, (LANES, checks, num_experts)).cumsum(1), jnp.result_type(int)) * THIRD
    begins = jnp.asarray(random.integers(0, checks // 2, LANES), jnp.result_type(int))

    def lane(walk, begin):
        windows = Dyadic(num_experts, checks, steps)

        def question(carry, units):
            memory, before, now = carry
            memory, regrets = windows.remember(memory, before, now, jnp.asarray(True)), fixed_point.add(EMPTY, units)

            def slack(times):
                return jnp.sqrt((now + 1 - times).astype(jnp.float64)) / 2

            largest = windows.largest(memory, regrets, slack, now + 1, jnp.minimum(begin, now))
            return (memory, regrets, now + 1), largest

        start = windows.empty(), fixed_point.zero(num_experts), jnp.zeros((), jnp.result_type(int))
        return jax.lax.scan(question, start, walk)

    return in_lanes(lane, walks, begins)


@pytest.mark.parametrize("num_experts", SIZES)
def test_windows_are_the_plain_ones(num_experts):
    assert equal(played(KERNELS, num_experts), played(PLAIN, num_experts))


WRONG = {
    "written a level late": KERNELS._replace(
        replaced=lambda written, *sums: KERNELS.replaced(jnp.roll(written, 1), *sums)
    ),
    "the first expert's sums": KERNELS._replace(
        largest_sums=lambda regrets, memory: wide(regrets)[0] - wide(memory)[0]
    ),
    "the smallest": KERNELS._replace(largest=lambda values: -KERNELS.largest(-values)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_windows_are_noticed(name):
    assert not equal(played(WRONG[name], 5), played(PLAIN, 5))


# ---- what a loop carries ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("num_experts", SIZES)
def test_what_is_carried_is_as_it_was(num_experts):
    random = np.random.default_rng(num_experts)
    total, excess, losses = (jnp.asarray(each, FLOAT) for each in random.normal(size=(3, LANES, num_experts)))
    table = jnp.asarray(random.normal(size=(LANES, 4, num_experts)), FLOAT)
    flags, totals = jnp.asarray(random.integers(0, 2, LANES), bool), Sum(total, excess * jnp.finfo(FLOAT).eps)

    assert equal(in_lanes(_lane_kernels.carried, (totals, table)), (totals, table))
    assert not equal(in_lanes(lambda state: jax.tree.map(lambda x: x[::-1], state), (totals, table)), (totals, table))
    plain = in_lanes(compensated.add, totals, losses)
    assert equal(in_lanes(_lane_kernels.added, totals, losses), plain)
    assert not equal(in_lanes(lambda totals, losses: Sum(totals.total + losses, 0 * losses), totals, losses), plain)

    def either(form):
        return in_lanes(form, flags, (totals, table), (plain, -table))

    plain_choice = either(lambda flag, *both: jax.tree.map(lambda one, other: jnp.where(flag, one, other), *both))
    assert equal(either(_lane_kernels.chosen), plain_choice)
    assert not equal(
        either(lambda flag, one, other: jax.tree.map(lambda *two: jnp.where(flag, *two), other, one)), plain_choice
    )


@pytest.mark.parametrize(("windows", "is_laid_out"), [("dyadic", True), ("all", False)])
def test_long_memories_keep_lanes_apart(windows, is_laid_out):
    """A question reads a lane's own part of the memory of all windows, which must lie together."""
    learner = jaxdp.experts.svt_restarts(num_experts=5, horizon=4000, windows=windows, check_every=4)
    run = jaxdp.simulator(learner, jaxdp.experts.stochastic_losses([0.5] * 5), 4000, engine="blocks")
    params = run.params(epsilon=1.0)
    memory = learner.init(jax.random.key(0), params["learner"]).private.windows.whole.shape
    traced = jax.make_jaxpr(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(0), 3), params)
    shape = re.escape(f"[{','.join(map(str, (3, *memory)))}]")
    assert bool(re.search(rf"{shape} = layout_constraint", str(traced))) == is_laid_out


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
        "carried": lambda state: state,
        "added": compensated.add,
        "chosen": lambda flag, *both: jax.tree.map(lambda one, other: jnp.where(flag, one, other), *both),
    }
    for module in (_hedge, _lazy_weights, _counter_weights):
        for step, function in plain.items():
            if hasattr(module, step):
                monkeypatch.setattr(module, step, function)
    assert equal(kernels, losses_of_plays(make(), values))
