"""The grey box varies and compares inputs as the claim says, and calls nothing a fault that it cannot determine."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData, audit, full_information, grey_box, leaks, learner_attack
from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms
from jaxdp.mechanisms import laplace, noisy_max, randomized_response
from tests.audit import small_learners as small

AROUND = "changes although all values that get noise are held fixed: a path around the noise"


draw_bit = small.draw_corners(1)


def look(learner, draw_user=draw_bit, rounds=3, **options):
    options = {"answer": full_information, "num_bases": 2, "num_neighbours": 32, **options}
    return grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, draw_user, rounds=rounds, **options)


def claiming(learner: Learner, **about) -> Learner:
    """Returns the learner with another claim."""
    right = learner.guarantee

    def claim(*, epsilon):
        return dataclasses.replace(right(epsilon=epsilon), **about)

    return learner._replace(guarantee=claim)


def draw_both(key):
    """Draws an answer and a context."""
    return UserData(jax.random.bernoulli(key, shape=(1,)).astype(float), jax.random.randint(key, (), 0, 3))


# ---- noise that writes nothing ---------------------------------------------------------------------------------------
def own_noise(key, params, value):
    return value + jax.random.laplace(key, value.shape) / params


def turned(key, params, label):
    """Draws randomized response at four times epsilon, which seldom flips a label."""
    return jnp.where(jax.random.bernoulli(key, jax.nn.sigmoid(-4 * params)), 1 - label, label)


def test_noise_that_writes_nothing_cannot_be_told():
    found = look(small.releases_of(lambda key, params, report: own_noise(key, params, report[0])))
    assert (found.verdict, found.faults, found.sites) == ("inconclusive", (), ())
    assert "the public state depends on the users and the key, but nothing was recorded" in found.notes[0]
    rare = small.releases_of(lambda key, params, report: turned(key, params, report[0].astype(jnp.int32)), np.int32(0))
    assert look(rare).verdict == "inconclusive"

    local = small.curator(lambda key, params, state, report: state, lambda: State((), ()), small.guarantee("local"))
    randomizes = local._replace(
        privatize=lambda key, params, public, context, action, feedback: own_noise(key, params, feedback)
    )
    assert look(randomizes).verdict == "inconclusive"


def test_noise_drawn_before_it_is_needed():
    def init(key, params):
        return State(jax.random.laplace(key, (3,)), (jnp.zeros((), int), jnp.zeros(())))

    def update(key, params, state, report):
        round_, _ = state.public
        return State(state.private, (round_ + 1, report[0] + state.private[round_] / params))

    assert look(small.curator(update, lambda: State((), ()))._replace(init=init)).verdict == "inconclusive"


@pytest.mark.parametrize(
    "release",
    [
        lambda key, params, report: report[0],
        lambda key, params, report: jnp.stack([own_noise(key, params, report[0]), report[0]]),
        lambda key, params, report: jnp.stack([jax.random.laplace(key), (report[0] > 0.5).astype(float)]),
    ],
)
def test_what_no_key_moves_was_never_noised(release):
    like = np.zeros(jax.eval_shape(lambda: release(jax.random.key(0), 1.0, jnp.zeros(1))).shape)
    assert look(small.releases_of(release, like)).faults == (f"the public state {AROUND}",)


def test_learners_that_record_some_of_their_noise():
    def both(together, raw):
        def release(key, params, report):
            first, second = jax.random.split(key)
            recorded = laplace(first, report[0], params / 2, l1_sensitivity=1.0) + raw * report[0]
            return jnp.stack([recorded, own_noise(second, params / 2, report[0])]) if together else recorded

        return look(small.releases_of(release, np.zeros(2) if together else 0.0))

    assert both(False, 0.0).verdict == "consistent"
    assert both(False, 1.0).faults == (f"the public state {AROUND}",)  # though random, and larger than the exact value
    found = both(True, 0.0)
    assert (found.verdict, found.faults) == ("inconclusive", ())
    assert "noise from a mechanism that records no entry" in found.notes[0]


def test_a_raw_number_in_a_noisy_choice():
    def release(key, params, report):
        return noisy_max(key, jnp.stack([report[0], 0.5]), params, sensitivity=1.0) ^ (report[0] > 0.5).astype(
            jnp.int32
        )

    found = look(small.releases_of(release, np.int32(0)))
    assert found.faults == (f"the public state {AROUND}",)


# ---- observed parts --------------------------------------------------------------------------------------------------
def test_a_central_claim_names_what_is_seen():
    learner = small.shows_its_context("central")
    assert look(learner, draw_both).faults == (f"the play {AROUND}",)
    assert look(claiming(learner, adversary_view=frozenset({"public"})), draw_both).verdict == "consistent"
    assert look(claiming(learner, adversary_view=frozenset({"public", "report"})), draw_both).faults == (
        f"the report {AROUND}",
    )


def test_scores_that_nobody_sees_may_be_raw():
    """Chooses the play by an unreleased state, at the mechanism's cost."""

    def act(key, params, public, context):
        return noisy_max(key, public[1] * jnp.ones(2), params / 8, sensitivity=1.0)

    def update(key, params, state, report):
        round_, scores = state.public
        return State((), (round_ + 1, scores + jnp.stack([report[0], -report[0]])))

    learner = small.curator(update, lambda: State((), (jnp.int32(0), jnp.zeros(2))), act=act)
    assert look(learner).faults == (f"the public state {AROUND}",)
    found = look(claiming(learner, adversary_view=frozenset({"action"})), rounds=5)
    assert found.verdict == "consistent"
    assert found.spent == pytest.approx(0.5)  # four later plays at an eighth
    assert look(claiming(learner, adversary_view=frozenset({"action"})), rounds=12).verdict == "violated"


@pytest.mark.parametrize("trust_model", ["central", "joint"])
def test_where_a_learner_stops_is_seen_though_nothing_else_is(trust_model):
    """Checks the grey box, the black box, and the leak test."""
    users = UserData(np.zeros((3, 1))), UserData(np.asarray([[1.0], [0.0], [0.0]]))

    def noised(key, params, number):
        return laplace(key, number, params, l1_sensitivity=1.0) > 0.5

    raw = small.stops_after(lambda key, params, number: number > 0.5)
    adversary_view = frozenset() if trust_model == "joint" else frozenset({"action"})
    for learner, verdict in ((raw, "violated"), (small.stops_after(noised), "consistent")):
        learner = claiming(learner, trust_model=trust_model, adversary_view=adversary_view)
        assert look(learner).verdict == verdict
        attack = learner_attack(learner, {"epsilon": 1.0}, users, answer=full_information)
        assert audit(jax.random.key(0), attack, trials=10_000).verdict == verdict
        assert leaks(jax.random.key(0), learner, {"epsilon": 1.0}, users, answer=full_information).verdict == verdict
    learner = claiming(raw, trust_model=trust_model, adversary_view=adversary_view)
    assert look(learner).faults == (f"the stop {AROUND}",)


def test_the_play_of_a_local_learner():
    learner = small.randomizes_the_report_alone()
    assert look(learner, draw_both).faults == (f"the play {AROUND}",)
    assert look(claiming(learner, adversary_view=frozenset({"report", "public"})), draw_both).verdict == "consistent"


def test_joint_learners_show_others_nothing():
    """Checks all plays and reports except the replaced user's own."""
    learner = small.shows_its_context("joint")
    assert look(learner, draw_both).verdict == "consistent"

    def update(key, params, state, report):
        return State((), report)

    tells = learner._replace(update=update, init=lambda key, params: State((), jnp.zeros(1)))
    assert look(tells, draw_both).faults == (f"the public state {AROUND}",)

    # What one user said reaches the next one's play, if the state that carries it is not logged.
    follows = tells._replace(act=lambda key, params, public, context: (public[0] > 0.5).astype(jnp.int32))
    hidden = claiming(follows, adversary_view=frozenset())
    assert look(hidden, draw_both).faults == (f"the play {AROUND}",)


def test_only_the_privacy_unit_varies():
    learner = small.shows_its_context("central")
    assert look(claiming(learner, sensitive_fields=("answers",)), draw_both).verdict == "consistent"
    assert look(claiming(learner, sensitive_fields=("contexts",)), draw_both).verdict == "violated"
    with pytest.raises(
        ValueError, match="sensitive_fields must name leaves of a user's data, answers, contexts, got 'gende"
    ):
        look(claiming(learner, sensitive_fields=("gender",)), draw_both)


def test_no_claim_cannot_be_violated():
    learner = small.releases_of(lambda key, params, report: report[0])
    claim = Guarantee.none(trust_model="central", privacy_unit="one round", argument="none")
    assert look(small.with_claim(learner, claim)).verdict == "consistent"


# ---- shuffle ---------------------------------------------------------------------------------------------------------
def shuffled(randomizer) -> Learner:
    """Releases sums of three reports."""

    def privatize(key, params, public, context, action, feedback):
        return randomizer(key, params, feedback[0].astype(jnp.int32))

    def update(key, params, state, report):
        count, total = state.private
        count, total = count + 1, total + report
        is_full = count == 3
        public = jnp.where(is_full, total, state.public)
        return State((jnp.where(is_full, 0, count), jnp.where(is_full, 0, total)), public)

    def claim(*, epsilon):
        return Guarantee.approximate(
            0.3,
            1e-3,
            trust_model="shuffle",
            privacy_unit="one round",
            argument="for tests",
            batch=3,
            local_epsilon=epsilon,
        )

    learner = small.curator(update, lambda: State((jnp.int32(0), jnp.int32(0)), jnp.int32(0)), claim)
    return learner._replace(privatize=privatize)


def test_the_reports_of_a_shuffled_learner():
    found = look(shuffled(lambda key, params, bit: randomized_response(key, bit, params)), rounds=6)
    assert (found.verdict, found.faults, found.spent) == ("inconclusive", (), 1.0)
    assert found.notes == ("amplification by shuffling is not computed here",)
    found = look(shuffled(lambda key, params, bit: randomized_response(key, bit, 2 * params)), rounds=6)
    assert found.faults == ("a user's report costs epsilon = 2, but local_epsilon is 1",)
    assert look(shuffled(lambda key, params, bit: bit), rounds=6).faults == (f"the public state {AROUND}",)
    assert look(shuffled(turned), rounds=6).faults == ()


# ---- adversaries who react -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reuse_key", [False, True])
def test_a_key_that_is_used_again_after_a_release(reuse_key):
    found = look(small.noisy_then_sign(reuse_key=reuse_key), small.follows)
    assert found.verdict == ("violated" if reuse_key else "consistent")
    assert any("the same key serves twice: laplace in update" in fault for fault in found.faults) == reuse_key


def test_users_react_to_what_the_claim_shows():
    """Lets a learner forget to clip reports that only users who saw a release would send."""

    def draw_user(key, history):
        bit = jax.random.bernoulli(key, shape=(1,)).astype(float)
        return UserData(jnp.where(jnp.any(history.public != 0), 3.0, 1.0) * bit)

    learner = small.follows_itself(0.0)
    for adversary_view, faults in (
        ({"action", "public"}, True),
        ({"action"}, False),
        ({"public"}, True),
    ):
        found = look(claiming(learner, adversary_view=frozenset(adversary_view)), draw_user)
        assert any("changes by 3 in l1 norm, but 1 is declared" in fault for fault in found.faults) == faults


def test_users_react_to_reports_where_these_are_seen():
    def draw_user(key, history):
        bit = jax.random.bernoulli(key, shape=(1,)).astype(float)
        return UserData(jnp.where(jnp.any(history.reports != 0), 3.0, 1.0) * bit)

    def privatize(key, params, public, context, action, feedback):
        return laplace(key, feedback, params, l1_sensitivity=1.0)

    learner = small.curator(lambda *_: State((), ()), lambda: State((), ()), small.guarantee("local"))
    learner = learner._replace(privatize=privatize)
    with pytest.raises(ValueError, match="interface must be declared by a learner whose users react to reports"):
        look(learner, draw_user)
    learner = learner._replace(interface=Interface(arms(2), Space("numbers", (1,))))
    assert "laplace in privatize changes by 3 in l1 norm, but 1 is declared" in look(learner, draw_user).faults


def test_users_react_to_a_learner_that_reads_contexts():
    def draw_user(key, history):
        return draw_both(key)._replace(contexts={"x": jnp.where(history.round > 0, 1, 0)})

    learner = small.shows_its_context("joint")._replace(act=lambda key, params, public, context: context["x"])
    with pytest.raises(ValueError, match="interface must be declared by a learner that reads contexts where users rea"):
        look(learner, draw_user)
    spaces = Interface(arms(2), Space("numbers", (1,)), context={"x": Space("integers", (), 0, 1)})
    assert look(learner._replace(interface=spaces), draw_user).verdict == "consistent"


def test_users_who_may_react_and_need_not():
    def draw_user(key, history=None):
        return draw_bit(key)

    assert look(small.follows_itself(0.0), draw_user).verdict == "consistent"
