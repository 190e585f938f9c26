"""Learners of ordinary Python: arguments that are refused, and numbers that an adversary sees."""

import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxdp
from jaxdp.__main__ import app
from jaxdp.audit import python_learner
from jaxdp.audit._python_learner import PythonLearner
from tests.audit.python_classes import ZEROS, Constant


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
        ({"problem": "contextual", "context_shape": 2}, "context_shape must be"),
        ({"ends": (1, 0)}, "ends must be"),
        ({"ends": (0, math.inf)}, "ends must be two increasing finite numbers"),
        ({"ends": (0, 1, 2)}, "ends must be"),
        ({"act": 3}, "act must be"),
        ({"act": "choose"}, "act must name a method of the learner, got 'choose'; Constant has act, update"),
        ({"update": "learn"}, "update must name a method of the learner, got 'learn'"),
        ({"act": "update"}, r"act must take \(\), got \(arm, reward\): missing a required argument: 'arm'"),
        ({"act": lambda: 0}, r"act must take \(learner\), got \(\): too many"),
        ({"update": "act"}, r"update must take \(action, feedback\), got \(\): too many"),
        (
            {"update": lambda learner, reward: 0},
            r"update must take \(learner, action, feedback\), got \(learner, reward",
        ),
        ({"observe": [3]}, "observe must be a list of names or a function"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        python_learner(Constant, **({"num_actions": 2, "guarantee": 1.0} | options))


@pytest.mark.parametrize(("make", "got"), [(lambda: None, "None"), (lambda: Constant, "Constant")])
def test_a_function_that_makes_no_learner_is_refused(make, got):
    with pytest.raises(ValueError, match=f"make must return a new learner, got .*{got}"):
        python_learner(make, num_actions=2, guarantee=1.0)


def test_a_function_as_act_forces_the_actions_that_update_gets():
    class Reporting(Constant):
        def update(self, arm, reward):
            self.arm_played = arm

    learner = python_learner(
        lambda: Reporting(1), num_actions=2, guarantee=1.0, act=lambda learner: 0, observe=["arm_played"]
    )
    actions, shown = learner.run(0, ZEROS)
    assert not actions.any()
    assert not shown.any()


class Observed(Constant):
    """Has numbers of many kinds; `bounds` is infinite at first, `mean` is not a number after the fourth reward."""

    def update(self, arm, reward):
        super().update(arm, reward)
        self.missing, self.text, self.bounds = None, "text", [math.inf, 1.0]
        self.digits, self.complex = "1.5", np.asarray([1 + 2j])
        self.huge, self.partly, self.empty = 10**400, [1.0, None], []
        self.mean = [0.0, math.nan if len(self.rewards) == 4 else 1.0]


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (["bounds", "mean"], "observe must return numbers, got nan in 'mean' after round 3, counted from 0"),
        (lambda learner: learner.mean, "observe must return numbers, got nan in number 1 after round 3"),
        (["bounds", "means"], "observe must name attributes of the learner, got 'means': 'Observed' object has no"),
        (["text"], "observe must name attributes with numbers, got 'text', which is 'text'"),
        (["digits"], "observe must name attributes with numbers, got 'digits', which is '1.5'"),
        (["complex"], r"observe must name attributes with numbers, got 'complex', which is array\(\[1.\+2.j\]\)"),
        (lambda learner: {"a": 1.0, "b": 1 + 2j}, r"observe must return real numbers, got \(1\+2j\)"),
        (lambda learner: np.asarray(["1.5", 2], object), "observe must return real numbers, got array"),
        (["bounds", "missing"], "observe must name attributes with numbers, got 'missing', which is None"),
        (["huge"], "observe must name attributes with numbers, got 'huge', which is 10000"),
        (["partly"], r"observe must name attributes with numbers, got 'partly', which is \[1.0, None\]"),
        (["bounds", "empty"], r"observe must name attributes with numbers, got 'empty', which is \[\]"),
    ],
)
def test_what_is_observed_must_be_numbers(observe, message):
    learner = python_learner(Observed, num_actions=2, guarantee=1.0, observe=observe)
    with pytest.raises(ValueError, match=message):
        learner.run(0, ZEROS)
    learner.regret(jaxdp.bandits.bernoulli_bandit([0.3, 0.7]), horizon=4, num_seeds=1, key=jax.random.key(0))


def test_infinite_numbers_are_observed():
    learner = python_learner(Observed, num_actions=2, guarantee=1.0, observe=["bounds"])
    assert np.array_equal(learner.run(0, ZEROS)[1], [[math.inf, 1.0]] * 6)


def test_a_learner_that_observes_nothing_is_refused():
    learner = python_learner(Constant, num_actions=2, guarantee=1.0, observe=lambda learner: None)
    with pytest.raises(ValueError, match="observe must return at least one number"):
        learner.run(0, ZEROS)


@pytest.mark.parametrize(("options", "trials"), [([], 40_000), (["--trials", "200000"], 200_000)])
def test_the_command_attacks_with_the_trials_asked_for(options, trials, tmp_path, monkeypatch):
    (tmp_path / "learner_of_trials.py").write_text(
        "from jaxdp.audit import python_learner\nfrom tests.audit.python_classes import Constant\n"
        "learner = python_learner(Constant, num_actions=2, guarantee=1.0)\n"
    )
    monkeypatch.chdir(tmp_path)
    asked = []

    def audit(learner, key, *, trials):
        asked.append(trials)
        return SimpleNamespace(verdict="consistent", event="")

    monkeypatch.setattr(PythonLearner, "audit", audit)
    result = CliRunner().invoke(app, ["audit", "--python", "learner_of_trials:learner", *options])
    assert result.exit_code == 0, result.output
    assert asked == [trials]


@pytest.mark.parametrize("options", [["--jobs", "2"], ["--no-search"], ["--thorough"], ["laplace"]])
def test_the_command_refuses_options_that_it_would_ignore(options):
    result = CliRunner().invoke(app, ["audit", "--python", "no_module:learner", *options])
    assert isinstance(result.exception, ValueError)
    assert "must come without names, --json, --thorough, --jobs and --no-search" in str(result.exception)
