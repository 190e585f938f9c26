"""Reading a store that is not finished: nothing that was not computed looks like a result."""

import functools
import json
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store import masked

SWEEP: Callable[[], dict] = functools.cache(
    lambda: {
        "axes": {"a": [1.0, 2.0], "link": ["one", "two"]},
        "num_seeds": 6,
        "tile_size": 4,
        "key": jax.random.key(0),
    }
)


def build(**_) -> Run:
    """Builds outputs of every kind; none is zero or False where it is computed."""

    def simulate(key, a):
        draw = jnp.abs(jax.random.normal(key, dtype=jnp.float32)) + a
        return {
            "x": draw,
            "path": jnp.stack([draw, 2 * draw, 3 * draw]),
            "count": draw.astype(jnp.int32) + 1,
            "word": draw.astype(jnp.uint32) + jnp.uint32(2**31),
            "yes": draw > 0,
            "wave": jax.lax.complex(draw, draw),
        }

    names = ("x", "count", "word", "yes", "wave")
    return Run(
        simulate=simulate,
        params=lambda a, link: np.float32(a),
        guarantee=lambda a, link: {},
        dims={**dict.fromkeys(names, ()), "path": ("round",)},
        coords={"round": [1, 2, 3]},
    )


def half(store, **more):
    return sweep(build, **SWEEP(), store=store, chunk_size=4, process_index=0, num_processes=2, **more)


@pytest.mark.parametrize("static", [{}, {"static_axes": {"size": [1, 2]}}])
def test_what_is_missing_is_nan_and_means_are_right(tmp_path, static):
    half(tmp_path / "s.zarr", **static)
    whole = sweep(build, **SWEEP(), **static)
    found = jaxdp.open(tmp_path / "s.zarr")
    there = found.computed
    assert 0 < int(there.sum()) < there.size
    for name in ("x", "path", "count", "word", "yes", "wave"):
        assert found[name].notnull().equals(there.broadcast_like(found[name])), name
        xr.testing.assert_equal(found[name], whole[name].where(there))
        assert found[name].mean().item() == pytest.approx(whole[name].where(there).mean().item()), name
    assert found.x.dtype == np.float32
    assert found["count"].dtype == found.yes.dtype == np.float64
    biased = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
    assert biased["count"].mean() < found["count"].mean()  # what this is for
    assert json.loads(found.attrs["provenance"])["num_seeds"] == 6


def test_a_sweep_with_missing_lanes_returns_the_same(tmp_path):
    returned = half(tmp_path / "s.zarr")
    assert returned.identical(jaxdp.open(tmp_path / "s.zarr").assign_attrs(returned.attrs))
    assert returned["count"].isnull().any()


def test_every_way_to_index(tmp_path):
    half(tmp_path / "s.zarr")
    loaded = jaxdp.open(tmp_path / "s.zarr").load()
    for chosen in (
        {"seed": 3},
        {"seed": [5, 0, 2]},
        {"a": 0, "link": 1},
        {"seed": slice(None, None, -2), "round": [2, 0]},
        {"a": xr.DataArray([0, 1, 1], dims="p"), "seed": xr.DataArray([0, 5, 2], dims="p")},
        {"seed": slice(0, 0)},
    ):
        assert jaxdp.open(tmp_path / "s.zarr").isel(chosen).identical(loaded.isel(chosen)), chosen
    assert (
        jaxdp.open(tmp_path / "s.zarr")
        .sel(link="two", a=2.0)
        .transpose()
        .identical(loaded.sel(link="two", a=2.0).transpose())
    )


def test_values_are_read_when_they_are_used(tmp_path, monkeypatch):
    half(tmp_path / "s.zarr")
    read = []
    original = masked._Masked._read
    monkeypatch.setattr(masked._Masked, "_read", lambda self, key: read.append(key) or original(self, key))
    found = jaxdp.open(tmp_path / "s.zarr")
    assert (found.sizes["seed"], repr(found) != "", read) == (6, True, [])
    one = found["count"].isel(seed=0)
    assert one.isel(a=0, link=0).item() > 0
    assert [key[-1] for key in read] == [0]


def test_a_store_that_grows_and_is_finished(tmp_path):
    half(tmp_path / "s.zarr")
    before = jaxdp.open(tmp_path / "s.zarr")
    whole = sweep(build, **SWEEP(), store=tmp_path / "s.zarr")
    xr.testing.assert_equal(before.drop_vars("computed"), whole)  # read after it was finished
    found = jaxdp.open(str(tmp_path / "s.zarr"))
    assert "computed" not in found
    assert found["count"].dtype == np.int32
    assert found.yes.dtype == bool
    xr.testing.assert_equal(found, whole)


def test_what_is_no_store(tmp_path):
    results = sweep(build, **SWEEP(), store=tmp_path / "s.zarr")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("mine")
    for variable in results.variables.values():
        variable.encoding = {}
    results.to_zarr(tmp_path / "copy.zarr")
    for name, what in {
        "none": "does not exist",
        "notes": "is something else",
        "file": "is something else",
        "copy.zarr": "is something else",
    }.items():
        with pytest.raises(ValueError, match=rf"^store must be the store of a sweep, got .*{name}, which {what}"):
            jaxdp.open(tmp_path / name)
    with pytest.raises(ValueError, match="store must be a path, got 4"):
        jaxdp.open(4)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="store must be a path, got ''"):
        jaxdp.open("")


def test_a_lost_file_is_not_read_as_zeros(tmp_path):
    """Checks a finished store, where Zarr fills in zeros for integers, and half of one."""
    sweep(build, **SWEEP(), store=tmp_path / "whole.zarr")
    half(tmp_path / "half.zarr")
    for name in ("whole", "half"):
        lost = next(path for path in sorted((tmp_path / f"{name}.zarr" / "count" / "c").rglob("*")) if path.is_file())
        lost.unlink()
        with pytest.raises(
            ValueError, match=r"store must have the files of all .*count.* is missing; rerun the call that"
        ):
            jaxdp.open(tmp_path / f"{name}.zarr")
    with pytest.warns(RuntimeWarning, match="computed again"):
        whole = sweep(build, **SWEEP(), store=tmp_path / "whole.zarr")
    assert jaxdp.open(tmp_path / "whole.zarr").equals(whole)


def test_a_lost_file_is_named_beside_an_output_without_values(tmp_path):
    def with_empty(**_) -> Run:
        def simulate(key, a):
            return {
                "all_of_none": jnp.zeros((0,)),
                "count": jax.random.randint(key, (), 1, 5, jnp.int32) + a.astype(jnp.int32),
            }

        dims = {"all_of_none": ("empty",), "count": ()}
        return Run(simulate=simulate, params=lambda a: np.float32(a), guarantee=lambda a: {}, dims=dims, coords={})

    store = tmp_path / "s.zarr"
    sweep(with_empty, axes={"a": [1.0, 2.0]}, num_seeds=6, tile_size=4, key=jax.random.key(0), store=store)
    next(path for path in (store / "count" / "c").rglob("*") if path.is_file()).unlink()
    with pytest.raises(ValueError, match=r"store must have the files of all .*count.* is missing"):
        jaxdp.open(store)
