"""Exact audits on tiny instances: distributions by enumeration, which the programs follow, lie below the claims."""

import functools
import math

import numpy as np
import pytest
import scipy.stats

from jaxdp.audit import exact_epsilon
from tests.algorithms.experts import golden_tracking as exact
from tests.algorithms.experts.exact_audits import ROUNDS, SEQUENCES, neighbours
from tests.algorithms.experts.limited_updates.golden import limited_updates_distribution
from tests.algorithms.experts.svt_lazy.golden import svt_lazy_distribution
from tests.algorithms.experts.svt_restarts.golden import Thresholds, svt_restarts_distribution

MARGIN = -9.0  # so low that epochs of a few rounds may end


def worst(distribution):
    """Returns the largest exact epsilon between neighbours, for distributions that depend on a loss sequence."""
    distributions = [distribution(losses) for losses in SEQUENCES]
    return max(exact_epsilon(distributions[one], distributions[other]) for one, other in neighbours())


def thresholds(epsilon, margin=MARGIN):
    return Thresholds(num_experts=2, horizon=ROUNDS, epsilon=epsilon, failure_prob=0.5, margin=margin)


@functools.cache
def spent_by_restarts(epsilon, margin=MARGIN, **variant):
    return worst(lambda losses: svt_restarts_distribution(losses, epsilon, thresholds(epsilon, margin), **variant))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_limited_updates_spend_their_claim(epsilon):
    """Moves two experts from two losses apart to equal ones, which spends the whole claim."""
    spent = worst(lambda losses: limited_updates_distribution(losses, epsilon))
    assert 0.5 * epsilon <= spent <= epsilon * (1 + 1e-9)
    with pytest.raises(AssertionError):
        assert worst(lambda losses: limited_updates_distribution(losses, 2 * epsilon)) <= epsilon  # half the noise


def test_restarts_stay_below_their_claim():
    """Checks each half of the budget alone, and both; so few rounds spend little of the tests' half."""
    epsilon = 4.0
    whole = spent_by_restarts(epsilon)
    tests, selections = spent_by_restarts(epsilon, selects=False), spent_by_restarts(epsilon, asks=False)
    assert max(tests, selections) <= epsilon / 2 * (1 + 1e-6)
    assert max(tests, selections) < whole <= tests + selections + 1e-6
    assert whole >= 0.5 * epsilon
    with pytest.raises(AssertionError):
        assert spent_by_restarts(2 * epsilon) <= epsilon  # half of all noise


START, BAD, END = 1024, 384, 2047  # a block of rounds, and how many of them are bad
CLOSE = 0.0  # margin beyond the largest question, times epsilon: of a user's choice, which privacy must not need


def told_of_plateau(epsilon):
    return Thresholds(num_experts=2, horizon=END, epsilon=epsilon, failure_prob=0.5, margin=0.0)


def plateau(epsilon, replaced):
    """Plays expert 0 throughout: worse by 1 in some rounds, and then by as much as chance explains."""
    told = told_of_plateau(epsilon)
    rounds = np.arange(1, END - START + 2)
    slack = rounds * told.per_round(START) + (math.sqrt(told.own) + math.sqrt(told.best)) * np.sqrt(rounds)
    losses = np.zeros((END, 2))
    losses[START - 1 : START - 1 + BAD, 0] = 1.0
    losses[START - 1 + BAD :, 0] = np.diff(slack)[BAD - 1 :]
    losses[START - 1 + BAD // 2] = replaced
    return losses


def questions(losses, epsilon):
    """Returns the question after each round, if expert 0 is played throughout."""
    told = told_of_plateau(epsilon)
    slack = np.cumsum([0.0, *(told.per_round(local) for local in range(1, END + 1))])
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(losses[:, :1] - losses, axis=0)])
    roots = (math.sqrt(told.own) + math.sqrt(told.best)) * np.sqrt(np.arange(END + 1))
    excess = (np.max(sums[now] - sums[:now], axis=1) - (slack[now] - slack[:now]) for now in range(1, END + 1))
    return np.asarray([np.max(each - roots[now:0:-1]) for now, each in enumerate(excess, start=1)])


def shares_of_plateau(epsilon, sensitivity=2.0):
    """Returns the leaks of one bad round through each half, as shares of its budget.

    The transcript: expert 0 in every round, without a restart, and then once more.
    """
    budget = epsilon / 2
    sequences = [plateau(epsilon, replaced) for replaced in ([1.0, 0.0], [0.0, 1.0])]
    queries = [questions(losses, epsilon) for losses in sequences]
    places, weights = exact.laplace_grid(2 * sensitivity / budget)
    margin = queries[0].max() + CLOSE / epsilon
    noise = scipy.stats.laplace(scale=4 * sensitivity / budget)
    stays = [np.exp(noise.logcdf(places[:, None] + margin - each).sum(1)) @ weights for each in queries]
    chosen = [exact.permute_and_flip(losses[START - 1 :].sum(0), budget)[0] for losses in sequences]
    return [math.log(high / low) / budget for low, high in (stays, chosen)]


def test_share_of_each_half_of_restarts():
    """Plays many rounds in which no test restarts: the threshold's noise is spent, the questions' noise is not."""
    tests, selections = shares_of_plateau(4.0)
    assert 0.45 < tests <= 1
    assert 0.95 < selections <= 1 + 1e-9
    with pytest.raises(AssertionError):
        assert shares_of_plateau(4.0, sensitivity=0.5)[0] <= 1


@functools.cache
def share_of_one_loss(budget, claimed=4.0):
    """Returns the share of svt_lazy's claim that one loss spends.

    The first loss moves all questions of a run, up or down, and the selection thereafter.
    """
    later = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    distributions = [
        svt_lazy_distribution(np.asarray([first, *later]), claimed / 4, budget, threshold, 1)
        for threshold in (0.5, 1.5)
        for first in ([1.0, 0.0], [0.0, 1.0])
    ]
    return (
        max(exact_epsilon(distributions[0], distributions[1]), exact_epsilon(distributions[2], distributions[3]))
        / claimed
    )


def test_lazy_tests_cost_half_of_what_any_questions_would():
    """Checks that AboveThreshold at all of epsilon costs half of it here.

    Any questions would cost the other half, too.
    """
    assert 0.7 < share_of_one_loss(4.0) <= 1
    assert share_of_one_loss(8.0) > 1  # planted
