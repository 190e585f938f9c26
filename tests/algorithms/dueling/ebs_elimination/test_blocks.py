"""Elimination in blocks: the results of single rounds, bit for bit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import ebs_elimination, switching_duels, utility_duels
from jaxdp.dueling._ebs_elimination import blocks as ebs_blocks
from jaxdp.dueling._ebs_elimination import sweeps as ebs_sweeps
from jaxdp.preferences import utility_matrix

KEY = partial(jax.random.key, 23)


def outputs(engine, utilities, options, values):
    """Returns the records of a hundred runs."""
    learner = ebs_elimination(num_arms=len(utilities), horizon=200, **options)
    record = {
        name: (lambda snapshot, name=name: getattr(snapshot.public, name))
        for name in ("active", "plays", "digits", "estimates")
    }
    looks = [50, 63, 130, 200]
    run = jaxdp.simulator(learner, utility_duels(utilities), 200, checkpoints=looks, record=record, engine=engine)
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 100), run.params(**values))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"arity": 3}, {"epsilon": 2.0, "confidence_multiplier": 0.2}),
        ({}, {"epsilon": 2.0, "confidence_multiplier": 0.3}),
        ({"noise": "gaussian"}, {"epsilon": 1.0, "delta": 1e-3, "confidence_multiplier": 0.4}),
        ({"constants": "paper"}, {"epsilon": 1.0, "confidence_multiplier": 0.005}),
    ],
)
def test_blocks_are_rounds_bit_for_bit(options, values):
    rounds, blocks = (outputs(engine, [1.0, 0.3, 0.0, -1.0], options, values) for engine in ("rounds", "blocks"))
    for name, expected in rounds.items():
        assert (expected == blocks[name]).all(), name
    assert len(np.unique(np.asarray(rounds["active"]).sum(2))) == 4  # arms were dropped


HALF = [-1.0, 0.5, 1.0, -2.0, 0.7, -2.0], {"arity": 4}, {"epsilon": 4.0, "confidence_multiplier": 0.17}


def test_blocks_of_half_of_the_arms():
    """Runs lanes with columns for any three of six arms, and then with the last arm."""
    rounds, blocks = (outputs(engine, *HALF) for engine in ("rounds", "blocks"))
    for name, expected in rounds.items():
        assert (expected == blocks[name]).all(), name
    left = np.asarray(rounds["active"]).sum(2)
    assert left[:, -1].max() <= 3  # all lanes came so far, some of them to the last arm
    assert left.min() == 1
    assert (left == 3).any()


def test_columns_of_the_wrong_arms_are_noticed(monkeypatch):
    right, expected = ebs_blocks._columns, outputs("rounds", *HALF)["plays"]

    def of_the_next_arm(public, width):
        columns = right(public, width)
        return columns if width == len(public.active) else columns._replace(column=(columns.column + 1) % width)

    monkeypatch.setattr(ebs_blocks, "_columns", of_the_next_arm)
    assert not (outputs("blocks", *HALF)["plays"] == expected).all()


@pytest.mark.parametrize("num_arms", [3, 6])
def test_blocks_are_rounds_in_a_world_that_goes_on(num_arms):
    """Checks a block whose slots take the arms in turn, while the world's rounds keep their own order."""
    matrix = utility_matrix(np.linspace(2, -2, num_arms))
    duels = switching_duels([matrix, matrix.T], starts=[0, 41])
    learner = ebs_elimination(num_arms=num_arms, horizon=90, arity=3)
    record = {"plays": lambda snapshot: snapshot.public.plays, "action": lambda snapshot: snapshot.action}
    found = []
    for engine in ("rounds", "blocks"):
        run = jaxdp.simulator(learner, duels, 90, checkpoints=[25, 90], record=record, engine=engine)
        params = run.params(epsilon=5.0, confidence_multiplier=0.2)
        found.append(jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 50), params))
    for name, rounds in found[0].items():
        assert (rounds == found[1][name]).all(), name
    assert len(np.unique(np.asarray(found[0]["plays"]).sum((2, 3)))) > 2  # some arms were alone by then


@pytest.mark.parametrize("options", [{}, {"noise": "gaussian"}])
def test_blocks_of_many_arms_for_many_budgets(options):
    """Counts of nine opponents need two words; lanes of a nested batch wait for one another."""
    learner, duels = ebs_elimination(num_arms=9, horizon=400, arity=4, **options), utility_duels(np.linspace(3, -3, 9))
    record = {"estimates": lambda snapshot: snapshot.public.estimates, "plays": lambda snapshot: snapshot.public.plays}
    more = {"delta": 1e-3} if options else {}
    found = []
    for engine in ("rounds", "blocks"):
        looks = [1, 37, 100, 101, 250, 400]
        run = jaxdp.simulator(learner, duels, 400, checkpoints=looks, record=record, engine=engine)
        budgets = [(0.3, 0.3), (3.0, 0.15), (np.inf, 0.3)]
        points = [run.params(epsilon=epsilon, confidence_multiplier=m, **more) for epsilon, m in budgets]
        points = jax.tree.map(lambda *leaves: jnp.stack(leaves), *points)
        lanes = jax.vmap(jax.vmap(run, (0, None)), (None, 0))
        found.append(jax.jit(lanes)(jax.random.split(KEY(), 24), points))
    for name, rounds in found[0].items():
        assert (rounds == found[1][name]).all(), name


def after_a_large_removal(learner, wins):
    """Returns the estimates after a block of duels of two arms, and after the same single rounds: [lanes, ...] each.

    A third arm was just dropped, over which the others had many wins.
    """
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=4.0))
    state, blocks = learner.init(KEY(), params), learner.blocks[0]
    top = len(state.public.estimates) - 1
    public = state.public._replace(
        active=jnp.array([True, True, False]),
        dropped=jnp.array([False, False, True]),
        plays=jnp.full((3, 3), 2 * wins, state.public.plays.dtype),
        digits=state.public.digits.at[top].set(1),
        estimates=state.public.estimates.at[top].set(3 * wins),
    )
    private = state.private._replace(
        wins=jnp.full((3, 3), wins, state.private.wins.dtype), sums=state.private.sums.at[top].set(3 * wins)
    )
    state = state._replace(private=private, public=public)
    order = blocks.slot_rounds(params, public)

    def both(key):
        keys = jax.random.split(key, blocks.length)
        placed = keys[jnp.minimum(order, blocks.length - 1)]
        plan = blocks.plan(placed, params, public, None, jnp.asarray(blocks.length))
        answers = jax.random.bernoulli(key, 0.5, (blocks.length,)).astype(jnp.int32)
        block, used = blocks.update_block(placed, params, state, plan, (plan.actions, answers))

        def step(t, state):
            place = jnp.argmax(order == t)
            after = learner.update(keys[t], params, state, (plan.actions[place], answers[place]))
            return jax.tree.map(lambda new, old: jnp.where(t < used, new, old), after, state)

        rounds = jax.lax.fori_loop(0, blocks.length, step, state)
        return block.public.estimates, rounds.public.estimates

    return jax.jit(jax.vmap(both))(jax.random.split(KEY(), 100))


@pytest.mark.skipif(jnp.result_type(float) == jnp.float64, reason="float64 has digits for all removals")
def test_large_removals(monkeypatch):
    """Removes wins that take all digits of the leaves' sum, which then depends on the order of its terms."""
    learner = ebs_elimination(num_arms=3, horizon=10**7)
    block, rounds = after_a_large_removal(learner, 10**6)
    assert (block == rounds).all()
    planted = ebs_sweeps._leaves

    def all_at_once(start, leaf, last, ends):
        return start[None] + planted(jnp.zeros_like(start), leaf, last, ends)

    monkeypatch.setattr(ebs_sweeps, "_leaves", all_at_once)
    jax.clear_caches()  # otherwise newer versions of JAX would reuse earlier traces
    block, rounds = after_a_large_removal(learner, 10**6)
    jax.clear_caches()
    assert (block != rounds).any()
