"""Mistakes of `thompson`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import thompson
from jaxdp.core import Interface, Space, arms
from jaxdp.mechanisms import randomized_response
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def reused_coin() -> Case:
    """Reports a reward by two bits (above 1/3, above 2/3), at half the budget each, flipped by a single coin."""
    bits = thompson(num_arms=2)

    def learner(*, reuse: bool):
        def privatize(key, params, public, context, action, feedback):
            keys = jnp.stack([key, key]) if reuse else jax.random.split(key)
            above = (feedback > jnp.asarray([1 / 3, 2 / 3], feedback.dtype)).astype(jnp.int32)
            half = params.report.epsilon / 2
            told = [randomized_response(keys[index], above[index], half) for index in range(2)]
            return action, jnp.stack(told)

        def update(key, params, state, report):
            arm, told = report
            return bits.update(key, params, state, (arm, told.sum().astype(state.public.sums.total.dtype) / 2))

        interface = Interface(arms(2), Space("numbers", (), 0, 1))
        return bits._replace(privatize=privatize, update=update, interface=interface)

    users = UserData(np.full((1, 2), 0.0)), UserData(np.full((1, 2), 0.5))
    wrong, right = (learner_attack(learner(reuse=reuse), VALUES, users) for reuse in (True, False))
    return Case(wrong=wrong, right=(right,), trials=4_000)


CASES = {
    "a coin reused within a round": reused_coin,
}
