"""Budgets as programs hold them: no central noise is scaled to more than the claimed budget."""

import jax
import numpy as np
import pytest

from jaxdp.core import scalar_leaf
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.registry.mechanisms._releases import budget, for_sensitivity

EPSILONS = (0.3, 9.1)  # float32 rounds both up


def largest_excess(params, epsilon):
    """Returns by how much a leaf that is a budget exceeds epsilon, at most."""
    budgets = [
        np.asarray(leaf, float)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params)
        if "epsilon" in jax.tree_util.keystr(path)
    ]
    return max((float(np.max(budget[np.isfinite(budget)], initial=0.0)) - epsilon for budget in budgets), default=0.0)


def cases():
    entries = {**LEARNERS, **ESTIMATORS}
    return [name for name, entry in entries.items() if "epsilon" in entry.values and not name.endswith("_rr")]


@pytest.mark.parametrize("name", cases())
def test_a_central_budget_is_never_rounded_up(name):
    entry = {**LEARNERS, **ESTIMATORS}[name]
    algorithm = entry.make()
    for epsilon in EPSILONS:
        values = {**entry.values, "epsilon": epsilon}
        try:
            claim = algorithm.guarantee(**values)
        except ValueError:  # this learner takes other budgets only
            continue
        if claim.trust_model == "central":
            assert largest_excess(algorithm.params(**values), epsilon) <= 0


def test_a_budget_rounded_to_nearest_is_seen():
    for epsilon in EPSILONS:
        assert largest_excess({"epsilon": scalar_leaf("epsilon", epsilon)}, epsilon) > 0 or jax.config.read(
            "jax_enable_x64"
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_budgets_of_mechanisms_are_rounded_down_and_sensitivities_up(epsilon):
    assert float(budget(epsilon=epsilon)) <= epsilon
    for sensitivity in (0.3, 0.7):  # float32 rounds the first one up, the second one down
        assert float(for_sensitivity(epsilon=epsilon, sensitivity=sensitivity).bound) >= sensitivity
