"""The kernels of bandits equal the plain algorithms, and planted wrong kernels do not.

They are equal bit for bit, except upper confidence bounds: a compiler may or may not round their products and sums as
one. Those bounds are equal up to rounding, and plays in distribution.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import _means, _means_kernels, _thompson, _tsallis_inf, _ucb, _ucb_central
from jaxdp.bandits._lane_kernels import array_kernel, sum_kernels
from jaxdp.bandits._means import Means
from jaxdp.numerics.compensated import Sum
from jaxdp.random import ties

LANES = 2000
FLOAT, INTEGER = jnp.result_type(float), jnp.result_type(int)
TOLERANCE = 1e-12 if jnp.float64 == FLOAT else 1e-5
SIZES = [2, 3, 16, 17, 40]  # up to 16 arms lanes are the fast axis


def states(num_arms):
    """Makes states of arms with few plays, many, or none; with reports of any sign, and equal ones."""
    random = np.random.default_rng(num_arms)
    plays = random.integers(0, 3, (LANES, num_arms)) * 10 ** random.integers(0, 6, (LANES, 1))
    total = random.integers(-3, 3, plays.shape) * np.maximum(plays, 1) * random.choice([1, 1 / 3], (LANES, 1))
    excess = random.uniform(-1, 1, plays.shape) * np.abs(total) * jnp.finfo(FLOAT).eps
    weights = random.dirichlet(np.full(num_arms, 0.3), LANES) * 0.999 + 0.001 / num_arms
    given = {
        "means": Means(
            jnp.asarray(plays.sum(1), INTEGER),
            jnp.asarray(plays, INTEGER),
            Sum(jnp.asarray(total, FLOAT), jnp.asarray(excess, FLOAT)),
        ),
        "weights": weights.astype(FLOAT),
        "arm": random.integers(0, num_arms, LANES, np.int32),
        "report": random.choice([0.0, 1 / 3, 1.0], LANES).astype(FLOAT),
        "spread": random.uniform(0, 30, LANES).astype(FLOAT),
        "scores": random.integers(-2, 3, plays.shape).astype(FLOAT),  # with ties
        "infinite": random.choice([0.0, 1.0, np.inf], plays.shape).astype(FLOAT),
        "word": random.integers(0, 2**32, LANES, np.uint32),
    }
    return jax.tree.map(jnp.asarray, given)


PLAIN = {
    "update_means": lambda given: _means.update_means(given["means"], given["arm"], given["report"]),
    "first_largest": lambda given: _means.first_largest(given["scores"]),
    "largest_bound": lambda given: [_means.largest_bound(*each) for each in ranked(given)],
    "bounds": lambda given: _ucb.upper_bounds(given["means"].sums, given["means"].plays, given["spread"]),
    "iw": lambda given: _tsallis_inf.importance_weighted(*seen(given)),
    "rv": lambda given: _tsallis_inf.reduced_variance(*seen(given)),
}
KERNELS = {
    "update_means": lambda given: _means_kernels.update_means(given["means"], given["arm"], given["report"]),
    "first_largest": lambda given: _means_kernels.first_largest(given["scores"]),
    "largest_bound": lambda given: [
        _means_kernels.largest_bound(given[name], given["word"]) for name in ("scores", "infinite")
    ],
    "bounds": lambda given: array_kernel(_ucb.upper_bounds)(given["means"].sums, given["means"].plays, given["spread"]),
    "iw": lambda given: sum_kernels(_tsallis_inf.importance_weighted)(*seen(given)),
    "rv": lambda given: sum_kernels(_tsallis_inf.reduced_variance)(*seen(given)),
}


def seen(given):
    return given["means"].sums, given["weights"], given["arm"], given["report"], given["report"] / 10


def ranked(given):
    order = ties.ranks(given["word"], len(given["scores"]))
    return [(given[name], order) for name in ("scores", "infinite")]


def differing(steps, given):
    """Returns the steps that differ from the plain ones in some lane."""

    def played(steps):
        return jax.jit(jax.vmap(lambda given: {name: step(given) for name, step in steps.items()}))(given)

    found, expected = played(steps), played({name: PLAIN[name] for name in steps})
    found, expected = jax.tree.map(np.asarray, (found, expected))
    equal = jax.tree.map(lambda left, right: bool(np.array_equal(left, right)), found, expected)
    if "bounds" in steps:
        equal["bounds"] = bool(np.isclose(found["bounds"], expected["bounds"], TOLERANCE, TOLERANCE).all())
    return {name for name in steps if not all(jax.tree.leaves(equal[name]))}


@pytest.mark.parametrize("num_arms", SIZES)
def test_kernels_equal_the_plain_steps(num_arms):
    assert differing(KERNELS, states(num_arms)) == set()


def without_excess(estimate):
    """Builds the kernel of an estimate that drops the rounding errors of the sums so far."""
    return sum_kernels(lambda sums, *seen: estimate(sums._replace(excess=0 * sums.excess), *seen))


def update_by_one_sum(given):
    """Plays are counted, and reports added without compensation."""
    right = KERNELS["update_means"](given)
    return right._replace(sums=right.sums._replace(excess=0 * right.sums.excess))


def wider(sums, plays, spread):
    means = _ucb.upper_bounds(sums, plays, 0 * spread)
    return means + 1.01 * (_ucb.upper_bounds(sums, plays, spread) - means)


WRONG = {
    "plays are not counted": (
        "update_means",
        lambda given: KERNELS["update_means"](given)._replace(plays=given["means"].plays),
    ),
    "plain sums": ("update_means", update_by_one_sum),
    "the last of the largest": (
        "first_largest",
        lambda given: jnp.int32(2) - _means_kernels.first_largest(given["scores"][::-1]),
    ),
    "the first of the largest bounds": (
        "largest_bound",
        lambda given: [_means_kernels.first_largest(given[name]) for name in ("scores", "infinite")],
    ),
    "bounds 1% wider": (
        "bounds",
        lambda given: array_kernel(wider)(given["means"].sums, given["means"].plays, given["spread"]),
    ),
    "iw without excess": ("iw", lambda given: without_excess(_tsallis_inf.importance_weighted)(*seen(given))),
    "rv without excess": ("rv", lambda given: without_excess(_tsallis_inf.reduced_variance)(*seen(given))),
    "one estimate for the other": ("rv", KERNELS["iw"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    step, wrong = WRONG[name]
    assert differing(KERNELS | {step: wrong}, states(3)) == {step}


LEARNERS = {
    "thompson": lambda: _thompson.thompson(num_arms=5),
    "ucb_central": lambda: _ucb_central.ucb_central(num_arms=5),
    "tsallis_inf": lambda: _tsallis_inf.tsallis_inf(num_arms=5, estimator="rv"),
}
WORLD = functools.cache(lambda: jaxdp.bandits.bernoulli_bandit(np.linspace(0.1, 0.9, 5)))


def outcomes(learner, lanes=50, changes=({},)):
    """Returns outcomes of lanes for each of some changed values, by one program."""
    run = jaxdp.simulator(learner, WORLD(), 60, checkpoints=[10, 30, 60])
    go, keys = jax.jit(jax.vmap(run, (0, None))), jax.random.split(jax.random.key(92), lanes)
    return [go(keys, run.params(epsilon=2.0, **values)) for values in changes]


def as_it_reads(monkeypatch):
    """Makes all new learners use the plain steps."""
    for module in (_ucb, _thompson, _ucb_central, _tsallis_inf):
        for step, plain in {
            "update_means": _means.update_means,
            "first_largest": _means.first_largest,
            "largest_bound": lambda bounds, word: _means.largest_bound(bounds, ties.ranks(word, len(bounds))),
            "array_kernel": lambda formula: formula,
            "sum_kernels": lambda formula: formula,
        }.items():
            if hasattr(module, step):
                monkeypatch.setattr(module, step, plain)


@pytest.mark.parametrize("name", LEARNERS)
def test_runs_are_equal(name, monkeypatch):
    kernels = outcomes(LEARNERS[name]())
    as_it_reads(monkeypatch)
    jax.tree.map(np.testing.assert_array_equal, kernels, outcomes(LEARNERS[name]()))


def test_distributions_of_plays_by_bounds_are_equal(monkeypatch):
    def apart(left, right):
        """Returns the largest difference of mean outcomes, in standard errors."""
        left, right = ([np.asarray(each[name], float) for name in sorted(each)] for each in (left, right))
        return max(
            np.max(np.abs(one.mean(0) - other.mean(0)) / np.sqrt((one.var(0) + other.var(0)) / len(one) + 1e-12))
            for one, other in zip(left, right, strict=True)
        )

    kernels, wider = outcomes(_ucb.ucb(num_arms=5), 10_000, ({}, {"exploration_rate": 8.0}))
    as_it_reads(monkeypatch)
    (plain,) = outcomes(_ucb.ucb(num_arms=5), 10_000)
    assert apart(kernels, plain) < 5
    assert apart(wider, plain) > 5  # planted
