"""Sweeps: results do not depend on scheduling, and labels, provenance and errors are as documented."""

import dataclasses
import functools
import json
import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.core import scalar_leaf
from jaxdp.estimation import (
    gaussian_rewards,
    mle,
    objective_perturbation,
    sgd,
    sgd_objective_perturbation,
    sgd_rr,
)
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.run.stacking import stack_params
from jaxdp.simulation.sweeps.executables import EXECUTABLES
from jaxdp.validation import check_epsilon
from tests.events import durations_of
from tests.lazily import Lazy

DIM = 3
CLAIM = jaxdp.Guarantee.pure(0.5, trust_model="local", privacy_unit="one label", argument="for a test")


def filter_run(*, dim=DIM, traces=None, dims=None, coords=None):
    """Builds a random walk on softmax weights, and a Cholesky solve: sensitive to how lanes are vectorised."""

    def simulate(key, params):
        if traces is not None:
            traces.append(dim)

        def step(carry, key):
            scores, precision = carry
            draw = jax.random.normal(key, (dim,))
            precision = precision + draw[:, None] * draw[None, :]
            factor = jax.scipy.linalg.cho_factor(precision)
            return (scores + jax.scipy.linalg.cho_solve(factor, draw), precision), None

        start = (jnp.zeros(dim), jnp.eye(dim))
        (scores, precision), _ = jax.lax.scan(step, start, jax.random.split(key, 10))
        weights = jax.nn.softmax(params["epsilon"].astype(scores.dtype) * scores)
        return {"weights": weights, "trace": jnp.trace(precision)}

    def params(*, epsilon, name="none"):
        return {"epsilon": np.asarray(check_epsilon(epsilon)), "length": np.asarray(len(name))}

    return Run(
        simulate=simulate,
        params=params,
        guarantee=lambda **values: {"walk": CLAIM},
        dims={"weights": ("item",), "trace": ()} if dims is None else dims,
        coords={"item": [10 * i for i in range(dim)]} if coords is None else coords,
    )


def estimators_run():
    estimators = {"local": sgd_rr(), "central": objective_perturbation()}
    return jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=30, dim=2))


FILTER = functools.cache(
    lambda: {"axes": {"epsilon": [3.0, 0.5, 1.0]}, "num_seeds": 7, "tile_size": 4, "key": jax.random.key(0)}
)
ESTIMATION = functools.cache(lambda: {**FILTER(), "axes": {"epsilon": [0.5, math.inf], "delta": [1e-3]}})


@pytest.mark.optimised
@pytest.mark.parametrize(
    ("build", "arguments"), [(filter_run, FILTER), (estimators_run, ESTIMATION)], ids=["filter", "estimation"]
)
def test_bit_identical_for_every_chunk(build, arguments):
    """Uses 21 or 14 lanes in tiles of 4: the last tile is padded."""
    expected = sweep(build, **arguments(), chunk_size=1)
    assert not any(np.isnan(values).any() for values in expected.values())
    for chunk_size in [2, 5, 100]:
        assert sweep(build, **arguments(), chunk_size=chunk_size).identical(expected)


@pytest.mark.optimised
def test_a_seeds_result_does_not_depend_on_the_other_lanes():
    """Uses tiles of one size: the key is a function of the seed's index. Another key gives other results."""
    seven = sweep(filter_run, **FILTER())
    for changed in [{"num_seeds": 3}, {"tile_size": 16}, {"axes": {"epsilon": [1.0, 3.0, 0.5]}}]:
        other = sweep(filter_run, **{**FILTER(), **changed})
        xr.testing.assert_allclose(
            other.reindex_like(seven.isel(seed=other.seed)), seven.isel(seed=other.seed), rtol=1e-5
        )
    other = sweep(filter_run, **{**FILTER(), "key": jax.random.key(1)})
    assert np.all(np.abs(other.trace - seven.trace) > 1e-4)


@pytest.mark.optimised
def test_a_lane_is_the_run_at_its_key():
    results, run = sweep(filter_run, **FILTER()), filter_run()
    outputs = run(jax.random.fold_in(FILTER()["key"], 5), run.params(epsilon=0.5))
    np.testing.assert_allclose(results.weights.sel(epsilon=0.5, seed=5), outputs["weights"], rtol=1e-5)
    assert len(np.unique(results.trace.sel(epsilon=0.5))) == FILTER()["num_seeds"]


@pytest.mark.optimised
def test_every_epsilon_meets_the_same_data():
    """Checks one grid point in the tile: the non-private estimate is the same bit for bit, the private ones differ."""
    axes = {"epsilon": [0.5, 2.0, math.inf], "delta": [1e-3]}
    estimators = {"clear": mle(), "local": sgd_rr(), "central": objective_perturbation()}
    run = jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=30, dim=2))
    results = sweep(lambda: run, axes=axes, num_seeds=4, tile_size=4, key=jax.random.key(0))
    errors = results.l2_error.squeeze("delta")
    clear = errors.sel(estimator="clear")
    assert (clear == clear.isel(epsilon=0)).all()
    # What gets noise is added up with more care than a sum of exact labels.
    np.testing.assert_allclose(errors.sel(estimator="central", epsilon=math.inf), clear.isel(epsilon=0), rtol=1e-4)
    for name in ["local", "central"]:
        assert (errors.sel(estimator=name, epsilon=0.5) != clear.isel(epsilon=0)).all()


def test_unsorted_static_axes_of_strings_and_numbers():
    """Checks that every value lands at its own coordinates."""

    def build(*, kind, size):
        def simulate(key, params):
            del key
            return {"code": jnp.int32(100 * len(kind) + size) + params["length"].astype(jnp.int32)}

        return Run(
            simulate=simulate, params=filter_run().params, guarantee=lambda **_: {}, dims={"code": ()}, coords={}
        )

    static_axes = {"kind": ["bb", "a", "cccc"], "size": [30, 10, 20]}
    axes = {"name": ["zz", "y"], "epsilon": [2.0, 1.0]}
    results = sweep(build, axes=axes, static_axes=static_axes, num_seeds=2, key=jax.random.key(0), tile_size=4)
    assert results.code.dims == ("kind", "size", "name", "epsilon", "seed")
    assert results.code.dtype == np.int32
    for name, values in {**static_axes, **axes}.items():
        assert results[name].values.tolist() == values
    for kind, size, name in [("bb", 30, "zz"), ("a", 20, "y"), ("cccc", 10, "zz")]:
        code = results.code.sel(kind=kind, size=size, name=name)
        assert (code == 100 * len(kind) + size + len(name)).all()


def test_dimensions_of_the_run_keep_their_coordinates():
    results = sweep(filter_run, **FILTER())
    assert results.weights.dims == ("epsilon", "seed", "item")
    assert results.item.values.tolist() == [0, 10, 20]
    np.testing.assert_allclose(results.weights.sum("item"), 1, rtol=1e-5)


def test_provenance():
    axes, key = {"epsilon": [0.5, math.inf], "delta": [1e-3]}, jax.random.key(17)

    def build(num_samples):
        estimators = {"clear": sgd(), "local": sgd_rr(), "central": sgd_objective_perturbation()}
        return jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=num_samples, dim=2))

    results = sweep(build, axes=axes, static_axes={"num_samples": [8, 5]}, num_seeds=2, key=key, tile_size=3)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads(results.attrs["provenance"], parse_constant=refuse)
    assert record["versions"]["jax"] == jax.__version__
    assert {"jaxdp", "jax", "jaxlib", "numpy", "optax", "scipy", "python"} <= set(record["versions"])
    assert record["devices"]
    assert record["x64"] == bool(jax.config.read("jax_enable_x64"))
    assert (record["num_seeds"], record["tile_size"]) == (2, 3)
    data = jnp.asarray(record["key"]["data"], jnp.uint32)
    assert jax.random.wrap_key_data(data, impl=record["key"]["impl"]) == key
    assert [program["static"] for program in record["programs"]] == [{"num_samples": 8}, {"num_samples": 5}]
    for program in record["programs"]:
        finite, infinite = program["points"]
        assert finite["values"] == {"epsilon": 0.5, "delta": 1e-3}
        assert infinite["values"]["epsilon"] == "inf"
        local, central, clear = (finite["guarantees"][name] for name in ["local", "central", "clear"])
        assert (local["epsilon"], local["delta"], local["trust_model"]) == (0.5, 0.0, "local")
        assert (central["epsilon"], central["delta"], central["trust_model"]) == (0.5, 1e-3, "central")
        assert clear["epsilon"] == "inf"
        assert infinite["guarantees"]["local"]["epsilon"] == "inf"
        noise = {path: value for path, value in finite["params"].items() if "central" in path and "noise" in path}
        expected = objective_perturbation().params(epsilon=0.5, delta=1e-3).noise_multiplier
        assert list(noise.values()) == [pytest.approx(float(expected))]


def test_one_compilation_for_each_static_point():
    """Checks any number of chunks, and of grid points that share it."""

    def build(num_arms):
        learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=4 * num_arms)
        return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit(np.linspace(0.2, 0.8, num_arms)), 30)

    def run(chunk_size):
        axes, static_axes = {"epsilon": [1.0, 2.0, math.inf]}, {"num_arms": [2, 3]}
        key = jax.random.key(0)
        EXECUTABLES.clear()
        with durations_of("backend_compile_duration") as compiled:
            sweep(build, axes=axes, static_axes=static_axes, num_seeds=6, key=key, tile_size=4, chunk_size=chunk_size)
        return len(compiled)

    run(1)  # what compiles once in a process is compiled now
    assert [run(chunk_size) for chunk_size in (1, 100)] == [2, 2]


def test_one_program_for_all_values_and_one_for_each_static_point():
    """Checks that each run is traced once, for any grid, for its outputs' shapes and to be compiled."""
    for epsilons in [[1.0], [1.0, 0.5, 0.1, math.inf]]:
        traces = []
        sweep(
            lambda dim, traces=traces: filter_run(dim=dim, traces=traces, coords={}),
            axes={"epsilon": epsilons},
            static_axes={"dim": [2]},
            num_seeds=3,
            key=jax.random.key(0),
            tile_size=2,
        )
        assert traces == [2]
    traces = []
    sweep(
        lambda twin: filter_run(dim=2, traces=traces),
        **FILTER(),
        static_axes={"twin": [1, 2]},
    )
    assert len(traces) == 2


def test_leaves_that_are_one_object_stay_unbatched():
    table = np.arange(6.0).reshape(3, 2)
    points = [{"epsilon": np.asarray(e), "table": table, "other": table.copy()} for e in [0.5, 1.0]]
    varying, fixed = stack_params(points)
    np.testing.assert_array_equal(varying["epsilon"], [0.5, 1.0])
    assert varying["table"] is None
    assert fixed["table"] is table
    assert (fixed["epsilon"], fixed["other"]) == (None, None)
    assert varying["other"].shape == (2, 3, 2)
    with pytest.raises(ValueError, match="the same structure"):
        stack_params([points[0], {"epsilon": np.asarray(1.0)}])
    with pytest.raises(ValueError, match="the same shape"):
        stack_params([points[0], {**points[1], "epsilon": np.zeros(2)}])


@pytest.mark.optimised
def test_a_fixed_table_gives_the_same_results():
    """Compares a run with params that hold one large array with a run that copies it for every grid point."""

    def build(*, copy):
        table = np.arange(4.0, dtype=jnp.result_type(float))

        def params(*, epsilon):
            return {"epsilon": np.asarray(epsilon, table.dtype), "table": table.copy() if copy else table}

        def simulate(key, params):
            return {"sum": params["epsilon"] * jax.random.choice(key, params["table"], (2,))}

        return Run(simulate=simulate, params=params, guarantee=lambda **_: {}, dims={"sum": ("draw",)})

    results = sweep(build, static_axes={"copy": [True, False]}, **FILTER())
    xr.testing.assert_equal(results.isel(copy=0, drop=True), results.isel(copy=1, drop=True))


WRONG = Lazy(
    {
        "no value": lambda: ({"axes": {"epsilon": []}}, "at least one value .*epsilon"),
        "no static value": lambda: ({"static_axes": {"dim": []}}, "at least one value .*dim"),
        "repeated": lambda: ({"axes": {"epsilon": [1.0, 2.0, 1.0]}}, r"repeat .*epsilon=\[1.0, 2.0, 1.0\]"),
        "static repeated": lambda: ({"static_axes": {"dim": [2, 2]}}, r"repeat .*dim=\[2, 2\]"),
        "named twice": lambda: ({"static_axes": {"epsilon": [1.0]}}, "different names.*epsilon"),
        "named seed": lambda: ({"axes": {"seed": [1.0]}}, "different names.*seed"),
        "no seeds": lambda: ({"num_seeds": 0}, "num_seeds must be an integer >= 1, got 0"),
        "half a seed": lambda: ({"num_seeds": 1.5}, "num_seeds must be an integer >= 1, got 1.5"),
        "tile_size": lambda: ({"tile_size": 0}, "tile_size must be an integer >= 1, got 0"),
        "chunk_size": lambda: ({"chunk_size": 0}, "chunk_size must be an integer >= 1, got 0"),
        "a key whose numbers depend on the batch": lambda: (
            {"key": jax.random.key(0, impl="rbg")},
            "key must be of a Threefry implementation, got rbg",
        ),
        "old key": lambda: ({"key": np.zeros(2, np.uint32)}, "key must be one typed PRNG key"),
        "two keys": lambda: ({"key": jax.random.split(jax.random.key(0))}, "key must be one typed PRNG key"),
        "epsilon at the last point": lambda: ({"axes": {"epsilon": [1.0, 2.0, -1.0]}}, "epsilon must be > 0, got -1.0"),
        "no dict": lambda: ({"axes": None}, r"axes must be a dict of lists, as \{.*\}, got None"),
        "pairs": lambda: ({"axes": [("epsilon", [1.0])]}, r"axes must be a dict of lists, as .*, got \[\("),
        "no static dict": lambda: ({"static_axes": [1]}, r"static_axes must be a dict of lists, as .*, got \[1\]"),
        "a number as a name": lambda: ({"axes": {1: [2.0]}}, "axes must have strings as names, got 1"),
        "text as a device": lambda: ({"devices": ["cpu"]}, "devices must be one or more devices .*, got .*cpu"),
        "a number of devices": lambda: ({"devices": 3}, r"devices must be one or more devices .*, got \[3\]"),
        "two models of GPUs": lambda: (
            {"devices": [SimpleNamespace(platform="gpu", device_kind=kind) for kind in ("H100", "A100")]},
            r"devices must be one or more devices of the same kind, got .* of kinds \['A100', 'H100'\]",
        ),
        "epsilon NaN": lambda: ({"axes": {"epsilon": [1.0, math.nan]}}, "epsilon must be > 0, got nan"),
    }
)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_raise_before_anything_is_traced(case):
    changed, message = WRONG[case]
    traces = []
    with pytest.raises(ValueError, match=message):
        sweep(lambda **static: filter_run(traces=traces), **{**FILTER(), **changed})
    assert traces == []


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"weights": ("item",)}, r"dims must name the outputs \['trace', 'weights'\]"),
        ({"weights": ("item",), "trace": (), "regret": ()}, "dims must name the outputs .*regret"),
        ({"weights": (), "trace": ()}, "1 dimensions for weights"),
        ({"weights": ("item",), "trace": ("item",)}, "0 dimensions for trace"),
    ],
)
def test_dimensions_must_match_the_outputs(dims, message):
    with pytest.raises(ValueError, match=message):
        sweep(lambda: filter_run(dims=dims), **FILTER())


def build_with_link(link):
    return jaxdp.estimation_run({"local": sgd_rr()}, gaussian_rewards(num_samples=10, dim=2, link=link))


def test_values_that_are_no_scalars_are_labelled_by_name():
    links = [jaxdp.preferences.probit, jaxdp.preferences.logistic]
    results = jaxdp.sweep(
        build_with_link, axes={"epsilon": [1.0]}, static_axes={"link": links}, num_seeds=2, key=jax.random.key(0)
    )
    assert results.link.values.tolist() == ["probit", "logistic"]


@pytest.mark.parametrize("make", [tuple, np.array, jnp.array])
def test_coordinates_may_be_any_sequence(make):
    results = jaxdp.sweep(
        lambda copy: dataclasses.replace(ragged(2), coords={"place": make([3, 4])}),
        axes={"shift": [jnp.float32(0.5), 1.0]},
        static_axes={"copy": [0, 1]},
        num_seeds=2,
        key=jax.random.key(0),
    )
    assert results.place.values.tolist() == [3, 4]
    assert results["shift"].values.tolist() == [0.5, 1.0]


def ragged(size):
    return Run(
        simulate=lambda key, params: {"draw": jax.random.normal(key, (size,)) + params},
        params=lambda *, shift: scalar_leaf("shift", shift),
        guarantee=lambda **_: {},
        dims={"draw": ("place",)},
    )


def test_outputs_that_one_array_cannot_hold_are_refused_before_compiling():
    with pytest.raises(ValueError, match="outputs must be the same for all static values"):
        jaxdp.sweep(ragged, axes={"shift": [0.0]}, static_axes={"size": [2, 3]}, num_seeds=2, key=jax.random.key(0))
    with pytest.raises(ValueError, match="dims must not have the name of an axis, got place for draw"):
        jaxdp.sweep(
            lambda place: ragged(place), axes={"shift": [0.0]}, static_axes={"place": [2]}, num_seeds=2,
            key=jax.random.key(0),
        )  # fmt: skip
    wrong = dataclasses.replace(ragged(2), coords={"place": ["a", "b", "c"]})
    hidden = dataclasses.replace(ragged(2), coords={"shift": [7, 8]})
    with pytest.raises(ValueError, match="coords must not have the name of an axis, got shift"):
        jaxdp.sweep(hidden, axes={"shift": [0.0, 1.0]}, num_seeds=2, key=jax.random.key(0))
    with pytest.raises(ValueError, match="coords must have 2 values for place, got 3"):
        jaxdp.sweep(lambda: wrong, axes={"shift": [0.0]}, num_seeds=2, key=jax.random.key(0))


@pytest.mark.parametrize("name", ["round", "seed", "epsilon", "w_0"])
def test_an_output_with_the_name_of_an_axis_or_a_dimension(name, tmp_path):
    def build():
        learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        record = {name: lambda snapshot: snapshot.public.round, "w": lambda snapshot: jnp.zeros((2, 3))}
        return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.2, 0.8]), 6, record=record)

    with pytest.raises(
        ValueError, match=f"outputs must not have the name of an axis, a coordinate or a dimension, got {name}"
    ):
        sweep(build, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0), store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
