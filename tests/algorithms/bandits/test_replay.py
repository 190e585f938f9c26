"""Replay of logs by propensities: unbiased rounds, bits of uniform logs, claims and their audit, bad input."""

import dataclasses
import inspect
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits
from jaxdp.audit import UserData, audit, grey_box, learner_attack
from jaxdp.bandits import contextual
from jaxdp.bandits._propensities import coin_probabilities
from jaxdp.bandits._replay import LoggedFeedback
from jaxdp.bandits._uniform_log import NonuniformLogWarning
from jaxdp.core import Interface, Learner, Space, State, arms, default_float
from jaxdp.core.guarantee import Guarantee
from tests.algorithms.bandits.logs import PROPENSITIES, draw_log

PAYS_THE_TRAIT = np.array([[0.0, 0.0], [1.0, 1.0]])
VALUES = {"epsilon": 1.0}


def plays_one() -> Learner:
    """Plays arm 1, and counts the rounds that it learns from."""
    return Learner(
        params=lambda: np.zeros((), default_float()),
        guarantee=lambda: Guarantee.pure(1.0, trust_model="local", privacy_unit="a reward", argument="a test"),
        init=lambda key, params: State((), jnp.zeros((), jnp.int32)),
        act=lambda key, params, public, context: jnp.int32(1),
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=lambda key, params, state, report: State((), state.public + 1),
        interface=Interface(arms(2), Space("integers", (), 0, 1)),
    )


# ---- the coin --------------------------------------------------------------------------------------------------------
def replayed_mean(coins):
    """Returns the exact share of rounds with the trait 1 among rounds that count for a learner that plays arm 1."""
    kept = PROPENSITIES[:, 1] * coins  # by trait
    return kept[1] / kept.sum()


def test_only_the_smallest_propensity_of_all_rounds_is_unbiased():
    """Checks the mean reward 1/2 of arm 1. Planted: every larger acceptance is biased, in either direction."""
    traits = np.arange(2)
    coins = coin_probabilities(PROPENSITIES, None, np.ones(2, int), 2)
    assert coins is not None
    np.testing.assert_allclose(coins, PROPENSITIES.min() / PROPENSITIES[:, 1], rtol=1e-6)
    assert replayed_mean(coins.astype(float)) == pytest.approx(0.5, abs=1e-6)
    wrong = {
        "no coin": (np.ones(2), 0.394),
        "twice the probability": (np.minimum(1, 2 * coins.astype(float)), 0.455),
        "the smallest propensity of the round": (PROPENSITIES.min(axis=1) / PROPENSITIES[traits, 1], 0.626),
    }
    for acceptance, mean in wrong.values():
        assert replayed_mean(acceptance) == pytest.approx(mean, abs=1e-3)


@pytest.mark.parametrize("is_1d", [False, True])
def test_replay_by_propensities_is_unbiased(is_1d):
    log = draw_log(1, 4000, PAYS_THE_TRAIT)
    propensities: dict[str, Any] = {"propensities": log.propensities}
    if is_1d:
        logged = log.propensities[np.arange(4000), log.actions]
        propensities = {"propensities": logged, "min_propensity": PROPENSITIES.min()}
    learner = bandits.on_logged(plays_one())
    results = {}
    with pytest.warns(NonuniformLogWarning):
        planted = bandits.logged_rewards(log.actions, log.rewards, num_arms=2, binary=True)
    right = bandits.logged_rewards(log.actions, log.rewards, num_arms=2, binary=True, **propensities)
    for name, environment in (("coin", right), ("no coin", planted)):
        run = jaxdp.simulator(learner, environment, 4000, record={"learned": lambda snapshot: snapshot.public})
        totals = run(jax.random.key(2), run.params())
        matched = int(totals["matched"][-1])
        assert int(totals["learned"][-1]) == matched
        results[name] = float(totals["reward"][-1]) / matched, matched
    mean, matched = results["coin"]
    assert abs(matched - 4000 * PROPENSITIES.min()) < 5 * math.sqrt(4000 * 0.28 * 0.72)
    error = 0.5 / math.sqrt(matched)
    assert abs(mean - 0.5) < 5 * error
    assert abs(results["no coin"][0] - 0.5) > 5 * error, "planted"


def test_coins_of_lanes_differ_and_do_not_depend_on_the_learner():
    log = draw_log(1, 300, PAYS_THE_TRAIT)
    environment = bandits.logged_rewards(log.actions, log.rewards, num_arms=2, propensities=log.propensities)
    params = environment.params()

    def match_of(key, round_):
        return environment.feedback(key, params, round_, jnp.asarray(log.actions, jnp.int32)[round_])[1].matched

    keys = jax.random.split(jax.random.key(0), 40)
    counts = jax.vmap(
        lambda key: jax.vmap(lambda round_: match_of(jax.random.fold_in(key, round_), round_))(jnp.arange(300))
    )(keys)
    shares = np.asarray(counts).mean(axis=0)
    expected = PROPENSITIES.min() / log.propensities[np.arange(300), log.actions]
    assert abs(shares - expected).max() < 5 * math.sqrt(0.25 / 40)
    assert (np.asarray(counts).std(axis=0)[expected < 1] > 0).mean() > 0.9


def test_uniform_propensities_give_the_bits_of_a_log_without():
    rng = np.random.default_rng(3)
    actions, rewards = rng.integers(3, size=200), rng.normal(size=200)
    contexts = rng.uniform(-0.5, 0.5, (200, 3, 2))
    learner = contextual.on_logged(contextual.linear_ucb(num_arms=3, dim=2, horizon=200))
    outputs = []
    for propensities in (None, np.full((200, 3), 1 / 3)):
        environment = contextual.logged_contexts(contexts, actions, rewards, propensities=propensities)
        run = jaxdp.simulator(
            learner, environment, 200, checkpoints=4, record={"public": lambda shot: shot.public.round}
        )
        outputs.append(run(jax.random.key(4), run.params(epsilon=1.0, delta=1e-3)))
    for name, value in outputs[0].items():
        np.testing.assert_array_equal(value, outputs[1][name])
    np.testing.assert_array_equal(outputs[1]["shared_matched"], outputs[1]["matched"])


# ---- claims ----------------------------------------------------------------------------------------------------------
LEARNERS = {
    "thompson": lambda: bandits.thompson(num_arms=2),
    "ucb_central": lambda: bandits.ucb_central(num_arms=2),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_without_contexts_keeps_its_claim(name):
    learner, logged = LEARNERS[name](), bandits.on_logged(LEARNERS[name]())
    claim, replayed = learner.guarantee(**VALUES), logged.guarantee(**VALUES)
    assert "public values" in replayed.argument
    assert dataclasses.replace(replayed, argument=claim.argument) == claim
    assert inspect.signature(logged.guarantee) == inspect.signature(learner.guarantee)


def test_claims_that_hide_actions_are_not_kept():
    hidden = Guarantee.pure(
        1.0, trust_model="local", privacy_unit="a reward", argument="a test", adversary_view={"report"}
    )
    assert not bandits.on_logged(plays_one()._replace(guarantee=lambda: hidden)).guarantee().is_private


def replay_answer(answers, history, action):
    """Returns feedback as a log gives it: the arm and the coin are public, the reward is private."""
    matched = (action == answers["arm"]) & (answers["coin"] == 1)
    return LoggedFeedback(jnp.where(matched, answers["reward"], 0), matched.astype(jnp.int32))


def counts_a_paid_round_only(answers, history, action):
    """Plants a coin that depends on the reward."""
    reply = replay_answer(answers, history, action)
    return reply._replace(matched=reply.matched * answers["reward"])


def neighbours():
    """Makes rounds of two arms in turn, with a coin that refuses the second one; the first reward differs."""
    public = {"arm": np.array([0, 0, 1, 1], np.int32), "coin": np.array([1, 0, 1, 1], np.int32)}
    first, second = (UserData({**public, "reward": np.array([paid, 1, 1, 0], np.int32)}) for paid in (0, 1))
    return first, second


def draw_user(key):
    """Draws a reward alone: arms and coins are public, the same for all users."""
    reward = jax.random.bernoulli(key).astype(jnp.int32)
    return UserData({"arm": jnp.int32(0), "coin": jnp.int32(1), "reward": reward})


@pytest.mark.parametrize("name", LEARNERS)
def test_replay_is_as_private_as_the_learner(name):
    logged = bandits.on_logged(LEARNERS[name]())
    right = learner_attack(logged, VALUES, neighbours(), answer=replay_answer)
    result = audit(jax.random.key(5), right, trials=20_000)
    assert result.verdict == "consistent"
    report = grey_box(
        jax.random.key(6), logged, VALUES, draw_user, rounds=4, answer=replay_answer, num_bases=2, num_neighbours=32
    )
    assert report.verdict == "consistent"
    assert report.spent > 0


@pytest.mark.parametrize("name", LEARNERS)
def test_a_coin_that_depends_on_the_reward_is_flagged(name):
    logged = bandits.on_logged(LEARNERS[name]())
    wrong = learner_attack(logged, VALUES, neighbours(), answer=counts_a_paid_round_only)
    assert audit(jax.random.key(5), wrong, trials=20_000).verdict == "violated"


# ---- bad input -------------------------------------------------------------------------------------------------------
ACTIONS, REWARDS = [0, 1, 1], [0, 1, 0]
GOOD = np.array([[0.5, 0.5], [0.2, 0.8], [0.25, 0.75]])


def change_entry(row, column, value):
    wrong = GOOD.copy()
    wrong[row, column] = value
    return wrong


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"propensities": GOOD[:2]}, r"propensities must be \[3, 2\], of every arm, or \[3\], .*, got shape \(2, 2\)"),
        ({"propensities": GOOD.T}, r"got shape \(2, 3\)"),
        ({"propensities": change_entry(1, 1, math.nan)}, r"propensities must be finite, got nan at index \(1, 1\)"),
        ({"propensities": change_entry(1, 1, 1.5)}, r"propensities must be in \(0, 1\], got 1.5 at index \(1, 1\)"),
        ({"propensities": change_entry(1, 1, -0.1)}, r"propensities must be in \(0, 1\], got -0.1 at index \(1, 1\)"),
        ({"propensities": [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]}, r"for a logged arm, got 0 at index \(1,\)"),
        ({"propensities": [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]}, r"for every arm, as .*, got 0 at index \(1, 0\)"),
        ({"propensities": change_entry(2, 1, 0.7)}, r"propensities of a round must sum to 1, got 0.95 at index \(2,\)"),
        (
            {"propensities": GOOD[:, 1], "min_propensity": None},
            "min_propensity must be given if propensities contain only",
        ),
        ({"propensities": GOOD, "min_propensity": 0.3}, "at most 0.2, the smallest propensity, .*, got 0.3"),
        ({"propensities": GOOD, "min_propensity": 1e-46}, "at least .* times each logged arm's .*, got 1e-46"),
        ({"propensities": GOOD, "min_propensity": 0.0}, "min_propensity must be > 0 and .*, got 0"),
        ({"propensities": GOOD, "min_propensity": math.nan}, "min_propensity must be finite, got nan"),
        ({"min_propensity": 0.1}, "min_propensity must be None without propensities, got 0.1"),
        ({"num_arms": 1}, "num_arms must be"),
        ({"actions": [0, 1]}, r"actions must be \[3\] integers, as rewards"),
        ({"actions": [0, 1, 2]}, r"actions must be in \[0, 2\), got 1 of 3 that are not$"),
        ({"rewards": [0, 1, 2]}, "rewards must be 0 or 1 if binary, got 1 of 3 that are not$"),
        ({"rewards": [[0, 1, 1]]}, r"rewards must be \[horizon\]"),
        ({"rewards": [0, 1, math.inf]}, "rewards must be finite"),
        ({"rewards": np.array([0, 1.0, None], object)}, "rewards must be numbers, got dtype object"),
    ],
)
def test_bad_logs(options, message):
    arguments: dict[str, Any] = {"actions": ACTIONS, "rewards": REWARDS, "num_arms": 2, "binary": True, **options}
    with pytest.raises(ValueError, match=message):
        bandits.logged_rewards(**arguments)


def test_bad_propensities_of_a_log_with_contexts():
    contexts = np.zeros((3, 2, 1))
    for wrong in (change_entry(0, 0, 1.5), GOOD[:2]):
        with pytest.raises(ValueError, match="propensities must be"):
            contextual.logged_contexts(contexts, ACTIONS, REWARDS, propensities=wrong)


def test_wrong_propensities_are_warned_of():
    log = draw_log(7, 4000, PAYS_THE_TRAIT)
    wrong = np.tile(PROPENSITIES.mean(axis=0), (4000, 1))[:, ::-1]
    with pytest.warns(NonuniformLogWarning, match="not drawn with these propensities"):
        bandits.logged_rewards(log.actions, log.rewards, num_arms=2, propensities=wrong)
    with pytest.warns(NonuniformLogWarning, match="not drawn uniformly .*; give the propensities"):
        bandits.logged_rewards(log.actions, log.rewards, num_arms=2)
