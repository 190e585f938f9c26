"""Mistakes of dueling bandits."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import registry
from jaxdp.audit import Users, by_pair, learner_attack
from jaxdp.core import State
from jaxdp.dueling import ebs_elimination, ebs_local, ebs_phased
from tests.privacy.mutants.case import Case


def unnoised_elimination() -> Case:
    """Drops arms by their counts themselves: arm 1 wins once, and arm 0 stays if it does, too."""
    right = ebs_phased(num_arms=2)
    values = {"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.0015}  # a first phase of four duels

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    once = np.zeros((4, 2, 2), np.int32)
    once[0, 0], once[1, 1] = 1, 1  # arms 0, 1, 0, 1 are on the left
    never = once.copy()
    never[0, 0] = 0
    users = Users(once), Users(never)
    wrong = learner_attack(right._replace(update=update), values, users, answer=by_pair)
    return Case(wrong=wrong, right=(learner_attack(right, values, users, answer=by_pair),), trials=4_000)


def responses_at_twice_epsilon() -> Case:
    right = ebs_local(num_arms=2, horizon=10)

    def privatize(key, params, public, context, action, feedback):
        twice = dataclasses.replace(params, epsilon=2 * params.epsilon)
        return right.privatize(key, twice, public, context, action, feedback)

    users = tuple(Users(np.full((1, 2, 2), won, np.int32)) for won in (0, 1))
    wrong, twin = (
        learner_attack(one, {"epsilon": 1.0}, users, answer=by_pair)  # pyright: ignore[reportArgumentType]
        for one in (right._replace(privatize=privatize), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=2_000)


def _first_duel() -> tuple[Users, Users]:
    """Four rounds in which arm 0 wins always, or all but the first."""
    always = np.ones((4, 2, 2), np.int32)
    later = always.copy()
    later[0] = 0
    return Users(always), Users(later)


def counters_fed_upon_wins() -> Case:
    """As printed: a counter's clock goes on if the arm wins, and so it tells who won."""
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
        learner_attack(one, values, users, answer=by_pair)  # pyright: ignore[reportArgumentType]
        for one in (right._replace(update=update), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=1_000)


def counters_at_half_their_noise() -> Case:
    """An outcome and its negative cost the budget each. Attacked by the registered neighbours, who see both."""
    right = registry.attacks(["ebs_elimination"])["ebs_elimination"].attacks["rounds"]
    node = right.params.noise
    wrong = dataclasses.replace(right.params, noise=dataclasses.replace(node, epsilon=2 * node.epsilon))
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=200_000)


def node_noise_reused() -> Case:
    """The same noise in every leaf: the difference of two is exact."""
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
        learner_attack(one, values, users, answer=by_pair, look=_leaves)  # pyright: ignore[reportArgumentType]
        for one in (right._replace(init=init, update=update), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=1_000)


def _leaves(seen):
    """By how much the first leaf of each arm differs from its second."""
    after = seen["public"].estimates.sum(1)
    return jnp.stack([after[2, 0] - 2 * after[0, 0], after[3, 1] - 2 * after[1, 1]])
