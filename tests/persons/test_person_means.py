"""One number a person: arms and phases of people, sensitivity, the independent version, audits and refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, person_means
from jaxdp.core import State, Visits
from jaxdp.means_of_people import _ranges
from tests.persons import golden
from tests.persons.test_golden_per_person import worst_difference
from tests.persons.two_arms import audit

MEANS = [0.5, 0.3, 0.8]
VISITS = Visits.random(people=90, each=6, seed=3)
FEW = Visits.from_ids([0, 0, 1, 1, 0, 2, 1, 0, 2, 2, 3, 3])


def learner_of(visits=VISITS, num_arms=3, phase_ends=(200,), **options):
    return person_means(num_arms=num_arms, visits=visits, phase_ends=phase_ends, **options)


def events_of(learner, *, epsilon=1.0, change=None):
    """Returns (actions [rounds], public after each round); `change` is (round, reward) -> reward."""
    world = bandits.bernoulli_bandit(MEANS, visits=VISITS)

    def feedback(key, params, state, action):
        round_ = state.round
        state, reward, outcome = world.feedback(key, params, state, action)
        return state, reward if change is None else change(round_, reward), outcome

    run = jaxdp.simulator(learner, world._replace(feedback=feedback), len(VISITS))
    by_round = run.by_round
    assert by_round is not None
    played = jax.jit(lambda key: by_round(key, run.params(epsilon=epsilon), len(VISITS)))(jax.random.key(4))
    return np.asarray(played["events"]["action"]), played["events"]["public"]


def test_a_person_plays_one_arm_in_a_phase_and_arms_are_balanced():
    actions, public = events_of(learner_of())
    arm_of = {}
    for round_ in range(200):
        assert arm_of.setdefault(int(VISITS.person[round_]), int(actions[round_])) == actions[round_]
    arms = list(arm_of.values())  # in the order of first visits
    for start in range(0, len(arms) - 2, 3):
        assert sorted(arms[start : start + 3]) == [0, 1, 2]
    assert arms[0:3] * 20 != arms[:60]  # not always the same order
    assert set(actions[200:]) == {int(public.best_arm[-1])}
    np.testing.assert_array_equal(public.people[199], np.bincount(arms, minlength=3))


@pytest.mark.parametrize("releases", [1, 2, 3])
def test_people_are_heard_in_their_phases_only(releases):
    ends = (150, 300, 450)
    learner = learner_of(phase_ends=ends, releases=releases, rewards="bounded")
    params = learner.params(epsilon=1.0)
    public = learner.init(jax.random.key(0), params).public

    def is_heard(round_, visit):
        at = public._replace(round=round_)
        return learner.privatize(jax.random.key(0), params, at, visit, jnp.int32(0), 1.0).reward == 1.0

    visit = jaxdp.core.Visit(jnp.asarray(VISITS.person), jnp.asarray(VISITS.nth))
    heard = np.asarray(jax.jit(jax.vmap(is_heard))(jnp.arange(len(VISITS)), visit))
    phases = [heard[start:end] for start, end in zip((0, *ends), (*ends, len(VISITS)), strict=True)]
    people = [VISITS.person[start:end] for start, end in zip((0, *ends), (*ends, len(VISITS)), strict=True)]
    assert not phases[3].any()
    of_person = np.zeros(90, int)
    for each, who in zip(phases[:3], people[:3], strict=True):
        assert {bool(each[who == one].all()) for one in set(who[each])} == {True}  # all rounds of a phase, or none
        of_person[list(set(who[each]))] += 1
    assert of_person.max() == releases
    if releases == 3:
        assert phases[0].all()


def test_rewards_outside_a_persons_phases_change_nothing():
    learner = learner_of(phase_ends=(200,))
    plain, other, heard = (
        events_of(learner, change=change)
        for change in (
            None,
            lambda round_, reward: jnp.where(round_ >= 200, 1 - reward, reward),
            lambda round_, reward: jnp.where(round_ < 200, 1 - reward, reward),
        )
    )
    jax.tree.map(np.testing.assert_array_equal, plain, other)
    assert int(plain[1].best_arm[-1]) != int(heard[1].best_arm[-1])


@pytest.mark.parametrize("rewards", ["binary", "bounded"])
@pytest.mark.parametrize("each", [1, 3, 7, 300])
def test_a_persons_total_is_never_above_one_and_nearly_the_mean(rewards, each):
    """Adds all rewards of one person, ones or random, through `update`."""
    visits = Visits.from_ids([0] * each + [1])
    learner = person_means(num_arms=2, visits=visits, phase_ends=[each + 1], rewards=rewards)
    params = learner.params(epsilon=float("inf"))
    ranges = _ranges(each)

    @jax.jit
    def total(values):
        def step(state, inputs):
            nth, reward = inputs
            visit = jaxdp.core.Visit(jnp.int32(0), nth)
            report = learner.privatize(jax.random.key(0), params, state.public, visit, None, reward)
            return learner.update(jax.random.key(1), params, State(*state), report), None

        state = learner.init(jax.random.key(2), params)
        return jax.lax.scan(step, state, (jnp.arange(each, dtype=jnp.int32), values))[0].private

    generator = np.random.default_rng(each)
    for values in (np.ones(each), generator.random(each)):
        values = np.round(values) if rewards == "binary" else values
        dtype = jnp.int32 if rewards == "binary" else jnp.result_type(float)
        private = total(jnp.asarray(values, dtype))
        units = int(private.whole.sum()) * 2**20 + int(private.part.sum())
        assert units <= ranges * 2**20
        assert units / (ranges * 2**20) == pytest.approx(values.mean(), abs=1.01e-4)


def plays(epsilon, **options):
    """Returns [lanes, num_arms] plays by the library."""
    world = bandits.bernoulli_bandit(MEANS, visits=VISITS)

    def feedback(key, params, state, action):
        state, reward, outcome = world.feedback(key, params, state, action)
        return state, reward, {**outcome} | {f"plays_{arm}": action == arm for arm in range(3)}

    run = jaxdp.simulator(learner_of(**options), world._replace(feedback=feedback), len(VISITS))
    keys = jax.random.split(jax.random.key(5), 2000)
    outputs = jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=epsilon))
    return np.asarray(jnp.stack([outputs[f"plays_{arm}"][:, -1] for arm in range(3)], axis=1))


@pytest.mark.parametrize(
    ("phase_ends", "releases", "epsilon", "wrong"),
    [((200,), 1, 0.3, 3.0), ((150, 400), 1, 4.0, 1.0), ((150, 400), 2, 4.0, 1.0)],
    ids=["one", "two", "both"],
)
def test_plays_have_the_independent_versions_distribution(phase_ends, releases, epsilon, wrong):
    """Plants a wrong budget: another noise scale must differ."""
    reference = golden.means_of_people(
        np.random.default_rng(0),
        epsilon,
        person=VISITS.person.tolist(),
        ends=phase_ends,
        releases=releases,
        means=MEANS,
        lanes=1000,
    )
    options = {"phase_ends": phase_ends, "releases": releases}
    assert worst_difference(plays(epsilon, **options), reference) < 5
    assert worst_difference(plays(wrong, **options), reference) > 5


def test_elimination_drops_bad_arms_and_keeps_the_best():
    visits = Visits.random(people=3000, each=8)
    learner = person_means(num_arms=3, visits=visits, phase_ends=[6000, 12000, 18000])
    run = jaxdp.simulator(
        learner,
        bandits.bernoulli_bandit([0.1, 0.85, 0.9], visits=visits),
        len(visits),
        record={"active": lambda snapshot: snapshot.public.active},
    )
    keys = jax.random.split(jax.random.key(0), 50)
    outputs = jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=1.0))
    remains = np.asarray(outputs["active"])[:, -1]
    assert remains[:, 2].mean() >= 0.95
    assert not remains[:, 0].any()
    wide = jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=1.0, taste=10.0))
    assert np.asarray(wide["active"]).all()  # means of people may differ too much


def audit_few(learner):
    return audit(learner, len(FEW), visits=FEW)


def of_few(phase_ends, **options):
    return learner_of(FEW, 2, phase_ends, **options)


def hears_people_in_every_phase():
    """Gives each of two releases of a person the whole budget (planted)."""
    return of_few((5, 11), releases=2)._replace(params=of_few((5, 11)).params)


def adds_whole_rewards():
    """Adds each reward as if it was the person's only one (planted)."""
    learner = of_few((8,))

    def forget(visit):
        return visit._replace(nth=jnp.zeros_like(visit.nth))

    def params(*, epsilon):
        made = learner.params(epsilon=epsilon)
        return dataclasses.replace(made, before=np.minimum(made.before, 1))

    return learner._replace(
        params=params,
        privatize=lambda key, params, public, visit, *rest: learner.privatize(
            key, params, public, forget(visit), *rest
        ),
    )


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: of_few((6,)), None),
        (lambda: of_few((5, 11)), None),
        (lambda: of_few((5, 11), releases=2), None),
        (hears_people_in_every_phase, "releases cost epsilon = 2 "),
        (adds_whole_rewards, "is declared for all"),
    ],
    ids=["one phase", "one of two phases", "both phases", "every phase", "whole rewards"],
)
def test_audits_pass_right_versions_and_flag_planted_ones(make, fault):
    result = audit_few(make())
    assert result.guarantee.unit == "person"
    if fault is None:
        assert (result.faults, result.notes, result.verdict) == ((), (), "consistent")
        assert result.spent == pytest.approx(1.0, rel=1e-5)  # the whole claim
    else:
        assert result.verdict == "violated"
        assert any(fault in text for text in result.faults)


def simulate(visits, learner=None):
    return jaxdp.simulator(learner or learner_of(), bandits.bernoulli_bandit(MEANS, visits=visits), 200)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: learner_of(visits=[0, 1]),  # pyright: ignore[reportArgumentType]
            "visits must be a jaxdp.Visits, got list",
        ),
        (lambda: learner_of(phase_ends=[]), "phase_ends must be a list of at least one round"),
        (lambda: learner_of(phase_ends=[10, 10]), r"phase_ends must increase, got \[10, 10\]"),
        (lambda: learner_of(phase_ends=np.array([10, 10])), r"phase_ends must increase, got \[10, 10\]"),
        (lambda: learner_of(phase_ends=50), "phase_ends must be a list, got 50"),
        (lambda: learner_of(phase_ends=[541]), "phase_ends must be .* 541"),
        (lambda: learner_of(releases=2), "releases must be .* got 2"),
        (lambda: learner_of(rewards="any"), "rewards must be one of binary, bounded"),
        (lambda: _ranges(107_375), "visits must have at most 107374 visits of a person in a phase, got 107375"),
        (lambda: simulate(Visits.random(people=90, each=6, seed=4)), "environment must have the visits of the learner"),
        (lambda: simulate(None), "environment must have the visits of the learner|context must be the same"),
        (lambda: audit_few(learner_of(num_arms=2)), "visits must equal the learner"),
        (lambda: jaxdp.per_person(learner_of()), "learner must not read contexts"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
