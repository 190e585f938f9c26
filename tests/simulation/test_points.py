"""A vmap of one's own over grid points and seeds: the lanes of a sweep, compiled once; and sweeps of a run."""

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.checks import check_leaves
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.values import is_list

KEY = partial(jax.random.key, 3)
EPSILONS = [0.1, 1.0, math.inf]
COMMIT = functools.cache(lambda: explore_then_commit(num_arms=2, explore_rounds=4))
BANDIT = functools.cache(lambda: bernoulli_bandit([0.1, 0.9]))


def lanes(run, params, in_axes, key=None, num_seeds=6):
    """Returns [seed, point, ...] outputs, and how many programs were compiled for them."""
    many: Any = jax.jit(jax.vmap(jax.vmap(run, (None, in_axes)), (0, None)))
    outputs = many(jaxdp.lane_keys(KEY() if key is None else key, num_seeds), params)
    return outputs, many._cache_size()


@pytest.mark.parametrize("engine", ["rounds", "counts"])
def test_a_vmap_of_ones_own_is_the_sweep(engine):
    run = jaxdp.simulator(COMMIT(), BANDIT(), horizon=40, checkpoints=4, engine=engine)
    outputs, programs = lanes(run, *run.points(epsilon=EPSILONS))
    swept = jaxdp.sweep(run, axes={"epsilon": EPSILONS}, num_seeds=6, key=KEY(), tile_size=4)
    assert programs == 1
    assert set(outputs) == set(swept.data_vars)
    for name, values in outputs.items():
        np.testing.assert_array_equal(np.moveaxis(np.asarray(values), 1, 0), swept[name].values)
    other, _ = lanes(run, *run.points(epsilon=EPSILONS), key=jax.random.key(4))  # planted
    assert not np.array_equal(other["pseudo_regret"], outputs["pseudo_regret"])


def test_estimators_too():
    problem = jaxdp.estimation.gaussian_rewards(num_samples=30, dim=2)
    run = jaxdp.estimation_run({"local": jaxdp.estimation.debiased_rr(), "clear": jaxdp.estimation.mle()}, problem)
    outputs, programs = lanes(run, *run.points(epsilon=EPSILONS))
    swept = jaxdp.sweep(run, axes={"epsilon": EPSILONS}, num_seeds=6, key=KEY())
    assert programs == 1
    for name, values in outputs.items():
        np.testing.assert_allclose(np.moveaxis(np.asarray(values), 1, 0), swept[name].values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [3_000_000_000, np.int64(-(2**31) - 1), np.uint64(2**32), 2**70])
def test_integers_that_jax_would_wrap_are_refused(value):
    def params(*, a):
        return {"a": a}

    run = jaxdp.Run(simulate=lambda key, params: params, params=params, guarantee=lambda **_: {}, dims={"a": ()})
    learner = COMMIT()._replace(params=lambda *, epsilon: {"count": value})
    with jax.enable_x64(False):
        for action in (
            lambda: jaxdp.sweep(run, axes={"a": [1, value]}, num_seeds=2, key=KEY()),
            lambda: run.points(a=[1, value]),
            lambda: jaxdp.simulator(learner, BANDIT(), horizon=8).params(epsilon=1.0),
        ):
            with pytest.raises(ValueError, match=rf"^params.* must have integers in .*, got {value}; set JAX_ENABLE"):
                action()


def test_keys_in_params_are_refused():
    def with_key(*, epsilon):
        return {"epsilon": np.float32(epsilon), "key": KEY()}

    message = "must be a pytree of numbers and arrays, got a PRNG key: pass jax"
    run = jaxdp.simulator(COMMIT()._replace(params=with_key), BANDIT(), horizon=8)
    with pytest.raises(ValueError, match=f"params of the learner explore_then_commit {message}"):
        run.params(epsilon=1.0)
    own = Run(
        simulate=lambda key, params: {"x": params["epsilon"]}, params=with_key, guarantee=lambda **_: {}, dims={"x": ()}
    )
    with pytest.raises(ValueError, match=f"params {message}"):
        jaxdp.sweep(own, axes={"epsilon": EPSILONS}, num_seeds=2, key=KEY())


def test_traced_integers_of_64_bits_are_leaves():
    with jax.enable_x64(True):
        jax.eval_shape(lambda count: check_leaves("state", count), jax.ShapeDtypeStruct((), np.int64))


def test_only_what_varies_is_stacked():
    run = jaxdp.simulator(COMMIT(), BANDIT(), horizon=8)
    params, in_axes = run.points(epsilon=[0.1, 1.0, 1.0], gap=0.1, best_mean=[0.9, 0.8, 0.7])
    assert isinstance(params, dict)
    single = [run.params(epsilon=e, gap=0.1, best_mean=b) for e, b in [(0.1, 0.9), (1.0, 0.8), (1.0, 0.7)]]
    assert jax.tree.structure(params) == jax.tree.structure(single[0])
    all_axes = jax.tree.leaves(in_axes, is_leaf=lambda axis: axis is None)
    for axis, leaf, *leaves in zip(all_axes, *map(jax.tree.leaves, (params, *single)), strict=True):
        assert isinstance(leaf, np.ndarray | np.generic)
        if axis is None:
            for own in leaves:
                np.testing.assert_array_equal(leaf, own)
        else:
            assert axis == 0
            np.testing.assert_array_equal(leaf, np.stack(leaves))
            assert any(not np.array_equal(leaves[0], own) for own in leaves)
    assert None in all_axes
    one, in_axes = run.points(epsilon=[1.0])
    assert {leaf.shape[0] for leaf in jax.tree.leaves(one)} == {1}
    assert lanes(run, one, in_axes)[0]["pseudo_regret"].shape == (6, 1, 1)


def test_what_is_a_list_of_values():
    run = jaxdp.simulator(COMMIT(), BANDIT(), horizon=8)
    expected, _ = run.points(epsilon=[0.5, 1.0])
    for values in ((0.5, 1.0), np.asarray([0.5, 1.0]), jax.numpy.asarray([0.5, 1.0])):
        found, _ = run.points(epsilon=values)
        jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert is_list([jaxdp.preferences.logistic])
    assert not is_list(jaxdp.preferences.logistic)  # though a tuple
    assert not any(map(is_list, (1.0, "text", np.float32(1), np.asarray(1.0), None, {"a": 1})))


def test_a_run_is_swept_where_nothing_is_static(tmp_path):
    run = jaxdp.simulator(COMMIT(), BANDIT(), horizon=8)
    grid: dict = {"axes": {"epsilon": EPSILONS}, "num_seeds": 3, "key": KEY()}
    expected = jaxdp.sweep(lambda: run, **grid)
    assert jaxdp.sweep(run, **grid).identical(expected)
    assert jaxdp.sweep(run, **grid, store=tmp_path / "s.zarr").identical(expected)
    assert jaxdp.sweep(lambda: run, **grid, store=tmp_path / "s.zarr").identical(expected)  # the same sweep
    with ThreadPoolExecutor(1) as threads:
        assert jaxdp.sweep(run, **grid, executor=threads).identical(expected)
    found = jaxdp.sweep(run, **grid)
    lane = jaxdp.replay(found, seed=1, epsilon=1.0)
    assert lane.identical(jaxdp.replay(expected, seed=1, epsilon=1.0))
    assert lane.identical(jaxdp.replay(jaxdp.open(tmp_path / "s.zarr"), seed=1, epsilon=1.0, build=run))


class TestClaims:
    def test_of_a_sweep_its_store_and_a_selection(self, tmp_path):
        def build(num_arms):
            learner = explore_then_commit(num_arms=num_arms, explore_rounds=2 * num_arms)
            return jaxdp.simulator(learner, bernoulli_bandit(np.linspace(0.1, 0.9, num_arms)), horizon=8)

        grid: dict = {"axes": {"epsilon": EPSILONS}, "static_axes": {"num_arms": [2, 3]}, "num_seeds": 2, "key": KEY()}
        results = jaxdp.sweep(build, **grid)
        table = jaxdp.claims(results)
        assert list(table.columns[:4]) == ["num_arms", "epsilon", "algorithm", "claim"]
        assert table.num_arms.tolist() == [2, 2, 2, 3, 3, 3]
        assert table.epsilon.tolist() == table.claimed_epsilon.tolist() == EPSILONS * 2
        assert table.kind.tolist() == ["pure", "pure", "none"] * 2
        claim = COMMIT().guarantee(epsilon=0.1)
        assert table.claim[0] == str(claim)
        assert (table.trust_model[0], table.argument[0]) == (claim.trust_model, claim.argument)
        assert table.claimed_rho.isna().all()
        jaxdp.sweep(build, **grid, store=tmp_path / "s.zarr")
        opened = jaxdp.open(tmp_path / "s.zarr")
        assert jaxdp.claims(opened).equals(table)
        for these in (results, opened):
            own = jaxdp.claims(these.sel(num_arms=3).sortby("epsilon", ascending=False).isel(epsilon=slice(2)))
            assert own.equals(table[(table.num_arms == 3) & (table.epsilon > 0.1)].reset_index(drop=True))
            assert jaxdp.claims(these.drop_vars("epsilon")).equals(table)
        other = jaxdp.sweep(build, **{**grid, "axes": {"epsilon": [0.7]}})
        with pytest.raises(ValueError, match=r"results must be of one sweep, got epsilon=0\.7, which its provenance"):
            jaxdp.claims(xr.concat([results, other], "epsilon"))

    def test_claims_under_earlier_names(self):
        results = jaxdp.sweep(
            jaxdp.simulator(COMMIT(), BANDIT(), horizon=8), axes={"epsilon": EPSILONS}, num_seeds=2, key=KEY()
        )
        table, text = jaxdp.claims(results), results.attrs["provenance"]
        for new, earlier in (("adversary_view", "sees"), ("sensitive_fields", "unit_leaves")):
            assert new in text
            text = text.replace(new, earlier)
        results.attrs["provenance"] = text
        assert jaxdp.claims(results).equals(table)
        results.attrs["provenance"] = text.replace("sees", "looks")
        with pytest.raises(ValueError, match="results must have the provenance that a sweep wrote"):
            jaxdp.claims(results)

    def test_several_algorithms_and_currencies(self):
        problem = jaxdp.estimation.gaussian_rewards(num_samples=20, dim=2)
        zcdp = jaxdp.core.Guarantee.zcdp(0.5, trust_model="central", privacy_unit="one label", argument="as told")
        noised = jaxdp.estimation.mle()._replace(guarantee=lambda **_: zcdp)
        estimators = {"local": jaxdp.estimation.debiased_rr(), "noised": noised}
        run = jaxdp.estimation_run(estimators, problem)
        table = jaxdp.claims(jaxdp.sweep(run, axes={"epsilon": [0.5, 1.0]}, num_seeds=2, key=KEY()))
        assert table.algorithm.tolist() == ["local", "noised"] * 2
        assert table.claimed_rho.dropna().tolist() == [0.5, 0.5]
        assert table.claimed_epsilon.tolist() == [0.5, math.inf, 1.0, math.inf]
        assert table[table.algorithm == "noised"].claim.tolist() == [str(zcdp)] * 2

    def test_values_that_are_objects_are_labelled_by_name(self, tmp_path):
        def build(link):
            assert link.name
            return jaxdp.simulator(COMMIT(), BANDIT(), horizon=8)

        links = [jaxdp.preferences.logistic, jaxdp.preferences.probit]
        grid: dict = {"axes": {"epsilon": [1.0]}, "static_axes": {"link": links}, "num_seeds": 2, "key": KEY()}
        results = jaxdp.sweep(build, **grid)
        assert jaxdp.claims(results).link.tolist() == results.link.values.tolist()
        assert jaxdp.claims(results.isel(link=[1])).link.tolist() == ["probit"]
        jaxdp.sweep(build, **grid, store=tmp_path / "s.zarr")
        opened = jaxdp.open(tmp_path / "s.zarr")  # knows the objects' texts alone
        assert [name in text for name, text in zip(["logistic", "probit"], jaxdp.claims(opened).link, strict=True)]

    def test_an_axis_with_the_name_of_a_column_keeps_its_labels(self):
        results = jaxdp.sweep(
            lambda algorithm, kind: jaxdp.simulator(COMMIT(), BANDIT(), horizon=8),
            axes={"epsilon": [1.0]},
            static_axes={"algorithm": ["etc", "ucb"], "kind": ["one"]},
            num_seeds=2,
            key=KEY(),
        )
        table = jaxdp.claims(results)
        assert table.columns.is_unique
        assert table["axis.algorithm"].tolist() == ["etc", "ucb"]
        assert table["axis.kind"].tolist() == ["one"] * 2
        assert (table.algorithm.tolist(), table.kind.tolist()) == (["learner"] * 2, ["pure"] * 2)
