"""Transcripts by blocks and by counts, adversaries who react, and what each claim lets them see."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import History, UserData, audit, feedback_of_action, full_information, learner_attack
from jaxdp.audit.play import play
from jaxdp.audit.seen import visible_history
from jaxdp.bandits import explore_then_commit
from jaxdp.core import CountPlan, Counts, Interface, Space, State, arms
from jaxdp.mechanisms import laplace, noisy_max
from jaxdp.registry import LEARNERS
from tests.audit import small_learners as small

VALUES = {"epsilon": 1.0}


def many(entry, path, users, num=2048, **options):
    """Returns transcripts of many keys."""
    learner = entry.make()
    params = learner.params(**entry.values)
    keys = jax.random.split(jax.random.key(1), num)
    return jax.jit(
        jax.vmap(
            lambda key: play(learner, entry.users_answer, key, params, users, path=path, **options),
        )
    )(keys)


@pytest.mark.parametrize(
    "name",
    [
        "explore_then_commit",
        "explore_then_commit_bounded",
        "ebs_phased",
        "ebs_elimination",
    ],
)
def test_blocks_are_rounds(name):
    """Draws users for two blocks and more: plays, reports, and the states that both see agree bit for bit."""
    entry = LEARNERS[name]
    rounds = entry.sizes.get("horizon", 60)
    users = jax.vmap(entry.make_user)(jax.random.split(jax.random.key(0), rounds))
    first, second = (many(entry, path, users, 32) for path in ("rounds", "blocks"))
    for a, b in zip(jax.tree.leaves((first.actions,)), jax.tree.leaves((second.actions,)), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(jax.tree.leaves((first.reports,)), jax.tree.leaves((second.reports,)), strict=True):
        np.testing.assert_array_equal(a, b)
    length = np.asarray(second.length)
    np.testing.assert_array_equal(length.sum(axis=1), rounds)
    assert (length > 1).any()
    begun = np.argwhere(length > 0)
    lanes, starts = begun[:, 0], begun[:, 1]
    ends = starts + length[lanes, starts] - 1
    for a, b in zip(jax.tree.leaves(first.after), jax.tree.leaves(second.after), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[lanes, ends], np.asarray(b)[lanes, starts])


@pytest.mark.parametrize("name", ["explore_then_commit", "ebs_phased"])
def test_counts_show_the_totals_of_what_users_say(name):
    """Checks without noise that the choice after the last round is that of single rounds, where totals are far
    apart.
    """
    entry = LEARNERS[name]
    learner = entry.make()
    rounds = {"explore_then_commit": 24, "ebs_phased": 27}[name]
    said = np.ones((rounds, 3) if name == "explore_then_commit" else (rounds, 3, 3), np.int32)
    said[:, 0] = 0
    params = learner.params(**{**entry.values, "epsilon": np.inf})
    found = play(learner, entry.users_answer, jax.random.key(0), params, UserData(said), path="counts")
    plain = play(learner, entry.users_answer, jax.random.key(0), params, UserData(said))
    assert int(found.length.sum()) == rounds
    counts, wins = (np.asarray(jax.tree.leaves(found.reports)[i])[0] for i in range(2))
    assert counts.sum() == int(found.length[0])
    np.testing.assert_array_equal(wins, np.where(np.arange(len(wins)) < len(wins) // 3, 0, counts))
    last = int(np.flatnonzero(found.length)[-1])
    for a, b in zip(jax.tree.leaves(found.after), jax.tree.leaves(plain.after), strict=True):
        np.testing.assert_allclose(np.asarray(a)[last], np.asarray(b)[-1], rtol=1e-5)


def test_a_learner_that_has_stopped_releases_nothing():
    def update(key, params, state, report):
        return State((), (state.public[0] + 1, laplace(key, report[0], params, l1_sensitivity=1.0)))

    learner = small.curator(update, lambda: State((), (jnp.int32(0), jnp.zeros(()))))
    learner = learner._replace(done=lambda params, public: public[0] == 2)
    found = play(learner, full_information, jax.random.key(0), learner.params(epsilon=1.0), UserData(np.ones((5, 1))))
    assert found.length.tolist() == [1, 1, 0, 0, 0]
    assert (np.asarray(found.after[1]) != 0).tolist() == [True, True, False, False, False]


def test_a_path_that_the_learner_lacks():
    learner = small.releases_of(lambda key, params, report: report[0])
    with pytest.raises(ValueError, match="path must be"):
        play(learner, feedback_of_action, jax.random.key(0), 1.0, UserData(np.zeros((2, 1))), path="auto")
    for path in ("blocks", "counts"):
        with pytest.raises(ValueError, match=f"got '{path}' without the learner's {path}"):
            play(
                learner,
                full_information,
                jax.random.key(0),
                learner.params(epsilon=1.0),
                UserData(np.ones((5, 1))),
                path=path,
            )


PATHS = [("blocks", 2.0), ("counts", 2.0), ("counts", 1.0), ("blocks", 1.0)]


@pytest.mark.parametrize(("where", "factor"), PATHS)
def test_noise_that_is_missing_on_one_path(where, factor):
    entry = LEARNERS["ebs_phased"]
    learner = small.quieter(entry.make(), factor, where)
    for path in (where,) if factor == 1 else ("rounds", where):
        attack = learner_attack(learner, entry.values, entry.make_neighbours(), answer=entry.users_answer, path=path)
        wrong = path == where and factor > 1
        assert audit(jax.random.key(0), attack, trials=20_000).verdict == ("violated" if wrong else "consistent")


# Adversaries


@pytest.mark.parametrize("reuse_key", [True, False])
def test_noise_that_an_adversary_can_predict(reuse_key):
    """Lets an adversary react: independent reports reveal little by the second release, reports after it reveal the
    secret.
    """
    learner = small.noisy_then_sign(reuse_key=reuse_key)
    neighbours = UserData(np.asarray([[-1.0], [1.0]])), UserData(np.asarray([[1.0], [1.0]]))
    attack = learner_attack(learner, VALUES, neighbours, answer=full_information, draw_user=small.follows)
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == ("violated" if reuse_key else "consistent")


def test_the_one_who_differs_is_not_drawn():
    learner = small.releases_of(lambda key, params, report: report[0])
    neighbours = UserData(np.asarray([[5.0], [6.0], [7.0]])), UserData(np.asarray([[5.0], [9.0], [7.0]]))

    def drawn(key, history):
        return UserData(jnp.asarray(history.round, float)[None])

    attack = learner_attack(learner, VALUES, neighbours, answer=full_information, draw_user=drawn)
    for users, own in zip(neighbours, (6.0, 9.0), strict=True):
        assert attack.release(jax.random.key(0), attack.params, users)["public"].tolist() == [0.0, own, 2.0]

    def other(key, history):
        return UserData(jnp.zeros(2))

    attack = learner_attack(learner, VALUES, neighbours, answer=full_information, draw_user=other)
    with pytest.raises(ValueError, match="draw_user must draw users of the given shapes and dtypes"):
        attack.release(jax.random.key(0), attack.params, neighbours[0])


@pytest.mark.parametrize(
    ("trust_model", "adversary_view", "actions", "public", "reports"),
    [
        ("central", None, [1, 1, 1], [1, 1, 1], None),
        ("central", ["public"], [0, 0, 0], [1, 1, 1], None),
        ("central", ["action", "report"], [1, 1, 1], [0, 0, 0], [1, 1, 1]),
        ("local", None, [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ("local", ["report", "public"], [1, 0, 1], [1, 1, 1], [1, 1, 1]),
        ("joint", None, [1, 0, 1], [1, 1, 1], None),
        ("joint", [], [1, 0, 1], [0, 0, 0], None),
        ("shuffle", None, [1, 1, 1], [1, 1, 1], None),
    ],
)
def test_the_history_that_an_adversary_sees(trust_model, adversary_view, actions, public, reports):
    claim = small.claimed(trust_model, **({} if adversary_view is None else {"adversary_view": adversary_view}))
    history: Any = visible_history(
        claim, 1, History(jnp.int32(3), jnp.ones(3, int), {"a": jnp.ones(3)}, jnp.ones((3, 2)))
    )
    assert history.actions.tolist() == actions
    assert history.public["a"].tolist() == public
    assert (history.reports is None) == (reports is None)
    if reports is not None:
        assert history.reports[:, 1].tolist() == reports


def test_answers_may_follow_reports():
    def echo(answers, history, action):
        return jnp.where(history.round == 0, answers, history.reports[0])

    learner = small.with_claim(small.releases_of(lambda key, params, report: report[0]), small.claimed("local"))
    users, params = UserData(np.asarray([[5.0], [6.0]])), learner.params(epsilon=1.0)
    with pytest.raises(ValueError, match="interface must be declared by a learner for whom answer may read reports"):
        play(learner, lambda answers, history, action: history.reports.sum(), jax.random.key(0), params, users)
    declared = learner._replace(interface=Interface(arms(2), Space("numbers", (1,))))
    assert play(declared, echo, jax.random.key(0), params, users).reports.tolist() == [[5.0], [5.0]]


def test_a_learner_that_plays_nothing():
    learner = small.curator(
        lambda key, params, state, report: State((), report[0]), lambda: State((), jnp.zeros(())), act=lambda *_: None
    )
    users = UserData(np.asarray([[5.0], [6.0]]))
    assert play(learner, full_information, jax.random.key(0), learner.params(epsilon=1.0), users).after.tolist() == [
        5.0,
        6.0,
    ]


def test_a_total_in_the_joint_model():
    """Checks a total that holds the differing user's report, which is not observed."""

    def add(state, report):
        return State(state.private + report.sum(dtype=jnp.int32), ())

    learner = small.curator(lambda key, params, state, report: add(state, report), lambda: State(jnp.int32(0), ()))
    counts = Counts(
        plan=lambda key, params, public, limit: CountPlan(jnp.stack([limit, 0 * limit])),
        privatize=lambda key, params, public, plan, totals: totals,
        update_counts=lambda key, params, state, plan, report: add(state, report),
    )
    claim = small.claimed("joint", adversary_view=())
    learner = small.with_claim(learner, claim)._replace(
        counts=counts, interface=Interface(arms(2), Space("integers", (), 0, 1))
    )
    first, second = (UserData(np.asarray([x, 1, 0], np.int32)) for x in (0, 1))
    for path in ("rounds", "counts"):
        attack = learner_attack(learner, VALUES, (first, second), answer=full_information, path=path)
        for users in attack.neighbours:
            output = attack.release(jax.random.key(0), attack.params, users)
            assert "report" not in output
            assert "action" in output


@pytest.mark.parametrize(("adversary_view", "is_told"), [(("action",), True), (("action", "public"), False)])
def test_a_stopping_time_is_public(adversary_view, is_told):
    learner = small.with_claim(
        small.releases_of(lambda key, params, report: report[0]),
        small.claimed("central", adversary_view=adversary_view),
    )
    learner = learner._replace(done=lambda params, public: public > 0)
    first, second = (UserData(np.asarray([[x], [0.0], [0.0]])) for x in (0.0, 1.0))
    attack = learner_attack(learner, VALUES, (first, second), answer=full_information)
    output = attack.release(jax.random.key(0), attack.params, second)
    assert ("length" in output) == is_told
    assert not is_told or output["length"].tolist() == [1, 0, 0]
    assert audit(jax.random.key(0), attack, trials=1000).verdict == "violated"


@pytest.mark.parametrize(
    ("adversary_view", "verdict"), [(("report", "public"), "consistent"), (("report", "action"), "violated")]
)
def test_a_play_that_is_logged_while_the_report_alone_has_noise(adversary_view, verdict):
    learner = small.with_claim(
        small.randomizes_the_report_alone(), small.claimed("local", adversary_view=adversary_view)
    )
    first, second = (UserData(np.asarray([[float(x)]]), np.asarray([x], np.int32)) for x in (0, 1))
    attack = learner_attack(learner, VALUES, (first, second), answer=full_information)
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == verdict


@pytest.mark.parametrize(
    ("adversary_view", "verdict"), [(("public",), "consistent"), (("public", "report"), "violated")]
)
def test_reports_that_are_logged_in_the_central_model(adversary_view, verdict):
    learner = small.with_claim(
        small.releases_of(lambda key, params, report: laplace(key, report[0], params, l1_sensitivity=1.0)),
        small.claimed("central", adversary_view=adversary_view),
    )
    attack = learner_attack(
        learner, VALUES, (UserData(np.zeros((1, 1))), UserData(np.ones((1, 1)))), answer=full_information
    )
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == verdict


def test_a_coalition_in_the_joint_model():
    """Lets others send the adversary their plays; these must not follow the differing user."""

    def act(key, params, public, context):
        return context + public.astype(jnp.int32)

    def remembers(noise):
        def privatize(key, params, public, context, action, feedback):
            return context

        def update(key, params, state, report):
            value = report.astype(float)
            return State((), laplace(key, value, params, l1_sensitivity=1.0) if noise else value)

        learner = small.curator(update, lambda: State((), jnp.zeros(())), small.guarantee("joint"), act=act)
        return learner._replace(privatize=privatize)

    answers = np.zeros((2, 1), np.int32)
    neighbours = UserData(answers, np.asarray([0, 1], np.int32)), UserData(answers, np.asarray([1, 1], np.int32))

    def relays(key, history):
        """Would send the first user's own play, if it were observed."""
        return UserData(jnp.zeros(1, jnp.int32), jnp.where(history.round == 0, 0, history.actions[0]).astype(jnp.int32))

    for noise in (True, False):
        for draw_user in (None, relays):
            attack = learner_attack(remembers(noise), VALUES, neighbours, answer=full_information, draw_user=draw_user)
            assert audit(jax.random.key(0), attack, trials=20_000).verdict == ("consistent" if noise else "violated")


def test_a_coalition_does_not_see_a_state_that_is_not_logged():
    """Keeps a raw sum as state; plays that follow it pay for one user's part in it, not for others' who copy it."""
    rounds = 6

    def act(key, params, public, context):
        return noisy_max(key, jnp.stack([public, -public]), params / (rounds - 1), sensitivity=1.0)

    def update(key, params, state, report):
        return State((), state.public + jnp.clip(report[0], -1, 1) / 2)

    def copies(key, history):
        before = history.public[jnp.maximum(history.round - 1, 0)]
        return UserData(jnp.where(history.round < 2, 0.0, jnp.sign(before))[None])

    learner = small.with_claim(
        small.curator(update, lambda: State((), jnp.zeros(())), act=act), small.claimed("joint", adversary_view=())
    )
    first, second = (UserData(np.asarray([[x], *[[0.0]] * (rounds - 1)])) for x in (-1.0, 1.0))
    attack = learner_attack(learner, VALUES, (first, second), answer=full_information, draw_user=copies)
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == "consistent"


def test_only_leaves_of_the_unit_may_differ():
    learner = small.with_claim(
        small.shows_its_context("central"), small.claimed("central", sensitive_fields=["answers"])
    )
    answers, contexts = np.zeros((2, 1), np.int32), np.asarray([0, 1], np.int32)
    same = UserData(answers, contexts)
    learner_attack(
        learner, VALUES, (same, UserData(answers + np.asarray([[0], [1]], np.int32), contexts)), answer=full_information
    )
    with pytest.raises(ValueError, match=r"neighbours must differ only in the privacy unit \(answers\), got contexts"):
        learner_attack(learner, VALUES, (same, UserData(answers, contexts[::-1].copy())), answer=full_information)


def test_a_batch_in_the_shuffle_model():
    """Changes one user of a batch; the server's public state at its end is observed."""

    def update(key, params, state, report):
        total, round_ = state.private
        return State((total + report[0], round_ + 1), jnp.where(round_ == 2, total + report[0], state.public))

    def privatize(key, params, public, context, action, feedback):
        return jnp.where(jax.random.bernoulli(key, jax.nn.sigmoid(params)), feedback, 1 - feedback)

    claim = small.claimed("shuffle", batch=3, local_epsilon=1.0)
    learner = small.with_claim(
        small.curator(update, lambda: State((jnp.zeros(()), jnp.int32(0)), jnp.zeros(()))), claim
    )
    learner = learner._replace(privatize=privatize)
    first, second = (UserData(np.asarray([[x], [0.0], [1.0]])) for x in (0.0, 1.0))
    attack = learner_attack(learner, VALUES, (first, second), answer=full_information)
    assert attack.release(jax.random.key(0), attack.params, first)["public"].shape == (3,)
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == "consistent"
    shows = learner._replace(guarantee=lambda *, epsilon: small.claimed("shuffle", adversary_view=["report"]))
    attack = learner_attack(shows, {"epsilon": 4.0}, (first, second), answer=full_information)
    assert audit(jax.random.key(0), attack, trials=20_000).verdict == "violated"


def test_paths_of_what_is_registered():
    found = {name: [*target.attacks] for name, target in registry.attacks().items()}
    assert found["explore_then_commit"] == ["rounds", "blocks", "counts"]
    assert found["ebs_elimination"] == ["rounds", "blocks"]
    assert found["rucb"] == ["rounds"]
    assert found["tree_counter"] == ["release", "feed"]
    assert found["label_randomizer_2"] == ["release", "total"]
    assert found["mle"] == ["fit"]
    assert not any(target.notes for target in registry.attacks().values())


def test_an_adaptive_entry():
    entry = dataclasses.replace(LEARNERS["explore_then_commit"], draw_user=by_the_history)
    assert entry.is_adaptive
    with pytest.raises(ValueError, match="history must be given to a draw_user that takes it"):
        entry.make_user(jax.random.key(0))
    made = entry.make_user(jax.random.key(0), History(jnp.int32(2), jnp.zeros(12, jnp.int32)))
    assert np.asarray(made.answers).tolist() == [2, 2, 2]
    assert not LEARNERS["explore_then_commit"].is_adaptive


def by_the_history(key, num_arms, history):
    return UserData(jnp.full(num_arms, history.round, jnp.int32))


def test_answers_may_follow_what_was_released():
    def contrary(answers, history, action):
        return jnp.where(history.public.best_arm.max() > 0, 7, answers[action])

    learner = explore_then_commit(num_arms=2, explore_rounds=2)
    users = UserData(np.tile(np.asarray([0, 1], np.int32), (4, 1)))
    found = play(learner, contrary, jax.random.key(0), learner.params(epsilon=np.inf), users)
    assert found.reports[1].tolist() == [0, 1, 7, 7]
    plain = play(learner, feedback_of_action, jax.random.key(0), learner.params(epsilon=np.inf), users)
    assert plain.reports[1].tolist() == [0, 1, 1, 1]
