"""Learners of ordinary Python: how they are played, how an attack judges them, and their regret."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxdp
from jaxdp.audit import Attack, UserData, audit, python_learner
from jaxdp.audit._python_users import Setting, user_pairs
from jaxdp.core import Guarantee
from tests.audit.python_classes import CLASSES, NoisyLeader

ZEROS = UserData(np.zeros((6, 2)))


class Constant:
    """Plays one arm and keeps the rewards."""

    def __init__(self, arm: float = 0):
        self.arm, self.rewards = arm, []

    def act(self):
        return self.arm

    def update(self, arm, reward):
        self.rewards.append(reward)


def test_runs_repeat_and_global_generators_are_put_back():
    learner = python_learner(lambda: NoisyLeader(False), num_actions=2, guarantee=1.0)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = np.random.random(), random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    runs = {tuple(learner.run(seed, ZEROS)[0]) for seed in range(20)}
    assert all(tuple(learner.run(seed, ZEROS)[0]) in runs for seed in range(20))
    assert len(runs) == 2
    assert (np.random.random(), random.random()) == before  # noqa: NPY002


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(7), r"in round 0, counted from 0: ValueError: act must return an action in \[0, 2\), got 7"),
        (lambda: Constant(0.5), "act must return an action"),
        (lambda: 1 / 0, "failed when it was made: ZeroDivisionError"),
        (object, "in round 0, counted from 0: AttributeError"),
    ],
)
def test_an_error_of_their_code_names_the_round(make, message):
    with pytest.raises(RuntimeError, match=message):
        python_learner(make, num_actions=2, guarantee=1.0).run(0, ZEROS)


def test_numbers_that_are_observed_must_have_one_size():
    learner = python_learner(Constant, num_actions=2, guarantee=1.0, observe=["rewards"])
    with pytest.raises(ValueError, match="observe must return as many numbers after every round"):
        learner.run(0, ZEROS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_actions": 1}, "num_actions must be"),
        ({"guarantee": 0.0}, "epsilon must be"),
        ({"problem": "arms"}, "problem must be"),
        ({"observe": "rewards"}, "observe must be a list"),
        ({"context_shape": (2,)}, "context_shape must be"),
        ({"ends": (1, 0)}, "ends must be"),
        ({"act": 3}, "act must be"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        python_learner(Constant, **({"num_actions": 2, "guarantee": 1.0} | options))


@pytest.mark.parametrize("problem", ["bandit", "contextual", "duel", "experts"])
def test_neighbours_differ_where_they_say(problem):
    setting = Setting(problem, 3, (2,) if problem == "contextual" else (), (0.0, 1.0))
    options = {"rounds": 8, "changes_contexts": True, "changes_last": True}
    for persons in (None, np.asarray([0, 1, 0, 2, 0, 1, 3, 3])):
        pairs = user_pairs(np.random.default_rng(0), setting, persons=persons, **options)
        for first, second, changed in pairs:
            differs = (first.answers != second.answers).reshape(8, -1).any(axis=1)
            assert np.array_equal(differs, changed)
            assert set(np.unique(second.answers)) <= {0.0, 1.0}
            assert changed.sum() == 1 or persons is not None
            if problem == "duel":
                off = ~np.eye(3, dtype=bool)
                assert (first.answers + first.answers.swapaxes(1, 2))[:, off].min() == 1
        assert len({tuple(changed) for *_, changed in pairs}) >= 3


def test_claims_about_persons_need_persons():
    claim = Guarantee.pure(1.0, trust_model="central", privacy_unit="one person", argument="theirs", unit="person")
    learner = python_learner(Constant, num_actions=2, guarantee=claim)
    with pytest.raises(ValueError, match="persons must name the person of each round"):
        learner.audit(jax.random.key(0))
    with pytest.raises(ValueError, match="persons must name the person of each of 12 rounds, got 3"):
        learner.audit(jax.random.key(0), persons=[0, 1, 0])


def test_an_attack_that_shows_nothing_says_so():
    claim = Guarantee.pure(1.0, trust_model="central", privacy_unit="one record", argument="constant")
    attack = Attack(lambda key, params, data: jnp.int32(0), 0, (np.int32(0), np.int32(1)), claim)
    result = audit(jax.random.key(0), attack, trials=1000)
    assert result.verdict == "nothing shown"
    assert "nothing shown: 1,000 trials, power unknown" in repr(result)
    assert result.bound == result.epsilon == result.lower_bound == 0
    with pytest.raises(AttributeError, match="its bound on epsilon is lower_bound"):
        _ = result.rho


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("is_wrong", [False, True])
def test_mistakes_are_flagged_and_right_twins_are_not(name, is_wrong):
    *makes, options = CLASSES[name]
    result = python_learner(makes[is_wrong], **options).audit(jax.random.key(1), rounds=16)
    assert (result.verdict == "violated") == is_wrong, result
    assert result.repeatable


def test_regret_is_paired_with_sweeps():
    world, key = jaxdp.bandits.bernoulli_bandit([0.3, 0.7]), jax.random.key(3)
    rewards = {}

    class Exploring(Constant):  # plays as explore_then_commit does while it explores
        def act(self):
            return len(self.rewards) % 2

        def update(self, arm, reward):
            super().update(arm, reward)
            rewards.setdefault(id(self), []).append(reward)

    # Round 21 is not compared: the learner has then chosen an arm.
    ours = python_learner(Exploring, num_actions=2, guarantee=1.0)
    theirs = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=20)
    played = ours.regret(world, horizon=21, num_seeds=3, key=key, checkpoints=[10, 20])
    run = jaxdp.simulator(theirs, world, horizon=21, checkpoints=[10, 20])
    swept = jaxdp.sweep(run, axes={"epsilon": [1.0]}, num_seeds=3, key=key, progress=False)
    np.testing.assert_allclose(played.pseudo_regret, swept.pseudo_regret.isel(epsilon=0), rtol=1e-6)
    assert played.sizes == {"seed": 3, "round": 2}
    if "reward" in swept:
        np.testing.assert_allclose(played.reward, swept.reward.isel(epsilon=0), rtol=1e-6)


MODULE = """
import numpy as np
from jaxdp.audit import python_learner

class Honest:
    def act(self):
        return 0
    def update(self, arm, reward):
        self.report = reward

def make():
    return python_learner(Honest, num_actions=2, guarantee=1.0, observe=["report"])
"""


def test_the_command_attacks_a_module(tmp_path, monkeypatch):
    (tmp_path / "their_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    from jaxdp.__main__ import app

    result = CliRunner().invoke(app, ["audit", "--python", "their_module:make", "--trials", "500"])
    assert result.exit_code == 1
    assert "violated" in result.output


def test_a_number_as_the_claim_protects_feedback_and_leaves_contexts_public():
    learner = python_learner(
        Constant, problem="contextual", context_shape=(2,), num_actions=2, guarantee=1.0, act=lambda learner, context: 0
    )
    assert learner.guarantee.sensitive_fields == ("answers",)
    pairs = user_pairs(
        np.random.default_rng(0), learner.setting, rounds=4, persons=None, changes_contexts=False, changes_last=True
    )
    assert all(np.array_equal(first.contexts, second.contexts) for first, second, _ in pairs)
