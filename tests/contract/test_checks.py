"""Each check has a planted wrong algorithm that it alone fails."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData
from jaxdp.core import Guarantee
from jaxdp.registry import LearnerEntry
from jaxdp.testing import check_learner, checks_of
from jaxdp.testing.checks import run_checks
from jaxdp.testing.duties import check_claim
from tests.contract import tiny
from tests.contract.wrong import (
    ENTRY,
    LANES,
    MEAN,
    MORE,
    WRONG_ESTIMATORS,
    WRONG_LEARNERS,
    WRONG_MECHANISMS,
    estimator,
    estimator_checks,
    failing,
    key,
    learner_checks,
    mechanism_checks,
)

VALUES_OF_DELTA = {"epsilon": 1.0, "delta": 1e-6}


def approximate(claimed, multiple=1.0):
    """Returns a guarantee with the delta `claimed`, unlike the delta of the values."""
    about = {"trust_model": "central", "privacy_unit": "one number", "argument": "none"}
    return lambda epsilon, delta=0.0: Guarantee.approximate(multiple * epsilon, claimed, **about)


@pytest.mark.parametrize("name", WRONG_LEARNERS)
def test_a_wrong_learner_fails_one_check(name):
    assert failing(learner_checks(WRONG_LEARNERS[name]())) == [name]


def test_a_right_learner_passes():
    check_learner(tiny.takes_turns(), tiny.two_arms(), tiny.VALUES, horizon=tiny.HORIZON, key=key(), num_lanes=LANES)


def test_every_check_of_a_learner_has_a_wrong_one():
    assert {check.name for check in learner_checks(tiny.takes_turns())} == set(WRONG_LEARNERS)


@pytest.mark.parametrize("fault", MORE)
def test_what_else_a_learner_may_and_may_not_do(fault):
    make, options, name = MORE[fault]
    names = failing(learner_checks(make(), **options))
    assert name in names if name else not names


@pytest.mark.parametrize("name", WRONG_ESTIMATORS)
def test_a_wrong_estimator_fails_one_check(name):
    assert failing(estimator_checks(WRONG_ESTIMATORS[name]())) == [name]


def test_a_right_estimator_passes():
    run_checks(estimator_checks(MEAN))


@pytest.mark.parametrize("feature", [-1.0, 0.0, 1 / 3, 1.0])
def test_private_features_of_any_size_must_not_be_read(feature):
    wrong = estimator(features_public=False, fit=lambda key, params, features, report: features[0] > 0.3)
    features, labels = jnp.full((3, 2), feature), jnp.arange(3, dtype=jnp.int32)
    checks = checks_of(wrong, values=tiny.VALUES, features=features, labels=labels, key=key())
    with pytest.raises(AssertionError, match="fit must not read features that are not public"):
        run_checks(checks, only=["features only through the report"])


def test_every_check_of_an_estimator_has_a_wrong_one():
    assert {check.name for check in estimator_checks(estimator(features_public=False))} == set(WRONG_ESTIMATORS)


@pytest.mark.parametrize("name", WRONG_MECHANISMS)
def test_a_wrong_mechanism_fails_one_check(name):
    assert failing(mechanism_checks(**WRONG_MECHANISMS[name]())) == [name]


@pytest.mark.parametrize(("delta", "multiple"), [(1e-6, 1.0), (1e-9, 1.0), (0.9, 3.0)])
def test_a_smaller_delta_or_a_multiple_is_right(delta, multiple):
    check_claim(approximate(delta, multiple), VALUES_OF_DELTA, multiple)


@pytest.mark.parametrize("delta", [1.1e-6, 0.9])
def test_a_larger_delta_is_wrong(delta):
    with pytest.raises(AssertionError, match=f"guarantee must claim delta <= 1e-06, got {delta}"):
        check_claim(approximate(delta), VALUES_OF_DELTA)
    check_claim(approximate(delta), {"epsilon": 1.0})  # the delta is no value


def test_every_check_of_a_mechanism_has_a_wrong_one():
    without = {
        "values": {"rho": 1.0},
        "params": lambda *, rho: rho,
        "guarantee": lambda *, rho: tiny.claim(epsilon=1),
        "exact": None,
    }
    names = {check.name for checks in (mechanism_checks(), mechanism_checks(**without)) for check in checks}
    assert names == set(WRONG_MECHANISMS)


def test_wrong_neighbours_fail_one_check():
    """Tries neighbours of another dtype, or unlike the drawn users."""
    entry = LearnerEntry(**ENTRY)
    first, second = entry.neighbours
    others = (
        {"neighbours": (first, second._replace(answers=second.answers.astype(np.int32)))},
        {"draw_user": lambda key: UserData(jnp.zeros(3))},
    )
    run_checks(checks_of(entry), only=["neighbours"])
    for changes in others:
        assert failing(checks_of(dataclasses.replace(entry, **changes))) == ["neighbours"]
