"""Learners that see reports only: their draws, their convergence, and errors."""

import math
from functools import partial

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import double_thompson, ebs_local, matrix_duels, rucb, switching_duels, versatile_sparring
from jaxdp.preferences import effective_borda_scores, lower_bound_matrix
from tests.algorithms.dueling.local_learners import KEY
from tests.lazily import Lazy

LEARNERS = Lazy(
    {
        "ebs_local": lambda: (ebs_local(num_arms=3, horizon=1500), {"confidence_multiplier": 0.3}),
        "rucb": lambda: (rucb(num_arms=3), {}),
        "versatile_sparring": lambda: (versatile_sparring(num_arms=3, losses="reduced_variance"), {}),
    }
)  # double Thompson sampling: against the independent version only, for its Beta variates take long


@pytest.mark.parametrize("name", LEARNERS)
def test_they_learn(name):
    """Checks that regret in the second half is well below the first half's, and that privacy costs."""
    learner, values = LEARNERS[name]
    run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(3)), 1500, checkpoints=[750, 1500])
    go = jax.jit(jax.vmap(run, (0, None)))
    regret = {}
    for epsilon in (math.inf, 1.0):
        found = go(jax.random.split(KEY(), 30), run.params(epsilon=epsilon, **values))["pseudo_regret"]
        regret[epsilon] = np.asarray(found).mean(0)
    assert regret[math.inf][1] - regret[math.inf][0] < 0.6 * regret[math.inf][0]
    assert regret[1.0][1] > regret[math.inf][1]
    assert regret[1.0][1] < 0.8 * 1500 / 3  # random duels cost 1/3


def against_a_switch(learner, **values):
    """Returns static regret of runs in which the best arm changes."""
    environment = switching_duels([lower_bound_matrix(3), lower_bound_matrix(3, 2)], [0, 500])
    run = jaxdp.simulator(learner, environment, 2000)
    outputs = jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 30), run.params(epsilon=math.inf, **values))
    return np.asarray(outputs["static_regret"])[:, -1]


def check_follows(regret):
    """Checks regret well below fair draws of both arms against the last arm, in 500 and then 1500 rounds."""
    scores = [effective_borda_scores(lower_bound_matrix(3, best), np.ones(3, bool))[2] for best in (0, 2)]
    fair = 500 * (scores[0] - 0.5) + 1500 * (scores[1] - 0.5)
    assert regret.mean() + 5 * regret.std() / math.sqrt(len(regret)) < 0.8 * fair


def test_sparring_follows_a_switch():
    check_follows(against_a_switch(versatile_sparring(num_arms=3)))
    with pytest.raises(AssertionError):  # planted: fair draws, by arms that are never dropped
        check_follows(against_a_switch(ebs_local(num_arms=3, horizon=2000), confidence_multiplier=100.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ebs_local(num_arms=1, horizon=5), "num_arms must be an integer >= 2, got 1"),
        (lambda: ebs_local(num_arms=2, horizon=0), "horizon must be an integer >= 1, got 0"),
        (lambda: ebs_local(num_arms=2, horizon=5, constants="mine"), "constants must be one of tight, paper"),
        (lambda: rucb(num_arms=1), "num_arms must be an integer >= 2, got 1"),
        (lambda: double_thompson(num_arms=1), "num_arms must be an integer >= 2, got 1"),
        (lambda: versatile_sparring(num_arms=1), "num_arms must be an integer >= 2, got 1"),
        (lambda: versatile_sparring(num_arms=2, report="none"), "report must be one of rr, gaussian, got 'none'"),
        (lambda: versatile_sparring(num_arms=2, losses="iw"), "losses must be one of importance, reduced_variance"),
        (lambda: versatile_sparring(num_arms=2, report="gaussian"), "horizon must be given for Gaussian reports"),
        (lambda: versatile_sparring(num_arms=2, horizon=5), "horizon must be given for .* left out otherwise, got 5"),
    ],
)
def test_factory_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (partial(ebs_local, num_arms=2, horizon=5), {"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "failure_prob": 1.0},
            r"failure_prob must be in \(0, 1\), got 1.0",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": math.nan},
            "confidence_multiplier must be > 0, got nan",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": 1e300},
            "the squared radius must be finite, got inf",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": 1e-300},
            "the squared radius must be > 0, got 0.0",
        ),
        (partial(rucb, num_arms=2), {"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        (
            partial(rucb, num_arms=2),
            {"epsilon": 1.0, "exploration_rate": 0.5},
            "exploration_rate must be > 0.5, got 0.5",
        ),
        (
            partial(double_thompson, num_arms=2),
            {"epsilon": 1.0, "exploration_rate": math.inf},
            "must be finite, got inf",
        ),
        (partial(versatile_sparring, num_arms=2), {"epsilon": -1.0}, "epsilon must be > 0, got -1.0"),
        (
            partial(versatile_sparring, num_arms=2, report="gaussian", horizon=5),
            {"epsilon": 1.0, "delta": 0.0},
            r"delta must be in \(0, 1\), got 0.0",
        ),
        (
            partial(versatile_sparring, num_arms=2, report="gaussian", horizon=5),
            {"epsilon": 1.0, "delta": 0.1, "failure_prob": 0.0},
            r"failure_prob must be in \(0, 1\), got 0.0",
        ),
    ],
)
def test_value_errors(make, values, message):
    for function in (make().params, make().guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)
