"""Enumerated transcripts have the distribution of sampled ones; half the noise shows in the exact epsilon."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import dueling
from jaxdp.audit import UserData, exact_epsilon, feedback_of_pair, full_information, g_test
from jaxdp.audit.enumeration import as_outcome, outcomes, transcript_distribution
from jaxdp.audit.transcripts import Transcript, play
from jaxdp.core import Guarantee, State
from jaxdp.mechanisms import randomized_response
from tests.audit import small_learners as small
from tests.audit.observed import observed_parts

SUSPICIOUS = 1e-6
CLAIM = small.guarantee()(epsilon=1.0)
ONE = np.float32(1)


def sampled(learner, params, users, claim, changed=None, answer=full_information):
    """Returns the observed parts of 10^5 transcripts, by the simulator's own program."""

    def release(key):
        return observed_parts(play(learner, answer, key, params, users), claim, changed)

    return outcomes(jax.jit(jax.vmap(release))(jax.random.split(jax.random.key(3), 100_000)))


def bits(*values):
    return UserData(np.asarray(values, np.int32)[:, None])


def counter(factor=1.0):
    """Builds a curator that randomizes each user's bit at a multiple of epsilon, and plays whether most of them are
    ones.
    """

    def update(key, params, state, report):
        return State((), state.public + 2 * randomized_response(key, report[0], params * factor) - 1)

    def act(key, params, public, context):
        return (public > 0).astype(jnp.int32)

    return small.curator(update, lambda: State((), jnp.int32(0)), act=act)


def counted(factor=1.0, truth=None):
    """Returns the distribution of its `update`."""

    def distribution(params, state, report):
        true = 1 / (1 + math.exp(-factor * float(params))) if truth is None else truth
        steps = ((1, true), (-1, 1 - true)) if report[0] else ((-1, true), (1, 1 - true))
        return [(State((), state.public + step), chance) for step, chance in steps]

    return distribution


def distribution_of(users, learner=None, **told):
    return transcript_distribution(
        learner or counter(), ONE, users, **{"guarantee": CLAIM, "answer": full_information, **told}
    )


def test_outcomes():
    assert as_outcome(np.float32(0.1)) == as_outcome(np.float64(0.1)) == 0.1
    assert as_outcome(np.float32(0.1), digits=17) != 0.1
    assert as_outcome({"b": np.asarray([[1, 2]]), "a": np.asarray([-0.0, np.nan, np.inf])}) == (
        (0.0, "nan", math.inf),
        ((1, 2),),
    )
    assert as_outcome([np.asarray([True])]) == ((True,),) != as_outcome(np.asarray([True]))
    many = (np.asarray([3, 3, 4]), np.asarray([[0.5, np.nan]] * 2 + [[0.5, 1.0]], np.float32))
    assert outcomes(many) == [(3, (0.5, "nan")), (3, (0.5, "nan")), (4, (0.5, 1.0))]
    assert outcomes(np.zeros((0, 2))) == []
    assert outcomes(np.zeros((2, 0))) == [(), ()]
    with pytest.raises(ValueError, match="digits must be an integer >= 1, got 0"):
        as_outcome(np.float32(1.5), digits=0)


def test_a_curator_of_five_rounds():
    """Compares with the product of five flips, sampled transcripts, and distributions and learners of half the
    noise.
    """
    users, other = bits(1, 0, 1, 1, 0), bits(1, 0, 0, 1, 0)
    distribution = distribution_of(users, update_distribution=counted())
    assert len(distribution) == 32
    truth = 1 / (1 + math.exp(-1))
    for (_, sums), chance in distribution.items():
        steps = np.diff([0, *sums])
        assert chance == pytest.approx(
            math.prod(truth if (s > 0) == b else 1 - truth for s, b in zip(steps, users.answers[:, 0], strict=True)),
            rel=1e-12,
        )
    assert exact_epsilon(distribution, distribution_of(other, update_distribution=counted())) == pytest.approx(
        1, rel=1e-12
    )
    assert g_test(sampled(counter(), ONE, users, CLAIM), distribution) > SUSPICIOUS

    less, other_less = (
        distribution_of(each, counter(2.0), update_distribution=counted(2.0)) for each in (users, other)
    )
    assert exact_epsilon(less, other_less) == pytest.approx(2, rel=1e-12)  # twice the claim
    noisy = sampled(counter(2.0), ONE, users, CLAIM)
    assert g_test(noisy, less) > SUSPICIOUS > g_test(noisy, distribution)


def test_fractions_are_exact():
    distribution = distribution_of(bits(1, 1, 0), update_distribution=counted(truth=Fraction(2, 3)))
    assert distribution[((0, 1, 1), (1, 2, 1))] == 8 / 27
    assert sorted(distribution.values()) == sorted(float(Fraction(2**k, 27)) for k in (0, 1, 1, 1, 2, 2, 2, 3))


@pytest.mark.parametrize("changed", [0, 2])
def test_a_local_learner(changed):
    """Checks that earlier rounds of others are averaged over, and later ones are not played."""
    learner = dueling.ebs_local(num_arms=3, horizon=5)
    values = {"epsilon": 1.0, "confidence_multiplier": 0.2}
    params, claim = learner.params(**values), learner.guarantee(**values)
    rng = np.random.default_rng(0)
    users = UserData(rng.integers(0, 2, (5, 3, 3)).astype(np.int32))
    answers = users.answers.copy()
    answers[changed] = 1 - answers[changed]

    def duels(params, public, context):
        active = np.flatnonzero(public.active)
        played = [public.plays[arm, active].sum() for arm in active]
        seldom = [arm for arm, plays in zip(active, played, strict=True) if plays == min(played)]
        return [(np.asarray([left, right]), 1 / len(seldom) / len(active)) for left in seldom for right in active]

    def reports(params, public, context, action, won):
        true = 1 / (1 + math.exp(-float(params.epsilon)))
        return [((action, won), true), ((action, 1 - won), 1 - true)]

    told = {
        "guarantee": claim,
        "changed": changed,
        "answer": feedback_of_pair,
        "act_distribution": duels,
        "report_distribution": reports,
    }
    distribution, other = (
        transcript_distribution(learner, params, each, **told) for each in (users, UserData(answers))
    )
    assert g_test(sampled(learner, params, users, claim, changed, feedback_of_pair), distribution) > SUSPICIOUS
    assert exact_epsilon(distribution, other) == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(
        ValueError, match="report_distribution must give the distribution of privatize where it is random, got None"
    ):
        transcript_distribution(learner, params, users, **{**told, "report_distribution": None})


def test_who_sees_what():
    every = {"adversary_view": ("report", "action", "public"), "privacy_unit": "one round", "argument": "for tests"}
    transcript = Transcript(np.arange(3), np.arange(3) + 10, np.arange(3) + 20, np.arange(3) + 30, jnp.ones(3, int))

    def shown(trust_model, changed=None, **about):
        claim = Guarantee.pure(1.0, trust_model=trust_model, **{**every, **about})
        return tuple(None if part is None else part.tolist() for part in observed_parts(transcript, claim, changed))

    assert shown("central") == ([0, 1, 2], [10, 11, 12], None, [30, 31, 32])
    assert shown("joint", 1, adversary_view=("public",)) == ([0, 2], None, None, [30, 31, 32])
    assert shown("joint", 1, adversary_view=()) == ([0, 2], None, None, None)
    assert shown("local", 1) == ([1], [11], [21], None)
    assert shown("local", 2, adversary_view=("report",)) == (None, [12], None, None)
    for trust_model, changed in (("local", None), ("joint", 3)):
        with pytest.raises(ValueError, match=rf"changed must be a round in \[0, 3\) in the {trust_model} model, got"):
            shown(trust_model, changed, adversary_view=("public",))
    assert shown("shuffle", adversary_view=("public",)) == (None, None, None, [30, 31, 32])


def test_the_joint_model_leaves_out_the_users_own_play():
    users = [UserData(np.zeros((3, 1), np.int32), np.asarray([3, context, 2], np.int32)) for context in (0, 1)]
    joint, central = small.shows_its_context("joint"), small.shows_its_context("central")
    claims = [learner.guarantee(epsilon=1.0) for learner in (joint, central)]
    assert [distribution_of(each, joint, guarantee=claims[0], changed=1) for each in users] == [{((3, 2),): 1.0}] * 2
    first, second = (distribution_of(each, central, guarantee=claims[1]) for each in users)
    assert exact_epsilon(first, second) == math.inf


def contrarian(answers, history, action):
    """Flips a bit after each play of 1."""
    last = history.actions[jnp.maximum(history.round - 1, 0)]
    return jnp.where(last == 1, 1 - answers, answers)


def test_users_who_react():
    users = bits(1, 1, 0, 1)
    distribution = distribution_of(users, answer=contrarian, adaptive=True, update_distribution=counted())
    found = sampled(counter(), ONE, users, CLAIM, answer=contrarian)
    assert (
        g_test(found, distribution) > SUSPICIOUS > g_test(found, distribution_of(users, update_distribution=counted()))
    )
    with pytest.raises(ValueError, match="adaptive must be True for an answer that reads the past, got False"):
        distribution_of(users, answer=contrarian, update_distribution=counted())


def test_a_random_start():
    def init(key, params):
        return State((), jax.random.bernoulli(key).astype(jnp.int32))

    learner = counter()._replace(init=init, update=lambda key, params, state, report: state)
    distribution = distribution_of(
        bits(0, 0), learner, init_distribution=lambda params: [(State((), start), 0.5) for start in (0, 1)]
    )
    assert distribution == {((0, 0), (0, 0)): 0.5, ((1, 1), (1, 1)): 0.5}
    with pytest.raises(
        ValueError, match="init_distribution must give the distribution of init where it is random, got None where 64"
    ):
        distribution_of(bits(0, 0), learner)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            None,
            "update_distribution must give the distribution of update where it is random, got None where 64 keys",
        ),
        (
            lambda *_: [(State((), 1), 0.5)],
            r"update_distribution must have probabilities >= 0 that sum to 1, got \[0.5\]",
        ),
        (lambda *_: [(State((), 1), 1.5), (State((), -1), -0.5)], r"probabilities >= 0 that sum to 1, got \[1.5, -0.5"),
        (
            lambda *_: [(State((), 1), 1.0)],
            r"update_distribution must list every value that update can return, got no probability for \(-1,\)",
        ),
        (
            lambda *_: [(State((), 1), 0.5), (State((), -1.5), 0.5)],
            r"update_distribution must have values of dtype int32 where its function has, got -1\.5",
        ),
        (
            lambda *_: [(State((), np.ones(2)), 1.0)],
            "update_distribution must have values of the structure and shapes of",
        ),
    ],
)
def test_bad_distributions_are_refused(told, message):
    with pytest.raises(ValueError, match=message):
        distribution_of(bits(0, 0), update_distribution=told)


def test_too_many_transcripts_are_refused(monkeypatch):
    monkeypatch.setattr("jaxdp.audit.enumeration.MOST", 7)
    assert len(distribution_of(bits(0, 0), update_distribution=counted())) == 4
    with pytest.raises(ValueError, match="one round must have at most 7 transcripts, got more"):
        distribution_of(bits(0, 0, 0), update_distribution=counted())
