"""Elimination by optimal designs against the independent version's committed values, in distribution."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.dueling import g_optimal_elimination, linear_duels
from tests.golden import make_linear_duels_reference as golden
from tests.golden.numpy_linear_duels import Played

pytestmark = pytest.mark.once

REFERENCE = json.loads(golden.PATH.read_text())
LANES = 1500
HORIZON = 2**31 - 1
PHASES = golden.PHASES


def play(seed: int, points: list[dict[str, Any]]) -> list[dict[str, np.ndarray]]:
    """For each of some values what is compared: by counts, until so many phases are over."""
    learner = g_optimal_elimination(features=golden.FEATURES, design_gap=1e-2)
    counts = learner.counts
    assert counts is not None
    duels = linear_duels(golden.FEATURES, golden.WEIGHTS)
    theirs, tally = duels.params(), duels.tally
    assert tally is not None

    def lane(key, params):
        """(after the first phase, in the end), phases and rounds; a phase is played as one."""
        keys = jax.random.split(key, 2 * PHASES)
        state, looks, phases, rounds = learner.init(key, params), [], 0, jnp.zeros((), jnp.float32)
        for phase in range(PHASES):
            goes_on = state.public.active.sum() > 1
            plan = counts.plan(key, params, state.public, jnp.asarray(HORIZON, jnp.result_type(int)))
            _, won, _ = tally(keys[2 * phase], theirs, (), plan.counts)
            after = counts.absorb(keys[2 * phase + 1], params, state, plan, (plan.counts, won))
            rounds += jnp.where(goes_on, plan.counts.sum(), 0).astype(rounds.dtype)
            phases += goes_on.astype(jnp.int32)
            state = jax.tree.map(lambda new, old, goes_on=goes_on: jnp.where(goes_on, new, old), after, state)
            looks.append(state.public)
        return looks[0], looks[-1], phases, rounds

    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[learner.params(**each) for each in points])
    keys = jax.random.split(jax.random.key(seed), LANES)
    first, last, phases, rounds = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(jax.vmap(lane, (0, None)), (None, 0)))(keys, params)
    )
    return [
        golden.statistics(Played(first.estimate[i], first.active[i], last.active[i], phases[i], rounds[i]))
        for i in range(len(points))
    ]


def test_equals_the_independent_version():
    values = [
        {**golden.OPTIONS, "epsilon": epsilon, "confidence_multiplier": multiplier}
        for epsilon, multiplier in golden.MULTIPLIERS.items()
    ]
    more_noise, longer = {**values[0], "epsilon": 0.45}, {**values[-1], "confidence_multiplier": 0.0045}
    *found, noisy, long = play(3, [*values, more_noise, longer])
    for epsilon, each in zip(golden.MULTIPLIERS, found, strict=True):
        golden.check(each, REFERENCE[str(epsilon)])
    for wrong, epsilon in ((noisy, 0.5), (long, math.inf)):
        with pytest.raises(AssertionError):
            golden.check(wrong, REFERENCE[str(epsilon)])
        with pytest.raises(AssertionError):
            golden.check(
                {**wrong, "rounds": found[list(golden.MULTIPLIERS).index(epsilon)]["rounds"]}, REFERENCE[str(epsilon)]
            )


@pytest.mark.slow
def test_the_reference_can_be_made_again():
    for epsilon in golden.MULTIPLIERS:
        assert golden.summary(golden.statistics(golden.play(epsilon))) == REFERENCE[str(epsilon)]
