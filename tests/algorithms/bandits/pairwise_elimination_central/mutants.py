"""Mistakes of `pairwise_elimination_central`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import pairwise_elimination_central
from tests.privacy.case import Case
from tests.privacy.planter import planted

MODULE = "jaxdp.bandits._pairwise_elimination_central"
VALUES = {"epsilon": 1.0, "first_look": 2, "growth": 1.0}


def users_of(rounds: int) -> tuple[UserData, UserData]:
    """Returns users of two arms in turn; the first user's rewards differ."""
    nothing = np.zeros((rounds, 2), np.int32)
    paid = nothing.copy()
    paid[0] = 1
    return UserData(nothing), UserData(paid)


def epoch_counted_twice() -> Case:
    """Keeps an epoch's total, so that its users are released again with those of the next epoch."""
    right, users = pairwise_elimination_central(num_arms=2), users_of(4)
    totals = "jnp.where(public.played == 0, 0, state.private.totals) + rewards"
    wrong = planted(MODULE, (totals, "state.private.totals + rewards")).pairwise_elimination_central(num_arms=2)
    attacks = [learner_attack(learner, VALUES, users) for learner in (wrong, right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=20_000)


def half_the_noise() -> Case:
    """Releases totals with noise of half the scale, by rounds or as counts."""
    right, users = pairwise_elimination_central(num_arms=2), users_of(2)
    assert right.counts is not None

    def double_epsilon(params):
        return dataclasses.replace(params, epsilon=2 * params.epsilon)

    def update(key, params, state, report):
        return right.update(key, double_epsilon(params), state, report)

    def update_counts(key, params, state, plan, report):
        assert right.counts is not None
        return right.counts.update_counts(key, double_epsilon(params), state, plan, report)

    wrong = right._replace(update=update, counts=right.counts._replace(update_counts=update_counts))
    attacks = [
        learner_attack(learner, VALUES, users, path=path) for learner in (wrong, right) for path in ("rounds", "counts")
    ]
    return Case(wrong=attacks[0], right=tuple(attacks[2:]), trials=4_000)


CASES = {
    "an epoch of pairs counted twice": epoch_counted_twice,
    "totals of pairs with half the noise": half_the_noise,
}
