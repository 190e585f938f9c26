"""Tsallis-INF, Exp3, upper bounds and Thompson sampling on reports: bounds, scales, clipping, errors."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import (
    _tsallis_inf,
    bernoulli_bandit,
    bounded_bandit,
    drifting_bandit,
    exp3,
    thompson,
    tsallis_inf,
    ucb,
)

KEY = partial(jax.random.key, 5)
MEANS = [0.9, 0.5, 0.5, 0.5]
HORIZON = 4000
FLOAT = jnp.result_type(float)


def regrets(learner, world, horizon, points, lanes=40):
    run = jaxdp.simulator(learner, world, horizon, engine="rounds", outcomes=["pseudo_regret"])
    go = jax.jit(jax.vmap(run, in_axes=(0, None)))
    keys = jax.random.split(KEY(), lanes)
    return [np.asarray(go(keys, run.params(**point))["pseudo_regret"])[:, -1].astype(float) for point in points]


# ---- regret ----------------------------------------------------------------------------------------------------------
def bound(estimator, epsilon, arms, horizon):
    """SPEC's bounds, from the papers, times c."""
    factor = 1 / math.tanh(epsilon / 2)
    if estimator == "iw":
        return factor * (4 * math.sqrt(arms * horizon) + 1)
    return factor * (2 * math.sqrt(arms * horizon) + 10 * arms * math.log(horizon) + 16)


def check_bound(estimator, world, epsilons=(1.5, math.inf), share=1.0):
    found = regrets(tsallis_inf(num_arms=4, estimator=estimator), world, HORIZON, [{"epsilon": e} for e in epsilons])
    for epsilon, regret in zip(epsilons, found, strict=True):
        most = share * bound(estimator, epsilon, 4, HORIZON)
        assert regret.mean() + 3 * regret.std() / math.sqrt(len(regret)) < most, (epsilon, most, regret.mean())


@pytest.mark.parametrize("estimator", ["iw", "rv"])
def test_regret_stays_below_its_bound(estimator):
    check_bound(estimator, drifting_bandit(MEANS))


def test_negative_losses_are_not_stable(monkeypatch):
    """An easy instance costs a quarter of the bound. Planted: rewards as negative losses, without the shift to [0, 1].

    Then one reward of an arm that is seldom played makes it the one that is played.
    """
    check_bound("iw", bernoulli_bandit(MEANS), share=0.25)
    monkeypatch.setattr(_tsallis_inf, "unit_loss", lambda params, report: -report)
    with pytest.raises(AssertionError):
        check_bound("iw", bernoulli_bandit(MEANS), share=0.25)


def test_gaussian_reports_are_shifted(monkeypatch):
    """The reach of noise that is small for it, and regret below that of uniform arms; not so for gains as losses."""
    rounds = 1000
    learner, values = tsallis_inf(num_arms=4, report="gaussian", horizon=rounds), {"epsilon": 30.0, "delta": 0.1}
    leaves = learner.params(**values)
    stddev, reach = float(leaves.report.noise_stddev), float(leaves.losses.reach)
    assert reach == pytest.approx(0.5 + stddev * math.sqrt(2 * math.log(2 * rounds / 0.05)), rel=1e-5)
    uniform = rounds * (max(MEANS) - np.mean(MEANS))

    def check():
        (regret,) = regrets(learner, bernoulli_bandit(MEANS), rounds, [values])
        assert regret.mean() + 3 * regret.std() / math.sqrt(len(regret)) < 0.7 * uniform

    check()
    right = _tsallis_inf.unit_loss
    monkeypatch.setattr(_tsallis_inf, "unit_loss", lambda params, report: 1 - right(params, report))
    with pytest.raises(AssertionError):
        check()


# ---- what reports become ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_losses_of_randomized_responses_are_bits(epsilon):
    """The probability of a loss of 1 is (1 + loss (e^epsilon - 1)) / (e^epsilon + 1)."""
    learner = tsallis_inf(num_arms=2, rewards="bounded")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon, reward_low=-1.0, reward_high=3.0))
    keys = jax.random.split(KEY(), 20_000)
    for reward, loss in ((-1.0, 1.0), (2.0, 0.25), (9.0, 0.0), (math.nan, 1.0)):
        report = jax.vmap(lambda key, r=reward: learner.privatize(key, params, (), None, 0, jnp.asarray(r, FLOAT))[1])(
            keys
        )
        losses = np.asarray(jax.vmap(lambda y: _tsallis_inf.unit_loss(params.losses, y))(report), float)
        assert np.minimum(losses, 1 - losses).max() < 1e-5
        share = (1 + loss * math.expm1(epsilon)) / (math.exp(epsilon) + 1)
        assert abs(losses.mean() - share) < 5 * math.sqrt(max(share * (1 - share), 1e-4) / len(keys)) + 1e-5


@pytest.mark.parametrize("report", ["rr", "laplace", "gaussian"])
def test_without_privacy_the_loss_is_exact(report):
    learner = exp3(num_arms=2, horizon=10, report=report, rewards="bounded")
    values = {"delta": 0.1} if report == "gaussian" else {}
    params = learner.params(epsilon=math.inf, **values)
    for reward in (0.0, 0.25, 1.0):
        _, said = learner.privatize(KEY(), params, (), None, 0, jnp.asarray(reward, FLOAT))
        assert float(_tsallis_inf.unit_loss(params.losses, said)) == 1 - reward


def test_proxies_are_the_channel_s():
    rr = ucb(num_arms=2, rewards="bounded").params(epsilon=1.0, reward_low=-1.0, reward_high=2.0, exploration_rate=2.0)
    assert float(rr.squared_radius) == pytest.approx(2 * 2 * 9 / 4 / math.tanh(0.5) ** 2, rel=1e-4)
    noisy = ucb(num_arms=2, report="gaussian").params(epsilon=1.0, delta=1e-3)
    assert float(noisy.squared_radius) == pytest.approx(8 * (0.25 + float(noisy.report.noise_stddev) ** 2), rel=1e-4)
    assert float(ucb(num_arms=2).params(epsilon=math.inf).squared_radius) == pytest.approx(2, rel=1e-4)  # UCB1


@pytest.mark.parametrize(("posterior", "shapes"), [("bits", (31.0, 11.0)), ("debiased", None)])
def test_the_two_posteriors(posterior, shapes):
    """Of 40 reports of an arm, of which 30 are ones: Beta(31, 11), or from 40 / c^2 rewards of the debiased share."""
    learner = thompson(num_arms=2, posterior=posterior)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=2.0))
    state, update = learner.init(KEY(), params), jax.jit(learner.update)
    for index in range(40):
        said = learner.privatize(jax.random.key(index), params, (), None, jnp.int32(0), jnp.int32(0))[1]
        top, bottom = (0.5 + sign * 0.5 / math.tanh(1.0) for sign in (1, -1))
        assert float(said) == pytest.approx(top, rel=1e-5) or float(said) == pytest.approx(bottom, rel=1e-5)
        state = update(KEY(), params, state, (jnp.int32(0), jnp.asarray(top if index < 30 else bottom, FLOAT)))
    if shapes is None:
        worth, share = 40 * math.tanh(1.0) ** 2, min(0.5 + 0.25 / math.tanh(1.0), 1)
        shapes = 1 + worth * share, 1 + worth * (1 - share)
    # The other arm's draw is uniform: this one is played with the mean of its law.
    keys = jax.random.split(KEY(), 20_000)
    arms = jax.jit(jax.vmap(lambda key: learner.act(key, params, state.public, None)))(keys)
    mean = shapes[0] / sum(shapes)
    assert abs(float(jnp.mean((arms == 0).astype(FLOAT))) - mean) < 5 * math.sqrt(mean * (1 - mean) / 20_000)


def test_bounded_rewards_are_played():
    for learner in (ucb(num_arms=3, rewards="bounded"), exp3(num_arms=3, horizon=300, rewards="bounded")):
        (regret,) = regrets(learner, bounded_bandit([0.85, 0.3, 0.2]), 300, [{"epsilon": math.inf}], lanes=10)
        assert 0 < regret.mean() < 0.6 * 300 * (0.55 + 0.65) / 3


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (tsallis_inf, {"num_arms": 1}, "num_arms must be a whole number >= 2, got 1"),
        (tsallis_inf, {"num_arms": 2, "estimator": "is"}, "estimator must be one of iw, rv, got 'is'"),
        (tsallis_inf, {"num_arms": 2, "report": "laplace"}, "report must be one of rr, gaussian, got 'laplace'"),
        (tsallis_inf, {"num_arms": 2, "horizon": 5}, "horizon must be given for Gaussian reports, and only for them"),
        (tsallis_inf, {"num_arms": 2, "report": "gaussian"}, "horizon must be given for Gaussian reports, and only"),
        (ucb, {"num_arms": 2, "report": "laplace"}, "report must be one of rr, gaussian, got 'laplace'"),
        (ucb, {"num_arms": 2, "rewards": "real"}, "rewards must be one of binary, bounded, got 'real'"),
        (thompson, {"num_arms": 2, "posterior": "exact"}, "posterior must be one of bits, debiased, got 'exact'"),
        (exp3, {"num_arms": 2, "horizon": 0}, "horizon must be a whole number"),
    ],
)
def test_factory_errors(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (partial(tsallis_inf, num_arms=2), {"epsilon": 0.0}, "epsilon must be > 0, got 0"),
        (
            partial(tsallis_inf, num_arms=2, rewards="bounded"),
            {"epsilon": 1.0, "reward_low": 1.0},
            "reward_low must be < reward_high",
        ),
        (
            partial(tsallis_inf, num_arms=2, report="gaussian", horizon=9),
            {"epsilon": 1.0, "delta": 0.1, "failure_prob": 1.0},
            r"failure_prob must be in \(0, 1\), got 1",
        ),
        (partial(ucb, num_arms=2), {"epsilon": 1.0, "exploration_rate": math.nan}, "exploration_rate must be > 0"),
        (
            partial(exp3, num_arms=2, horizon=9),
            {"epsilon": 1.0, "learning_rate": -1.0},
            "learning_rate must be > 0, got -1",
        ),
        (partial(thompson, num_arms=2), {"epsilon": math.nan}, "epsilon must be > 0, got nan"),
    ],
)
def test_value_errors(make, values, message):
    with pytest.raises(ValueError, match=message):
        make().params(**values)
    with pytest.raises(ValueError, match=message):
        make().guarantee(**values)


def test_values_that_do_not_matter_are_refused():
    with pytest.raises(TypeError, match="delta"):
        ucb(num_arms=2).params(epsilon=1.0, delta=0.1)
    with pytest.raises(TypeError, match="failure_prob"):
        exp3(num_arms=2, horizon=5).params(epsilon=1.0, failure_prob=0.1)
