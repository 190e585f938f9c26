"""Elimination by optimal designs against the independent version's committed values, in distribution."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.dueling import g_optimal_elimination, linear_duels
from tests.algorithms.dueling.g_optimal_elimination import make_reference as golden
from tests.algorithms.dueling.g_optimal_elimination.golden import Played

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 700
HORIZON = 2**31 - 1
PHASES = golden.PHASES


def play(seed: int, points: list[dict[str, Any]]) -> list[dict[str, np.ndarray]]:
    """Returns, for each of some values, the statistics to compare: by counts, until so many phases are over."""
    learner = g_optimal_elimination(features=golden.FEATURES, design_gap=1e-2)
    counts = learner.counts
    assert counts is not None
    duels = linear_duels(golden.FEATURES, golden.WEIGHTS)
    theirs, feedback_totals = duels.params(), duels.feedback_totals
    assert feedback_totals is not None

    def lane(key, params):
        """Returns the active arms after every phase, phases and rounds; a phase is played as one."""

        def one(carried, key):
            state, phases, rounds = carried
            goes_on = state.public.active.sum() > 1
            key_duels, key_update = jax.random.split(key)
            plan = counts.plan(key, params, state.public, jnp.asarray(HORIZON, jnp.result_type(int)))
            _, won, _ = feedback_totals(key_duels, theirs, (), plan.counts)
            after = counts.update_counts(key_update, params, state, plan, (plan.counts, won))
            rounds += jnp.where(goes_on, plan.counts.sum(), 0).astype(rounds.dtype)
            state = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), after, state)
            return (state, phases + goes_on.astype(jnp.int32), rounds), state.public

        start = learner.init(key, params), jnp.int32(0), jnp.zeros((), jnp.float32)
        (_, phases, rounds), publics = jax.lax.scan(one, start, jax.random.split(key, PHASES))
        return publics.estimate[0], publics.active, phases, rounds

    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[learner.params(**each) for each in points])
    keys = jax.random.split(jax.random.key(seed), LANES)
    first, active, phases, rounds = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(jax.vmap(lane, (0, None)), (None, 0)))(keys, params)
    )
    return [
        golden.statistics(Played(first[i], active[i, :, 0], active[i, :, -1], phases[i], rounds[i]))
        for i in range(len(points))
    ]


def test_equals_the_independent_version():
    values = [
        {**golden.OPTIONS, "epsilon": epsilon, "confidence_multiplier": multiplier}
        for epsilon, multiplier in golden.MULTIPLIERS.items()
    ]
    less_noise, longer = {**values[0], "epsilon": 1.0}, {**values[-1], "confidence_multiplier": 0.006}
    *found, quiet, long = play(3, [*values, less_noise, longer])
    for epsilon, each in zip(golden.MULTIPLIERS, found, strict=True):
        golden.check(each, REFERENCE[str(epsilon)])
    for wrong, epsilon in ((quiet, 0.5), (long, math.inf)):
        with pytest.raises(AssertionError):
            golden.check(wrong, REFERENCE[str(epsilon)])


def test_the_reference_can_be_made_again():
    for epsilon in golden.MULTIPLIERS:
        assert golden.summary(golden.statistics(golden.play(epsilon))) == REFERENCE[str(epsilon)]
