"""Every registered bandit, duel and expert learner hears people, or is refused by name."""

import warnings

import jax
import pytest

import jaxdp
from jaxdp import per_person
from jaxdp.core import Visits, add_visits
from jaxdp.registry import LEARNERS

REPORTS = 2
CONTEXTUAL = {name for name, entry in LEARNERS.items() if entry.family == "contextual bandits"}


def test_some_learners_are_contextual():
    assert {"linear_ucb", "linear_ucb_joint", "generalized_linear"} <= CONTEXTUAL < set(LEARNERS)


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_it_hears_people_or_is_refused(name):
    entry = LEARNERS[name]
    learner = entry.make()
    if name in CONTEXTUAL:
        with pytest.raises(ValueError, match=r"learner must not read contexts, .*" + entry.made_by.name):
            per_person(learner, rest="act")
        return
    rest, interface = "act", learner.interface
    assert interface is not None
    if learner.best_action is not None or (learner.recommend and interface.action == interface.recommendation):
        rest = "best"
    heard = learner.horizon or entry.horizon
    visits = Visits.random(people=heard // REPORTS, each=2 * REPORTS)
    if visits.num_heard(REPORTS) != heard:  # an odd horizon: one more person, who comes once
        visits = Visits.from_ids([*visits.person.tolist(), visits.num_people])
    person = per_person(learner, reports=REPORTS, rest=rest)
    environment = add_visits(entry.make_environment()._replace(horizon=None), visits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = jaxdp.simulator(person, environment, len(visits))
        outputs = jax.eval_shape(run, jax.random.key(0), run.params(**entry.values))
    assert "pseudo_regret" in outputs or "loss" in outputs
    asked, claim = learner.guarantee(**entry.values), run.guarantee(**entry.values)["learner"]
    assert (claim.kind, claim.epsilon, claim.delta, claim.rho) == (asked.kind, asked.epsilon, asked.delta, asked.rho)
    assert claim.unit == "person"
