"""Mistakes in what one ballot is worth."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.estimation import ballot_objective_perturbation, ballot_rr, ballot_sensitivity
from jaxdp.mechanisms import randomized_response
from jaxdp.preferences import pair_features
from tests.privacy.case import Case, claim

NUM_ITEMS = 3
CENTRAL, LOCAL = ballot_objective_perturbation(), ballot_rr()
# Two voters: the first one reverses a ranking. Or one voter, who ranked the first two of three, or the last.
OPPOSITE = (np.asarray([[2, 2, 2], [1, 0, 2]], np.int8), np.asarray([[0, 0, 0], [1, 0, 2]], np.int8))
OTHERS = (np.asarray([[2, 1, 1]], np.int8), np.asarray([[1, 1, 2]], np.int8))
REVERSED = (np.asarray([[2, 2, 2]], np.int8), np.asarray([[0, 0, 0]], np.int8))


def design():
    return jnp.asarray(pair_features(NUM_ITEMS))


def noisy_statistic(key, params, ballots):
    return CENTRAL.privatize(key, params, design(), ballots)


def reported(key, params, ballots):
    return LOCAL.privatize(key, params, design(), ballots)


def every_pair(key, params, ballots):
    """Answers all pairs, each at the whole budget, so that each spends it again."""
    return randomized_response(key, (ballots > 1).astype(jnp.int32), params.epsilon)


def a_ranked_pair(key, params, ballots):
    """Draws among the pairs about which the ballot says something, and reports which one it was."""
    key_pair, key_response = jax.random.split(key)
    stated = jnp.where(ballots != 1, 0.0, -jnp.inf).astype(jnp.float32)
    pair = jax.random.categorical(key_pair, stated, axis=1)
    answer = (jnp.take_along_axis(ballots, pair[:, None], axis=1) > 1).astype(jnp.int32)
    return pair, randomized_response(key_response, answer, params.epsilon)


def noise_for_one_pair() -> Case:
    params = CENTRAL.params(epsilon=1.0, delta=1e-3)
    share = np.float32(math.sqrt(2) / ballot_sensitivity(NUM_ITEMS))
    right = Attack(noisy_statistic, params, OPPOSITE, claim(1.0, 1e-3))
    wrong = dataclasses.replace(params, noise_multiplier=params.noise_multiplier * share)
    return Case(wrong=right._replace(params=wrong), right=(right,), trials=40_000)


def every_pair_at_the_whole_budget() -> Case:
    right = Attack(reported, LOCAL.params(epsilon=1.0), REVERSED, claim(1.0))
    several = right._replace(params=LOCAL.params(epsilon=5.0), guarantee=claim(5.0))  # two answers, at half of it each
    return Case(wrong=right._replace(release=every_pair), right=(right, several), trials=20_000)


def only_pairs_that_were_ranked() -> Case:
    right = Attack(reported, LOCAL.params(epsilon=1.0), OTHERS, claim(1.0))
    return Case(wrong=right._replace(release=a_ranked_pair), right=(right,), trials=2_000)


CASES = {
    "a ballot at the noise of one pair": noise_for_one_pair,
    "a ballot's pairs at the whole budget each": every_pair_at_the_whole_budget,
    "a ballot that answers only about pairs it ranks": only_pairs_that_were_ranked,
}
