"""Tests of `rucb` alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import rucb
from tests.algorithms.dueling.local_learners import KEY, check_shares, duels_drawn, start

INTEGER = jnp.result_type(int)
# Arm 0 beats arm 1 for certain by these counts; arm 2 has met no other.
WINS = np.array([[0, 60, 0], [10, 0, 0], [0, 0, 0]])


def counted(public, wins, round_):
    wins = jnp.asarray(wins, INTEGER)
    return public._replace(wins=wins, round=jnp.asarray(round_, INTEGER))


def test_rucb_draws_champions():
    """Checks draws where arms 0 and 2 may beat all others; arm 0 is the hypothesis, or there is none."""
    learner = rucb(num_arms=3)
    public = counted(start(learner), WINS, 70)
    # Against arm 0 arm 2 has the largest bound, 2; against arm 2 both others have it, and arm 2 has not.
    for hypothesis in (-1, 0, 1):
        found = duels_drawn(learner, public._replace(hypothesis=jnp.int32(hypothesis)))
        check_shares(found, [[0, 0, 0.5], [0, 0, 0], [0.25, 0.25, 0]])
    found = duels_drawn(learner, start(learner)._replace(hypothesis=jnp.int32(1)))
    assert found.diagonal().max() == 0  # a tie at the start: never the same arm twice
    check_shares(found.sum(1), [0.25, 0.5, 0.25])
    with pytest.raises(AssertionError):  # planted: the hypothesis as often as others
        check_shares(found.sum(1), [1 / 3, 1 / 3, 1 / 3])


def test_rucb_keeps_its_hypothesis():
    learner = rucb(num_arms=3)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    alone = np.array([[0, 60, 60], [10, 0, 30], [10, 30, 0]])
    report = jnp.array([1, 2], jnp.int32), jnp.int32(1)
    for wins, before, after in ((alone, -1, 0), (alone, 2, 0), (WINS, 0, 0), (WINS, 1, -1), (WINS, -1, -1)):
        public = counted(start(learner), wins, 99)._replace(hypothesis=jnp.int32(before))
        found = learner.update(KEY(), params, jaxdp.State((), public), report).public
        assert found.hypothesis == after
        np.testing.assert_array_equal(found.wins - public.wins, [[0, 0, 0], [0, 0, 1], [0, 0, 0]])
