"""Operations that only one branch uses are moved into this branch, and results stay the same."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxpr_as_fun

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.numerics.equations import equations
from jaxdp.numerics.private_jax import PLAIN
from jaxdp.random import fast_key
from jaxdp.simulation import simulator
from jaxdp.simulation.run.branches import inline, move_into_branches, with_operations_in_branches


def in_one_branch(key, round_, value):
    child = jax.random.fold_in(jax.random.split(key)[1], round_)
    return jax.lax.cond(round_ % 3 == 0, lambda: value + jax.random.normal(child), lambda: value)


def in_both_branches(key, round_, value):
    child = jax.random.fold_in(key, round_)
    return jax.lax.cond(round_ % 3 == 0, lambda: value + jax.random.normal(child), lambda: jax.random.uniform(child))


def also_outside(key, round_, value):
    child = jax.random.fold_in(key, round_)
    return jax.lax.cond(round_ % 3 == 0, lambda: jax.random.normal(child), lambda: value), jax.random.uniform(child)


def in_two_conds(key, round_, value):
    child = jax.random.fold_in(key, round_)
    first = jax.lax.cond(round_ % 3 == 0, lambda: jax.random.normal(child), lambda: value)
    return jax.lax.cond(round_ % 2 == 0, lambda: first, lambda: jax.random.uniform(child))


def a_key_for_each(key, round_, value):
    one, other = jax.random.split(key)
    one = jax.random.fold_in(one, round_)
    return jax.lax.cond(round_ % 3 == 0, lambda: jax.random.normal(one) + value, lambda: jax.random.uniform(other))


FUNCTIONS = {in_one_branch: [], in_both_branches: ["fold_in"], also_outside: ["fold_in"], in_two_conds: ["fold_in"]}


@pytest.mark.parametrize("rounds", [jnp.arange(7), 3], ids=["of each lane", "of all lanes"])
@pytest.mark.parametrize("function", [in_one_branch, a_key_for_each], ids=lambda function: function.__name__)
def test_results_are_the_same(function, rounds):
    keys, axes = jax.random.split(fast_key(jax.random.key(3)), 7), (0, None if isinstance(rounds, int) else 0, None)
    plain, moved = (
        jax.jit(jax.vmap(each, axes))(keys, rounds, 0.5) for each in (function, with_operations_in_branches(function))
    )
    assert (plain == moved).all()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_only_keys_of_one_branch_are_moved(function):
    moved = move_into_branches(jax.make_jaxpr(function)(jax.random.key(3), 1, 0.5))
    names = [each.primitive.name for each in moved.jaxpr.eqns]
    assert [name for name in names if "fold_in" in name] == [f"random_{name}" for name in FUNCTIONS[function]]


def test_arithmetic_of_floats_stays():
    def scale(key, flag, value):
        scaled = jnp.maximum(jax.random.uniform(key), 0.5) * 3
        return jax.lax.cond(flag, lambda: jnp.where(flag, scaled, 0) + 1, lambda: value)

    moved = move_into_branches(jax.make_jaxpr(scale)(jax.random.key(3), True, 0.5))
    assert "mul" in [each.primitive.name for each in moved.jaxpr.eqns]


def public_key(key, round_):
    return jax.random.fold_in(jax.random.key(7), round_)


def key_of_a_lane(key, round_):
    return jax.random.fold_in(key, round_)


@pytest.mark.parametrize(("derive", "number"), [(public_key, 1), (key_of_a_lane, 0)])
def test_keys_that_lanes_share_are_derived_only_once(derive, number):
    """Checks that no branch derives such a key for each lane: a run of 1,000 lanes took a hundred times as long."""

    def step(key, round_, flag, value):
        children = jax.random.split(derive(key, round_), 50)
        return jax.lax.cond(flag, lambda: jax.random.uniform(children[3]), lambda: value)

    moved = move_into_branches(jax.make_jaxpr(step)(jax.random.key(3), 1, True, 0.5))
    assert [each.primitive.name for each in moved.jaxpr.eqns].count("random_split") == number


def test_keys_of_other_implementations_stay():
    """Checks keys that may have other values in a batch of lanes."""

    def step(key, flag):
        child = jax.random.split(jax.random.fold_in(key, 1), 3)[1]
        return jax.lax.cond(flag, lambda: jax.random.key_data(child)[0], lambda: jnp.uint32(0))

    flags, key = jnp.arange(6) % 3 > 0, jax.random.key(7, impl="unsafe_rbg")
    plain, moved = (jax.vmap(each, (None, 0))(key, flags) for each in (step, with_operations_in_branches(step)))
    assert plain.tolist() == moved.tolist()


def test_functions_that_are_compiled_inline_are_inlined_each_time():
    @partial(jax.jit, inline=True)
    def twice(key, value):
        return jax.random.normal(key) + 2 * value, value, 1.5

    def both(key, value):
        first, same, constant = twice(key, value)
        return twice(jax.random.fold_in(key, 1), first + same + constant)

    arguments = jax.random.key(3), 0.5
    traced = jax.make_jaxpr(both)(*arguments)
    program = traced.replace(jaxpr=inline(traced.jaxpr))
    assert not [each for each in program.jaxpr.eqns if each.params.get("inline")]
    assert [float(value) for value in jaxpr_as_fun(program)(*arguments)] == [float(value) for value in both(*arguments)]


@pytest.mark.skipif(PLAIN, reason="traced programs are not changed")
@pytest.mark.parametrize(("engine", "number"), [("rounds", 1), ("blocks", 0)])
def test_rounds_derive_only_keys_that_they_use(engine, number):
    """Checks that keys of releases are derived in branches, and by blocks also keys of rewards."""
    learner, world = explore_then_commit(num_arms=2, explore_rounds=4), bernoulli_bandit([0.2, 0.6])
    run = simulator(learner, world, 9, engine=engine)
    program = jax.make_jaxpr(run)(fast_key(jax.random.key(0)), run.params(epsilon=1.0))
    loop = next(each for each in equations(program) if each.primitive.name == "while")
    body = loop.params["body_jaxpr"].jaxpr
    derived = [each for each in body.eqns if each.primitive.name == "random_fold_in"]
    needed = {variable for each in body.eqns for variable in each.invars if not hasattr(variable, "val")}
    assert len([each for each in derived if needed & set(each.outvars)]) == number
