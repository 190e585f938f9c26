"""Late feedback of people who come back: an independent order of reports, caps, audits and refusals."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, batched, delayed, dueling, experts, per_person
from jaxdp.core import Visits
from tests.late.by_queues import play_by_queues
from tests.persons.planted import keep_whole_budget
from tests.persons.two_arms import audit

ROUNDS, EPSILON = 160, 2.0  # epsilon of a report
VISITS = Visits.random(people=40, each=4, seed=5)
MEANS, LOSSES = [0.3, 0.5, 0.8], [0.2, 0.5, 0.6]
MATRIX = [[0.5, 0.8, 0.9], [0.2, 0.5, 0.6], [0.1, 0.4, 0.5]]


def arms_of(visits):
    return bandits.bernoulli_bandit(MEANS, visits=visits)


CASES = {  # (learner of heard rounds, world of visits, rest)
    "ucb": (
        lambda heard: bandits.ucb(num_arms=3),
        arms_of,
        "best",
    ),
    "ucb_central": (
        lambda heard: bandits.ucb_central(num_arms=3),
        arms_of,
        "best",
    ),
    "tsallis_inf": (
        lambda heard: bandits.tsallis_inf(num_arms=3),
        arms_of,
        "best",
    ),
    "explore_then_commit": (
        lambda heard: bandits.explore_then_commit(num_arms=3, explore_rounds=15),
        arms_of,
        "act",
    ),
    "rucb": (
        lambda heard: dueling.rucb(num_arms=3),
        lambda visits: dueling.matrix_duels(MATRIX, visits=visits),
        "best",
    ),
    "exponential_weights": (
        lambda heard: experts.exponential_weights(num_experts=3, horizon=heard),
        lambda visits: experts.stochastic_losses(LOSSES, visits=visits),
        "act",
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore:.* hears ")


def drawn_delays(longest=9):
    """Returns [ROUNDS] delays, by which reports overtake others, and several or none arrive in a round."""
    return np.random.default_rng(0).integers(longest + 1, size=ROUNDS)


def count_at_arrival(visits, delays, reports):
    """Plants a schedule that counts a heard visit once its report has arrived."""
    nth, arrivals = np.zeros(len(visits), np.int32), []
    for round_, person in enumerate(visits.person):
        nth[round_] = sum(due < round_ and one == person for due, one in arrivals)
        if nth[round_] < reports:
            arrivals.append((round_ + delays[round_], person))
    wrong = Visits.from_ids(visits.person)
    wrong.nth = nth
    return wrong


def last_event(learner, world, key, epsilon):
    """Returns (actions, last public state) of one lane."""
    run = jaxdp.simulator(learner, world, ROUNDS)
    by_round = run.by_round
    assert by_round is not None
    events = jax.jit(lambda key: by_round(key, run.params(epsilon=epsilon), ROUNDS))(key)["events"]
    return events["action"].tolist(), jax.tree.map(lambda leaf: leaf[-1], events["public"])


def both_ways(name, reports, *, visits=VISITS, **planted):
    """Plays a case by the library and by lists of reports. Returns (library's, by lists)."""
    make, make_world, rest = CASES[name]
    learner, delays, key = make(VISITS.num_heard(reports)), drawn_delays(), jax.random.key(3)
    person = per_person(learner, reports=reports, rest=rest)
    played = last_event(person, delayed(make_world(visits), delays), key, reports * EPSILON)
    best_action = person.best_action if rest == "best" else None
    return played, play_by_queues(
        learner,
        make_world(None),
        delays,
        key,
        person=VISITS.person.tolist(),
        reports=reports,
        rest=best_action,
        **planted,
    )


@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_reports_of_people_are_heard_as_by_lists_of_reports(name, reports):
    (actions, public), (by_lists, public_by_lists, heard) = both_ways(name, reports)
    assert actions == by_lists
    # What compensated sums leave over is itself a rounding error, of the size of one.
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), public.learner, public_by_lists)
    assert int(public.used.sum()) == len(heard) > 10
    assert len(set(heard)) == len(heard)  # each report once
    assert np.bincount(VISITS.person[heard]).max() == reports
    sent = VISITS.nth < reports
    assert int(public.queued.sum()) == (sent & (np.arange(ROUNDS) + drawn_delays() < ROUNDS)).sum()


@pytest.mark.parametrize("name", ["ucb_central", "ucb"])
def test_visits_that_count_at_arrival_let_a_person_be_heard_too_often(name):
    (actions, _), (by_lists, _, heard) = both_ways(name, 1, counts="arrivals")
    assert np.bincount(VISITS.person[heard]).max() > 1
    assert actions != by_lists
    # The planted schedule is the planted order of lists.
    wrong = count_at_arrival(VISITS, drawn_delays(), 1)
    assert both_ways(name, 1, visits=wrong)[0][0] == by_lists


@pytest.mark.parametrize("name", CASES)
def test_without_delay_results_are_those_of_the_visited_world(name):
    make, make_world, rest = CASES[name]
    person, world = per_person(make(VISITS.num_heard(2)), reports=2, rest=rest), make_world(VISITS)
    worlds = world, delayed(world, 0), batched(world, 1), delayed(world, 3)
    runs = [jaxdp.simulator(person, each, ROUNDS, checkpoints=7, engine="rounds") for each in worlds]
    keys = jax.random.split(jax.random.key(0), 4)
    plain, *others, late = (jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=2.0)) for run in runs)
    for other in others:
        assert set(plain) == set(other)
        jax.tree.map(np.testing.assert_array_equal, plain, other)
    assert any((np.asarray(plain[key]) != np.asarray(late[key])).any() for key in plain)


def test_the_longest_queue_fits():
    """Checks that reports of an action that arrived and were not used are never more than are stored."""
    delays = np.random.default_rng(1).integers(12, size=ROUNDS)
    world = delayed(bandits.bernoulli_bandit(MEANS, visits=VISITS), delays)
    run = jaxdp.simulator(per_person(bandits.thompson(num_arms=3), reports=2), world, ROUNDS)
    by_round = run.by_round
    assert by_round is not None
    lanes = jax.jit(jax.vmap(lambda key: by_round(key, run.params(epsilon=1.0), ROUNDS)))
    public = lanes(jax.random.split(jax.random.key(0), 64))["events"]["public"]
    waiting = np.asarray(public.queued - public.used)
    assert waiting.min() >= 0
    assert 1 < waiting.max() <= delays.max() + 1


# The first report of person 0 arrives after their second visit, and the report of person 1 overtakes it.
AUDITED, DELAYS = Visits.from_ids([0, 1, 0, 2, 1, 0, 3, 4, 5, 3]), [5, 0, 0, 9, 0, 0, 0, 0, 0, 0]


def audit_late(learner, visits=AUDITED, delays=DELAYS):
    return audit(learner, len(delays), num_neighbours=16, visits=visits, delays=delays)


def commit(explore_rounds):
    return bandits.explore_then_commit(num_arms=2, explore_rounds=explore_rounds)


AUDITS = {
    "explore_then_commit": lambda: commit(4),
    "ucb_central": lambda: bandits.ucb_central(num_arms=2),
    "ucb": lambda: bandits.ucb(num_arms=2),
}


@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize("name", AUDITS)
def test_audits_of_late_people_pass(name, reports):
    result = audit_late(per_person(AUDITS[name](), reports=reports))
    assert (result.faults, result.notes, result.verdict) == ((), (), "consistent")
    assert result.guarantee.unit == "person"
    # Two reports of a person do not both enter the sums of `explore_then_commit`.
    assert result.spent == pytest.approx(0.5 if (name, reports) == ("explore_then_commit", 2) else 1.0, rel=1e-5)


@pytest.mark.parametrize("name", AUDITS)
def test_audits_flag_visits_that_count_at_arrival(name):
    result = audit_late(per_person(AUDITS[name]()), count_at_arrival(AUDITED, DELAYS, 1))
    assert result.verdict == "violated"
    assert result.spent == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize("name", ["ucb_central", "ucb"])
def test_audits_flag_an_undivided_budget(name):
    assert audit_late(keep_whole_budget(AUDITS[name](), 2)).verdict == "violated"


def test_an_audit_asks_for_a_release_after_the_last_report_arrived():
    visits, at_once, late = Visits.from_ids([0, 0, 1, 1]), [0, 0, 0, 0], [0, 9, 0, 9]
    assert audit_late(per_person(commit(2), reports=2), visits, at_once).verdict == "consistent"
    result = audit_late(per_person(commit(2), reports=2), visits, late)  # the release comes after the second visit
    assert result.verdict == "inconclusive"
    assert "nothing was released after a person's last heard report" in result.notes[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda visits: jaxdp.person_means(num_arms=3, visits=visits, phase_ends=[80]), "late rewards miss their sum"),
        (lambda visits: bandits.ucb(num_arms=3)._replace(interface=None), "have an interface"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    world = delayed(bandits.bernoulli_bandit(MEANS, visits=VISITS), 1)
    with pytest.raises(ValueError, match=message):
        jaxdp.simulator(make(VISITS), world, ROUNDS)


def test_a_late_world_needs_visits_for_a_claim_of_a_person():
    with pytest.raises(ValueError, match="environment must have visits"):
        jaxdp.simulator(per_person(bandits.ucb(num_arms=3)), delayed(bandits.bernoulli_bandit(MEANS), 1), 9)
