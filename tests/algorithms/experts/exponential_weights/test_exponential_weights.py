"""Exponential weights: noise, distribution of plays, the default rate's bound, and an independent NumPy version."""

import functools
import json
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.experts import exponential_weights, stochastic_losses
from jaxdp.numerics import compensated
from tests.algorithms.make_bandit_reference import EPSILONS, EXPERTS, PATH
from tests.simulation.worlds import with_plays

X64 = jax.config.read("jax_enable_x64")
KEY = partial(jax.random.key, 41)
DRAWS = 20_000
NUM, HORIZON = len(EXPERTS["means"]), EXPERTS["horizon"]
REFERENCE = json.loads(PATH.read_text())


# ---- noise -----------------------------------------------------------------------------------------------------------
def reports(learner, losses, **values):
    params = jax.tree.map(jnp.asarray, learner.params(**values))
    state = learner.init(KEY(), params)
    privatize = jax.vmap(lambda key: learner.privatize(key, params, state.public, None, jnp.int32(0), losses))
    return np.asarray(jax.jit(privatize)(jax.random.split(KEY(), DRAWS)), np.float64)


def check_noise(found, exact, distribution):
    """Checks each entry's distribution by Dvoretzky-Kiefer-Wolfowitz-Massart at 5 standard errors.

    Entries are independent.
    """
    bound = math.sqrt(math.log(2 / 5.7e-7) / (2 * DRAWS))
    for column in (found - exact).T:
        assert scipy.stats.kstest(column, distribution.cdf)[0] <= bound
        assert abs(column.std() / distribution.std() - 1) < 5 * math.sqrt(5 / DRAWS / 4)
    assert abs(np.corrcoef(found.T)[0, 1]) < 5 / math.sqrt(DRAWS)


def test_laplace_noise():
    losses, scale = jnp.asarray([0.25, 0.5, 0.0, 1.0]), NUM / 2.0
    learner = exponential_weights(num_experts=NUM, horizon=HORIZON)
    check_noise(reports(learner, losses, epsilon=2.0), np.asarray(losses), scipy.stats.laplace(scale=scale))
    with pytest.raises(AssertionError):
        check_noise(reports(learner, losses, epsilon=2.0 / 0.8), np.asarray(losses), scipy.stats.laplace(scale=scale))


def test_gaussian_noise():
    losses = jnp.asarray([0.25, 0.5, 0.0, 1.0])
    learner = exponential_weights(num_experts=NUM, horizon=HORIZON, noise="gaussian")
    stddev = jaxdp.mechanisms.analytic_gaussian(2.0, 1e-5, math.sqrt(NUM))
    found = reports(learner, losses, epsilon=2.0, delta=1e-5)
    check_noise(found, np.asarray(losses), scipy.stats.norm(scale=stddev))
    with pytest.raises(AssertionError):
        check_noise(found, np.asarray(losses), scipy.stats.norm(scale=0.8 * stddev))


@pytest.mark.parametrize(("noise", "values"), [("laplace", {}), ("gaussian", {"delta": 1e-5})])
def test_without_privacy_reports_are_the_losses(noise, values):
    losses = jnp.asarray([0.25, 0.5, 0.0, 1.0])
    learner = exponential_weights(num_experts=NUM, horizon=HORIZON, noise=noise)
    assert (reports(learner, losses, epsilon=math.inf, **values) == np.asarray(losses)).all()


def test_losses_beyond_the_bounds_are_clipped():
    learner = exponential_weights(num_experts=2, horizon=5)
    assert reports(learner, jnp.asarray([-3.0, 1e6]), epsilon=math.inf)[0].tolist() == [0.0, 1.0]
    assert reports(learner, jnp.asarray([math.nan, 0.5]), epsilon=math.inf)[0].tolist() == [0.0, 0.5]


# ---- plays -----------------------------------------------------------------------------------------------------------
def p_value(public, probabilities, rate):
    """Returns the p-value of chi-square: plays from this state against these probabilities."""
    learner = exponential_weights(num_experts=len(probabilities), horizon=10)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf, learning_rate=rate))
    act = jax.jit(jax.vmap(lambda key: learner.act(key, params, public, None)))
    plays = np.bincount(np.asarray(act(jax.random.split(KEY(), DRAWS))), minlength=len(probabilities))
    return float(scipy.stats.chisquare(plays, probabilities * DRAWS)[1])


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


@pytest.mark.parametrize("num_experts", [2, 5, 37])
def test_plays_have_the_distribution_of_a_softmax(num_experts):
    totals = np.random.default_rng(num_experts).permutation(np.linspace(0, 3, num_experts))
    public = compensated.zero(jnp.zeros(num_experts))._replace(total=jnp.asarray(totals))
    assert p_value(public, softmax(-0.7 * totals), 0.7) > 1e-4
    assert p_value(public, softmax(-0.6 * totals), 0.7) < 1e-4  # planted
    assert p_value(public, softmax(0.7 * totals), 0.7) < 1e-4


def accumulated(add, losses, rounds):
    """Makes totals of 2^24 for everyone, and then these losses."""
    start = compensated.zero(jnp.zeros(len(losses)))
    start = start._replace(total=jnp.full(len(losses), 2.0**24))
    losses = jnp.asarray(losses)
    return jax.jit(lambda: jax.lax.fori_loop(0, rounds, lambda _, running: add(running, losses), start))()


def test_large_totals_do_not_stall():
    losses, rounds = np.array([0.11, 0.21, 0.31, 0.41]), 1000
    exact = softmax(-0.01 * rounds * losses)
    assert p_value(accumulated(compensated.add, losses, rounds), exact, 0.01) > 1e-4
    if not X64:  # float64 does not stall there
        naive = accumulated(lambda s, x: compensated.Sum(s.total + x, s.excess), losses, rounds)
        assert p_value(naive, exact, 0.01) < 1e-4


def test_the_plays_follow_the_least_loss():
    """Checks that extreme rates and infinite differences leave no NaN: the best expert is played."""
    public = compensated.zero(jnp.zeros(3))._replace(total=jnp.asarray([1e30, 5.0, 1e7]))
    assert p_value(public, np.array([1e-9, 1.0 - 2e-9, 1e-9]), 1e3) > 0.9


# ---- the independent version and the bound ---------------------------------------------------------------------------
@functools.cache
def sweep(rate_factor=1.0):
    learner = exponential_weights(num_experts=NUM, horizon=HORIZON)

    def params(*, epsilon):
        default = learner.params(epsilon=epsilon)
        return learner.params(epsilon=epsilon, learning_rate=rate_factor * float(default.learning_rate))

    environment = with_plays(stochastic_losses(EXPERTS["means"]), NUM)
    run = jaxdp.simulator(learner._replace(params=params), environment, HORIZON)
    results = jaxdp.sweep(lambda: run, axes={"epsilon": EPSILONS}, num_seeds=1500, key=KEY())
    return results.isel(round=-1).rename(plays_0="best_plays")


def check_reference(results):
    for epsilon in EPSILONS:
        for output, expected in REFERENCE["exponential_weights"][str(epsilon)].items():
            values = results[output].sel(epsilon=epsilon).values.astype(float)
            error = math.hypot(values.std() / math.sqrt(len(values)), expected["standard_error"])
            assert abs(values.mean() - expected["mean"]) < 5 * error, (epsilon, output)
            for share, quartile in zip((0.25, 0.5, 0.75), expected["quartiles"], strict=True):
                error = math.sqrt(share * (1 - share) * (1 / len(values) + 1 / 20_000))
                assert np.mean(values < quartile - 1e-3) <= share + 5 * error, (epsilon, output, share)
                assert np.mean(values <= quartile + 1e-3) >= share - 5 * error, (epsilon, output, share)


def test_equals_the_independent_version():
    check_reference(sweep())
    with pytest.raises(AssertionError):
        check_reference(sweep(1.25))


def test_the_bound_of_the_default_rate():
    """Checks ln N / rate + rate T (1/8 + s^2 / 2) at the default rate; uniform play would exceed it without noise."""
    mean = sweep().pseudo_regret.mean("seed")
    for epsilon in EPSILONS:
        variance = 2 * (NUM / epsilon) ** 2
        bound = 2 * math.sqrt(HORIZON * math.log(NUM) * (1 / 8 + variance / 2))
        assert 0 < float(mean.sel(epsilon=epsilon)) < bound
    gaps = np.asarray(EXPERTS["means"]) - min(EXPERTS["means"])
    assert HORIZON * gaps.mean() > 2 * math.sqrt(HORIZON * math.log(NUM) / 8)
    assert (mean.diff("epsilon") < 0).all()  # privacy costs


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_experts": 1, "horizon": 5}, "num_experts must be an integer >= 2, got 1"),
        ({"num_experts": 2, "horizon": 0}, "horizon must be an integer >= 1, got 0"),
        ({"num_experts": 2, "horizon": 5, "noise": "none"}, "noise must be one of laplace, gaussian, got 'none'"),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        exponential_weights(**arguments)


@pytest.mark.parametrize(
    ("noise", "values", "message"),
    [
        ("laplace", {"epsilon": -1.0}, "epsilon must be > 0, got -1.0"),
        (
            "laplace",
            {"epsilon": 1e-320},
            r"epsilon must be >= 2.91e-11, as larger noise would overflow integers, got 9.99.*e-321",
        ),
        ("laplace", {"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        ("laplace", {"epsilon": 1.0, "learning_rate": 0.0}, "learning_rate must be > 0, got 0.0"),
        ("laplace", {"epsilon": 1.0, "learning_rate": math.nan}, "learning_rate must be > 0, got nan"),
        ("laplace", {"epsilon": 1.0, "learning_rate": math.inf}, "learning_rate must be finite, got inf"),
        ("gaussian", {"epsilon": 1.0, "delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ("gaussian", {"epsilon": 1.0, "delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
    ],
)
def test_value_errors(noise, values, message):
    learner = exponential_weights(num_experts=2, horizon=5, noise=noise)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)
