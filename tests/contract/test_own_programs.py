"""Algorithms in a program of one's own: params that a function closes over, as NumPy arrays, take traced indices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.preferences import baseball1987, lower_bound_matrix
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.simulation.run.engines import MAKERS
from jaxdp.simulation.run.rounds import Play, interact, root_keys, round_keys

KEY = jax.random.key(0)
WEIGHTS = jaxdp.experts.exponential_weights(num_experts=3, horizon=6)
# Environments, and arguments of theirs, beside those that the registry plays.
OTHERS = {
    "stochastic_losses": (WEIGHTS, jaxdp.experts.stochastic_losses([0.1, 0.2, 0.3])),
    "loss_sequence": (WEIGHTS, jaxdp.experts.loss_sequence(np.eye(6, 3))),
    "matrix_duels": (jaxdp.dueling.ebs_phased(num_arms=3), jaxdp.dueling.matrix_duels(lower_bound_matrix(3))),
    "gaussian_bandit": (
        jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4, rewards="bounded"),
        jaxdp.bandits.gaussian_bandit([0.0, 1.0]),
    ),
}
PAIRS = {
    name: (entry.make(), entry.make_environment(), entry.values, entry.horizon) for name, entry in LEARNERS.items()
}
PAIRS |= {name: (*pair, {"epsilon": 1.0}, 6) for name, pair in OTHERS.items()}
PROBLEMS = {
    "gaussian_rewards": (jaxdp.estimation.gaussian_rewards(num_samples=9, dim=2), jaxdp.estimation.mle()),
    "plackett_luce_rewards": (
        jaxdp.estimation.plackett_luce_rewards(num_samples=9, num_actions=3, dim=2),
        jaxdp.estimation.plackett_luce_mle(),
    ),
    "comparison_table": (jaxdp.estimation.comparison_table(baseball1987()), jaxdp.estimation.mle()),
}


def every_part(learner, environment, values, horizon):
    """Traces, without compiling, all that the two do in a run, by each engine, with params from outside."""
    params = {"learner": learner.params(**values), "environment": environment.params()}

    def program(key):
        roots = root_keys(*jax.random.split(key))
        state = learner.init(key, params["learner"])
        world = environment.init(key, params["environment"])

        def step(carry, round_):
            keys = round_keys(roots, round_, horizon)
            state, world, events = interact(learner, environment, keys, params, *carry)
            seen = environment.hindsight(params["environment"], world) if environment.hindsight else {}
            return (state, world), (events, seen)

        by_rounds = jax.lax.scan(step, jax.tree.map(jnp.asarray, (state, world)), jnp.arange(horizon, dtype=jnp.int32))[
            1
        ]
        played = []
        for engine in ("blocks", "counts"):
            halves = (
                (learner.blocks, environment.block)
                if engine == "blocks"
                else (learner.counts, environment.feedback_totals)
            )
            there = all(halves)
            for stage in MAKERS[engine](learner, environment, horizon) if there else ():
                play = Play(jnp.zeros((), jnp.result_type(int)), state, world, {}, None, None)
                after = stage.advance(roots, params, play, jnp.asarray(horizon))
                played.append(
                    (after, stage.switch_when(params["learner"], after.state.public) if stage.switch_when else ())
                )
        return by_rounds, played

    return program


@pytest.mark.parametrize("name", PAIRS)
def test_a_learner_and_its_environment(name):
    jax.eval_shape(every_part(*PAIRS[name]), KEY)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator(name):
    entry = ESTIMATORS[name]
    estimator, params = entry.make(), entry.make().params(**entry.values)

    def program(keys):
        def step(carry, key):
            features, labels = entry.make_data(key)
            report = estimator.privatize(key, params, features, labels)
            return carry, estimator.fit(key, params, features, report)

        return jax.lax.scan(step, (), keys)[1]

    jax.eval_shape(program, jax.random.split(KEY, 2))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem(name):
    problem, estimator = PROBLEMS[name]
    params, mine = problem.params(), estimator.params(radius=1.0)

    def program(keys):
        def step(carry, key):
            sample = problem.sample(key, params)
            estimate = estimator.fit(key, mine, sample.features, sample.labels)
            return carry, problem.metrics(params, sample, estimate)

        return jax.lax.scan(step, (), keys)[1]

    jax.eval_shape(program, jax.random.split(KEY, 2))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism(name):
    entry = MECHANISMS[name]
    made = entry.make()
    params = made.params(**entry.values)

    def program(keys, data):
        return jax.lax.scan(lambda carry, key: (carry, made.release(key, params, data)), (), keys)[1]

    jax.eval_shape(program, jax.random.split(KEY, 2), jnp.asarray(entry.make_neighbours()[0]))
