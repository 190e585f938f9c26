"""The adversary's view of a learner, by trust model, and the test that nothing bypasses the noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import UserData, audit, feedback_of_action, full_information, learner_attack
from jaxdp.audit.play import play
from jaxdp.bandits import explore_then_commit
from jaxdp.core import State
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import laplace
from tests.audit import small_learners as small

VALUES = {"epsilon": 1.0}


def bits(*rows):
    return UserData(np.asarray(rows, np.int32))


def test_a_transcript_is_what_was_played():
    learner = explore_then_commit(num_arms=3, explore_rounds=6)
    users = bits(*[[0, 0, 1]] * 9)
    transcript = play(learner, feedback_of_action, jax.random.key(0), learner.params(epsilon=np.inf), users)
    assert transcript.actions.tolist() == [0, 1, 2, 0, 1, 2, 2, 2, 2]
    assert transcript.before.best_arm.tolist() == [-1] * 6 + [2] * 3
    assert transcript.after.best_arm.tolist() == [-1] * 5 + [2] * 4
    actions, rewards = transcript.reports
    assert rewards.tolist() == [0, 0, 1, 0, 0, 1, 1, 1, 1]
    assert actions.tolist() == transcript.actions.tolist()


def test_answers_may_follow_the_plays():
    def contrary(answers, history, action):
        """Pays if the arm has not been played before."""
        played = jnp.where(
            jnp.arange(len(history.actions), dtype=history.round.dtype) < history.round, history.actions, -1
        )
        return jnp.where(jnp.any(played == action), 0, answers[action])

    learner = explore_then_commit(num_arms=2, explore_rounds=4)
    transcript = play(learner, contrary, jax.random.key(0), learner.params(epsilon=np.inf), bits(*[[1, 1]] * 4))
    assert transcript.reports[1].tolist() == [1, 1, 0, 0]


def output(attack, users):
    return jax.tree.map(np.asarray, attack.release(jax.random.key(0), attack.params, users))


def test_central_shows_all_plays_and_releases():
    entry = registry.LEARNERS["explore_then_commit"]
    attack = learner_attack(entry.make(), VALUES, entry.make_neighbours())
    seen = output(attack, entry.make_neighbours()[0])
    public = seen["public"]
    assert seen.keys() == {"action", "public"}
    assert seen["action"].shape == (12,)
    assert public.best_arm.shape == public.round.shape == (12,)


def test_local_shows_one_report():
    learner = exponential_weights(num_experts=2, horizon=5)
    losses = np.zeros((4, 2))
    other = losses.copy()
    other[2] = 1
    attack = learner_attack(learner, VALUES, (UserData(losses), UserData(other)), answer=full_information)
    seen = output(attack, attack.neighbours[0])
    report, before = (jax.tree.map(lambda x: x[0], seen[part]) for part in ("report", "before"))
    assert report.shape == (2,)
    np.testing.assert_allclose(output(attack, attack.neighbours[1])["report"][0] - report, 1, atol=1e-5)
    transcript = play(learner, full_information, jax.random.key(0), attack.params, UserData(losses))
    np.testing.assert_array_equal(report, transcript.reports[2])
    np.testing.assert_array_equal(before.total, transcript.before.total[2])
    first = losses.copy()
    first[0] = 1
    attack = learner_attack(learner, VALUES, (UserData(losses), UserData(first)), answer=full_information)
    assert output(attack, attack.neighbours[0]).keys() == {"report", "action"}


def test_joint_leaves_out_the_users_own_play():
    contexts = np.asarray([3, 1, 2], np.int32)
    answers = np.zeros((3, 1), np.int32)
    neighbours = UserData(answers, contexts), UserData(answers, np.asarray([3, 0, 2], np.int32))
    attack = learner_attack(small.shows_its_context("joint"), VALUES, neighbours, answer=full_information)
    assert output(attack, neighbours[0])["action"].tolist() == [3, 2]
    assert audit(jax.random.key(0), attack, trials=1000).verdict == "nothing shown"
    attack = learner_attack(small.shows_its_context("central"), VALUES, neighbours, answer=full_information)
    assert audit(jax.random.key(0), attack, trials=1000).verdict == "violated"


@pytest.mark.parametrize("adversary_view", [(), ("public",)])
def test_plays_of_others_that_follow_the_users_context_are_seen(adversary_view):
    """Checks that all users except one see their own plays, and may be the adversary's, whatever the world may log."""

    def flips(key, params, state, report):
        noise = jax.random.bernoulli(key, 1 / (1 + jnp.exp(params)))
        return State((), jnp.where(noise, 1 - report, report))

    def remembers(key, params, state, report):
        return State((), report)

    contexts = np.asarray([0, 1], np.int32)
    neighbours = UserData(np.zeros((2, 1)), contexts), UserData(np.zeros((2, 1)), np.asarray([1, 1], np.int32))
    for update, verdict in ((remembers, "violated"), (flips, "consistent")):
        learner = small.curator(
            update, lambda: State((), jnp.int32(0)), act=lambda key, params, public, context: context + 2 * public
        )._replace(privatize=lambda key, params, public, context, action, feedback: context)
        learner = small.with_claim(learner, small.claimed("joint", adversary_view=adversary_view))
        attack = learner_attack(learner, VALUES, neighbours, answer=full_information)
        assert audit(jax.random.key(0), attack, trials=20_000).verdict == verdict


def draws_its_start(trust_model, adversary_view):
    """Draws the noise of the first release into the first public state, and replaces it by that release."""
    learner = small.curator(
        lambda key, params, state, report: State((), state.public + report[0]),
        lambda: State((), ()),
    )
    learner = learner._replace(
        init=lambda key, params: State((), laplace(key, jnp.zeros(()), params, l1_sensitivity=1.0)),
        privatize=lambda key, params, public, context, action, feedback: (
            feedback + public if trust_model == "local" else feedback
        ),
    )
    return small.with_claim(learner, small.claimed(trust_model, adversary_view=adversary_view))


@pytest.mark.parametrize(
    ("trust_model", "adversary_view", "verdict"),
    [
        ("central", ("public",), "violated"),
        ("shuffle", ("public",), "violated"),
        ("joint", ("public",), "violated"),
        ("local", ("report", "public"), "violated"),
        ("local", ("report",), "consistent"),
    ],
)
def test_a_first_state_that_is_drawn_is_seen(trust_model, adversary_view, verdict):
    neighbours = UserData(np.zeros((1, 1))), UserData(np.ones((1, 1)))
    attack = learner_attack(draws_its_start(trust_model, adversary_view), VALUES, neighbours, answer=full_information)
    assert ("before" in output(attack, neighbours[0])) == ("public" in adversary_view)
    assert audit(jax.random.key(0), attack, trials=10_000).verdict == verdict


def test_a_look_is_what_is_seen():
    entry = registry.LEARNERS["explore_then_commit"]
    attack = learner_attack(
        entry.make(), VALUES, entry.make_neighbours(), observe=lambda seen: seen["public"].best_arm[-1]
    )
    assert output(attack, entry.make_neighbours()[0]).shape == ()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (bits([0, 0]), bits([0, 0]), r"neighbours must differ in exactly one round, got \[\]"),
        (bits([0, 0], [0, 0]), bits([0, 1], [1, 0]), r"neighbours must differ in exactly one round, got \[0, 1\]"),
        (bits([0, 0]), bits([0, 0], [0, 1]), "neighbours must have the same structure, shapes and dtypes"),
        (UserData(np.zeros((0, 2))), UserData(np.zeros((0, 2))), "users must have one leading axis of rounds"),
        (
            UserData(np.zeros((2, 2)), np.zeros(3)),
            UserData(np.zeros((2, 2)), np.zeros(3)),
            "one leading axis of rounds",
        ),
    ],
)
def test_neighbours_that_are_none(first, second, message):
    with pytest.raises(ValueError, match=message):
        learner_attack(explore_then_commit(num_arms=2, explore_rounds=2), VALUES, (first, second))
