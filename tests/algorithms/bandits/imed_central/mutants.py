"""Mistakes of `imed_central`."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import imed_central
from tests.privacy.case import Case


def half_of_the_noise() -> Case:
    """Releases totals with noise for twice the budget."""
    right = imed_central(num_arms=2)

    def update(key, params, state, report):
        return right.update(key, replace(params, epsilon=2 * params.epsilon), state, report)

    return case_of(right, update)


def total_not_reset() -> Case:
    """Adds the total of the previous block to a block of one round: its rewards enter two releases."""
    right = imed_central(num_arms=2)

    def update(key, params, state, report):
        arm, _ = report
        after = right.update(key, params, state, report)
        is_short = (state.public.played == 0) & (after.public.played == 0)
        sums = after.public.sums
        before = jnp.where(is_short, state.private.total, 0).astype(sums.total.dtype)
        return after._replace(public=after.public._replace(sums=sums._replace(total=sums.total.at[arm].add(before))))

    return case_of(right, update)


def case_of(right, update) -> Case:
    """Attacks both learners between two runs of two rounds: the first reward is 0 or 1."""
    nothing = np.zeros((2, 2), np.int32)
    once = nothing.copy()
    once[0] = 1
    users, values = (UserData(nothing), UserData(once)), {"epsilon": 1.0}
    attacks = [learner_attack(learner, values, users) for learner in (right._replace(update=update), right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=20_000)


CASES = {
    "half of the noise of a block of IMED": half_of_the_noise,
    "rewards of IMED in two totals": total_not_reset,
}
