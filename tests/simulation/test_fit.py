"""Mismatches are refused before anything is compiled: errors name the argument, the rule and the value."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import explore_then_commit, gaussian_bandit
from jaxdp.core import State
from jaxdp.experts import exponential_weights, loss_sequence, stochastic_losses
from jaxdp.simulation import log_spaced, simulator
from tests.simulation.learners import linear_bandit, stay_or_switch, successive_elimination
from tests.simulation.refusals import BANDIT, LEARNER, refused
from tests.simulation.worlds import linear_rewards, paid


def undeclared(thing):
    return thing._replace(interface=None)


@pytest.mark.parametrize("engine", ["rounds", "blocks"])
def test_checks_and_loops_share_one_trace_of_each_function(engine):
    learner, environment, calls = LEARNER(), BANDIT(), []

    def counted(function):
        def call(*arguments):
            calls.append(function)
            return function(*arguments)

        return call

    rounds = {name: counted(getattr(learner, name)) for name in ("act", "privatize", "update")}
    blocks = tuple(part._replace(update_block=counted(part.update_block)) for part in learner.blocks)
    world = environment._replace(feedback=counted(environment.feedback))
    run = simulator(learner._replace(blocks=blocks, **rounds), world, 8, checkpoints=[3, 8], engine=engine)
    jax.eval_shape(jax.vmap(run, (0, None)), jax.random.split(jax.random.key(0), 2), run.params(epsilon=1.0))
    assert len(calls) == len(set(calls)) == (4 if engine == "rounds" else 5)


# ---- interfaces ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("learner", "environment", "message"),
    [
        (
            lambda: explore_then_commit(num_arms=3, explore_rounds=3),
            BANDIT,
            "action must be the same for learner and environment, got integers in [0, 2] and integers in [0, 1]",
        ),
        (
            LEARNER,
            lambda: gaussian_bandit([0.1, 0.2]),
            "feedback must be the same for learner and environment, got integers in [0, 1] and numbers in [-inf, inf]",
        ),
        (
            lambda: exponential_weights(num_experts=3, horizon=10),
            lambda: stochastic_losses([0.1, 0.2]),
            "action must be the same for learner and environment, got integers in [0, 2] and integers in [0, 1]",
        ),
        (
            lambda: exponential_weights(num_experts=2, horizon=10),
            BANDIT,
            "feedback must be the same for learner and environment, got numbers in [0, 1] of shape (2,) and integers",
        ),
        (
            lambda: linear_bandit(num_arms=2, dim=3),
            lambda: linear_rewards([0.1, 0.2], num_arms=2),
            "context must be the same for learner and environment, got numbers in [-inf, inf] of shape (2, 3) and",
        ),
        (
            lambda: explore_then_commit(num_arms=2, explore_rounds=4, rewards="bounded"),
            lambda: linear_rewards([0.1, 0.2], num_arms=2),
            "context must be the same for learner and environment, got None and numbers in [-1, 1] of shape (2, 2)",
        ),
    ],
)
def test_declared_interfaces_differ(learner, environment, message):
    refused(message, learner(), environment())


@pytest.mark.parametrize(
    ("learner", "environment", "message"),
    [
        (
            lambda: undeclared(LEARNER()),
            lambda: stochastic_losses([0.1] * 3),
            "but the learner's update does not accept its arguments",
        ),
        (
            lambda: undeclared(exponential_weights(num_experts=3, horizon=10)),
            lambda: stochastic_losses([0.1] * 5),
            "the learner's update",
        ),
        (
            lambda: undeclared(linear_bandit(num_arms=2, dim=3)),
            lambda: linear_rewards([0.1] * 2, num_arms=2),
            "the learner's act",
        ),
        (lambda: undeclared(linear_bandit(num_arms=2, dim=3)), lambda: gaussian_bandit([0.1] * 2), "the learner's act"),
        (
            lambda: LEARNER()._replace(act=lambda key, params, public, context: {"arm": jnp.int32(0)}, interface=None),
            lambda: undeclared(BANDIT()),
            "the environment's feedback does not accept its arguments",
        ),
    ],
)
def test_functions_do_not_fit(learner, environment, message):
    refused("learner and environment must fit, but", learner(), environment())
    refused(message, learner(), environment())


def test_an_init_that_swaps_its_arguments_is_named():
    swapped = LEARNER()._replace(init=lambda params, key: State((), params.scale * 0))
    refused("the learner's init must take (key, params), but does not accept its arguments", swapped, BANDIT())
    swapped = BANDIT()._replace(init=lambda params, key, more: ())
    refused("the environment's init must take (key, params), but does not", LEARNER(), swapped)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"act": lambda key, params, public, context: jnp.float32(0)},
            "action must be integers in [0, 1], as the learner",
        ),
        ({"act": lambda key, params, public, context: jnp.zeros(2, jnp.int32)}, "got int32 of shape (2,)"),
    ],
)
def test_actions_are_not_as_declared(change, message):
    environment = paid(1.0)  # takes anything
    refused(message, LEARNER()._replace(**change), environment)


def test_feedback_is_not_as_declared():
    environment = BANDIT()._replace(feedback=lambda key, params, world, action: (world, jnp.zeros(3), {"loss": 1.0}))
    refused("feedback must be integers in [0, 1], as the learner declares, got float", LEARNER(), environment)
    refused("feedback must be integers in [0, 1], as the environment declares", undeclared(LEARNER()), environment)


# ---- states ----------------------------------------------------------------------------------------------------------
def test_the_state_is_no_state():
    refused(
        "init must return a State(private, public), got tuple",
        LEARNER()._replace(init=lambda key, params: tuple(LEARNER().init(key, params))),
    )
    refused(
        "the result of the learner's init must be a pytree of numbers and arrays, got an instance of str",
        LEARNER()._replace(init=lambda key, params: LEARNER().init(key, params)._replace(private="abc")),
    )


def updated(change):
    return LEARNER()._replace(update=lambda *arguments: change(LEARNER().update(*arguments)))


def test_the_state_changes_its_structure():
    refused(
        "the learner's update must keep the structure of the state",
        updated(lambda state: State(state.private, (state.public, 1.0))),
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            lambda public: public._replace(best_arm=public.best_arm.astype(jnp.int8)),
            "int32[] and then int8[] at .public",
        ),
        (
            lambda public: public._replace(best_arm=public.best_arm[None]),
            "int32[] and then int32[1] at .public.best_arm",
        ),
    ],
)
def test_the_state_changes_a_dtype_or_a_shape(change, found):
    refused(
        f"the learner's update must keep shapes and dtypes of the state, got {found}",
        updated(lambda state: State(state.private, change(state.public))),
    )


def test_a_state_of_python_numbers_is_checked_too():
    learner = stay_or_switch(num_arms=2)._replace(
        init=lambda key, params: State((), 0), update=lambda key, params, state, report: State((), state.public + 0.5)
    )
    refused("the learner's update must keep shapes and dtypes of the state, got int", undeclared(learner))


def test_the_world_changes():
    environment = BANDIT()._replace(
        init=lambda key, params: jnp.int32(0),
        feedback=lambda key, params, world, action: (world.astype(jnp.int8), jnp.int32(0), {"loss": 1.0}),
        block=None,
        feedback_totals=None,
    )
    refused(
        "the environment's feedback must keep shapes and dtypes of the world, got int32[] and then int8[]",
        environment=environment,
    )


def test_done_is_not_one_truth_value():
    learner = successive_elimination(num_arms=2)
    many = learner._replace(done=lambda params, public: public.active)
    refused("done must return one truth value, got bool of shape (2,)", many)
    number = learner._replace(done=lambda params, public: public.position)
    refused("done must return one truth value, got int", number)
    pair = learner._replace(done=lambda params, public: (True, False))
    refused("done must return one truth value, got (bool of shape (), bool of shape ())", pair)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda world, feedback, outcome: (world, feedback), "((), int32 of shape ())"),
        (lambda world, feedback, outcome: (world, feedback, outcome["paid"]), "((), int32 of shape (), float"),
    ],
)
def test_feedback_returns_other_values(change, found):
    right = paid(1.0)
    wrong = right._replace(feedback=lambda *arguments: change(*right.feedback(*arguments)))
    refused(
        f"the environment's feedback must return a tuple (world, feedback, dict of outcomes), got {found}",
        environment=wrong,
    )


def test_outcomes_are_scalars():
    message = "outcomes must be real scalars, got"
    refused(f"{message} float32 of shape (3,) for paid", environment=paid(np.ones(3, np.float32)))
    refused(f"{message} complex64 of shape () for paid", environment=paid(np.complex64(1 + 2j)))


# ---- horizons and checkpoints ----------------------------------------------------------------------------------------
def test_horizons():
    refused(
        "horizon must be the learner's 100, got 10",
        exponential_weights(num_experts=2, horizon=100),
        stochastic_losses([0.1, 0.2]),
    )
    losses = loss_sequence(np.zeros((5, 2)))
    refused("horizon must be <= the environment's 5, got 10", exponential_weights(num_experts=2, horizon=10), losses)
    for horizon in (0, -3, 2.5, math.nan, math.inf, True, "10"):
        refused(f"horizon must be an integer >= 1, got {horizon!r}", horizon=horizon)


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        ([3, 3], "checkpoints must be increasing, got [3, 3]"),
        ([5, 2], "checkpoints must be increasing, got [5, 2]"),
        ([], "checkpoints must have at least one round, got none"),
        ([0, 2], "checkpoints must be an integer >= 1, got 0"),
        ([1.5, 2], "checkpoints must be an integer >= 1, got 1.5"),
        ([1, math.nan], "checkpoints must be an integer >= 1, got nan"),
        ([2, 11], "checkpoints must be within the horizon 10, got 11"),
        (np.array([2, 11]), "checkpoints must be within the horizon 10, got 11"),
        (0, "checkpoints must be an integer >= 1, got 0"),
        (2.5, "checkpoints must be an integer >= 1, got 2.5"),
        (True, "checkpoints must be an integer >= 1, got True"),
        ("5", "checkpoints must be an integer >= 1, got '5'"),
        ([[1, 2]], "checkpoints must be an integer >= 1, got [1, 2]"),
    ],
)
def test_checkpoints(checkpoints, message):
    refused(message, checkpoints=checkpoints)


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan])
def test_log_spaced(count):
    with pytest.raises(ValueError, match=f"count must be an integer >= 1, got {count}"):
        log_spaced(count)


# ---- names -----------------------------------------------------------------------------------------------------------
def test_values_of_one_name():
    clash = BANDIT()._replace(params=lambda *, epsilon, gap=0.1: BANDIT().params())
    refused("names of learner's and environment's values must differ, got epsilon in both", environment=clash)


@pytest.mark.parametrize("name", ["pseudo_regret", "best_arm_plays"])
def test_a_summary_or_a_record_with_the_name_of_an_outcome(name):
    message = (
        f"names of outcomes, metrics in hindsight, evaluated recommendations and records must differ, got {name} twice"
    )
    refused(message, record={name: lambda snapshot: snapshot.public.round})
    refused(message, environment=BANDIT()._replace(hindsight=lambda params, world: {name: jnp.int32(0)}))


def test_a_record_with_the_name_of_a_summary():
    refused(
        "names of outcomes, metrics in hindsight, evaluated recommendations and records must differ, got best twice",
        environment=BANDIT()._replace(hindsight=lambda params, world: {"best": jnp.int32(0)}),
        record={"best": lambda snapshot: snapshot.public.round},
    )


@pytest.mark.parametrize("name", ["pseudo_regret", "mine"])
def test_a_record_with_the_name_of_what_is_read_at_the_stop(name):
    refused(
        f"names must not be the name of another output followed by _at_stop, got {name}_at_stop",
        record={each: lambda snapshot: snapshot.public.round for each in {"mine", f"{name}_at_stop"}},
    )


@pytest.mark.parametrize("name", ["rounds", "censored"])
def test_a_record_with_the_name_of_the_stopping_time(name):
    refused(
        f"names of outcomes, metrics in hindsight, evaluated recommendations and records must differ, got {name} twice",
        successive_elimination(num_arms=2),
        record={name: lambda snapshot: snapshot.public.position},
    )


# ---- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("of", ["params", "guarantee"])
def test_unknown_and_missing_values(of):
    function = getattr(simulator(LEARNER(), BANDIT(), 10), of)
    with pytest.raises(ValueError, match="values must be among best_mean, epsilon, gap, got delta"):
        function(epsilon=1.0, delta=0.1)
    with pytest.raises(
        ValueError, match="values must have epsilon, which the learner explore_then_commit needs, got none"
    ):
        function()
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"epsilon must be > 0, got {epsilon}"):
            function(epsilon=epsilon)


def test_values_of_the_environment():
    environment = BANDIT()._replace(params=lambda *, gap: BANDIT().params())
    run = simulator(LEARNER(), environment, 10)
    with pytest.raises(
        ValueError, match="values must have gap, which the environment bernoulli_bandit needs, got epsilon"
    ):
        run.params(epsilon=1.0)
    assert set(run.params(epsilon=1.0, gap=0.1)) == {"learner", "environment"}
