"""Best arm by one private selection: its errors, its noise, its stop, and an independent NumPy version."""

import math

import jax
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, noisy_argmax
from tests.algorithms.bandits.best_arm import KEY, run
from tests.algorithms.bandits.noisy_argmax import golden

LANES = 4000
MEANS = (0.4, 0.6, 0.5)
ROUNDS = 60


def errors_of_two(means, plays, epsilon):
    """Returns the exact error rate for two arms, of which the first is better.

    The difference of two noises is Laplace(1 / epsilon); equal totals without noise are decided by a coin.
    """
    chances = [scipy.stats.binom.pmf(np.arange(plays + 1), plays, mean) for mean in means]
    leads = np.subtract.outer(np.arange(plays + 1), np.arange(plays + 1))
    wrong = scipy.stats.laplace.sf(leads * epsilon) if epsilon < math.inf else (1 - np.sign(leads)) / 2
    return float(np.sum(np.outer(*chances) * wrong))


def check_share(share, exact, lanes=LANES):
    assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / lanes)


def play(engine, epsilon, means=MEANS, lanes=LANES):
    learner = noisy_argmax(num_arms=len(means), num_rounds=ROUNDS)
    return run(learner, means, lanes, horizon=ROUNDS, engine=engine, epsilon=epsilon)


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["rounds", "blocks", pytest.param("counts", marks=pytest.mark.always)])
def test_errors_are_as_the_formula_says(engine):
    """Checks 30 users an arm at means .6 and .5: errors at epsilon .3, and not those of half or twice the noise."""
    exact = errors_of_two((0.6, 0.5), ROUNDS // 2, 0.3)
    share = np.mean(~play(engine, 0.3, (0.6, 0.5))["correct"])
    check_share(share, exact)
    for wrong in (0.15, 0.6):
        with pytest.raises(AssertionError):
            check_share(share, errors_of_two((0.6, 0.5), ROUNDS // 2, wrong))


def test_the_bound_on_errors_holds():
    for gap, plays, epsilon in ((0.5, 30, 0.5), (0.2, 200, 1.0), (0.1, 1000, 0.05)):
        bound = math.exp(-plays * gap**2 / 4) + math.exp(-epsilon * plays * gap / 2) / 2
        assert errors_of_two((0.5 + gap / 2, 0.5 - gap / 2), plays, epsilon) < bound < 0.6


def test_without_noise_ties_are_decided_by_a_coin():
    exact = errors_of_two((0.6, 0.5), ROUNDS // 2, math.inf)
    tied = np.sum(scipy.stats.binom.pmf(np.arange(31), 30, 0.6) * scipy.stats.binom.pmf(np.arange(31), 30, 0.5))
    for means in ((0.6, 0.5), (0.5, 0.6)):
        share = np.mean(~play("counts", math.inf, means, 20_000)["correct"])
        check_share(share, exact, 20_000)
        for wrong in (exact - tied / 2, exact + tied / 2):  # if the first of two equal arms won, or the last
            with pytest.raises(AssertionError):
                check_share(share, wrong, 20_000)


# ---- an independent version ------------------------------------------------------------------------------------------
def test_equals_the_independent_version():
    epsilon = 0.2
    expected = golden.noisy_argmax(np.random.default_rng(3), epsilon, means=MEANS, num_rounds=ROUNDS, lanes=20_000)
    right, error = np.mean(expected == 1), math.sqrt(0.25 * (1 / LANES + 1 / 20_000))
    regret = np.subtract(0.6, MEANS)[expected]
    found = play("counts", epsilon)
    assert abs(found["correct"].mean() - right) < 5 * error
    spread = 5 * regret.std() * math.sqrt(1 / LANES + 1 / len(regret))
    assert abs(found["simple_regret"].mean() - regret.mean()) < spread
    assert abs(play("counts", 2 * epsilon)["correct"].mean() - right) > 5 * error  # half the noise


# ---- rounds and stop -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["rounds", "blocks", "counts"])
def test_it_stops_after_as_many_plays_of_each_arm(engine):
    learner = noisy_argmax(num_arms=3, num_rounds=ROUNDS)
    found = run(learner, MEANS, 5, horizon=100, engine=engine, epsilon=1.0)
    assert (found["rounds"] == ROUNDS).all()
    assert not found["censored"].any()
    assert (found["best_arm_plays"] == ROUNDS // 3).all()


def test_before_the_last_round_the_recommendation_is_drawn_without_data():
    simulate = jaxdp.simulator(
        noisy_argmax(num_arms=2, num_rounds=200), bernoulli_bandit([1.0, 0.0]), 200, checkpoints=[199, 200]
    )
    found = jax.jit(jax.vmap(simulate, (0, None)))(jaxdp.lane_keys(KEY(), LANES), simulate.params(epsilon=math.inf))
    before, after = np.asarray(found["correct"]).T
    check_share(before.mean(), 0.5)
    assert after.all()


# ---- errors of arguments ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_arms": 1, "num_rounds": 2}, "num_arms must be an integer >= 2, got 1"),
        ({"num_arms": 3, "num_rounds": 4}, "num_rounds must be a positive multiple of num_arms=3, got 4"),
        ({"num_arms": 3, "num_rounds": 0}, "num_rounds must be an integer >= 1, got 0"),
        ({"num_arms": 2, "num_rounds": 2**64}, "num_rounds must be <= "),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        noisy_argmax(**arguments)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_value_errors(epsilon):
    with pytest.raises(ValueError, match="epsilon must be > 0, got"):
        noisy_argmax(num_arms=2, num_rounds=2).params(epsilon=epsilon)
