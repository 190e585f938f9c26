"""`per_person` around two learners against independent versions in NumPy, in distribution."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, per_person
from jaxdp.core import Visits
from tests.persons import golden

MEANS = [0.5, 0.3, 0.8]
VISITS = Visits.random(people=120, each=4, seed=2)
RATE, REPORTS, EPSILON = 0.5, 2, 4.0
LEARNERS = {"central": bandits.ucb_central, "local": bandits.ucb}


@functools.cache
def reference_plays(name):
    """Returns [lanes, num_arms] plays by the independent version."""
    lanes = 600 if name == "central" else 2000
    options = {"person": VISITS.person.tolist(), "reports": REPORTS, "means": MEANS, "rate": RATE, "lanes": lanes}
    return getattr(golden, name)(np.random.default_rng(0), EPSILON, **options)


def plays(name, reports, epsilon=EPSILON):
    """Returns [lanes, num_arms] plays by the library."""
    learner = per_person(LEARNERS[name](num_arms=3), reports=reports)
    world = bandits.bernoulli_bandit(MEANS, visits=VISITS)

    def feedback(key, params, state, action):
        state, reward, outcome = world.feedback(key, params, state, action)
        return state, reward, {**outcome} | {f"plays_{arm}": action == arm for arm in range(3)}

    run = jaxdp.simulator(learner, world._replace(feedback=feedback), len(VISITS), engine="rounds")
    params = run.params(epsilon=epsilon, exploration_rate=RATE)
    outputs = jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(3), 2000), params)
    return np.asarray(jnp.stack([outputs[f"plays_{arm}"][:, -1] for arm in range(3)], axis=1))


def worst_difference(ours, theirs):
    """Returns the largest difference of means and of shares below quartiles, in standard errors."""
    edges = np.quantile(theirs, [0.25, 0.5, 0.75], axis=0)
    features = [np.concatenate([x, *(x <= edge for edge in edges)], axis=1).astype(float) for x in (ours, theirs)]
    errors = np.sqrt(sum(one.var(0) / len(one) for one in features))
    return np.max(np.abs(features[0].mean(0) - features[1].mean(0)) / np.maximum(errors, 1e-9))


@pytest.mark.filterwarnings("ignore:.* hears ")
@pytest.mark.parametrize("name", LEARNERS)
def test_plays_have_the_independent_versions_distribution(name):
    assert worst_difference(plays(name, REPORTS), reference_plays(name)) < 5


@pytest.mark.filterwarnings("ignore:.* hears ")
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("reports", "epsilon"), [(3, EPSILON), (REPORTS, 2 * EPSILON)], ids=["cap", "budget"])
def test_a_wrong_cap_or_an_undivided_budget_has_another_distribution(name, reports, epsilon):
    assert worst_difference(plays(name, reports, epsilon), reference_plays(name)) > 5
