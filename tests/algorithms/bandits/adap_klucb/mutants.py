"""Mistakes of `adap_klucb`."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import adap_klucb
from tests.privacy.case import Case


def half_of_the_noise() -> Case:
    """Releases totals with noise for twice the budget."""
    right = adap_klucb(num_arms=2)

    def update(key, params, state, report):
        return right.update(key, replace(params, epsilon=2 * params.epsilon), state, report)

    return case_of(right, update)


def total_not_reset() -> Case:
    """Adds the total of the previous block to a block of one round: its rewards enter two releases."""
    right = adap_klucb(num_arms=2)

    def update(key, params, state, report):
        arm, _ = report
        after = right.update(key, params, state, report)
        is_short = (state.public.played == 0) & (after.public.played == 0)
        sums = after.public.sums
        before = jnp.where(is_short, state.private.total, 0).astype(sums.total.dtype)
        return after._replace(public=after.public._replace(sums=sums._replace(total=sums.total.at[arm].add(before))))

    return case_of(right, update)


def noise_of_a_mean() -> Case:
    """Divides the noise of a total by the number of its rewards, as if this number were divided out twice."""
    right = adap_klucb(num_arms=2)

    def update(key, params, state, report):
        arm, _ = report
        count = jnp.maximum(state.public.plays[arm], 1).astype(params.epsilon.dtype)
        return right.update(key, replace(params, epsilon=count * params.epsilon), state, report)

    nothing = np.zeros((4, 2), np.int32)
    nothing[:, 0] = 1
    return case_of(right, update, nothing, {"epsilon": 1.0, "exploration_rate": 1e-3})


def case_of(right, update, nothing=None, values=None) -> Case:
    """Attacks both learners between two runs, in which one reward of the first arm differs, by default the first."""
    if nothing is None:
        nothing, changed = np.zeros((2, 2), np.int32), 0
    else:
        changed = len(nothing) - 1
    once = nothing.copy()
    once[changed] = 1 - once[changed]
    users, values = (UserData(nothing), UserData(once)), values or {"epsilon": 1.0}
    attacks = [learner_attack(learner, values, users) for learner in (right._replace(update=update), right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=20_000)


CASES = {
    "half of the noise of a block of AdaP-KLUCB": half_of_the_noise,
    "rewards of AdaP-KLUCB in two totals": total_not_reset,
    "noise of AdaP-KLUCB that shrinks with the block": noise_of_a_mean,
}
