"""Values of environments: varied by a sweep, held once, and refused before anything compiles."""

import gc
import itertools
import math
import threading
import weakref
from functools import partial

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import (
    bernoulli_bandit,
    bounded_bandit,
    drifting_bandit,
    explore_then_commit,
    gaussian_bandit,
    heavy_tailed_bandit,
)
from jaxdp.core import check_interfaces
from jaxdp.dueling import matrix_duels, switching_duels, utility_duels
from jaxdp.experts import adaptive_losses, exponential_weights, loss_sequence, stochastic_losses
from jaxdp.preferences import cyclic_matrix, lower_bound_matrix, probit, utility_matrix
from jaxdp.registry import LEARNERS
from jaxdp.simulation.run.values import once
from jaxdp.simulation.sweeps.lanes import Program
from tests.lazily import Lazy

KEY = partial(jax.random.key, 41)
FLOAT = jax.dtypes.canonicalize_dtype(float)
MEANS = [0.5, 0.25, 0.125]
MATRIX = lower_bound_matrix(3)
HORIZON, EXPERTS = 400, 5
GRID = [{"epsilon": epsilon} for epsilon in (0.5, 1.0, math.inf)]


# ---- what values make ------------------------------------------------------------------------------------------------
BANDITS = {"gap": 0.125, "best_mean": 0.75}  # gaps of 0, 0.125, 0.1875 below 0.75
MADE = Lazy(
    {
        "bernoulli": lambda: (
            bernoulli_bandit(MEANS),
            BANDITS,
            {"means": [0.75, 0.625, 0.5625], "gaps": [0, 0.125, 0.1875]},
        ),
        "gaussian": lambda: (
            gaussian_bandit(MEANS, stddev=3.0),
            {**BANDITS, "stddev": 0.5},
            {"means": [0.75, 0.625, 0.5625], "gaps": [0, 0.125, 0.1875], "stddev": 0.5},
        ),
        "stochastic": lambda: (
            stochastic_losses([0.25, 0.5, 0.75]),
            {"gap": 0.5, "best_mean": 0.0},
            {"means": [0, 0.5, 1], "gaps": [0, 0.5, 1]},
        ),
        "adaptive": lambda: (
            adaptive_losses(MEANS, penalty=0.1),
            {"penalty": 0.75},
            {"means": MEANS, "penalised": [1, 1, 0.875]},
        ),
        "utility": lambda: (
            utility_duels([1.0, 0.0, -1.0], link=probit),
            {"link_scale": 2.0},
            {
                "preferences": utility_matrix([2.0, 0.0, -2.0], probit),
                "pseudo_regret": np.add.outer([0, 1, 2], [0, 1, 2]),
            },
        ),
        "matrix": lambda: (
            matrix_duels(MATRIX),
            {"gap": 0.125},
            {
                "preferences": [[0.5, 0.625, 0.625], [0.375, 0.5, 0.5], [0.375, 0.5, 0.5]],
                "pseudo_regret": np.add.outer([0, 0.125, 0.125], [0, 0.125, 0.125]),
            },
        ),
        "cycle": lambda: (
            matrix_duels(cyclic_matrix(3, gap=0.125, lead=0.125), regret="borda"),
            {"gap": 0.25},
            {"preferences": [[0.5, 1.0, 0.25], [0.0, 0.5, 0.75], [0.75, 0.25, 0.5]]},
        ),
        "switching": lambda: (
            switching_duels([MATRIX, cyclic_matrix(3, gap=0.125)], [0, 5]),
            {"gap": 0.0625},
            {"starts": [0, 5], "borda_scores": [[0.625, 0.4375, 0.4375]]},
        ),
    }
)


def leaves(params):
    """Returns arrays by name, also of regrets."""
    found = dict(vars(params))
    regrets = found.pop("regrets", {})
    return {**found, **regrets}


@pytest.mark.parametrize("name", MADE)
def test_what_values_make(name):
    environment, values, expected = MADE[name]
    found = leaves(environment.params(**values))
    for field, array in expected.items():
        got = found[field][: len(array)] if field == "borda_scores" else found[field]
        np.testing.assert_allclose(got, array, rtol=1e-6, atol=1e-7, err_msg=field)
    before = leaves(environment.params())
    assert {field: (leaf.shape, leaf.dtype) for field, leaf in found.items()} == {
        field: (leaf.shape, leaf.dtype) for field, leaf in before.items()
    }
    assert any((found[field] != before[field]).any() for field in found)


def test_defaults_are_the_arguments():
    """Not one bit is moved by values that are not given, though 0.1 + 0.2 is not 0.3."""
    means = np.array([0.1 + 0.2, 0.7, 1e-9])
    for make in (bernoulli_bandit, gaussian_bandit):
        found = make(means).params()
        np.testing.assert_array_equal(found.means, means.astype(FLOAT))
        np.testing.assert_array_equal(found.gaps, (means.max() - means).astype(FLOAT))
    found = stochastic_losses(means).params()
    np.testing.assert_array_equal(found.gaps, (means - means.min()).astype(FLOAT))
    matrix = utility_matrix([0.3, 20.0, -30.0])
    for environment in (matrix_duels(matrix), utility_duels([0.3, 20.0, -30.0]), switching_duels([matrix], [0])):
        np.testing.assert_array_equal(environment.params().preferences.reshape(3, 3), matrix.astype(FLOAT))


def test_what_a_value_does_not_move_is_one_object():
    for name, kept in (("adaptive", "means"), ("utility", "pseudo_regret"), ("switching", "starts")):
        environment, values, _ = MADE[name]
        assert leaves(environment.params())[kept] is leaves(environment.params(**values))[kept]


# ---- sweeps ----------------------------------------------------------------------------------------------------------
def test_a_sweep_over_gaps():
    """Compares each point with the run against the environment of that gap, bit for bit."""
    learner = explore_then_commit(num_arms=3, explore_rounds=12)
    run = jaxdp.simulator(learner, bernoulli_bandit([1.0, 0.5, 0.0]), 50, engine="rounds")
    axes = {"epsilon": [0.5, math.inf], "gap": [0.25, 0.5]}
    found = jaxdp.sweep(lambda: run, axes=axes, num_seeds=20, key=KEY(), tile_size=10)
    for gap in axes["gap"]:
        other = jaxdp.simulator(learner, bernoulli_bandit([1.0, 1 - gap, 1 - 2 * gap]), 50, engine="rounds")
        expected = jaxdp.sweep(
            lambda run=other: run, axes={"epsilon": axes["epsilon"]}, num_seeds=20, key=KEY(), tile_size=10
        )
        for name in ("pseudo_regret", "best_arm_plays"):
            np.testing.assert_array_equal(found[name].sel(gap=gap), expected[name])
    assert not np.array_equal(found.pseudo_regret.sel(gap=0.25), found.pseudo_regret.sel(gap=0.5))


def argument_shapes(run, points):
    """Returns the shapes of the arguments of a sweep's compiled program."""
    lowered = Program(run, KEY(), points, 4, jax.devices()[:1])._lowering[1]
    return [leaf.shape for leaf in jax.tree.leaves(lowered.args_info)]


def scaled_sequence(*, of_one_call):
    """Builds a user's environment: losses that a value scales; every call makes them again, or one call for all."""
    losses, plain = np.random.default_rng(0).random((HORIZON, EXPERTS)), loss_sequence(np.ones((HORIZON, EXPERTS)))
    kept = jax.tree.map(np.asarray, loss_sequence(losses).params())

    def params(*, size=1.0):
        return kept if of_one_call else loss_sequence(losses * size).params()

    return plain._replace(params=params)


@pytest.mark.parametrize("of_one_call", [True, False])
def test_a_sweep_over_epsilon_holds_big_arrays_once(of_one_call):
    learner, environment = (
        exponential_weights(num_experts=EXPERTS, horizon=HORIZON),
        scaled_sequence(of_one_call=of_one_call),
    )
    run = jaxdp.simulator(learner, environment, HORIZON)
    for values in ({}, {"size": 0.5}):
        points = [run.params(**point, **values) for point in GRID]
        assert len({id(leaf) for point in points for leaf in jax.tree.leaves(point["environment"])}) == 1
        shapes = argument_shapes(run, points)
        assert shapes.count((HORIZON, EXPERTS)) == 1
        assert max(map(math.prod, shapes)) == HORIZON * EXPERTS
    # Planted: params of each point's own.
    points = [{**run.params(**point), "environment": environment.params()} for point in GRID]
    assert ((len(GRID), HORIZON, EXPERTS) in argument_shapes(run, points)) is not of_one_call


def test_one_program_for_the_default_and_for_a_value():
    """Checks that giving a value changes the arrays' content, and nothing else."""
    run = jaxdp.simulator(explore_then_commit(num_arms=3, explore_rounds=12), bernoulli_bandit(MEANS), 20)
    found = [
        Program(run, KEY(), [run.params(**point, **values) for point in GRID], 4, jax.devices()[:1]).hashes()
        for values in ({}, {"gap": 0.25}, {"gap": 0.125})
    ]
    assert len({each["program"] for each in found}) == 1
    assert found[0]["params"] == found[1]["params"] != found[2]["params"]


def test_problems_of_estimation_are_made_once():
    calls = []
    problem = jaxdp.estimation.gaussian_rewards(num_samples=20, dim=2)

    def params(*, ridge=0.0):
        calls.append(ridge)
        return problem.params(ridge=ridge)

    run = jaxdp.estimation_run({"mine": jaxdp.estimation.mle()}, problem._replace(params=params))
    for radius, ridge in itertools.product((1.0, 2.0), (0.0, 0.5)):
        run.params(radius=radius, ridge=ridge)
    assert calls == [0.0, 0.5]


# ---- once ------------------------------------------------------------------------------------------------------------
def made(**values):
    return object()


def test_one_object_for_the_same_values():
    known = once(made)
    for value in (
        1,
        1.0,
        True,
        np.float32(1),
        "1",
        None,
        0.0,
        -0.0,
        math.nan,
        (1, 2),
        (1.0, 2),
        [1, 2],
        np.ones(3),
        probit,
    ):
        again = np.copy(value) if isinstance(value, np.ndarray) else value
        assert known(value=value) is known(value=again)
    everything = [
        known(value=v) for v in (1, 1.0, True, np.float32(1), "1", 0.0, -0.0, (1, 2), [1, 2], np.ones(2), None)
    ]
    assert len(set(map(id, everything))) == len(everything)
    assert known(a=1, b=2) is known(b=2, a=1) is not known(a=2, b=1)


def test_a_changed_array_is_another():
    known, value = once(made), np.zeros(3)
    before = known(value=value)
    value[0] = 1.0
    assert known(value=value) is not before


def test_values_without_a_hash_are_not_mixed_up():
    known = once(made)
    assert known(value={"a": 1}) is not known(value={"a": 1})
    first, second = (np.ma.array([1.0, 2.0], mask=mask) for mask in ([True, False], [False, True]))
    assert known(value=first) is not known(value=second)


def test_errors_are_not_kept():
    def picky(*, value):
        raise ValueError(f"value must be another, got {value}")

    known = once(picky)
    for _ in range(2):
        with pytest.raises(ValueError, match="value must be another, got 1"):
            known(value=1)


def test_threads_get_one_object():
    barrier, found = threading.Barrier(4), []

    def slow(**values):
        barrier.wait(5)  # all four call
        return object()

    known = once(slow)
    threads = [threading.Thread(target=lambda: found.append(known(value=1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_what_was_made_goes_with_the_run():
    run = jaxdp.simulator(explore_then_commit(num_arms=3, explore_rounds=12), bernoulli_bandit(MEANS), 20)
    means = weakref.ref(run.params(epsilon=1.0, gap=0.1)["environment"].means)
    assert means() is not None
    del run
    gc.collect()
    assert means() is None


# ---- refused ---------------------------------------------------------------------------------------------------------
BAD = {
    "bernoulli": [
        ({"gap": 0.0}, "gap must be > 0, got 0.0"),
        ({"gap": math.nan}, "gap must be > 0, got nan"),
        ({"gap": math.inf}, "gap must be finite, got inf"),
        ({"gap": "wide"}, "gap must be a number, got 'wide'"),
        ({"gap": 0.4}, r"gap and best_mean must leave all means in \[0, 1\], got 0.4 and None"),
        ({"gap": 1e-320}, "gap must be within the range of float"),
        ({"gap": 1.7e308}, "gap must leave all gaps in the range of float64, got 1.7e"),
        ({"best_mean": 1.5}, r"best_mean must be in \[0, 1\], got 1.5"),
        ({"best_mean": 0.1}, r"gap and best_mean must leave all means in \[0, 1\], got None and 0.1"),
    ],
    "gaussian": [
        ({"stddev": 0.0}, "stddev must be > 0, got 0.0"),
        ({"best_mean": math.inf}, "best_mean must be finite, got inf"),
    ],
    "stochastic": [
        ({"gap": 1e-320}, "gap must be within the range of float"),
        ({"gap": 0.5}, r"gap and best_mean must leave all means in \[0, 1\], got 0.5 and None"),
    ],
    "adaptive": [({"penalty": 1.5}, r"penalty must be in \[0, 1\], got 1.5")],
    "utility": [
        ({"link_scale": 0.0}, "link_scale must be > 0, got 0.0"),
        ({"link_scale": 1e308}, "link_scale must leave differences of utilities finite, got 1e"),
        ({"link_scale": 1e-30}, "link_scale must leave the same preferences above 1/2 in float64, got 1e-30"),
    ],
    "matrix": [
        ({"gap": 0.6}, r"gap must leave all preferences in \[0, 1\], got 0.6, which makes the largest 1.1"),
        ({"gap": 1e-30}, "gap must leave the same preferences above 1/2 in float64, got 1e-30"),
    ],
    "switching": [({"gap": -0.1}, "gap must be > 0, got -0.1")],
}


@pytest.mark.parametrize(("name", "values", "message"), [(name, *bad) for name, each in BAD.items() for bad in each])
def test_bad_values(name, values, message):
    with pytest.raises(ValueError, match=message):
        MADE[name][0].params(**values)


def test_no_gap_to_change():
    environments = bernoulli_bandit([0.5, 0.5]), matrix_duels(np.full((2, 2), 0.5), regret="borda")
    for environment in environments:
        with pytest.raises(ValueError, match="gap must be None if all gaps are zero, got 0"):
            environment.params(gap=0.1)


def test_a_grid_is_refused_before_it_compiles(monkeypatch):
    monkeypatch.setattr(jax, "jit", None)
    run = jaxdp.simulator(explore_then_commit(num_arms=3, explore_rounds=12), bernoulli_bandit(MEANS), 20)
    with pytest.raises(ValueError, match="gap must be > 0, got -1"):
        jaxdp.sweep(lambda: run, axes={"epsilon": [1.0], "gap": [0.1, -1.0]}, num_seeds=2, key=KEY())


# ---- names -----------------------------------------------------------------------------------------------------------
def fitting():
    """Returns registered learners, and environments that answer their plays."""
    for (name, entry), (other, its) in itertools.product(LEARNERS.items(), LEARNERS.items()):
        learner, environment = entry.make(), its.make_environment()
        if environment.horizon is not None and environment.horizon < entry.horizon:
            continue
        try:
            check_interfaces(learner.interface, environment.interface)
        except ValueError:
            continue
        yield f"{name} against that of {other}", entry, learner, environment


def test_names_of_fitting_pairs_do_not_clash():
    pairs = list(fitting())
    assert len(pairs) > 2 * len(LEARNERS)
    for _, entry, learner, environment in pairs:
        run = jaxdp.simulator(learner, environment, entry.horizon)
        assert set(run.params(**entry.values)) == {"learner", "environment"}


@pytest.mark.parametrize(
    "make",
    [
        bernoulli_bandit,
        gaussian_bandit,
        bounded_bandit,
        heavy_tailed_bandit,
        drifting_bandit,
        stochastic_losses,
        partial(adaptive_losses, penalty=0.125),
        utility_duels,
    ],
)
def test_worlds_copy_the_array_of_their_caller(make):
    array = np.asarray(MEANS)
    world = make(array)
    before = jax.tree.map(np.array, world.params())
    array[:] = [0.75, 0.125, 0.0]
    jax.tree.map(np.testing.assert_array_equal, before, world.params())


def test_delays_are_copied():
    delays = np.zeros(3, int)
    world = jaxdp.delayed(bernoulli_bandit(MEANS), delays)
    delays[:] = 2
    assert world.delays is not None
    assert world.delays.table(3).tolist() == [0, 0, 0]
