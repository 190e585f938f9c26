"""Mistakes of `ucb_central`."""

import jax
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import ucb_central
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def block_released_twice() -> Case:
    """Releases the total of a block with noise, and again when the next arm is chosen: the mean of both counts."""
    right = ucb_central(num_arms=2)

    def update(key, params, state, report):
        once, again = (right.update(each, params, state, report) for each in jax.random.split(key))
        sums = jax.tree.map(lambda first, second: (first + second) / 2, once.public.sums, again.public.sums)
        return once._replace(public=once.public._replace(sums=sums))

    never = np.ones((1, 2), np.int32)
    users = UserData(never - 1), UserData(never)
    wrong = learner_attack(right._replace(update=update), VALUES, users)
    return Case(wrong=wrong, right=(learner_attack(right, VALUES, users),), trials=20_000)


CASES = {
    "a block of rewards released twice": block_released_twice,
}
