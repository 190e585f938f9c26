"""Mistakes of `ebs_elimination`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import registry
from jaxdp.audit import UserData, feedback_of_pair, learner_attack
from jaxdp.core import State
from jaxdp.dueling import ebs_elimination
from tests.privacy.case import Case


def _first_duel() -> tuple[UserData, UserData]:
    """Makes four rounds in which arm 0 wins always, or all except the first."""
    always = np.ones((4, 2, 2), np.int32)
    later = always.copy()
    later[0] = 0
    return UserData(always), UserData(later)


def counters_fed_upon_wins() -> Case:
    """Advances an arm's counter only if the arm wins, as printed, so that the clock reveals who won."""
    right = ebs_elimination(num_arms=2, horizon=4)

    def update(key, params, state, report):
        _, won = report
        after = right.update(key, params, state, report)
        idle = after._replace(
            private=state.private,
            public=after.public._replace(digits=state.public.digits, estimates=state.public.estimates),
        )
        return jax.tree.map(lambda new, old: jnp.where(won > 0, new, old), after, idle)

    values, users = {"epsilon": 1.0}, _first_duel()
    wrong, twin = (
        learner_attack(one, values, users, answer=feedback_of_pair)  # pyright: ignore[reportArgumentType]
        for one in (right._replace(update=update), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=1_000)


def counters_at_half_their_noise() -> Case:
    """Uses half the noise, although an outcome and its negative cost the budget each; both neighbours see it."""
    right = registry.attacks(["ebs_elimination"])["ebs_elimination"].attacks["rounds"]
    node = right.params.noise
    wrong = dataclasses.replace(right.params, noise=dataclasses.replace(node, epsilon=2 * node.epsilon))
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=200_000)


def node_noise_reused() -> Case:
    """Reuses the same noise in every leaf, so that the difference of two leaves is exact."""
    right = ebs_elimination(num_arms=2, horizon=4)

    def init(key, params):
        state = right.init(key, params)
        return State((state.private, jax.random.fold_in(key, 0)), state.public)

    def update(key, params, state, report):
        del key
        private, once = state.private
        after = right.update(once, params, State(private, state.public), report)
        return State((after.private, once), after.public)

    values, users = {"epsilon": 1.0}, _first_duel()
    wrong, twin = (
        learner_attack(one, values, users, answer=feedback_of_pair, observe=_leaves)  # pyright: ignore[reportArgumentType]
        for one in (right._replace(init=init, update=update), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=1_000)


def _leaves(seen):
    """Returns the difference between the first and the second leaf of each arm."""
    after = seen["public"].estimates.sum(1)
    return jnp.stack([after[2, 0] - 2 * after[0, 0], after[3, 1] - 2 * after[1, 1]])


CASES = {
    "counters of duels fed upon wins only": counters_fed_upon_wins,
    "counters of duels at half their noise": counters_at_half_their_noise,
    "the noise of a node reused in every node": node_noise_reused,
}
