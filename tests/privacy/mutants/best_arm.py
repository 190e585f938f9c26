"""Mistakes of learners that find the best arm, and of barrier methods."""

import dataclasses

import numpy as np

from jaxdp.audit import Users, learner_attack, whole
from jaxdp.bandits import lil_ucb, successive_elimination
from jaxdp.bandits.convex import barrier_smooth
from jaxdp.mechanisms import laplace
from tests.privacy.mutants.case import Case


def _rewards(low: float, high: float, dtype: type, rounds: int = 1) -> tuple[Users, Users]:
    """Rounds in which both arms pay the one, but for the first: there they pay the other."""
    same = np.full((rounds, 2), low, dtype)
    other = same.copy()
    other[0] = high
    return Users(same), Users(other)


def counts_of_rewards_at_twice_epsilon() -> Case:
    """The single reports are right; totals are not."""
    right = successive_elimination(num_arms=2)
    counts = right.counts
    assert counts is not None

    def privatize(key, params, public, plan, totals):
        twice = dataclasses.replace(params.channel, epsilon=2 * params.channel.epsilon)
        return counts.privatize(key, dataclasses.replace(params, channel=twice), public, plan, totals)

    values = {"epsilon": 1.0, "confidence_multiplier": 0.1}
    wrong, twin = (
        learner_attack(one, values, _rewards(0, 1, np.int32, 2), path="counts")
        for one in (right._replace(counts=counts._replace(privatize=privatize)), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=4_000)


def rewards_at_half_their_interval() -> Case:
    """Gaussian noise for an interval of half the width."""
    right = lil_ucb(num_arms=2, report="gaussian", rewards="bounded")

    def params(**values):
        made = right.params(**values)
        half = made.channel.noise_stddev * made.channel.noise_stddev.dtype.type(0.5)
        return dataclasses.replace(made, channel=dataclasses.replace(made.channel, noise_stddev=half))

    values = {"epsilon": 1.0, "delta": 1e-2, "reward_low": -1.0, "reward_high": 2.0}
    wrong, twin = (
        learner_attack(one, values, _rewards(np.nan, 9.0, float)) for one in (right._replace(params=params), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=20_000)


def losses_of_a_barrier_unclipped() -> Case:
    """Noise for losses in [-1, 1] on losses that are not, as published."""
    right = barrier_smooth(dim=2, horizon=10, report="laplace")

    def privatize(key, params, public, context, action, feedback):
        return action, laplace(key, feedback, params.channel.epsilon, l1_sensitivity=2.0)

    users = Users(np.array([-7.0])), Users(np.array([7.0]))
    wrong, twin = (
        learner_attack(one, {"epsilon": 1.0}, users, answer=whole)
        for one in (right._replace(privatize=privatize), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=4_000)
