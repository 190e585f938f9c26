"""When elimination by tree counters drops an arm on its mean path, and why its regret is like 1 / epsilon.

Let two arms have been on the left n times each, D be the gap of their scores, and N(n) the radius of a counter's noise
at clock n, which depends on the digits of n in base b. One arm is dropped if n D > 2 (r sqrt(n) + N(n) / epsilon). Few
digits above zero make N small, so arms are dropped at round clocks, such as multiples of b^2, and the first digits
decide. They are the digits of n b at clock n b. So where noise dominates, epsilon / b takes b times as many duels: for
one horizon, regret is 1 / epsilon times a function of log_b(1 / epsilon) with period 1, without a logarithm. Within a
period the exponent is anything from 0 (a round clock is waited for) to 2 (the first digit grows).

Sampling costs 1 / ratio more duels, where ratio = N / (epsilon r sqrt(n)) grows like sqrt(1 / epsilon). So between
epsilon and epsilon / b the exponent is smaller by about ln((1 + 1 / ratio) / (1 + 1 / (ratio sqrt(b)))) / ln b, which
is 0.026 for ratio 10 and b = 15.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

from jaxdp.dueling import ebs_elimination
from jaxdp.mechanisms.continual_counting import best_arity

HORIZON = 10**7
UTILITY_GAP = 4.0
PHASES, PERIODS = 4, 2
FIRST = {4: 0.3, 15: 0.16}  # by arity: from this epsilon on, noise is ten times as wide as sampling
STEP = 1 << 14


class Drop(NamedTuple):
    """The clock at which the second arm is dropped, and how many times as wide as sampling noise is there."""

    clock: int
    ratio: float


def drop(learner, arity, epsilon, sampling=1.0):
    """Returns the drop for mean counts and wins, with the learner's own radii.

    The radius of sampling is times a factor.
    """
    params = learner.params(epsilon=epsilon)
    intercepts, slopes = np.asarray(params.intercepts, float), np.asarray(params.slopes, float)
    radius = sampling * math.sqrt(params.squared_radius[2])
    gap = 1 / (1 + math.exp(-UTILITY_GAP)) - 0.5  # against oneself a duel is even
    least = int(2 * intercepts.min() / gap)  # noise is wider than that at all clocks
    for start in range(max(least, 1), HORIZON, STEP):
        n = np.arange(start, start + STEP)
        digits = n[:, None] // arity ** np.arange(len(slopes)) % arity
        inner = intercepts + digits[:, 1:] @ slopes[1:]
        line = (inner + arity // 2 * slopes[0]).argmin(axis=1)
        noise = inner[np.arange(STEP), line] + digits[:, 0] * slopes[0, line]
        found = np.flatnonzero(n * gap > 2 * (radius * np.sqrt(n) + noise))
        if len(found):
            at = found[0]
            return Drop(int(n[at]), float(noise[at] / (radius * math.sqrt(n[at]))) if radius else math.inf)
    raise ValueError(f"an arm must be dropped within {HORIZON} rounds, got epsilon {epsilon}")


def paths(arity, sampling=1.0, distort=1.0):
    """Drops by [period, phase]; the learner is given epsilon to a power."""
    learner = ebs_elimination(num_arms=2, horizon=HORIZON, arity=arity)
    powers = np.arange(PERIODS)[:, None] + np.arange(PHASES) / PHASES
    budgets = FIRST[arity] * float(arity) ** -powers.ravel()
    drops = [drop(learner, arity, budget**distort, sampling) for budget in budgets]
    clocks, ratios = (np.reshape(column, powers.shape) for column in zip(*drops, strict=True))
    return clocks, ratios


def test_the_default_tree():
    assert best_arity(HORIZON + 2) in FIRST


@pytest.mark.parametrize("arity", FIRST)
def test_drops_shift_by_a_digit_where_noise_is_all(arity):
    clocks, _ = paths(arity, sampling=0.0)
    exponents = np.log(clocks[1] / clocks[0]) / math.log(arity)
    np.testing.assert_allclose(exponents, 1, atol=0.005)
    within = np.diff(np.log(clocks.ravel())) * PHASES / math.log(arity)
    assert within.max() - within.min() > 0.3


def check_sampling(arity, distort=1.0):
    clocks, ratios = paths(arity, distort=distort)
    exponents = np.log(clocks[1] / clocks[0]) / math.log(arity)
    less = np.log((1 + 1 / ratios[0]) / (1 + 1 / ratios[1])) / math.log(arity)
    assert exponents.mean() == pytest.approx(1 - less.mean(), abs=0.025)  # clocks of drops are round: coarse
    assert 0.95 <= exponents.mean() <= 1
    assert ratios.min() >= 10


@pytest.mark.parametrize("arity", FIRST)
def test_sampling_takes_little_of_the_exponent(arity):
    check_sampling(arity)
    with pytest.raises(AssertionError):
        check_sampling(arity, distort=1.1)  # planted
