"""Mistakes of new users are reported in one sentence with the remedy, before anything is compiled."""

import functools
import inspect
import warnings
from dataclasses import dataclass

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.estimation import (
    debiased_rr,
    estimate,
    gaussian_rewards,
    mle,
    objective_perturbation,
    objective_perturbation_full,
    with_confidence,
)
from jaxdp.experts import exponential_weights, stochastic_losses
from jaxdp.testing import check_estimator, check_learner

KEY = functools.cache(lambda: jax.random.key(0))
OLD = functools.cache(lambda: jax.random.PRNGKey(0))
COMMIT = functools.cache(lambda: explore_then_commit(num_arms=2, explore_rounds=4))
BANDIT = functools.cache(lambda: bernoulli_bandit([0.1, 0.9]))
RUN = functools.cache(lambda: jaxdp.simulator(COMMIT(), BANDIT(), 8))
PROBLEM = functools.cache(lambda: gaussian_rewards(num_samples=20, dim=2))
OFFLINE = functools.cache(lambda: jaxdp.estimation_run({"local": debiased_rr()}, PROBLEM()))
DATA = np.eye(2), [0, 1]
WEIGHTS = functools.cache(
    lambda: jaxdp.simulator(
        exponential_weights(num_experts=2, horizon=8, noise="gaussian"), stochastic_losses([0.1, 0.9]), 8
    )
)


@dataclass(frozen=True)
class Unknown:
    """Params that JAX does not know."""

    epsilon: float


OWN = functools.cache(
    lambda: jaxdp.simulator(COMMIT()._replace(params=lambda *, epsilon: Unknown(epsilon)), BANDIT(), 8)
)
OWN_ESTIMATOR = functools.cache(lambda: mle()._replace(params=lambda *, radius: Unknown(radius)))


def swept(build):
    return jaxdp.sweep(build, axes={"epsilon": [1.0]}, num_seeds=2, key=KEY())


OTHERS = functools.cache(lambda: jaxdp.estimation_run({"clear": mle()}, PROBLEM()))
CENTRAL = functools.cache(
    lambda: jaxdp.estimation_run(
        {"full": objective_perturbation_full()}, gaussian_rewards(num_samples=20, dim=2, feature_norm=2.0)
    )
)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: OFFLINE()(KEY(), OTHERS().params()),
            ValueError,
            r"params must be made by run.params\(...\), .*got a dict of clear",
        ),
        (
            lambda: jaxdp.simulator(functools.partial(explore_then_commit, num_arms=2), BANDIT(), 8),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"learner must be of type jaxdp.Learner, got the function .*: call it, as explore_then_commit\(...\)",
        ),
        (
            lambda: with_confidence(debiased_rr),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"estimator must be of type jaxdp.Estimator, got the function .*: call it, as debiased_rr\(...\)",
        ),
        (
            lambda: jaxdp.audit.grey_box(KEY(), explore_then_commit, {}, lambda key: None, rounds=2),  # pyright: ignore
            ValueError,
            r"learner must be of type jaxdp.Learner, got the function .*: call it",
        ),
        (
            lambda: jaxdp.audit.learner_attack(explore_then_commit, {}, (None, None)),  # pyright: ignore
            ValueError,
            r"learner must be of type jaxdp.Learner, got the function .*: call it",
        ),
        (
            lambda: objective_perturbation().params(epsilon=1.0),
            TypeError,
            r"objective_perturbation.params\(\): missing a required argument: 'delta'",
        ),
        (
            lambda: CENTRAL().params(epsilon=1.0, delta=1e-3, regularization=100.0),
            ValueError,
            "values must have feature_norm, as other parameters of full are computed from it before data are drawn",
        ),
        *(
            (lambda run=run: jax.jit(run())(KEY(), {"epsilon": 1.0}), ValueError, message)
            for run in (RUN, OFFLINE)
            for message in [
                r"params must be made by run.params\(...\), for example run.params\(.*got a dict of epsilon"
            ]
        ),
        *(
            (call, ValueError, r"a run must be called with a key and params, as run\(key, .*, got one argument")
            for run in (RUN, OFFLINE)
            for call in (lambda run=run: run()(run().params(epsilon=1.0)), lambda run=run: jax.jit(run())(KEY()))
        ),
        (
            lambda: RUN()(KEY(), COMMIT().params(epsilon=1.0)),
            ValueError,
            r"params must be made by run.params\(...\), .*, got a Params",
        ),
        (
            lambda: OFFLINE()(KEY(), debiased_rr().params(epsilon=1.0)),
            ValueError,
            r"params must be made by run.params\(...\), .*, got a Params",
        ),
        *(
            (call, ValueError, message)
            for call, message in [
                (lambda: RUN().points(epsilon=1.0), r"points must have a list of values, as .*, got epsilon"),
                (lambda: RUN().points(), r"points must have a list of values, as .*, got none"),
                (lambda: RUN().points(epsilon=[]), "points must have lists of one length >= 1, got 0 of epsilon"),
                (
                    lambda: OFFLINE().points(epsilon=[1.0, 2.0], radius=[1.0]),
                    "points must have lists of one length >= 1, got 2 of epsilon, 1 of radius",
                ),
                (lambda: RUN().points(epsilon=[1.0, -1.0]), r"epsilon must be > 0, got -1.0"),
                (lambda: RUN().points(gaps=[1.0]), "values must be among best_mean, epsilon, gap, got gaps"),
                (lambda: jaxdp.lane_keys(OLD(), 2), "key must be one typed PRNG key"),
                (
                    lambda: RUN()(jax.random.split(KEY(), 64), RUN().params(epsilon=1.0)),
                    r"key must be one typed PRNG key, .*, got key<fry> of shape \(64,\); .*: jax.vmap\(run, in_axes=",
                ),
                (
                    lambda: jax.vmap(lambda x: RUN()(KEY(), RUN().params(epsilon=x)))(np.ones(3, np.float32)),
                    r"epsilon must be a number that is known on the host, got a traced number: .*run.points\(epsilon=",
                ),
                (
                    lambda: jax.jit(lambda key: jaxdp.sweep(RUN(), axes={"epsilon": [1.0]}, num_seeds=2, key=key))(
                        KEY()
                    ),
                    "sweep must be called outside of jax.jit",
                ),
                (
                    lambda: jax.jit(lambda: jaxdp.sweep(RUN(), axes={"epsilon": [1.0]}, num_seeds=2, key=KEY()))(),
                    "sweep must be called outside of jax.jit",
                ),
                (lambda: jaxdp.lane_keys(KEY(), 0), "n must be an integer >= 1, got 0"),
                (lambda: jaxdp.lane_keys(jax.random.key(0, impl="rbg"), 2), "key must be of a Threefry implementation"),
                (
                    lambda: jaxdp.claims(xr.Dataset()),
                    "results must be the Dataset of a sweep, which has its provenance, got a Dataset without",
                ),
            ]
        ),
        (
            lambda: RUN()(RUN().params(epsilon=1.0), KEY()),
            ValueError,
            r"params must be made by run.params\(...\).* a PRNG",
        ),  # pyright: ignore[reportArgumentType]
        (
            lambda: jaxdp.simulator(explore_then_commit, BANDIT(), 8),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"learner must be of type jaxdp.Learner, got the function .*: call it, as explore_then_commit\(...\)",
        ),
        (
            lambda: jaxdp.simulator(COMMIT(), bernoulli_bandit, 8),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"environment must be of type jaxdp.Environment, got the function .* as bernoulli_bandit\(...\)",
        ),
        (
            lambda: jaxdp.estimation_run({"mine": mle}, PROBLEM()),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"estimators\['mine'\] must be of type jaxdp.Estimator, got the function mle: call it, as mle\(...\)",
        ),
        (
            lambda: jaxdp.estimation_run({"mine": mle()}, gaussian_rewards),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"problem must be of type jaxdp.Problem, got the function .* as gaussian_rewards\(...\)",
        ),
        (
            lambda: jaxdp.estimation_run(mle(), PROBLEM()),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"estimators must be a dict, as \{\"name\": estimator\}, got an instance of Estimator",
        ),
        (lambda: estimate(mle, *DATA, key=KEY()), ValueError, r"estimator must be .* call it, as mle\(...\)"),  # pyright: ignore[reportArgumentType]
        (
            lambda: check_learner(explore_then_commit, BANDIT(), {}, horizon=8, key=KEY()),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"learner must be .* call it, as explore_then_commit\(...\)",
        ),
        (
            lambda: check_estimator(mle, {}, *map(jax.numpy.asarray, DATA), key=KEY()),  # pyright: ignore[reportArgumentType]
            ValueError,
            r"estimator must be .* call it, as mle\(...\)",
        ),
        (
            lambda: swept(lambda: COMMIT()),
            ValueError,
            "build must return a run, as jaxdp.simulator .*, got an instance of Learner from",
        ),
        (
            lambda: jaxdp.sweep(RUN(), axes={"epsilon": [1.0]}, static_axes={"n": [2]}, num_seeds=2, key=KEY()),
            ValueError,
            "build must be a function of n, the names of static_axes, got a Run",
        ),
        (
            lambda: swept(None),
            ValueError,
            "build must be a run or a function that returns one, got an instance of NoneType",
        ),
        *(
            (
                call,
                ValueError,
                f"params of {who} must be a pytree .* an instance of Unknown: if .*register_dataclass",
            )
            for who, call in [
                ("the learner explore_then_commit", lambda: OWN().params(epsilon=1.0)),
                ("the learner explore_then_commit", lambda: swept(lambda: OWN())),
                ("mine", lambda: jaxdp.estimation_run({"mine": OWN_ESTIMATOR()}, PROBLEM()).params()),
                ("the estimator", lambda: estimate(OWN_ESTIMATOR(), *DATA, key=KEY(), radius=1.0)),
            ]
        ),
        (
            lambda: WEIGHTS().params(epsilon=1.0),
            ValueError,
            "must have delta, which the learner exponential_weights needs",
        ),
        (lambda: swept(lambda: WEIGHTS()), ValueError, "must have delta, which the learner exponential_weights needs"),
        (
            lambda: exponential_weights(num_experts=2, horizon=8, noise="gaussian").params(epsilon=1.0),
            TypeError,
            r"exponential_weights.<locals>.params\(\): missing a required argument: 'delta'",
        ),
        (
            lambda: jaxdp.estimation_run({"mine": objective_perturbation()}, PROBLEM()).params(epsilon=1.0),
            ValueError,
            "must have delta, which mine needs, got epsilon",
        ),
        (
            lambda: estimate(objective_perturbation(), *DATA, key=KEY(), epsilon=1.0),
            TypeError,
            r"values must be those that the estimator takes \(epsilon, delta, .*\): missing a required argument",
        ),
        *(
            (call, ValueError, r"key must be one typed PRNG key, as jax.random.key\(0\) makes, got ")
            for call in (
                lambda: RUN()(OLD(), RUN().params(epsilon=1.0)),
                lambda: jax.jit(RUN())(OLD(), RUN().params(epsilon=1.0)),
                lambda: OFFLINE()(OLD(), OFFLINE().params(epsilon=1.0)),
                lambda: estimate(mle(), *DATA, key=OLD()),
                lambda: jaxdp.sweep(lambda: RUN(), axes={"epsilon": [1.0]}, num_seeds=2, key=OLD()),
            )
        ),
    ],
)
def test_one_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_every_learner_with_a_delta_needs_it():
    """Checks that it has no default, which would be no delta."""
    for entry in jaxdp.registry.LEARNERS.values():
        if "delta" in entry.values:
            without = {key: value for key, value in entry.values.items() if key != "delta"}
            run = jaxdp.simulator(entry.make(), entry.make_environment(), entry.horizon)
            for call in (run.params, run.guarantee):
                with pytest.raises(ValueError, match=f"must have delta, which the learner {entry.factory.__name__} "):
                    call(**without)


def test_exploration_beyond_the_horizon():
    with pytest.warns(
        UserWarning, match="horizon 4 is too short for the learner explore_then_commit, .* at least 5 rounds"
    ):
        jaxdp.simulator(COMMIT(), BANDIT(), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxdp.simulator(COMMIT(), BANDIT(), 5)


def test_signatures_of_a_run_name_its_values():
    assert str(inspect.signature(RUN().params)) == (
        "(*, epsilon: float, gap: float | None = None, best_mean: float | None = None)"
    )
    assert inspect.signature(RUN().guarantee) == inspect.signature(RUN().params)
    assert {"epsilon", "radius"} <= {*inspect.signature(OFFLINE().params).parameters}
