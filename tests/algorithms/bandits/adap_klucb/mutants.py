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

    # Often the first arm is played in round 3, and then in a block of rounds 4 and 5. The reward of round 5 differs.
    first_arm_pays = np.zeros((5, 2), np.int32)
    first_arm_pays[:, 0] = 1
    return case_of(right, update, first_arm_pays, changed=4, exploration_rate=1e-3)


def case_of(right, update, rewards=None, changed=0, **values) -> Case:
    """Attacks both learners between two runs whose rewards differ in one round: by default the first of two is paid."""
    rewards = np.zeros((2, 2), np.int32) if rewards is None else rewards
    others = rewards.copy()
    others[changed] = 1 - rewards[changed]
    users, values = (UserData(rewards), UserData(others)), {"epsilon": 1.0, **values}
    attacks = [learner_attack(learner, values, users) for learner in (right._replace(update=update), right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=20_000)


CASES = {
    "half of the noise of a block of AdaP-KLUCB": half_of_the_noise,
    "rewards of AdaP-KLUCB in two totals": total_not_reset,
    "noise of AdaP-KLUCB that shrinks with the block": noise_of_a_mean,
}
