"""Learners with a claim for a person: heard rounds, budgets, refusals."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, dueling, experts, per_person
from jaxdp.bandits import contextual
from jaxdp.core import Guarantee, Visits
from jaxdp.core.person_values import record_values
from jaxdp.registry import LEARNERS

MEANS = [0.2, 0.3, 0.8]
VISITS = Visits.random(people=150, each=4, seed=1)
PERSON = {"privacy_unit": "one person"}


def run_of(learner, visits=VISITS, means=MEANS, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* hears ", category=UserWarning)
        return jaxdp.simulator(learner, bandits.bernoulli_bandit(means, visits=visits), len(visits), **options)


@pytest.mark.parametrize(
    "make", [bandits.ucb, bandits.ucb_central, bandits.tsallis_inf], ids=lambda make: make.__name__
)
def test_with_one_visit_a_person_results_are_the_learners_own_bits(make):
    learner, once = make(num_arms=3), Visits.random(people=600, each=1)
    plain = jaxdp.simulator(learner, bandits.bernoulli_bandit(MEANS), 600, checkpoints=7)
    person = run_of(per_person(learner), once, checkpoints=7)
    keys = jax.random.split(jax.random.key(0), 4)
    outputs = [jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=1.0)) for run in (plain, person)]
    assert set(outputs[0]) == set(outputs[1])
    for name, values in outputs[0].items():
        np.testing.assert_array_equal(values, outputs[1][name])


def heard_and_played(learner, key, *, flips=False):
    """Returns (heard [rounds], actions [rounds], public after each round), with other rewards in unheard rounds."""
    world = bandits.bernoulli_bandit(MEANS, visits=VISITS)
    heard = VISITS.nth < learner.reports

    def feedback(key, params, state, action):
        round_ = state.round
        state, reward, outcome = world.feedback(key, params, state, action)
        return state, jnp.where(jnp.asarray(heard)[round_] | (not flips), reward, 1 - reward), outcome

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = jaxdp.simulator(learner, world._replace(feedback=feedback), len(VISITS))
    assert run.by_round is not None
    by_round = run.by_round
    events = jax.jit(lambda key: by_round(key, run.params(epsilon=1.0), len(VISITS)))(key)["events"]
    return heard, events["action"], events["public"]


@pytest.mark.parametrize("reports", [1, 3])
@pytest.mark.parametrize("make", [bandits.ucb, bandits.ucb_central], ids=lambda make: make.__name__)
def test_only_the_first_visits_are_heard(make, reports):
    learner = per_person(make(num_arms=3), reports=reports)
    heard, actions, public = heard_and_played(learner, jax.random.key(2))
    assert heard.sum() == VISITS.num_heard(reports) == 150 * reports
    np.testing.assert_array_equal(public.round, np.cumsum(heard))  # the learner's own clock
    _, other_actions, other_public = heard_and_played(learner, jax.random.key(2), flips=True)
    jax.tree.map(np.testing.assert_array_equal, (actions, public), (other_actions, other_public))
    _, wrong, _ = heard_and_played(per_person(make(num_arms=3), reports=4), jax.random.key(2))
    assert (np.asarray(wrong) != np.asarray(actions)).any()  # a learner that hears all rounds differs


def test_a_reports_branch_stays_a_branch_in_many_lanes():
    run = run_of(per_person(bandits.ucb_central(num_arms=3)))
    lanes = jax.vmap(run, (0, None))
    text = str(jax.make_jaxpr(lanes)(jax.random.split(jax.random.key(0), 3), run.params(epsilon=1.0)))
    assert text.count("cond[") >= 3  # the action, the report and the state
    stacked = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 3), run.params(epsilon=1.0))
    batched = jax.vmap(run)
    without = str(jax.make_jaxpr(batched)(jax.random.split(jax.random.key(0), 3), stacked))
    assert without.count("cond[") < text.count("cond[")  # a schedule for each lane would make it a select


def test_rest_says_what_rounds_without_reports_play():
    best = per_person(bandits.explore_then_commit(num_arms=3, explore_rounds=30))
    rest_by_act = per_person(bandits.explore_then_commit(num_arms=3, explore_rounds=30), rest="act")
    for learner, share in ((best, 0.0), (rest_by_act, 0.25)):
        heard, actions, public = heard_and_played(learner, jax.random.key(0))
        before = (np.asarray(public.round) < 30) & ~heard
        assert (np.asarray(actions)[before] != 0).any() == (share > 0)
        after = np.flatnonzero(np.asarray(public.round) >= 30)[1:]
        assert len(set(np.asarray(actions)[after].tolist())) == 1


@pytest.mark.parametrize("reports", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["ucb", "ucb_central", "tsallis_inf_gaussian", "ebs_elimination_gaussian"])
def test_budgets_are_divided_by_kind_and_trust_model(name, reports):
    entry = LEARNERS[name]
    learner = entry.make()
    asked, values = learner.guarantee(**entry.values), record_values(learner.guarantee, entry.values, reports)
    person = learner.guarantee(**values).at_user_level(reports, **PERSON)
    assert person.epsilon <= asked.epsilon
    assert person.delta <= asked.delta
    assert person.epsilon == pytest.approx(asked.epsilon, rel=1e-6)
    assert person.delta == pytest.approx(asked.delta, rel=1e-5)
    if reports == 1:
        assert values == entry.values
    if name == "tsallis_inf_gaussian":
        assert values["delta"] == pytest.approx(entry.values["delta"] / reports, rel=1e-6)
    claim = per_person(learner, reports=reports, rest="act").guarantee(**entry.values)
    assert (claim.epsilon, claim.delta, claim.unit, claim.privacy_unit) == (
        asked.epsilon,
        asked.delta,
        "person",
        "one person",
    )
    with pytest.raises(ValueError, match="for a person already"):
        claim.at_user_level(2, **PERSON)


@pytest.mark.parametrize("epsilon", [400.0, 1500.0])
def test_a_delta_that_becomes_too_small_is_refused(epsilon):
    def guarantee(*, epsilon, delta):
        return Guarantee.approximate(epsilon, delta, trust_model="central", argument="noise", privacy_unit="one record")

    assert record_values(guarantee, {"epsilon": 100.0, "delta": 1e-6}, 2)["epsilon"] == 50.0
    values = {"epsilon": 4 * epsilon, "delta": 1e-6}
    with pytest.raises(ValueError, match=r"a claim that can be divided among 2 reports, got \(.*, 1e-06\)-DP"):
        record_values(guarantee, values, 2)


def test_rho_is_divided_by_the_square_of_the_reports():
    entry = LEARNERS["lazy_weights"]
    learner = entry.make()
    asked = learner.guarantee(**entry.values)
    for reports in (2, 3):
        one = learner.guarantee(**record_values(learner.guarantee, entry.values, reports))
        assert asked.rho is not None
        assert one.rho is not None
        assert asked.rho * (1 - 1e-5) < one.rho * reports**2 <= asked.rho
    claim = per_person(learner, reports=3, rest="act").guarantee(**entry.values)
    assert (claim.rho, claim.kind) == (asked.rho, "zcdp")


@pytest.mark.parametrize(("trust_model", "factor"), [("central", 3.0), ("local", np.sqrt(3.0))])
def test_mu_is_divided_by_the_reports_or_their_root(trust_model, factor):
    def guarantee(*, epsilon):
        return Guarantee.gaussian(epsilon / 2, trust_model=trust_model, privacy_unit="a", argument="b")

    values = record_values(guarantee, {"epsilon": 1.0}, 3)
    assert values["epsilon"] == pytest.approx(1 / factor, rel=1e-6)
    mu = guarantee(**values).at_user_level(3, **PERSON).mu
    assert mu is not None
    assert 0.5 * (1 - 1e-6) < mu <= 0.5


def test_nothing_is_claimed_or_divided_without_privacy():
    learner = per_person(bandits.ucb_central(num_arms=3), reports=3)
    assert not learner.guarantee(epsilon=float("inf")).is_private
    assert np.isinf(learner.params(epsilon=float("inf")).epsilon)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: per_person(bandits.ucb),  # pyright: ignore[reportArgumentType]
            "learner must be a Learner, got function",
        ),
        (lambda: per_person(bandits.ucb(num_arms=3), reports=0), "reports must be"),
        (lambda: per_person(bandits.ucb(num_arms=3), rest="sleep"), "rest must be one of best, act"),
        (lambda: per_person(bandits.ucb(num_arms=3)._replace(interface=None)), "learner must declare an interface"),
        (lambda: per_person(per_person(bandits.ucb(num_arms=3))), "learner must use every round"),
        (
            lambda: per_person(contextual.linear_ucb(num_arms=2, dim=2, horizon=12)),
            "learner must not read contexts, .* got linear_ucb",
        ),
        (lambda: per_person(experts.hedge(num_experts=3, horizon=6)), 'rest must be "act" .* hedge'),
        (
            lambda: jaxdp.simulator(per_person(bandits.ucb(num_arms=3)), bandits.bernoulli_bandit(MEANS), 10),
            "environment must have visits",
        ),
        (
            lambda: run_of(per_person(bandits.ucb_central(num_arms=3, release="tree", horizon=600))),
            "the learner's horizon must be the number of heard rounds, 150 of 600, got 600",
        ),
        (
            lambda: jaxdp.simulator(bandits.ucb(num_arms=3), bandits.bernoulli_bandit(MEANS, visits=VISITS), 601),
            "horizon must be <= the environment's 600",
        ),
    ],
)
def test_what_cannot_be_heard_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_joint_claim_is_refused():
    joint = bandits.ucb(num_arms=3)._replace(
        guarantee=lambda *, epsilon: Guarantee.pure(epsilon, trust_model="joint", privacy_unit="a", argument="b")
    )
    learner = per_person(joint)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match="learner must not claim joint privacy"):
            function(epsilon=1.0)


def test_a_horizon_counts_heard_rounds():
    learner = bandits.ucb_central(num_arms=3, release="tree", horizon=VISITS.num_heard(2))
    outputs = run_of(per_person(learner, reports=2))
    assert outputs.guarantee(epsilon=1.0)["learner"].epsilon == 1.0


def test_a_runs_claim_for_a_person_is_not_multiplied_again():
    person = run_of(per_person(bandits.ucb(num_arms=3), reports=2)).guarantee(epsilon=1.0)
    assert {name: str(claim) for name, claim in person.items()} == {"learner": "1-DP, local, one person"}
    plain = run_of(bandits.ucb(num_arms=3)).guarantee(epsilon=1.0)
    assert {name: claim.epsilon for name, claim in plain.items()} == {"learner": 1.0, "person": 4.0}


def test_too_few_heard_rounds_come_with_a_warning():
    world = bandits.bernoulli_bandit(MEANS, visits=VISITS)
    with pytest.warns(UserWarning, match=r"hears 150 of 600 rounds, and needs about 300: give it more people"):
        jaxdp.simulator(per_person(bandits.ucb(num_arms=3)), world, 600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxdp.simulator(per_person(bandits.ucb(num_arms=3), reports=2), world, 600)


def test_reports_that_nobody_gives_come_with_a_warning():
    with pytest.warns(UserWarning, match=r"among 5 reports of a person, and nobody comes more than 4 times"):
        jaxdp.simulator(
            per_person(bandits.ucb(num_arms=3), reports=5), bandits.bernoulli_bandit(MEANS, visits=VISITS), 600
        )


def test_a_claim_for_a_round_comes_with_a_warning_where_people_come_back():
    run = run_of(bandits.ucb(num_arms=3))
    with pytest.warns(
        UserWarning, match=r"1-DP, local, one round.*, is for one round, and a person comes up to 4 times"
    ):
        run.params(epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.params(epsilon=float("inf"))  # nothing is claimed
        run_of(per_person(bandits.ucb(num_arms=3), reports=2)).params(epsilon=1.0)
        run_of(bandits.ucb(num_arms=3), Visits.random(people=600, each=1)).params(epsilon=1.0)


def test_duels_are_heard_by_person():
    visits = Visits.random(people=300, each=4)
    matrix = [[0.5, 0.9, 0.9], [0.1, 0.5, 0.6], [0.1, 0.4, 0.5]]
    run = jaxdp.simulator(
        per_person(dueling.rucb(num_arms=3)), dueling.matrix_duels(matrix, visits=visits), len(visits)
    )
    outputs = run(jax.random.key(0), run.params(epsilon=4.0))
    assert int(outputs["best_duels"][-1]) > 600
