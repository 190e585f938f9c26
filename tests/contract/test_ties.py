"""Results do not depend on the order in which arms or experts are listed, where exact ties are frequent.

A problem and the same with its arms in reverse order give the same distribution of regret and of recommendations.
Horizons are multiples of sweeps: arms that take turns do so in the order of their numbers, by definition.
"""

import math
import operator
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Space
from jaxdp.preferences import utility_matrix
from jaxdp.random import ties
from jaxdp.registry import LEARNERS

LANES = 4000
STANDARD_ERRORS = 5
RESULTS = {"pseudo_regret", "correct", "simple_regret"}
# Arms take turns: two arms, and so many rounds that both have as many turns.
IN_TURN = (
    "ebs_phased",
    "ebs_shuffle",
    "g_optimal_elimination",
    "pairwise_elimination",
    "pairwise_elimination_central",
    *(name for name in LEARNERS if name.startswith("successive_elimination")),
)
ROUNDS = 24
# Their actions are not arms that could be listed in another order: points of a set, or arms that are drawn each time.
WITHOUT_ARMS = {name for name, entry in LEARNERS.items() if entry.family in ("convex bandits", "contextual bandits")}
NAMES = [name for name in LEARNERS if name not in WITHOUT_ARMS]
DECIDED_BY_TIES = [
    *("explore_then_commit", "ucb", "lil_ucb", "successive_elimination", "limited_updates", "ebs_local"),
    *("g_optimal_elimination", "noisy_argmax"),
]


def entry_of(name):
    """Returns the registered entry, at sizes at which arms have equally many turns."""
    entry = LEARNERS[name]
    if entry.family == "experts":
        return entry
    return entry.sized(num_arms=2 if name in IN_TURN else 3, horizon=ROUNDS)


def bandit(means, learner):
    """Builds rewards of 0 or 1, as floats where the learner takes numbers."""
    world = jaxdp.bandits.bernoulli_bandit(means)
    if learner.interface.feedback.kind == "integers":
        return world

    def feedback(key, params, state, action):
        state, reward, outcome = world.feedback(key, params, state, action)
        return state, reward.astype(float), outcome

    assert world.interface is not None
    interface = world.interface._replace(feedback=Space("numbers"))
    return world._replace(feedback=feedback, block=None, feedback_totals=None, interface=interface)


def problems(name):
    """Builds a problem for an entry, and one with its arms in reverse order: two runs and the point of each."""
    entry = entry_of(name)
    learners = [entry.make()] * 2
    means = np.linspace(0.8, 0.5, entry.sizes.get("num_arms", entry.sizes.get("num_experts")))
    if name == "g_optimal_elimination":
        arms = np.stack([means, 1 - means], axis=1)
        learners = [jaxdp.dueling.g_optimal_elimination(features=each) for each in (arms, arms[::-1])]
        worlds = [jaxdp.dueling.linear_duels(each, [0.9, 0.0]) for each in (arms, arms[::-1])]
    elif entry.family == "bandits":
        worlds = [bandit(each, learners[0]) for each in (means, means[::-1])]
    elif entry.family == "dueling":
        matrix = utility_matrix(4 * means)
        worlds = [jaxdp.dueling.matrix_duels(each) for each in (matrix, matrix[::-1, ::-1])]
    else:
        worlds = [jaxdp.experts.stochastic_losses(1 - each) for each in (means, means[::-1])]
    looks = [entry.horizon // 2, entry.horizon]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # horizons are short
        runs = [
            jaxdp.simulator(learner, world, entry.horizon, checkpoints=looks)
            for learner, world in zip(learners, worlds, strict=True)
        ]
    values = {name: math.inf if name == "epsilon" else value for name, value in entry.values.items()}
    points = [run.params(**values) for run in runs]
    return (runs if name == "g_optimal_elimination" else runs[:1] * 2), points


def apart(name, lanes=LANES):
    """Returns, for each result, the largest difference of means between the two problems, in standard errors."""
    (run, other_run), points = problems(name)
    keys = jax.random.split(jax.random.key(61), (2, lanes))
    if run is other_run:  # one program
        both = jax.jit(jax.vmap(jax.vmap(run, (0, None))))(keys, jax.tree.map(lambda *each: np.stack(each), *points))
        one, other = (jax.tree.map(operator.itemgetter(side), dict(both)) for side in (0, 1))
    else:
        one, other = (
            jax.jit(jax.vmap(run, (0, None)))(*given)
            for run, given in zip((run, other_run), zip(keys, points, strict=True), strict=True)
        )
    scores = {}
    for result in RESULTS & set(one):
        first, second = (np.asarray(each[result], float) for each in (one, other))
        error = np.sqrt((first.var(0) + second.var(0)) / lanes)
        scores[result] = float(np.max(np.abs(first.mean(0) - second.mean(0)) / np.maximum(error, 1e-9)))
    return scores


@pytest.mark.parametrize("name", NAMES)
def test_results_do_not_depend_on_the_order_of_arms(name):
    assert max(apart(name).values()) < STANDARD_ERRORS


@pytest.fixture
def lower_index_wins(monkeypatch):
    """Plants the mistake; mechanisms are traced once, so that JAX must forget their traces without it and with it."""
    monkeypatch.setattr(ties, "ranks", lambda word, size: jnp.zeros(size, jnp.int32))
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("lower_index_wins")
@pytest.mark.parametrize("name", DECIDED_BY_TIES)
def test_ties_that_go_to_the_lower_index_are_noticed(name):
    assert max(apart(name, 3 * LANES).values()) > STANDARD_ERRORS


def test_every_learner_is_tried_or_has_a_reason():
    assert {*NAMES, *WITHOUT_ARMS} == set(LEARNERS)
    assert set(DECIDED_BY_TIES) <= set(NAMES)
