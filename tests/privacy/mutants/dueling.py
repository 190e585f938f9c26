"""Mistakes of dueling bandits."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users, by_pair, learner_attack
from jaxdp.dueling import ebs_local, ebs_phased
from tests.privacy.mutants.case import Case


def unnoised_elimination() -> Case:
    """Drops arms by their counts themselves: of four wins one decides, where D / 2 is a quarter of the duels."""
    right = ebs_phased(num_arms=2)
    values = {"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.0015}

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    # One pass: arms 0, 1, 0, 1 on the left. Arm 1 always wins, arm 0 once, or never.
    rounds = int(right.params(**values).passes[0, 2]) * 4
    once = np.ones((rounds, 2, 2), np.int32)
    once[:, 0] = 0
    never = once.copy()
    once[: rounds // 2, 0] = 1
    never[1 : rounds // 2, 0] = 1
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
