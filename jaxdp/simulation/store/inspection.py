"""Describes a store as text."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.core.shown import budget_text
from jaxdp.simulation.store.files import COMPUTED, Store, open_dataset
from jaxdp.simulation.store.nans import NanCount
from jaxdp.simulation.store.provenance import Provenance, provenance
from jaxdp.validation import check_local_path


def describe(path: str | Path) -> str:
    """Describes the contents of a store as text, with its progress, provenance and privacy claims.

    All results are read, to find damaged chunks and NaN.

    Args:
        path: path of the store. A sweep may be writing it.

    Returns:
        Lines of text. There is a line for each damaged chunk.

    Raises:
        ValueError: if there is no store at the path; if the path is an address such as s3://bucket/runs; or if the
            store's description, labels or provenance are damaged.
    """
    path = check_local_path("store", path)
    store = Store(path)
    nans = NanCount()
    missing, damaged = store.examine(store.chunks, nans)
    dataset = open_dataset(path)
    num_computed = store.lanes_computed()
    total = int(np.prod(store.layout["static_sizes"] + store.layout["sizes"]))
    origin = provenance(dataset)
    record = origin.record
    lines = [f"{path}: {num_computed:,} of {total:,} lanes computed ({num_computed / total:.1%})"]
    lines += [f"  {text}" for text in (*_by_program(store, origin, missing), *damaged.values())]
    lines += ["", "results"]
    for name, values in sorted(dataset.data_vars.items(), key=lambda pair: str(pair[0])):
        if name != COMPUTED:
            sizes = ", ".join(f"{dim} {size}" for dim, size in values.sizes.items())
            lines.append(f"  {name}: {values.dtype} ({sizes})")
    lines += ["", "grid"]
    lines += [f"  {name}: {_list_values(dataset[name].values)}" for name in dataset.coords]
    if len(store.parts) > 1:
        lines += ["", "parts", *(f"  {text}" for text in _parts(store, dataset))]
    if nans.found:
        lines += ["", f"NaN in {nans.text()}"]
    lines += ["", "provenance"]
    lines += [f"  {name} {version}" for name, version in record["versions"].items()]
    lines += [
        f"  devices: {', '.join(record['devices'])}; {'64' if record['x64'] else '32'} bits",
        f"  processor: {record.get('processor', 'not recorded')}",
        f"  key: {record['key']['data']} ({record['key']['impl']}); {record['num_seeds']} seeds, "
        f"tiles of {record['tile_size']} lanes",
        "",
        "guarantees",
        *(f"  {text}" for text in _guarantees(origin)),
    ]
    return "\n".join(lines)


def _by_program(store: Store, origin: Provenance, missing: list[Any]) -> list[str]:
    """Returns a line for each program with its number of computed and readable lanes.

    `missing` contains the chunks with missing or unreadable lanes. Returns no lines if `missing` is empty, or if there
    is only one program.
    """
    if len(origin.static_points) < 2 or not missing:
        return []
    lanes = int(np.prod(store.layout["sizes"]))
    lines = []
    for index, values in enumerate(origin.static_points):
        left = sum(chunk.num_lanes for chunk in missing if chunk.program == index)
        static = ", ".join(f"{name}={value}" for name, value in values.items())
        lines.append(f"{static}: {lanes - left:,} of {lanes:,}")
    return lines


def _parts(store: Store, dataset: Any) -> list[str]:
    """Returns a line for each part of a sweep that grew.

    A line has the part's starting time, versions of jaxdp and JAX, new values and number of new lanes.
    """
    dims = dataset[COMPUTED].dims
    order = store.layout.get("order", [None] * len(dims))
    stored = {
        dim: dataset[dim].values if indices is None else dataset[dim].values[indices]
        for dim, indices in zip(dims, order, strict=True)
    }
    lines, before = [], [0] * len(dims)
    for number, part in enumerate(store.parts):
        sizes = part["sizes"]
        added = [
            f"{dim} {_range(values[size_before:size]) if dim == 'seed' else _list_values(values[size_before:size])}"
            for (dim, values), size_before, size in zip(stored.items(), before, sizes, strict=True)
            if size > size_before
        ]
        lanes = math.prod(sizes) - (math.prod(before) if number else 0)
        versions = [f"{name} {part['versions'][name]}" for name in ("jaxdp", "jax") if name in part["versions"]]
        when = part["when"] or "at an unrecorded time"
        lines.append(
            f"{', '.join([when, *versions])}: {'' if number == 0 else 'also '}{'; '.join(added)}; {lanes:,} lanes"
        )
        before = sizes
    return lines


def _range(values: np.ndarray) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _guarantees(origin: Provenance) -> list[str]:
    """Returns lines with each privacy claim, its reason, and the number of grid points at each budget."""
    counts_by_claim: dict[tuple[str, str], dict[str, int]] = {}
    for point in origin.points:
        for name, claim in point.guarantees.items():
            terms = ""
            if claim.is_private:
                terms = f", {claim.trust_model}, {claim.privacy_unit}, {claim.adjacency}: {claim.argument}"
            counts = counts_by_claim.setdefault((name, terms), {})
            budget = budget_text(claim)
            counts[budget] = counts.get(budget, 0) + 1
    lines = []
    for (name, terms), counts in counts_by_claim.items():
        lines.append(f"{name}{terms}")
        lines += [f"    {budget} at {count} grid point{'s' if count > 1 else ''}" for budget, count in counts.items()]
    return lines


def _list_values(values: np.ndarray) -> str:
    texts = [str(value) for value in values.tolist()]
    if len(texts) > 12:
        return f"{', '.join(texts[:3])}, ..., {texts[-1]} ({len(texts)} values)"
    return ", ".join(texts)
