"""Tests of `ebs_local` alone."""

import dataclasses
import math

import jax.numpy as jnp
import pytest

import jaxdp
from jaxdp.dueling import ebs_local
from tests.algorithms.dueling.local_learners import KEY, check_shares, duels_drawn, start

INTEGER = jnp.result_type(int)


def test_ebs_local_draws():
    """Checks the active arm with the fewest duels against active ones, and a random active opponent."""
    learner = ebs_local(num_arms=3, horizon=100)
    public = start(learner)._replace(
        active=jnp.array([True, False, True]), plays=jnp.array([[1, 0, 1], [0, 0, 0], [0, 9, 1]], INTEGER)
    )
    check_shares(duels_drawn(learner, public), [[0, 0, 0], [0, 0, 0], [0.5, 0, 0.5]])


def test_ebs_local_drops():
    """Checks shares 0.9 and 0.1 of 10 duels: they differ by more than radii from 0.4 on, and only if both arms are
    active.
    """
    learner = ebs_local(num_arms=3, horizon=100)
    public = start(learner)._replace(
        plays=jnp.array([[0, 10, 0], [9, 0, 0], [0, 0, 0]], INTEGER),
        wins=jnp.array([[0, 9, 0], [1, 0, 0], [0, 0, 0]], INTEGER),
    )
    report = jnp.array([1, 0], jnp.int32), jnp.int32(0)
    for radius, left_over in ((0.39, [True, False, True]), (0.41, [True, True, True])):
        params = learner.params(epsilon=1.0)
        params = dataclasses.replace(params, squared_radius=jnp.asarray(10 * radius**2))
        after = learner.update(KEY(), params, jaxdp.State((), public), report)
        assert after.public.active.tolist() == left_over


def test_which_constants():
    """Checks that the paper's interval is never smaller."""
    for num_arms, horizon in ((2, 1), (10, 10**6)):
        radii = [
            float(ebs_local(num_arms=num_arms, horizon=horizon, constants=name).params(epsilon=1.0).squared_radius)
            for name in ("tight", "paper")
        ]
        events = num_arms * horizon / 0.05
        assert radii == pytest.approx([math.log(2 * events) / 2, math.log(events)], rel=1e-6)
        assert radii[0] <= radii[1]
