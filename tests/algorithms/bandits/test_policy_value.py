"""Values of fixed policies from logs: plain formulas, coverage, and what is refused."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from jaxdp.bandits import evaluate_policy
from jaxdp.bandits._policy_value import _predictions
from tests.algorithms.bandits.logs import PROPENSITIES, draw_log

MEANS = np.array([[0.1, 0.3], [0.5, 0.9]])
METHODS = ("ips", "snips", "dr")


def always_one(horizon, num_seeds=None):
    policy = np.tile([0.0, 1.0], (horizon, 1))
    return policy if num_seeds is None else np.tile(policy, (num_seeds, 1, 1))


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_mean_reward(method):
    """Draws 400 logs. Planted: the mean over rounds with the policy's arm, as if arms had been uniform."""
    truth, horizon, runs = MEANS[:, 1].mean(), 400, 400
    covered, planted = 0, 0
    for seed in range(runs):
        log = draw_log(seed, horizon, MEANS)
        ask: dict[str, Any] = {"policy": always_one(horizon), "actions": log.actions, "rewards": log.rewards}
        low, high = evaluate_policy(**ask, propensities=log.propensities, method=method).interval
        covered += low < truth < high
        low, high = evaluate_policy(**ask, propensities=np.full((horizon, 2), 0.5), method="snips").interval
        planted += low < truth < high
    assert abs(covered / runs - 0.95) < 5 * math.sqrt(0.95 * 0.05 / runs)
    assert planted / runs < 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)


def test_values_are_those_of_plain_formulas():
    log, horizon = draw_log(3, 200, MEANS), 200
    rng = np.random.default_rng(0)
    policy = rng.dirichlet([1, 1], size=horizon)
    predictions = rng.random((horizon, 2))
    arguments = (policy, log.actions, log.rewards, log.propensities)
    weights = np.array([policy[t, a] / log.propensities[t, a] for t, a in enumerate(log.actions)])
    ips = [w * r for w, r in zip(weights, log.rewards, strict=True)]
    doubly = [
        policy[t] @ predictions[t] + weights[t] * (log.rewards[t] - predictions[t, a])
        for t, a in enumerate(log.actions)
    ]
    value = evaluate_policy(*arguments, method="ips")
    assert value.mean == pytest.approx(np.mean(ips))
    assert value.stderr == pytest.approx(np.std(ips, ddof=1) / math.sqrt(horizon))
    assert value.effective_sample_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert evaluate_policy(*arguments, method="snips").mean == pytest.approx(np.sum(ips) / weights.sum())
    value = evaluate_policy(*arguments, predictions=predictions)
    assert value.mean == pytest.approx(np.mean(doubly))
    assert value.stderr == pytest.approx(np.std(doubly, ddof=1) / math.sqrt(horizon))


def test_the_regression_uses_other_folds_and_makes_intervals_shorter():
    rng = np.random.default_rng(5)
    horizon = 2000
    contexts = rng.uniform(-1, 1, (horizon, 2, 1))
    actions = rng.integers(2, size=horizon)
    rewards = 2 * contexts[np.arange(horizon), actions, 0] + rng.normal(0, 0.1, horizon)
    ask: dict[str, Any] = {"actions": actions, "rewards": rewards, "propensities": np.full((horizon, 2), 0.5)}
    doubly = evaluate_policy(always_one(horizon), **ask, contexts=contexts)
    plain = evaluate_policy(always_one(horizon), **ask, method="ips")
    truth = 2 * contexts[:, 1, 0].mean()
    assert abs(doubly.mean - truth) < 5 * 0.1 * math.sqrt(2 / horizon)
    assert doubly.stderr < 0.8 * plain.stderr  # it keeps the spread of contexts
    first = int(np.flatnonzero(actions == 1)[0])
    moved = rewards + 1000.0 * (np.arange(horizon) == first)
    before, after = (_predictions(contexts, None, actions, values, 2) for values in (rewards, moved))
    is_equal = (before == after).all(axis=1)
    np.testing.assert_array_equal(is_equal, np.arange(horizon) % 5 == first % 5)


def test_policies_of_seeds_share_rounds():
    log = draw_log(6, 500, MEANS)
    ask: dict[str, Any] = {"actions": log.actions, "rewards": log.rewards, "propensities": log.propensities}
    one = evaluate_policy(always_one(500), **ask, method="ips")
    same = evaluate_policy(always_one(500, num_seeds=4), **ask, method="ips")
    assert same.mean == pytest.approx(one.mean)
    assert same.stderr == pytest.approx(one.stderr), "equal policies are one policy"
    rng = np.random.default_rng(0)
    both = [np.eye(2)[[arm] * 500] for arm in rng.integers(2, size=8)]
    mixed = evaluate_policy(np.stack(both), **ask, method="ips")
    values = [evaluate_policy(policy, **ask, method="ips").mean for policy in both]
    assert mixed.mean == pytest.approx(np.mean(values))
    assert mixed.stderr > np.std(values, ddof=1) / math.sqrt(8) * 0.999, "planted: rounds alone"


def test_intervals_of_random_policies_cover_their_mean():
    """Draws policies whose probability of arm 1 is uniform. Planted: the first policy's interval, of rounds alone."""
    truth, horizon, runs, rng = MEANS.mean(), 300, 200, np.random.default_rng(0)
    covered, planted = 0, 0
    for seed in range(runs):
        log = draw_log(seed, horizon, MEANS)
        shares = rng.random(10)
        policies = np.tile(np.stack([1 - shares, shares], axis=1)[:, None, :], (1, horizon, 1))
        arguments = (log.actions, log.rewards, log.propensities)
        low, high = evaluate_policy(policies, *arguments, method="snips").interval
        covered += low < truth < high
        low, high = evaluate_policy(policies[0], *arguments, method="snips").interval
        planted += low < truth < high
    error = math.sqrt(0.95 * 0.05 / runs)
    assert abs(covered / runs - 0.95) < 5 * error
    assert planted / runs < 0.95 - 5 * error


def test_few_effective_rounds_are_warned_of():
    log = draw_log(8, 60, MEANS)
    with pytest.warns(RuntimeWarning, match=r"effective sample size is .* of 60 rounds, below 50"):
        evaluate_policy(always_one(60), log.actions, log.rewards, log.propensities)
    longer = draw_log(8, 400, MEANS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_policy(always_one(400), longer.actions, longer.rewards, longer.propensities)


LOG = draw_log(9, 50, MEANS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "dm"}, "method must be one of ips, snips, dr, got 'dm'"),
        ({"confidence": 95}, "confidence must be in"),
        ({"policy": always_one(50)[0]}, r"policy must be \[horizon, num_arms\] or .*, got shape \(2,\)"),
        ({"policy": 2 * always_one(50)}, r"policy must be in \[0, 1\], got 2.0 at index"),
        ({"policy": always_one(50) / 2}, "policy must have probabilities with the sum 1 in each round, got 0.5"),
        ({"actions": LOG.actions[:9]}, r"actions must be \[50\] integers, as policy"),
        ({"rewards": LOG.rewards[:9]}, r"rewards must be \[50\], as policy, got shape \(9,\)"),
        ({"rewards": np.full(50, math.nan)}, "rewards must be finite, got 50 of 50 that are not$"),
        (
            {"rewards": LOG.rewards * 1e101},
            r"rewards must have a largest absolute entry .*, got a larger one: multiply",
        ),
        ({"rewards": LOG.rewards * 1e-200}, "rewards must have a largest absolute entry .*, got a smaller one"),
        ({"predictions": np.full((50, 2), 1e200)}, "predictions must have a largest absolute entry .*, got a larger"),
        ({"contexts": np.full((50, 2, 1), 1e200)}, "contexts must have a largest absolute entry .*, got a larger"),
        ({"propensities": np.full(50, 1e-200)}, "propensities must be at least 1e-40 for each logged arm, got 1e-200"),
        ({"propensities": np.full(50, math.nan)}, "propensities must be finite"),
        ({"propensities": np.full(50, 1.1)}, r"propensities must be in \(0, 1\], got 1.1"),
        ({"propensities": np.full((50, 3), 1 / 3)}, r"propensities must be \[50, 2\]"),
        (
            {"propensities": np.tile([1.0, 0.0], (50, 1)), "actions": np.zeros(50, int)},
            r"propensities must be > 0 for each arm that the policy plays, .* got 0 at index \(0, 1\)",
        ),
        ({"actions": np.zeros(50, int), "method": "snips"}, "policy must play a logged arm in some round"),
        ({"method": "ips", "predictions": np.zeros((50, 2))}, "contexts and predictions must be None, except"),
        ({"contexts": np.zeros((50, 2, 1)), "predictions": np.zeros((50, 2))}, "contexts must be None with predic"),
        ({"predictions": np.zeros((50, 3))}, r"predictions must be \[50, 2\]"),
        ({"contexts": np.zeros((50, 1))}, r"contexts must be \[50, 2, dim\]"),
    ],
)
def test_bad_arguments(options, message):
    good: dict[str, Any] = {
        "policy": always_one(50),
        "actions": LOG.actions,
        "rewards": LOG.rewards,
        "propensities": np.tile(PROPENSITIES.mean(axis=0), (50, 1)),
    }
    with pytest.raises(ValueError, match=message):
        evaluate_policy(**{**good, **options})
