"""Reads committed results of the benchmark for the site: means, peers, and results of outdated programs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxdp.comparisons.tables import Cell
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.stats import mean_interval
from jaxdp.suite import v1
from jaxdp.suite._programs import code_hash
from jaxdp.suite._standings import read_results

Records = Mapping[str, Mapping[str, Any]]


class Measurement(NamedTuple):
    """The results of one learner on one instance.

    Attributes:
        trust_model: the trust model of the claim at epsilon 1.
        is_private: whether the learner claims something at epsilon 1.
        horizon: number of rounds; 0 for estimators.
        seeds: number of seeds.
        metric: name of the output: a regret or an error.
        cells: for each value of `v1.EPSILONS`, the mean of the output with its 95% interval.
    """

    trust_model: str
    is_private: bool
    horizon: int
    seeds: int
    metric: str
    cells: tuple[Cell, ...]

    @property
    def means(self) -> np.ndarray:
        """The means, [number of epsilons]; infinite for NaN."""
        return np.asarray([math.inf if math.isnan(cell.mean) else cell.mean for cell in self.cells])


def read_records(folder: Path, protocol: str) -> dict[str, dict[str, Any]]:
    """Returns the results in a folder, by the learner's name; none if there is no folder or no file.

    Args:
        folder: the folder of JSON files.
        protocol: "full" or "quick".

    Raises:
        ValueError: as `read_results`; or if results are of another protocol.
    """
    if not any(folder.glob("*.json")):
        return {}
    records = read_results(folder)
    for name, record in records.items():
        if record["protocol"] != protocol:
            raise ValueError(f"results must be {protocol} ones, got {record['protocol']} ones of {name} in {folder}")
    return records


def outdated_learners(records: Records) -> list[str]:
    """Returns learners that played with another program than the current one, or that are not registered now."""
    programs = dict.fromkeys((record["learner"], record["code"]) for record in records.values())
    registered = {*LEARNERS, *ESTIMATORS}
    outdated = [
        name for name, code in programs if (":" not in name and name not in registered) or code != code_hash(name)
    ]
    return list(dict.fromkeys(outdated))


def measurements(records: Records) -> dict[str, dict[str, Measurement]]:
    """Returns the measurements per round, by instance and learner, in the suite's order of instances."""
    by_instance: dict[str, dict[str, Measurement]] = {name: {} for name in v1.INSTANCES}
    for name, record in records.items():
        if record["unit"] == "round":
            played = {instance: entry for instance, entry in record["instances"].items() if "skipped" not in entry}
            for instance, measurement in _measurements_of(played).items():
                by_instance[instance][name] = measurement
    return by_instance


def _measurements_of(played: Mapping[str, Mapping[str, Any]]) -> dict[str, Measurement]:
    """Returns the measurements of one learner, by instance, from the entries of its file."""
    if not played:
        return {}
    values = [[entry["values"][f"{epsilon:g}"] for epsilon in v1.EPSILONS] for entry in played.values()]
    intervals = mean_interval(xr.DataArray(values, dims=("instance", "epsilon", "seed")))
    parts = [intervals[part].values.tolist() for part in ("mean", "low", "high")]
    measured = {}
    for (instance, entry), *numbers in zip(played.items(), *parts, strict=True):
        claim = entry["claims"]["1"]
        measured[instance] = Measurement(
            trust_model=claim["trust_model"],
            is_private=claim["kind"] != "none",
            horizon=entry["horizon"],
            seeds=len(values[0][0]),
            metric=entry["metric"],
            cells=tuple(Cell(*cell, not_worse=False) for cell in zip(*numbers, strict=True)),
        )
    return measured


def peers(
    learners: Mapping[str, Measurement], name: str, omitted: frozenset[str] = frozenset()
) -> dict[str, Measurement]:
    """Returns the learners with the same trust model; they claim something if and only if the given learner does.

    Args:
        learners: the measurements on one instance, by learner.
        name: the given learner, which must be in `learners`; it is not its own peer.
        omitted: names of further learners to leave out.
    """
    group = learners[name].trust_model, learners[name].is_private
    return {
        other: measurement
        for other, measurement in learners.items()
        if other not in {name, *omitted} and (measurement.trust_model, measurement.is_private) == group
    }


def peers_median(learners: Mapping[str, Measurement]) -> np.ndarray:
    """Returns the median of the learners' means at each epsilon, [number of epsilons]; NaN without learners."""
    if not learners:
        return np.full(len(v1.EPSILONS), np.nan)
    return np.median([measurement.means for measurement in learners.values()], axis=0)


def least_without_privacy(learners: Mapping[str, Measurement]) -> tuple[str, float]:
    """Returns the learner with the least mean at epsilon infinity, and this mean; the first such learner by name."""
    means = {name: float(learners[name].means[-1]) for name in sorted(learners)}
    name = min(means, key=means.__getitem__)
    return name, means[name]
