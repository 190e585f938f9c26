"""Damaged files of a finished store: reads are exactly right or refused by name, and the same call mends it."""

import functools
import itertools
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import zarr

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.inspection import describe

AXES: dict[str, Any] = {"epsilon": [0.5, 4.0, 0.25], "kind": ["plain", "other"]}
SWEEP: Callable[[], dict[str, Any]] = functools.cache(
    lambda: {
        "axes": AXES,
        "static_axes": {"size": [2]},
        "num_seeds": 5,
        "tile_size": 16,
        "chunk_size": 10,
        "key": jax.random.key(0),
    }
)
SMALLER: Callable[[], dict[str, Any]] = functools.cache(
    lambda: {**SWEEP(), "axes": {"epsilon": [0.25, 4.0], "kind": ["other"]}, "num_seeds": 3}
)


def build(size: int) -> Run:
    def simulate(key, epsilon):
        draw = size * jax.random.normal(key, dtype=jnp.float32) + epsilon
        return {"x": draw, "count": draw.astype(jnp.int32), "path": jnp.stack([draw, 2 * draw, draw])}

    def guarantee(epsilon, kind):
        claim = jaxdp.Guarantee.pure(epsilon, trust_model="local", privacy_unit="one label", argument="for a test")
        return {kind: claim}

    return Run(
        simulate=simulate,
        params=lambda epsilon, kind: np.float32(epsilon),
        guarantee=guarantee,
        dims={"x": (), "count": (), "path": ("round",)},
        coords={"round": [1, 10, 100]},
    )


@pytest.fixture(scope="module", params=["in one", "grown"])
def store(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "s.zarr"
    if request.param == "grown":
        sweep(build, **SMALLER(), store=path)
    sweep(build, **SWEEP(), store=path, grow=True)
    return path


def damages(store: Path, seed: int) -> Iterator[tuple[Path, str, bytes | None]]:
    """Yields damages of every file of a store, one file after the other, without end: (file, what, new content)."""
    draw = random.Random(seed)
    files = sorted(file for file in store.rglob("*") if file.is_file())
    first = [store / name for name in ("zarr.json", "epsilon/c/0", "path/zarr.json")]
    while True:
        for file in [*first, *draw.sample(files, len(files))]:
            content, first = bytearray(file.read_bytes()), []
            kind = draw.choice(["flip", "flip", "flip", "cut", "empty", "gone"])
            if kind == "flip":
                place, bit = draw.randrange(len(content)), draw.randrange(8)
                content[place] ^= 1 << bit
                kind = f"bit {bit} of byte {place}"
            elif kind == "cut":
                content = content[: draw.randrange(len(content))]
                kind = f"cut to {len(content)} bytes"
            is_root = file == store / "zarr.json"
            gone = kind == "gone" and not is_root  # a store without it is one that was moved away: test_moved.py
            yield file.relative_to(store), kind, None if gone else bytes(b"" if kind == "empty" else content)


def read(path: Path) -> tuple[xr.Dataset, str]:
    """Returns the results and the claims."""
    results = jaxdp.open(path).load()
    return results, jaxdp.claims(results).to_csv()


def wrong(path: Path, file: Path, expected: tuple[xr.Dataset, str], described: str) -> list[str]:
    """Returns the faults in how a damaged store is read and mended."""
    found, damaged = [], path / file
    names = (str(damaged), f"files in {path / file.parts[0]} ")

    def told(action) -> Any:
        try:
            return action()
        except (ValueError, OSError) as error:
            text = str(error)
            if not any(name in text for name in names):
                found.append(f"no file is named: {text}")
            if "\n" in text or "it" not in text.split(";")[-1]:
                found.append(f"no sentence that says what to do: {text}")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
        return None

    got = told(lambda: read(path))
    if got is not None:
        results, claims = got
        there = results.get("computed", xr.DataArray(True))
        same = all(results[name].equals(expected[0][name].where(there)) for name in expected[0].data_vars)
        if not there.all():
            same = same and file.parts[0] == "computed"  # a mark that is lost: its lanes count as missing
        elif not results.identical(expected[0]):
            same = False
        if not same or claims != expected[1]:
            found.append("other results or claims")
    text = told(lambda: describe(path))
    if text not in (None, described) and str(damaged) not in text and file.parts[0] != "computed":
        found.append(f"inspect says {text}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            swept = sweep(build, **SWEEP(), store=path)
        except Exception as error:
            return [*found, f"not mended: {type(error).__name__}: {error}"]
    results, claims = read(path)
    if not (swept.identical(expected[0]) and results.identical(expected[0]) and claims == expected[1]):
        found.append("mended to other results")
    if describe(path) != described:
        found.append("inspect does not say that it is mended")
    return found


def check(store: Path, folder: Path, count: int, seed: int) -> None:
    path = folder / "s.zarr"
    shutil.copytree(store, path)
    expected, described = read(path), describe(path)
    assert sweep(build, **SWEEP()).identical(expected[0])
    faults = {}
    for file, kind, content in itertools.islice(damages(store, seed), count):
        shutil.rmtree(path)
        shutil.copytree(store, path)
        if content is None:
            (path / file).unlink()
        else:
            (path / file).write_bytes(content)
        if found := wrong(path, file, expected, described):
            faults[f"{file}, {kind}"] = found
    assert not faults, json.dumps(faults, indent=1)


EDITS = {
    "a claim": ("provenance", lambda text: text.replace('"epsilon": 4.0', '"epsilon": 0.4')),
    "no programs": ("provenance", lambda text: text.replace('"programs"', '"program"')),
    "a list": ("provenance", lambda text: "[]"),
    "an order": ("layout", lambda text: text.replace('"chunk"', '"order": [null, [1, 2, 0], null, null], "chunk"')),
    "no chunk": ("layout", lambda text: text.replace('"chunk": [', '"chunk": [0, ')),
    "no text": ("layout", lambda text: 3),
    "a key": ("identity", lambda text: text.replace('"data": [0, 0]', '"data": [0, 1]')),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_attributes_are_refused_and_restored(tmp_path, edit):
    path = tmp_path / "s.zarr"
    whole = sweep(build, **SWEEP(), store=path).load()
    root = path / "zarr.json"
    content = json.loads(root.read_text())
    name, change = EDITS[edit]
    for attributes in (content["attributes"], content["consolidated_metadata"]["metadata"]["computed"]["attributes"]):
        if name in attributes:
            before, attributes[name] = attributes[name], change(attributes[name])
            assert attributes[name] != before
    root.write_text(json.dumps(content))
    for action in (jaxdp.open, describe):
        with pytest.raises(
            ValueError, match=rf"^store must be as a sweep wrote it, got {path}, where {root} is damaged "
        ):
            action(path)
    with pytest.warns(RuntimeWarning, match=rf"^{root} was damaged \(.*\); it is written again"):
        assert sweep(build, **SWEEP(), store=path).identical(whole)
    assert jaxdp.open(path).identical(whole)


def test_labels_of_another_value_are_refused_though_their_file_is_sound(tmp_path):
    path = tmp_path / "s.zarr"
    whole = sweep(build, **SWEEP(), store=path).load()
    zarr.open_array(path / "epsilon", mode="r+")[1] = 0.4
    for action in (jaxdp.open, describe):
        with pytest.raises(ValueError, match=rf"where files in {path}/epsilon are missing, or have changed"):
            action(path)
    with pytest.warns(RuntimeWarning, match=rf"labels are damaged: files in {path}/epsilon .*; they are written again"):
        assert sweep(build, **SWEEP(), store=path).identical(whole)
    assert jaxdp.open(path).identical(whole)


def test_a_damaged_file_of_labels_has_one_advice(tmp_path):
    path = tmp_path / "s.zarr"
    sweep(build, **SWEEP(), store=path)
    file = path / "epsilon" / "c" / "0"
    content = bytearray(file.read_bytes())
    content[3] ^= 4
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"where {file} cannot be read: its checksum is wrong; rerun the call that"):
        jaxdp.open(path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"num_seeds": 3, "programs": [{"points": 1}]}'])
def test_results_whose_provenance_says_nothing(text):
    results = sweep(build, **SWEEP()).assign_attrs(provenance=text)
    with pytest.raises(ValueError, match=r"results must have the provenance that a sweep wrote, got .*"):
        jaxdp.claims(results)


def test_a_damaged_file_is_read_rightly_or_named_and_mended(store, tmp_path):
    check(store, tmp_path, count=4, seed=0)


@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_damaged_files(store, tmp_path, seed):
    check(store, tmp_path, count=120, seed=seed)
