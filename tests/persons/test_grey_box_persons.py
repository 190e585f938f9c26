"""Grey-box audits of claims for a person: right versions pass, and planted wrong ones are flagged.

Where a wrong cap makes no difference it is not flagged:

| planted                  | `ucb_central` | local `ucb`       | `explore_then_commit` | `rucb`, blocks |
|--------------------------|---------------|-------------------|-----------------------|----------------|
| budget not divided       | flagged       | flagged           | flagged               | flagged        |
| a cap for each arm       | flagged       | flagged           | flagged               | flagged        |
| a cap for each phase     | flagged       | has no phases     | has one phase         | flagged        |
| only successes counted   | flagged       | not built         | flagged               | flagged        |
| only first k successes   | flagged       | not built         | flagged               | flagged        |

Local learners have no place where a device could count its successes. A person in every phase is planted for
`person_means`, beside its other tests.
"""

import jax
import jax.numpy as jnp
import pytest

from jaxdp import bandits, dueling, per_person
from jaxdp.audit import UserData, feedback_of_pair, full_information, grey_box
from jaxdp.core import Guarantee, State, Visits
from jaxdp.mechanisms import laplace
from tests.audit import small_learners as small
from tests.persons import two_arms
from tests.persons.planted import counts_successes, keep_whole_budget, limit_visits, one_gaussian_release

FEW, SOME = Visits.from_ids([0, 0, 1]), Visits.random(people=3, each=4, seed=1)


def draw_pairs(key):
    wins = jax.random.bernoulli(key, shape=(2, 2)).astype(jnp.int32)
    return UserData(jnp.triu(wins) + jnp.tril(1 - wins.T, -1))


def audit(learner, visits, *, is_duel=False, **options):
    duels = {"draw": draw_pairs, "answer": feedback_of_pair} if is_duel else {}
    return two_arms.audit(learner, len(visits), visits=visits, **duels, **options)


def commit(explore_rounds=2):
    return bandits.explore_then_commit(num_arms=2, explore_rounds=explore_rounds)


def central():
    return bandits.ucb_central(num_arms=2)


def local():
    return bandits.ucb(num_arms=2)


def duels():
    return dueling.rucb(num_arms=2, release="blocks")


def block_ended(before, after):
    return (before.plays != after.plays).any()


def duel_block_ended(before, after):
    return (before.released.lead != after.released.lead).any()


def pair_slot(pair):
    return 2 * pair[0] + pair[1]


RIGHT = {
    "explore_then_commit, 1": lambda: audit(per_person(commit()), FEW),
    "explore_then_commit, 2 in one sum": lambda: audit(per_person(commit(), reports=2), FEW),
    "explore_then_commit, 3 in one sum": lambda: audit(
        per_person(commit(4), reports=3), Visits.from_ids([0, 0, 0, 0, 1])
    ),
    "gaussian, 2 in one sum": lambda: audit(
        per_person(one_gaussian_release(3), reports=2, rest="act"), Visits.from_ids([0, 0, 0, 1])
    ),
    "gaussian, 3 in one sum": lambda: audit(
        per_person(one_gaussian_release(4), reports=3, rest="act"), Visits.from_ids([0, 0, 0, 1, 0])
    ),
    "ucb_central, 2": lambda: audit(per_person(central(), reports=2), SOME),
    "ucb, 2": lambda: audit(per_person(local(), reports=2), SOME),
    "rucb, 1": lambda: audit(per_person(duels(), rest="act"), SOME, is_duel=True),
    "ucb_central, one cap": lambda: audit(limit_visits(central(), 1, people=3), SOME),
    "every visit": lambda: audit(commit(), FEW),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_versions_pass(name):
    result = RIGHT[name]()
    assert (result.faults, result.notes, result.verdict) == ((), (), "consistent")
    assert result.guarantee.unit == "person"
    if "one sum" in name and not name.startswith("gaussian"):
        assert result.spent == pytest.approx(1.0, rel=1e-5)  # the whole claim
        assert max(site.measured for site in result.sites) == int(name.split()[1])
    if name == "every visit":
        assert result.guarantee.epsilon == result.spent == 2.0


@pytest.mark.parametrize("reports", [2, 3])
def test_gaussian_reports_of_one_sum_spend_the_claim(reports):
    learner = per_person(one_gaussian_release(reports + 1), reports=reports, rest="act")
    for factor, fault in ((1.0, False), (1.01, True)):
        claim = learner.guarantee(epsilon=1.0)
        wrong = learner._replace(guarantee=lambda *, epsilon, mu=1 / factor, claim=claim: _with_mu(claim, mu))
        visits = Visits.from_ids([*[0] * reports, 1])
        result = audit(wrong, visits, num_bases=16)  # a base counts if all answers of the person are the same
        assert ("violated" in result.verdict) == fault
        assert any("cost mu = 1," in text for text in result.faults) == fault


def _with_mu(claim, mu):
    import dataclasses

    return dataclasses.replace(claim, mu=mu)


WRONG = {
    "ucb_central, undivided": lambda: audit(keep_whole_budget(central(), 2), SOME),
    "ucb_central, per arm": lambda: audit(limit_visits(central(), 1, people=3, caps=2, slot=lambda arm: arm), SOME),
    "ucb_central, per phase": lambda: audit(limit_visits(central(), 1, people=3, ended=block_ended), SOME),
    "ucb_central, successes": lambda: audit(counts_successes(central(), 1, people=3), SOME),
    "ucb_central, first successes": lambda: audit(counts_successes(central(), 1, people=3, hears_failures=False), SOME),
    "ucb, undivided": lambda: audit(keep_whole_budget(local(), 2), SOME),
    "ucb, per arm": lambda: audit(limit_visits(local(), 1, people=3, caps=2, slot=lambda arm: arm), SOME),
    "explore_then_commit, undivided": lambda: audit(keep_whole_budget(commit(), 2), FEW),
    "explore_then_commit, per arm": lambda: audit(
        limit_visits(commit(), 1, people=2, caps=2, slot=lambda arm: arm), FEW
    ),
    "explore_then_commit, successes": lambda: audit(counts_successes(commit(), 1, people=2), FEW),
    "explore_then_commit, first successes": lambda: audit(
        counts_successes(commit(), 1, people=2, hears_failures=False), FEW
    ),
    "rucb, undivided": lambda: audit(keep_whole_budget(duels(), 2), SOME, is_duel=True),
    "rucb, per pair": lambda: audit(limit_visits(duels(), 1, people=3, caps=4, slot=pair_slot), SOME, is_duel=True),
    "rucb, per phase": lambda: audit(limit_visits(duels(), 1, people=3, ended=duel_block_ended), SOME, is_duel=True),
    "rucb, successes": lambda: audit(counts_successes(duels(), 1, people=3), SOME, is_duel=True),
    "rucb, first successes": lambda: audit(
        counts_successes(duels(), 1, people=3, hears_failures=False), SOME, is_duel=True
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_versions_are_flagged(name):
    result = WRONG[name]()
    assert result.verdict == "violated"


def test_a_cap_of_each_phase_is_right_where_there_is_one_phase():
    ended = lambda before, after: before.best_arm != after.best_arm  # noqa: E731
    assert audit(limit_visits(commit(), 1, people=2, ended=ended), FEW).verdict == "consistent"


@pytest.mark.parametrize(("field", "verdict"), [("answers.secret", "consistent"), ("answers.open", "violated")])
def test_only_sensitive_fields_of_a_person_are_replaced(field, verdict):
    def claim(*, epsilon):
        about = {"trust_model": "central", "privacy_unit": "one round", "argument": "for tests"}
        return Guarantee.pure(epsilon, sensitive_fields=(field,), **about)

    def update(key, params, state, report):
        return State((), jnp.stack([laplace(key, report["secret"], params, l1_sensitivity=1.0), report["open"]]))

    def draw_user(key):
        return UserData(dict(zip(("secret", "open"), jax.random.uniform(key, (2,)), strict=True)))

    learner = small.curator(update, lambda: State((), jnp.zeros(2)), claim)
    options = {"rounds": 3, "visits": FEW, "answer": full_information, "num_bases": 2, "num_neighbours": 4}
    assert grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, draw_user, **options).verdict == verdict


def test_an_audit_without_a_late_release_cannot_tell():
    result = audit(per_person(commit(4)), FEW)  # exploration does not end
    assert result.verdict == "inconclusive"
    assert "nothing was released after a person's last heard report" in result.notes[0]


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        (lambda: per_person(commit()), {"visits": None}, "visits must be a jaxdp.Visits"),
        (lambda: per_person(commit()), {"unit": "record"}, 'unit must be "person"'),
        (lambda: commit(), {"unit": "round"}, "unit must be one of record, person"),
        (lambda: commit(), {"rounds": 4}, "rounds must be <= 3, the number of visits, got 4"),
    ],
)
def test_units_that_do_not_fit_are_refused(learner, options, message):
    arguments = {"rounds": 3, "visits": FEW} | options
    with pytest.raises(ValueError, match=message):
        grey_box(jax.random.key(0), learner(), {"epsilon": 1.0}, two_arms.draw_arms, **arguments)
