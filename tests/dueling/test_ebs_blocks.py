"""Elimination in blocks: the results of single rounds, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import ebs_blocks, ebs_elimination, ebs_sweeps, switching_duels, utility_duels

KEY = jax.random.key(23)


def outputs(engine, utilities, options, values):
    """What a hundred runs record."""
    learner = ebs_elimination(num_arms=len(utilities), horizon=200, **options)
    record = {
        name: (lambda public, _, name=name: getattr(public, name))
        for name in ("active", "plays", "digits", "estimates")
    }
    looks = [50, 63, 130, 200]
    run = jaxdp.simulator(learner, utility_duels(utilities), 200, checkpoints=looks, record=record, engine=engine)
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY, 100), run.params(**values))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        pytest.param({"arity": 3}, {"epsilon": 2.0, "confidence_multiplier": 0.2}, marks=pytest.mark.slow),
        pytest.param({}, {"epsilon": 2.0, "confidence_multiplier": 0.3}, marks=pytest.mark.slow),
        pytest.param(
            {"noise": "gaussian"}, {"epsilon": 1.0, "delta": 1e-3, "confidence_multiplier": 0.4}, marks=pytest.mark.slow
        ),
        pytest.param({"constants": "paper"}, {"epsilon": 1.0, "confidence_multiplier": 0.005}, marks=pytest.mark.slow),
    ],
)
def test_blocks_are_rounds_bit_for_bit(options, values):
    rounds, blocks = (outputs(engine, [1.0, 0.3, 0.0, -1.0], options, values) for engine in ("rounds", "blocks"))
    for name, expected in rounds.items():
        assert (expected == blocks[name]).all(), name
    assert len(np.unique(np.asarray(rounds["active"]).sum(2))) == 4  # arms were dropped


def test_blocks_of_half_of_the_arms(monkeypatch):
    """Lanes go on with columns for three of six arms, whichever they are, and then with the last arm."""
    given = [-1.0, 0.5, 1.0, -2.0, 0.7, -2.0], {"arity": 4}, {"epsilon": 4.0, "confidence_multiplier": 0.17}
    rounds, blocks = (outputs(engine, *given) for engine in ("rounds", "blocks"))
    for name, expected in rounds.items():
        assert (expected == blocks[name]).all(), name
    assert np.unique(np.asarray(rounds["active"][:, -1]).sum(1)).tolist() == [1, 2, 3]  # all lanes came so far
    right = ebs_blocks._columns

    def to_the_next_arm(active, width):
        columns = right(active, width)
        return columns if columns.everyone else columns._replace(column=(columns.column + 1) % width)

    monkeypatch.setattr(ebs_blocks, "_columns", to_the_next_arm)
    wrong = outputs("blocks", *given)
    assert not (rounds["plays"] == wrong["plays"]).all()


def test_blocks_are_rounds_in_a_world_that_goes_on():
    """A block has places for the arms in turn; the world's rounds are in their own order."""
    stages = [[[0.5, 0.9, 0.8], [0.1, 0.5, 0.9], [0.2, 0.1, 0.5]], [[0.5, 0.1, 0.8], [0.9, 0.5, 0.9], [0.2, 0.1, 0.5]]]
    duels = switching_duels(stages, starts=[0, 41])
    learner = ebs_elimination(num_arms=3, horizon=90, arity=3)
    record = {"plays": lambda public, _: public.plays, "action": lambda _, action: action}
    found = []
    for engine in ("rounds", "blocks"):
        run = jaxdp.simulator(learner, duels, 90, checkpoints=[25, 90], record=record, engine=engine)
        params = run.params(epsilon=5.0, confidence_multiplier=0.2)
        found.append(jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY, 50), params))
    for name, rounds in found[0].items():
        assert (rounds == found[1][name]).all(), name
    assert len(np.unique(np.asarray(found[0]["plays"]).sum((2, 3)))) > 2  # some arms were alone by then


def after_a_large_removal(learner, wins):
    """The estimates after a block of duels of two arms, and after the same duels as single rounds: [lanes, ...] each.

    A third arm was just dropped, over which the others had many wins.
    """
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=4.0))
    state, blocks = learner.init(KEY, params), learner.bulk.blocks
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
    order = blocks.order(params, public)

    def both(key):
        keys = jax.random.split(key, blocks.length)
        placed = keys[jnp.minimum(order, blocks.length - 1)]
        plan = blocks.plan(placed, params, public, jnp.asarray(blocks.length))
        answers = jax.random.bernoulli(key, 0.5, (blocks.length,)).astype(jnp.int32)
        block, used = blocks.absorb(placed, params, state, plan, (plan.actions, answers))

        def step(t, state):
            place = jnp.argmax(order == t)
            after = learner.update(keys[t], params, state, (plan.actions[place], answers[place]))
            return jax.tree.map(lambda new, old: jnp.where(t < used, new, old), after, state)

        rounds = jax.lax.fori_loop(0, blocks.length, step, state)
        return block.public.estimates, rounds.public.estimates

    return jax.jit(jax.vmap(both))(jax.random.split(KEY, 100))


@pytest.mark.skipif(jnp.result_type(float) == jnp.float64, reason="float64 has digits for all removals")
def test_large_removals(monkeypatch):
    """The wins that are removed take all digits of the leaves' sum, which then depends on the order of its terms."""
    learner = ebs_elimination(num_arms=3, horizon=10**7)
    block, rounds = after_a_large_removal(learner, 10**6)
    assert (block == rounds).all()
    planted = ebs_sweeps._leaves

    def all_at_once(start, leaf, last, ends):
        return start[None] + planted(jnp.zeros_like(start), leaf, last, ends)

    monkeypatch.setattr(ebs_sweeps, "_leaves", all_at_once)
    block, rounds = after_a_large_removal(learner, 10**6)
    assert (block != rounds).any()
