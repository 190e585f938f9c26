"""Tests of `double_thompson` alone."""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import default_float
from jaxdp.dueling import double_thompson
from jaxdp.dueling._double_thompson.draws import may_beat
from tests.algorithms.dueling.local_learners import DRAWS, check_shares, duels_drawn, start

INTEGER = jnp.result_type(int)
# Arm 0 beats arm 1 for certain by these counts; arm 2 has met no other.
WINS = np.array([[0, 60, 0], [10, 0, 0], [0, 0, 0]])
THOMPSON = partial(double_thompson, num_arms=3)  # the same object each time, compiled once


def test_arms_that_may_win_are_those_of_the_upper_bound():
    spread, float_ = 0.51 * np.log(500), default_float()
    won, lost = np.meshgrid(np.arange(30), np.arange(30))
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = won / (won + lost) + np.sqrt(spread / (won + lost))
    expected = ~(bound <= 0.5)  # no bound before the first duel
    found = may_beat(jnp.asarray(won, float_), jnp.asarray(lost, float_), jnp.asarray(spread, float_))
    np.testing.assert_array_equal(found, expected)
    assert not expected.all()


def test_double_thompson_draws():
    """Checks draws where arms 0 and 2 may beat two others.

    Arm 0's rival is arm 2 or arm 0 itself, as arm 1 is too weak.
    """
    learner = THOMPSON()
    public = start(learner)._replace(wins=jnp.asarray(WINS, INTEGER), round=jnp.asarray(70, INTEGER))
    found = duels_drawn(learner, public)
    # Arm 0 beats arm 1 in the draw, and arm 2 with probability 1/2. Else arm 2 beats arm 0, and arm 1 with 1/2:
    # both of the arms 0 and 2 beat one other, and one is taken at random, or arm 2 beats both.
    share = 1 / 2 + 1 / 2 * 1 / 2 * 1 / 2
    check_shares(found.sum(1), [share, 0, 1 - share])
    check_shares(found[0] / found[0].sum(), [0.5, 0, 0.5], DRAWS * found[0].sum())
    # Of arm 2's own two rivals, uniform draws, the larger is above 1/2 in 3 of 4 cases.
    check_shares(found[2] / found[2].sum(), [0.375, 0.375, 0.25], DRAWS * found[2].sum())
    with pytest.raises(AssertionError):  # planted: a fair choice
        check_shares(found[2] / found[2].sum(), [1 / 3, 1 / 3, 1 / 3], DRAWS * found[2].sum())


def test_the_posterior_shrinks_with_privacy():
    """Checks that at a smaller epsilon the same reports say less: an arm that lost six of seven duels is drawn more
    often.
    """
    learner = THOMPSON()
    wins = np.array([[0, 36, 36], [6, 0, 20], [6, 20, 0]])
    # So late that bounds leave all arms open: the draws decide.
    public = start(learner)._replace(wins=jnp.asarray(wins, INTEGER), round=jnp.asarray(2**30, INTEGER))
    shares = [duels_drawn(learner, public, epsilon)[0].sum() for epsilon in (math.inf, 0.3)]
    assert shares[0] > 0.999
    assert shares[1] < 0.95
