"""Faults that some checks cannot see, as their docstrings say, and that the check they point to finds."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxdp.audit import UserData, full_information, grey_box, leaks
from jaxdp.mechanisms import laplace
from jaxdp.registry import LEARNERS
from jaxdp.testing import check_learner
from tests.audit import small_learners as small

ENTRY = LEARNERS["explore_then_commit"]
COMMIT = ENTRY.make()._replace(blocks=(), counts=None)


def looked(learner, answer=full_information, **options):
    return grey_box(
        jax.random.key(0), learner, {"epsilon": 1.0}, answer=answer, num_bases=2, num_neighbours=64, **options
    )


def same_keys_in_every_run(key, params, state, report):
    return COMMIT.update(jax.random.key(state.public.round), params, state, report)


def test_grey_box_finds_keys_that_are_the_same_in_every_run():
    learner = COMMIT._replace(update=same_keys_in_every_run)

    def found(learner):
        return grey_box(jax.random.key(0), learner, ENTRY.values, ENTRY.make_user, rounds=12, num_bases=2).faults

    assert found(COMMIT) == ()
    assert any("same" in fault and "run" in fault for fault in found(learner))


def test_noise_of_any_scale_passes_check_learner_and_grey_box_finds_it():
    def too_little(key, params, state, report):
        return COMMIT.update(key, dataclasses.replace(params, epsilon=params.epsilon * 3), state, report)

    learner = COMMIT._replace(update=too_little)
    check_learner(learner, ENTRY.make_environment(), ENTRY.values, horizon=ENTRY.horizon, key=jax.random.key(3))
    assert grey_box(jax.random.key(0), learner, ENTRY.values, ENTRY.make_user, rounds=12, num_bases=2).spent > 2.9


@pytest.mark.parametrize("raw", [0.0, 1.0])
def test_raw_data_added_to_a_noised_number_pass_leaks_and_grey_box_finds_them(raw):
    def release(key, params, report):
        return laplace(key, report[0], params, l1_sensitivity=1.0) + raw * report[0]

    learner = small.releases_of(release)
    users = UserData(np.zeros((3, 1))), UserData(np.ones((3, 1)))
    assert leaks(jax.random.key(3), learner, {}, users, answer=full_information).verdict == "consistent"
    found = looked(learner, draw_user=small.draw_corners(1), rounds=3)
    assert found.verdict == ("violated" if raw else "consistent")


@pytest.mark.parametrize("make", [lambda state: 0, lambda state: state.public.round])
def test_a_key_that_is_the_same_in_every_run_fails_check_learner(make):
    def update(key, params, state, report):
        return COMMIT.update(jax.random.key(make(state)), params, state, report)

    how = {"horizon": ENTRY.horizon, "key": jax.random.key(3), "only": ["no key used twice"]}
    with pytest.raises(AssertionError, match="a key is the same in every run"):
        check_learner(COMMIT._replace(update=update), ENTRY.make_environment(), ENTRY.values, **how)
