"""Learners of ordinary Python: how they are played, how an attack judges them, and their regret."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxdp
from jaxdp.audit import Attack, UserData, audit, python_learner
from jaxdp.audit._python_attack import _sees_actions
from jaxdp.audit._python_learner import read_python_learner
from jaxdp.audit._python_users import Setting, user_pairs
from jaxdp.core import Guarantee
from tests.audit.python_classes import CLASSES, ZEROS, Constant, Cycling, NoisyLeader, TreeCounter


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
        (lambda: Constant("broken"), "in round 0, counted from 0: ValueError: act must return an action"),
    ],
)
def test_an_error_of_their_code_names_the_round(make, message):
    with pytest.raises(RuntimeError, match=message):
        python_learner(make, num_actions=2, guarantee=1.0).run(0, ZEROS)


@pytest.mark.parametrize("problem", ["bandit", "contextual", "duel", "experts"])
def test_neighbours_differ_where_they_say(problem):
    setting = Setting(problem, 3, (2,) if problem == "contextual" else (), (0.0, 1.0))
    options = {"rounds": 8, "changes_answers": True, "changes_contexts": True, "changes_last": True}
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


def test_changed_losses_of_experts_are_not_shifted_by_a_constant():
    """Checks that every pair changes the differences of losses, which are all that most learners use."""
    setting = Setting("experts", 3, (), (-1.0, 2.0))
    options = {"rounds": 8, "persons": None, "changes_answers": True, "changes_contexts": False, "changes_last": True}
    for pair in user_pairs(np.random.default_rng(0), setting, **options):
        first, second = (users.answers[pair.changed] for users in pair[:2])
        assert (np.ptp(second - first, axis=1) > 0).all()
        assert set(np.unique([first, second])) == {-1.0, 2.0}
        np.testing.assert_array_equal(pair.first.answers[~pair.changed], pair.second.answers[~pair.changed])


def test_a_name_that_is_no_wrapped_learner_is_refused(tmp_path, monkeypatch):
    (tmp_path / "their_class.py").write_text("class Learner:\n    def __init__(self, generator): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"must name a result of .*, or a function"):
        read_python_learner("their_class:Learner")
    with pytest.raises(ValueError, match=r"must name a result of .*, or a function without .*, got <function join"):
        read_python_learner("os.path:join")
    with pytest.raises(ValueError, match=r"python must be module:name, such as .*, got \.their_class:Learner"):
        read_python_learner(".their_class:Learner")
    with pytest.raises(ValueError, match=r"python must be module:name, such as .*, got their_class"):
        read_python_learner("their_class")


def test_claims_about_persons_need_persons():
    claim = Guarantee.pure(1.0, trust_model="central", privacy_unit="one person", argument="theirs", unit="person")
    learner = python_learner(Constant, num_actions=2, guarantee=claim)
    with pytest.raises(ValueError, match="persons must name the person of each round"):
        learner.audit(jax.random.key(0))
    with pytest.raises(ValueError, match="persons must name the person of each of 12 rounds, got 3"):
        learner.audit(jax.random.key(0), persons=[0, 1, 0])
    learner = python_learner(Constant, num_actions=2, guarantee=1.0)
    with pytest.raises(ValueError, match="persons must be None for a claim about one round"):
        learner.audit(jax.random.key(0), rounds=3, persons=[0, 1, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": -0.5}, "confidence must be in"),
        ({"trials": 50}, "trials must be"),
        ({"rounds": 1}, "rounds must be"),
    ],
)
def test_an_attack_checks_its_arguments_before_it_plays(options, message):
    learner = python_learner(lambda: Constant(7), num_actions=2, guarantee=1.0)
    with pytest.raises(ValueError, match=message):
        learner.audit(jax.random.key(0), **options)
    with pytest.raises(ValueError, match="key must be one typed PRNG key"):
        learner.audit(0)  # pyright: ignore[reportArgumentType]


def test_users_of_another_problem_are_refused():
    learner = python_learner(Constant, num_actions=2, guarantee=1.0)
    with pytest.raises(ValueError, match="users must have answers and contexts of shapes"):
        learner.run(0, UserData(np.zeros((6, 3))))
    with pytest.raises(ValueError, match="users must have at least one round, got none"):
        learner.run(0, UserData(np.zeros((0, 2))))
    assert learner.run(0, UserData([[0.0, 1.0], [1.0, 0.0]]))[0].shape == (2,)


@pytest.mark.parametrize(
    ("trust_model", "view", "seen"),
    [
        ("central", ("public",), [False, False]),
        ("central", ("action", "public"), [True, True]),
        ("local", ("report",), [True, False]),
        ("joint", ("public",), [True, False]),
    ],
)
def test_actions_are_attacked_only_if_the_adversary_sees_them(trust_model, view, seen):
    about = {"trust_model": trust_model, "privacy_unit": "one reward", "argument": "theirs"}
    claim = Guarantee.pure(1.0, adversary_view=view, **about)
    assert _sees_actions(claim, np.asarray([False, True])).tolist() == seen
    if not any(seen):
        with pytest.raises(ValueError, match="observe must name the numbers that are seen if the claim publishes no"):
            python_learner(Constant, num_actions=2, guarantee=claim).audit(jax.random.key(0))


def test_only_the_sensitive_fields_of_a_claim_change():
    setting = Setting("contextual", 2, (2,), (0, 1))
    options = {"rounds": 4, "persons": None, "changes_contexts": True, "changes_last": True}
    for pair in user_pairs(np.random.default_rng(0), setting, changes_answers=False, **options):
        np.testing.assert_array_equal(pair.first.answers, pair.second.answers)
    claim = Guarantee.pure(
        1.0, trust_model="joint", privacy_unit="one", argument="theirs", sensitive_fields=("gender",)
    )
    with pytest.raises(ValueError, match="sensitive_fields must be one of answers, got 'gender'"):
        python_learner(Constant, num_actions=2, guarantee=claim).audit(jax.random.key(0))


def test_a_learner_may_write_into_its_contexts_and_losses():
    class Halving:
        def act(self, context):
            context *= 0.5
            self.context = context.copy()
            return 0

        def update(self, context, arm, reward):
            pass

    users = UserData(np.zeros((3, 2)), np.ones((3, 4)))
    options = {"num_actions": 2, "guarantee": 1.0, "observe": ["context"]}
    learner = python_learner(Halving, problem="contextual", context_shape=(4,), **options)
    for _ in range(2):
        assert np.all(learner.run(0, users)[1] == 0.5), "the users stay as they are"
    world = jaxdp.bandits.contextual.linear_contexts(num_arms=2, dim=2)
    learner = python_learner(Halving, problem="contextual", context_shape=(2, 2), **options)
    learner.regret(world, horizon=2, num_seeds=1, key=jax.random.key(0))

    class Doubling:
        def act(self):
            return 0

        def update(self, expert, losses):
            losses *= 2.0

    learner = python_learner(Doubling, problem="experts", num_actions=2, guarantee=1.0)
    learner.regret(jaxdp.experts.stochastic_losses([0.1, 0.9]), horizon=2, num_seeds=1, key=jax.random.key(0))


def test_state_that_outlives_a_learner_is_named():
    class Counting(Constant):
        runs = 0

        def __init__(self):
            super().__init__()
            Counting.runs += 1
            self.report = float(Counting.runs)

    learner = python_learner(Counting, num_actions=2, guarantee=1.0, observe=["report"])
    with pytest.warns(UserWarning, match="equal seeds gave different runs: the bound cannot be repeated, and may be"):
        result = learner.audit(jax.random.key(0), rounds=2, trials=100)
    assert not result.repeatable


def test_pairs_of_a_joint_claim_may_hide_different_numbers_of_rounds():
    """Plants a release of the first reward: its person has one round, the other person has three."""

    class Revealing(Constant):
        report = 0.0

        def update(self, arm, reward):
            super().update(arm, reward)
            self.report = self.rewards[0]

    claim = Guarantee.pure(0.5, trust_model="joint", privacy_unit="one person", argument="theirs", unit="person")
    learner = python_learner(Revealing, num_actions=2, guarantee=claim, observe=["report"])
    result = learner.audit(jax.random.key(0), rounds=4, persons=[0, 1, 1, 1], trials=200)
    assert result.verdict == "violated"
    assert result.changed.tolist() == [True, False, False, False]


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


@pytest.mark.parametrize("budgeted", [3, 4])
def test_a_tree_with_a_level_too_few_is_flagged(budgeted):
    """Checks a tree whose true epsilon is 4/3 of the claimed one, as the evidence of four nodes adds up."""
    learner = python_learner(
        lambda: TreeCounter(False, 12, budgeted), num_actions=2, guarantee=1.0, observe=["released"]
    )
    result = learner.audit(jax.random.key(1), rounds=12)
    assert (result.verdict == "violated") == (budgeted == 3), result


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


def test_regret_refuses_other_worlds_and_puts_global_generators_back():
    bandits, key = jaxdp.bandits, jax.random.key(3)
    learner = python_learner(Constant, num_actions=3, guarantee=1.0)
    bernoulli = bandits.bernoulli_bandit
    for world, message in [
        (bernoulli([0.3, 0.7]), r"actions \(integers in \[0, 2\]\) .* got integers in \[0, 1\]"),
        (jaxdp.experts.stochastic_losses([0.1, 0.2, 0.3]), r"shapes \(\(\), None\), .* and \(\(3,\), None\)"),
        (bandits.reward_sequence(np.zeros((5, 3))), "horizon must be <= the world's 5, got 9"),
        (jaxdp.delayed(bernoulli([0.3, 0.7, 0.5]), 2), "world must have no delays of feedback"),
        (
            bernoulli([0.3, 0.7, 0.5])._replace(hindsight=lambda params, state: {"vector": jnp.zeros(3)}),
            r"world must have outcomes and metrics that are scalars, got vector of \(3,\)",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.regret(world, horizon=9, num_seeds=1, key=key)
    np.random.seed(5)  # noqa: NPY002
    before = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    learner.regret(bernoulli([0.3, 0.7, 0.5]), horizon=2, num_seeds=1, key=key)
    assert np.random.random() == before  # noqa: NPY002


WORLDS = {
    "duel": (jaxdp.dueling.utility_duels([0.0, 1.0, 2.0]), ()),
    "experts": (jaxdp.experts.stochastic_losses([0.2, 0.5, 0.9]), ()),
    "contextual": (jaxdp.bandits.contextual.linear_contexts(num_arms=3, dim=4), (3, 4)),
}


@pytest.mark.parametrize("problem", WORLDS)
def test_regret_in_every_problem_is_paired_with_sweeps(problem):
    world, context_shape = WORLDS[problem]
    actions = [(0, 1), (2, 0), (1, 1)] if problem == "duel" else [0, 1, 2]
    claim = Guarantee.pure(1.0, trust_model="central", privacy_unit="one record", argument="it ignores feedback")
    cycling = jaxdp.Learner(
        params=lambda epsilon: {},
        guarantee=lambda epsilon: claim,
        init=lambda key, params: jaxdp.State((), jnp.int32(0)),
        act=lambda key, params, public, context: jnp.asarray(actions, jnp.int32)[public % 3],
        privatize=lambda key, params, public, context, action, feedback: (),
        update=lambda key, params, state, report: jaxdp.State((), state.public + 1),
        interface=world.interface,
    )
    options = {"num_seeds": 2, "key": jax.random.key(3), "progress": False}
    rounds = {"horizon": 12, "checkpoints": [5, 12]}
    learner = python_learner(
        lambda: Cycling(actions), problem=problem, num_actions=3, guarantee=1.0, context_shape=context_shape
    )
    played = learner.regret(world, **rounds, **options)
    swept = jaxdp.sweep(jaxdp.simulator(cycling, world, **rounds), axes={"epsilon": [1.0]}, **options)
    for name in played:
        np.testing.assert_allclose(played[name], swept[name].isel(epsilon=0), rtol=1e-5)


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
        lambda: Cycling([0]), problem="contextual", context_shape=(2,), num_actions=2, guarantee=1.0
    )
    assert learner.guarantee.sensitive_fields == ("answers",)
    pairs = user_pairs(
        np.random.default_rng(0),
        learner.setting,
        rounds=4,
        persons=None,
        changes_answers=True,
        changes_contexts=False,
        changes_last=True,
    )
    assert all(np.array_equal(first.contexts, second.contexts) for first, second, _ in pairs)
