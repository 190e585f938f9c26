"""Tests of `pairwise_elimination_central` alone."""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, pairwise_elimination_central
from jaxdp.bandits._pairwise_elimination_central import log_noise, slopes_of
from jaxdp.mechanisms import _grid
from tests.algorithms.bandits.best_arm import KEY, run
from tests.algorithms.bandits.pairwise_elimination_central.golden import epochs
from tests.algorithms.bandits.pairwise_elimination_central.golden import pairwise_elimination_central as plain
from tests.privacy.planter import planted

LANES = 1_000
CASES: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
    "gaps": ((0.8, 0.3, 0.2), {"epsilon": 1.0, "failure_prob": 0.2, "first_look": 16}),
    "clear": ((0.8, 0.3, 0.2), {"epsilon": math.inf, "failure_prob": 0.2, "first_look": 16}),
    "planned": ((0.4, 0.15, 0.1), {"epsilon": 0.5, "failure_prob": 0.2, "log_odds_ratio": 1.3, "first_look": 160}),
    "tolerance": (
        (0.6, 0.55, 0.2),
        {"epsilon": 2.0, "failure_prob": 0.2, "tolerance": 0.2, "growth": 0.3, "first_look": 16},
    ),
}
MODULE = "jaxdp.bandits._pairwise_elimination_central"
PRICE = " - releases * (log_noise(params, slope_y) + log_noise(params, slope_x))"


# ---- equal to the independent version --------------------------------------------------------------------------------
@functools.cache
def plain_outputs(name, **changed):
    means, values = CASES[name]
    return plain(np.random.default_rng(3), 4 * LANES, **{"means": means, **values, **changed})


def check(found, others):
    for output in ("rounds", "correct", "best_arm_plays"):
        mine, theirs = found[output].reshape(LANES, -1)[:, -1].astype(float), others[output]
        error = math.sqrt(mine.var() / len(mine) + theirs.var() / len(theirs))
        assert abs(mine.mean() - theirs.mean()) <= 5 * max(error, 0.1 / LANES), output


def play(name, engine):
    means, values = CASES[name]
    return run(pairwise_elimination_central(num_arms=3), means, LANES, horizon=2**13, engine=engine, **values)


@pytest.mark.parametrize("engine", ["blocks", "counts"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_independent_version(name, engine):
    found = play(name, engine)
    assert not found["censored"].any()
    check(found, plain_outputs(name))


@pytest.mark.parametrize("changed", [{"price": 0.5}, {"failure_prob": 0.1}, {"epsilon": 0.8}, {"first_look": 80}])
def test_another_one_does_not(changed):
    with pytest.raises(AssertionError):
        check(play("gaps", "counts"), plain_outputs("gaps", **changed))


# ---- bets ------------------------------------------------------------------------------------------------------------
def mean_payoffs(rates, expected, margin, users=3):
    """Returns the exact means over totals of what every stake pays, for x and y with these rates, without noise."""
    stakes = jnp.asarray([0.95, 0.5, 0.1, 0.01])
    slope_y, slope_x, none = (np.asarray(part) for part in slopes_of(stakes, jnp.full(4, expected), margin))
    means = np.zeros(4)
    for totals in itertools.product(range(users + 1), repeat=2):
        chance = np.prod(scipy.stats.binom.pmf(totals, users, rates))
        means = means + chance * np.exp(totals[0] * slope_x + totals[1] * slope_y + users * none)
    return means


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("expected", [0.001, 0.3, 0.97])
def test_no_bet_pays_if_y_is_not_better(expected, margin):
    for worse, lead in itertools.product((0.0, 0.02, 0.5, 0.6), (0.0, 0.01, 0.4)):
        rates = (worse + margin + lead, worse) if worse + margin + lead <= 1 else (1.0, 1.0 - margin)
        assert (mean_payoffs(rates, expected, margin) <= 1 + 1e-5).all()


def test_bets_pay_if_y_is_better():
    assert mean_payoffs((0.3, 0.4), 0.35, 0.0)[2:].min() > 1
    assert mean_payoffs((0.35, 0.35), 0.35, 0.1)[2:].min() > 1
    assert mean_payoffs((0.3, 0.3), 0.3, 0.0) == pytest.approx(1, abs=1e-5)  # at the expected rate every bet is fair


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_the_price_of_noise_is_its_generating_function(epsilon):
    """Compares with the exact sum over the steps of the noise that is drawn, and with noise of more budget."""
    with jax.enable_x64(True):
        params = pairwise_elimination_central(num_arms=2).params(epsilon=epsilon)
        grid = _grid.laplace_grid(jnp.zeros(2, int), jnp.float64(1), jnp.float64(epsilon))
        step, scale = float(grid.step), float(grid.scale)
        for share in (-0.85, -0.3, 0.01, 0.5, 0.85):
            slope = share * epsilon
            # k and -1 - k steps, k >= 0, with probability (1 - r) r^k / 2, r = exp(-1 / scale)
            up, down = (1 / -math.expm1(sign * slope * step - 1 / scale) for sign in (1, -1))
            exact = math.log(-math.expm1(-1 / scale) * (up + math.exp(-slope * step) * down) / 2)
            price = float(log_noise(params, slope))
            assert exact <= price <= exact + 1e-3 * abs(share) + 1e-9
            assert price > -math.log1p(-((share / 1.05) ** 2)) + 1e-3 * share**2  # planted: that of 1.05 epsilon


# ---- errors ----------------------------------------------------------------------------------------------------------
def share_dropped(learner, rate, epsilon, lanes=400):
    """Returns how often equal arms were called different: each of two tests may err with probability .05."""
    values: dict[str, Any] = {"epsilon": epsilon}
    found = run(learner, (rate, rate), lanes, horizon=10**6, engine="counts", **values)
    return (~found["censored"]).mean()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.5, 0.98])
def test_equal_arms_are_dropped_rarely_at_any_time(rate, epsilon):
    assert share_dropped(pairwise_elimination_central(num_arms=2), rate, epsilon) <= 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_without_the_generating_function_they_are_dropped_often(epsilon):
    wrong = planted(MODULE, (PRICE, "")).pairwise_elimination_central(num_arms=2)
    assert share_dropped(wrong, 0.02, epsilon) > 0.1 + 3 * math.sqrt(0.09 / 400)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, math.inf])
def test_errors_are_few(epsilon):
    """Counts runs that were cut off as errors: after an error the other two arms tie."""
    values: dict[str, Any] = {"epsilon": epsilon, "failure_prob": 0.1}
    found = run(pairwise_elimination_central(num_arms=3), (0.6, 0.5, 0.5), 200, engine="counts", **values)
    assert (found["censored"] | ~found["correct"].ravel()).mean() <= 0.1


def test_a_tolerance_ends_between_equal_arms():
    values: dict[str, Any] = {"epsilon": 1.0, "tolerance": 0.05}
    found = run(pairwise_elimination_central(num_arms=4), (0.5, 0.5, 0.5, 0.2), 200, engine="counts", **values)
    assert not found["censored"].any()
    assert (found["simple_regret"] <= 0.05).all()


def test_an_arm_worse_than_the_tolerance_is_recommended_rarely():
    values: dict[str, Any] = {"epsilon": 1.0, "tolerance": 0.02, "failure_prob": 0.2}
    found = run(pairwise_elimination_central(num_arms=2), (0.5, 0.4799), 400, engine="counts", **values)
    assert not found["censored"].any()
    assert (found["simple_regret"] > 0.02).mean() <= 0.2


# ---- rounds ----------------------------------------------------------------------------------------------------------
FEW, RARE = (0.5, 0.45, 0.45, 0.45), (0.022, 0.02, 0.02, 0.02)


@pytest.mark.parametrize(
    ("means", "values", "rounds"),
    [
        (FEW, {"log_odds_ratio": 0.2007, "first_look": 800}, 9.2e3),
        (RARE, {"log_odds_ratio": 0.0974, "first_look": 40_000}, 4.8e5),
        (FEW, {}, 1.38e4),
        (RARE, {}, 6.6e5),
        (FEW, {"epsilon": 0.1}, 2.8e4),
    ],
)
def test_rounds_are_those_known(means, values, rounds):
    learner = pairwise_elimination_central(num_arms=4)
    found = run(learner, means, 400, horizon=2**30, engine="counts", **{"epsilon": 1.0, **values})
    ended = ~found["censored"]
    assert ended.mean() >= 0.97  # after an error the other arms tie, and the run does not end
    assert found["correct"][ended].all()
    played = found["rounds"][ended].astype(float)
    assert abs(played.mean() - rounds) < 5 * played.std() / math.sqrt(len(played)) + 0.02 * rounds


@pytest.mark.parametrize("values", [{}, {"epsilon": 0.1}, {"epsilon": math.inf}, {"first_look": 30, "growth": 1.0}])
def test_epochs_are_fixed_in_advance(values):
    values = {"epsilon": 1.0, "first_look": None, "growth": 0.1, **values}
    ends = pairwise_elimination_central(num_arms=3).params(**values).ends
    assert list(np.diff(ends[:20], prepend=0)) == list(itertools.islice(epochs(**values), 20))
    assert ends[-1] == jnp.iinfo(jnp.result_type(int)).max
    assert (np.diff(ends[ends < ends[-1]]) > 0).all()


def test_an_epoch_plays_each_arm_from_the_last_end_to_its_own():
    learner = pairwise_elimination_central(num_arms=3)
    params = learner.params(epsilon=1.0, first_look=30, growth=0.5)
    public, limit = jax.eval_shape(learner.init, KEY(), params).public, jnp.asarray(10**6)
    public = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), public)._replace(played=limit * 0)

    def plays(epoch):
        assert learner.counts is not None
        return learner.counts.plan(KEY(), params, public._replace(epoch=epoch), limit).counts

    found = jax.jit(jax.vmap(plays))(jnp.arange(5))
    expected = np.array([*itertools.islice(epochs(1.0, 30, 0.5), 5)])
    np.testing.assert_array_equal(found, np.tile(expected[:, None], 3))


def test_releases_stand_at_the_ends_of_epochs():
    """Plays users who always pay, who never do, and who pay in turn: sums change at the ends of epochs alone."""
    learner = pairwise_elimination_central(num_arms=2)
    params = learner.params(epsilon=1.0, first_look=5, growth=0.6, failure_prob=1e-6)

    def step(state, inputs):
        key, reward = inputs
        arm = learner.act(key, params, state.public, None)
        after = learner.update(key, params, state, (arm, reward))
        before, public = state.public, after.public
        return after, jnp.any((public.sums.total != before.sums.total) | (public.rates != before.rates))

    for rewards in (jnp.zeros(48, int), jnp.ones(48, int), jnp.arange(48) % 2):
        state = learner.init(KEY(), params)
        _, moved = jax.lax.scan(step, state, (jax.random.split(KEY(), 48), rewards))
        ends = itertools.accumulate(itertools.islice(epochs(1.0, 5, 0.6), 8))
        assert list(np.flatnonzero(moved) + 1) == [2 * end for end in ends if 2 * end <= 48]


def test_blocks_have_the_bits_of_rounds():
    learner, world = pairwise_elimination_central(num_arms=3), bernoulli_bandit([0.7, 0.4, 0.3])
    found = []
    for engine in ("rounds", "blocks"):
        simulate = jaxdp.simulator(learner, world, 500, engine=engine)
        params = simulate.params(epsilon=1.0, first_look=20, growth=0.5)
        found.append(jax.jit(jax.vmap(simulate, (0, None)))(jaxdp.lane_keys(KEY(), 20), params))
    assert jax.tree.all(jax.tree.map(np.array_equal, *found))
    assert not np.asarray(found[0]["censored"]).all()


@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({"num_arms": 1}, {}, "num_arms must be an integer >= 2, got 1"),
        ({}, {"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({}, {"failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({}, {"tolerance": -0.1}, "tolerance must be >= 0"),
        ({}, {"tolerance": 1.0}, "tolerance must be < 1, got 1.0"),
        ({}, {"log_odds_ratio": 0.0}, "log_odds_ratio must be > 0, got 0.0"),
        ({}, {"log_odds_ratio": 1e-322}, "log_odds_ratio must be in .*, got 1e-322"),
        ({}, {"log_odds_ratio": 1e308}, "log_odds_ratio must be in .*, got 1e"),
        ({}, {"growth": [0.5]}, "growth must be a number, got"),
        ({}, {"log_odds_ratio": math.inf}, "log_odds_ratio must be"),
        ({}, {"first_look": 1}, "first_look must be an integer >= 2, got 1"),
        ({}, {"first_look": 2.5}, "first_look must be an integer >= 2, got 2.5"),
        ({}, {"growth": 0.01}, r"growth must be in \[0.05, 1"),
        ({}, {"growth": math.nan}, "growth must be"),
    ],
)
def test_bad_arguments(arguments, values, message):
    with pytest.raises(ValueError, match=message):
        pairwise_elimination_central(**{"num_arms": 3, **arguments}).params(**{"epsilon": 1.0, **values})
