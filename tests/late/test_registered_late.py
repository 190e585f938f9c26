"""Every registered bandit, duel and expert learner hears late feedback, or is refused by name."""

import warnings

import jax
import pytest

import jaxdp
from jaxdp.core import Visits, add_visits
from jaxdp.persons import with_unit
from jaxdp.registry import LEARNERS

CONTEXTS = {name for name, entry in LEARNERS.items() if entry.family == "contextual bandits"}
POINTS = {name for name, entry in LEARNERS.items() if entry.family == "convex bandits"}


def test_some_learners_have_contexts_or_play_points():
    assert {"linear_ucb", "linear_ucb_joint"} <= CONTEXTS
    assert POINTS


@pytest.mark.parametrize("unit", ["round", "person"])
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_it_hears_late_feedback_or_is_refused(name, unit):
    entry = LEARNERS[name]
    learner = entry.make()
    horizon, environment = learner.horizon or entry.horizon, entry.make_environment()
    if unit == "person" and name not in CONTEXTS:
        visits = Visits.random(people=horizon, each=2)
        learner, environment = with_unit(learner, "person"), add_visits(environment._replace(horizon=None), visits)
        horizon = len(visits)
    world = jaxdp.delayed(environment, 2)

    def build():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = jaxdp.simulator(learner, world, horizon)
            return run, run.params(**entry.values)

    if name in CONTEXTS | POINTS or learner.guarantee(**entry.values).trust_model not in ("local", "central"):
        with pytest.raises(ValueError, match=f"late feedback, got .*{entry.made_by.name}|late feedback, got .*-DP"):
            build()
        return
    run, params = build()
    outputs = jax.eval_shape(run, jax.random.key(0), params)
    assert "pseudo_regret" in outputs or "loss" in outputs
    claim = run.guarantee(**entry.values)["learner"]
    assert claim == learner.guarantee(**entry.values)
    assert claim.unit == {"round": "record", "person": "person"}[unit]
