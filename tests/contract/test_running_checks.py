"""Checks are chosen by name, all of those that fail report, and one computes no more than it needs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import Guarantee
from jaxdp.mechanisms import analytic_gaussian, gaussian, round_up, zcdp_gaussian, zcdp_rho
from jaxdp.testing import check_learner, check_mechanism, checks_of
from jaxdp.testing.checks import Check, run_checks
from tests.contract import tiny, wrong


def made(*failing_names) -> list[Check]:
    def fail(name):
        raise ValueError(f"{name} is wrong")

    def runner(name):
        return lambda: fail(name) if name in failing_names else None

    return [Check(name, "structure", runner(name)) for name in ("first", "second", "third")]


def test_every_check_that_fails_is_named_with_its_reason():
    with pytest.raises(AssertionError) as caught:
        run_checks(made("first", "third"))
    lines = str(caught.value).splitlines()
    assert lines == [
        "2 of 3 checks failed: first: ValueError: first is wrong",
        "third: ValueError: third is wrong",
    ]


def test_checks_that_one_fault_keeps_from_running_are_named_with_it():
    with pytest.raises(AssertionError) as caught:
        run_checks(wrong.learner_checks(wrong.rounds(update=wrong.loses_a_dtype)))
    text = str(caught.value)
    assert text.startswith("1 of 12 checks failed: shapes fit under jit: ValueError: the learner's update must keep")
    last = text.splitlines()[-1]
    assert last.startswith("(not run, for the same reason: one trace for all epsilons, jit equals eager, ")


def test_checks_are_chosen_by_name():
    for options in (
        {"skip": ["third"]},
        {"only": ["first", "second"]},
        {"only": ["third", "first"], "skip": ["third"]},
    ):
        run_checks(made("third"), **options)
    with pytest.raises(AssertionError, match=r"^1 of 1 checks failed: third"):
        run_checks(made("third"), only=("third",))


@pytest.mark.parametrize("argument", ["skip", "only"])
def test_a_name_of_no_check_is_refused(argument):
    message = rf"{argument} must be names of this algorithm's checks, got 'no keys used twice'. Did you mean no key"
    options: Any = {argument: ["no keys used twice"]}
    with pytest.raises(ValueError, match=message):
        check_learner(wrong.rounds(), tiny.two_arms(), tiny.VALUES, horizon=tiny.HORIZON, key=wrong.key(), **options)
    options = wrong.mechanism(data=jnp.float32(1)) | {argument: "refusals"}
    with pytest.raises(ValueError, match=rf"{argument} must be a collection of names .* got 'refusals'"):
        check_mechanism(**options)


@pytest.mark.parametrize(
    ("algorithm", "given", "message"),
    [
        ("laplac", {}, "name must be one of .*got 'laplac'"),
        (3, {}, "algorithm must be a registered name, an entry .*, got an instance of int"),
        (
            "laplace",
            {"values": {"epsilon": 1.0}},
            "values must be given only with a Learner or an Estimator, got it with",
        ),
        (wrong.RIGHT, {"values": {}, "horizon": 7}, "environment must be given with a Learner, got None"),
        (wrong.MEAN, {"values": {}}, "features must be given with an Estimator, got None"),
        (wrong.MEAN, {"environment": 3}, "environment must be given only with a Learner, got it with an Estimator"),
        (wrong.MEAN, {"horizon": None}, "horizon must be given only with a Learner, got it with an Estimator"),
        (wrong.RIGHT, {"labels": 3}, "labels must be given only with an Estimator, got it with a Learner"),
        (wrong.RIGHT, {"horizons": 7}, "options must be among draws_in_update, .*, got horizons. Did you mean horizon"),
        ("laplace", {"horizon": None}, "horizon must be given only with a Learner or an Estimator, got it with"),
        ("laplace", {"skip": ["refusals"]}, "options must be among .*, multiple, tolerance, got skip"),
    ],
)
def test_what_checks_need_is_named(algorithm, given, message):
    with pytest.raises(ValueError, match=message):
        checks_of(algorithm, **given)


def test_one_check_computes_no_more_than_it_needs():
    def stops(*arguments):
        raise RuntimeError("played")

    checks = {check.name: check for check in wrong.learner_checks(wrong.rounds(act=stops))}
    for name in ("values of params and guarantee", "refusals", "claim depends on epsilon"):
        checks[name]()
    with pytest.raises(AssertionError, match="RuntimeError: played"):
        checks["no key used twice"]()


def test_a_guarantee_that_is_none_is_named():
    with pytest.raises(AssertionError, match=r"guarantee must return a Guarantee, got 3"):
        check_learner(
            wrong.rounds(guarantee=lambda *, epsilon: 3),
            tiny.two_arms(),
            tiny.VALUES,
            horizon=tiny.HORIZON,
            key=wrong.key(),
            only=["values of params and guarantee"],
        )


@pytest.mark.parametrize("native", ["zcdp", "gaussian"])
@pytest.mark.parametrize("by_rho", [True, False])
def test_a_mechanism_that_claims_no_epsilon(native, by_rho):
    about = {"trust_model": "central", "privacy_unit": "one number", "argument": "Gaussian noise"}

    def stddev(**values):
        if by_rho:
            return zcdp_gaussian(**values)
        return analytic_gaussian(**values) if native == "gaussian" else zcdp_gaussian(zcdp_rho(**values))

    def guarantee(**values):
        scale = stddev(**values)
        if native == "gaussian":
            return Guarantee.gaussian(1 / scale if scale else np.inf, **about)
        return Guarantee.zcdp(1 / (2 * scale**2) if scale else np.inf, **about)

    def params(**values):
        return round_up(stddev(**values), jnp.zeros(()).dtype)

    def release(key, params, data):
        return gaussian(key, data, params, l2_sensitivity=1.0)

    values = {"rho": 0.1} if by_rho else {"epsilon": 0.5, "delta": 1e-6}
    data, key = jnp.ones(2), jax.random.key(0)
    exact = None if by_rho else lambda data: data
    check_mechanism(params, guarantee, release, values, data, exact=exact, key=key)
    if by_rho:
        with pytest.raises(ValueError, match=r"exact must be None if values have no epsilon, got .* values of rho"):
            check_mechanism(params, guarantee, release, values, data, exact=lambda data: data + 1, key=key)
    else:
        more = {**values, "epsilon": 1.0}
        with pytest.raises(AssertionError, match="guarantee must imply epsilon"):
            check_mechanism(params, lambda **_: guarantee(**more), release, values, data, exact=None, key=key)
