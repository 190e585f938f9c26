"""Mistakes of `thompson_central`."""

from dataclasses import replace

import jax
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import thompson_central
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def half_of_the_noise() -> Case:
    """Releases totals with noise for twice the budget."""
    right = thompson_central(num_arms=2)

    def update(key, params, state, report):
        return right.update(key, replace(params, epsilon=2 * params.epsilon), state, report)

    return _case(right, right._replace(update=update))


def block_released_twice() -> Case:
    """Releases the total of a block with noise, and again for the next draw: the mean of both totals."""
    right = thompson_central(num_arms=2)

    def update(key, params, state, report):
        once, again = (right.update(each, params, state, report) for each in jax.random.split(key))
        sums = jax.tree.map(lambda first, second: (first + second) / 2, once.public.sums, again.public.sums)
        return once._replace(public=once.public._replace(sums=sums))

    return _case(right, right._replace(update=update))


def _case(right, wrong) -> Case:
    paid = np.ones((1, 2), np.int32)
    users = UserData(paid - 1), UserData(paid)
    attacks = [learner_attack(learner, VALUES, users) for learner in (wrong, right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=20_000)


CASES = {
    "half of the noise of a block of Thompson sampling": half_of_the_noise,
    "a block of Thompson sampling released twice": block_released_twice,
}
