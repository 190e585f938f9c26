"""Blocks of LinUCB, whose reports are one sum: how long they are, what they solve for, and what memory they take."""

import math
from functools import partial

import jax
import numpy as np

import jaxdp
from jaxdp.bandits.contextual import linear_contexts, linear_ucb

KEY = partial(jax.random.key, 8)
PRIVATE = {"epsilon": 1.0, "delta": 1e-3}


def test_blocks_solve_when_rounds_do():
    """Without noise a sum of reports is that of rounds, up to rounding."""
    learner = linear_ucb(num_arms=3, dim=2, horizon=90, update_every=0.25)
    assert [blocks.length for blocks in learner.blocks] == [22]

    def found(engine):
        record = {"solved": lambda look: look.public.model.solved, "theta": lambda look: look.public.model.theta}
        run = jaxdp.simulator(
            learner,
            linear_contexts(num_arms=3, dim=2, theta=[0.5, 0.0]),
            90,
            checkpoints=[7, 50, 90],
            record=record,
            engine=engine,
        )
        params = run.params(epsilon=math.inf, delta=1e-3)
        return jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 8), params)

    rounds, blocks = found("rounds"), found("blocks")
    np.testing.assert_array_equal(rounds["solved"], blocks["solved"])
    assert set(rounds["solved"][0].tolist()) == {7, 41, 78}
    np.testing.assert_allclose(rounds["theta"], blocks["theta"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(rounds["pseudo_regret"], blocks["pseudo_regret"], rtol=0, atol=1e-3)


def test_blocks_are_as_long_as_the_longest_time_between_two_solutions():
    """Up to a bound; there are none where a model is solved for after every round."""
    found = {
        horizon: [blocks.length for blocks in linear_ucb(num_arms=3, dim=2, horizon=horizon, update_every=0.25).blocks]
        for horizon in (7, 8, 40, 255, 10_000)
    }
    assert found == {7: [], 8: [2], 40: [10], 255: [63], 10_000: [64]}
    for every, lengths in ((1, []), ("doubling", []), (7, [7]), (50, [40]), (1000, [40])):
        learner = linear_ucb(num_arms=3, dim=2, horizon=40, update_every=every)
        assert [blocks.length for blocks in learner.blocks] == lengths


def test_long_blocks_need_no_more_memory():
    """Contexts of a round are gone with it: 20 more rounds of a block would be 20 * 20 * 2 * 4 bytes a lane."""

    def temporary(every):
        learner = linear_ucb(num_arms=20, dim=2, horizon=1000, update_every=every)
        run = jaxdp.simulator(learner, linear_contexts(num_arms=20, dim=2), 1000, engine="blocks")
        lanes = jax.jit(jax.vmap(run, in_axes=(0, None)))
        compiled = lanes.lower(jax.random.split(KEY(), 8), run.params(**PRIVATE)).compile()
        analysis = compiled.memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes / 8

    assert temporary(24) < temporary(4) + 20 * 20 * 2
