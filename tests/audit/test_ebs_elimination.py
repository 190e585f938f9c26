"""What the counters of elimination by effective Borda scores noise, and mistakes in their noise."""

import dataclasses

import jax
import pytest

from jaxdp import registry
from jaxdp.audit import by_pair, grey_box
from jaxdp.dueling import ebs_elimination
from tests.few import few

pytestmark = pytest.mark.once


def look(learner, values, name, rounds, change=lambda params: params, bases=3):
    def params(**given):
        return change(learner.params(**given))

    return grey_box(
        jax.random.key(0),
        learner._replace(params=params),
        values,
        registry.LEARNERS[name].draw_user,
        rounds=rounds,
        answer=by_pair,
        num_bases=bases,
        num_neighbours=64,
    )


def test_counters_at_the_whole_budget():
    """An outcome and its negative cost the budget each; at half of it (the registered learner) they do not."""
    entry = registry.LEARNERS["ebs_elimination"]

    def change(params):
        node = params.noise
        return dataclasses.replace(params, noise=dataclasses.replace(node, epsilon=2 * node.epsilon))

    found = look(entry.make(), entry.values, "ebs_elimination", 10, change, bases=6)
    assert found.verdict == "violated"
    assert found.spent == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("wrong", few([False, True], [True]))
def test_noise_for_one_level(wrong):
    """Binary trees: four entries of an arm end three levels."""
    learner = ebs_elimination(num_arms=3, horizon=16, arity=2)

    def change(params):
        node = params.noise
        moved = node.l1_sensitivity / node.l1_sensitivity.dtype.type(5) if wrong else node.l1_sensitivity
        return dataclasses.replace(params, noise=dataclasses.replace(node, l1_sensitivity=moved))

    found = look(learner, {"epsilon": 1.0}, "ebs_elimination", 10, change)
    assert found.verdict == ("violated" if wrong else "consistent")
    assert found.spent == pytest.approx(1.5 if wrong else 0.3, rel=1e-4)
