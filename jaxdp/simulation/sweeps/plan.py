"""Plans a sweep, and checks its grid, runs and claims before anything is compiled."""

import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from jaxdp.core import Guarantee
from jaxdp.memory import check_room, free_host_bytes
from jaxdp.simulation.run.lane_run import Run, as_build
from jaxdp.simulation.store.identity import identity
from jaxdp.simulation.store.processor import processor, settings
from jaxdp.simulation.store.provenance import as_json, key_record, point_record, versions
from jaxdp.simulation.sweeps.keys import check_root
from jaxdp.simulation.sweeps.labels import (
    Output,
    check_axes,
    check_equal_outputs,
    check_outputs,
    coordinate,
    empty_dataset,
    grid,
)
from jaxdp.simulation.sweeps.lanes import Device, Program, compiler_options
from jaxdp.simulation.sweeps.schedule import Lanes
from jaxdp.simulation.sweeps.tiles import PROBE, default_tile_size, state_bytes
from jaxdp.validation import check_count

if TYPE_CHECKING:
    import xarray as xr


BYTES_OF_A_SEED = 24  # memory for a seed's label in the results, and for the copies that are written, read and compared
BYTES_OF_A_MARK = 2  # memory for a lane's entry in `computed`, when a store is read


class Hardware(NamedTuple):
    """The hardware and the compiler settings with which chunks are computed. They are recorded as provenance.

    Attributes:
        devices: the devices that run tiles, as text.
        processor: the processor; last bits of results depend on it.
        settings: XLA's flags and similar settings; last bits of results depend on them.
    """

    devices: list[str]
    processor: str
    settings: dict[str, Any]


class Plan:
    """A sweep's programs, grid and devices.

    Attributes:
        build: (**static) -> Run.
        axes: lists of values of the run's parameters, keyed by name.
        static_axes: lists of values of `build`'s arguments, keyed by name.
        static_points: every combination of static values; each has one program.
        points: every combination of values of `axes`, the grid.
        runs: the run of each program.
        params: parameters, [program][grid point].
        guarantees: claims keyed by name, [program][grid point].
        key: root key.
        num_seeds: number of seeds at every grid point.
        asked_tile_size: the requested number of lanes in a tile; None means the default for the devices.
        devices: devices that run tiles.
        lanes: numbering of the lanes of one program.
    """

    def __init__(
        self,
        build: Callable[..., Run] | Run,
        axes: Mapping[str, Sequence[Any]],
        static_axes: Mapping[str, Sequence[Any]],
        *,
        num_seeds: int,
        key: jax.Array,
        tile_size: int | None,
        devices: Sequence[Device] | None,
    ) -> None:
        """Builds every run and checks the whole grid; raises the ValueErrors of `sweep` about these arguments."""
        self.axes, self.static_axes = check_axes(axes, static_axes)
        if isinstance(build, Run) and static_axes:
            raise ValueError(
                f"build must be a function of {', '.join(static_axes)}, the names of static_axes, got a Run"
            )
        self.build = as_build(build)
        self.num_seeds = check_count("num_seeds", num_seeds)
        self.asked_tile_size = None if tile_size is None else check_count("tile_size", tile_size)
        self.key = check_root(key)
        devices = jax.local_devices() if devices is None else devices
        self.devices = list(devices) if isinstance(devices, Iterable) else [devices]
        kinds = {getattr(device, "device_kind", None) for device in self.devices}
        if len(kinds) != 1 or None in kinds:
            got = f"{self.devices} of kinds {sorted(map(str, kinds))}"
            raise ValueError(f"devices must be one or more devices of the same kind, got {got}")
        self.static_points, self.points = grid(self.static_axes), grid(self.axes)
        self.runs = [_build_run(self.build, static) for static in self.static_points]
        self.params = [[run.params(**point) for point in self.points] for run in self.runs]
        self.guarantees = [[run.guarantee(**point) for point in self.points] for run in self.runs]
        self.lanes = Lanes(self.num_seeds, len(self.points) * self.num_seeds)
        self._programs: dict[int, Program] = {}

    @functools.cached_property
    def tile_size(self) -> int:
        """Number of lanes in a tile."""
        if self.asked_tile_size is not None:
            return self.asked_tile_size
        platform = self.devices[0].platform
        return default_tile_size(platform, self.lanes.num_lanes, self._most_lane_bytes, self._most_state_bytes)

    def _most_lane_bytes(self) -> int:
        programs = zip(self.runs, self.params, strict=True)
        return max(Program(run, self.key, params, PROBE, self.devices).lane_bytes() for run, params in programs)

    def _most_state_bytes(self) -> int | None:
        sizes = [state_bytes(run, self.key, params[0]) for run, params in zip(self.runs, self.params, strict=True)]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def set_tile_size(self, tile_size: int) -> None:
        """Sets the tile size, and drops all programs that were made before."""
        self.tile_size = tile_size
        self._programs.clear()

    @property
    def num_lanes(self) -> int:
        """Total number of lanes of all programs."""
        return self.lanes.num_lanes * len(self.runs)

    @property
    def static_sizes(self) -> list[int]:
        """The number of values of each static axis."""
        return [len(values) for values in self.static_axes.values()]

    @property
    def sizes(self) -> list[int]:
        """The number of values along each of (*axes, seed)."""
        return [*(len(values) for values in self.axes.values()), self.num_seeds]

    @functools.cached_property
    def outputs(self) -> Mapping[str, Output]:
        """The dimensions, shape and dtype of each output of a lane, keyed by name; traces the first program."""
        return self._outputs_of(0)

    def check_program(self, index: int) -> None:
        """Traces a program; raises a ValueError if its outputs or coordinates differ from the first program's.

        It also raises a ValueError if the outputs do not match the run's `dims`.
        """
        check_equal_outputs(self.runs[index], self._outputs_of(index), self.runs[0], self.outputs)

    def check_programs(self) -> None:
        """Traces all programs, and checks them as `check_program` does."""
        for index in range(len(self.runs)):
            self.check_program(index)

    def _outputs_of(self, index: int) -> dict[str, Output]:
        return check_outputs(self.runs[index], self.program(index).outputs())

    @property
    def lane_bytes(self) -> int:
        """Size of a lane's results in bytes."""
        return sum(math.prod(output.shape) * output.dtype.itemsize for output in self.outputs.values())

    def check_fits(self, *, in_memory: bool) -> None:
        """Raises a MemoryError with advice if results and labels do not fit in free memory.

        With a store (`in_memory` is False), only marks and labels need memory.
        """
        labels = BYTES_OF_A_SEED * self.num_seeds
        if in_memory:
            needed = self.num_lanes * self.lane_bytes
            advice = "use fewer seeds or outputs, or keep them on disk by store="
        else:
            needed, advice = BYTES_OF_A_MARK * self.num_lanes, "use fewer seeds"
        check_room(f"results of {self.num_lanes:,} lanes", needed + labels, free_host_bytes(), advice)

    def dataset(self, *, allocate: bool) -> "xr.Dataset":
        """Returns the dataset of results, with labels and without values.

        If `allocate` is False, the dataset's arrays take no memory.
        """
        return empty_dataset(self.runs[0], self.outputs, self.axes, self.static_axes, self.num_seeds, allocate=allocate)

    def provenance(self, source: Hardware) -> str:
        """Returns the provenance of results as JSON text: versions, hardware, settings, key, grid and claims."""
        record = {
            "versions": versions(),
            **source._asdict(),
            "x64": bool(jax.config.read("jax_enable_x64")),
            "key": key_record(self.key),
            "tile_size": self.tile_size,
            "num_seeds": self.num_seeds,
            "programs": [
                {
                    "static": as_json(static),
                    "points": [point_record(*point) for point in zip(self.points, *params_and_claims, strict=True)],
                }
                for static, *params_and_claims in zip(self.static_points, self.params, self.guarantees, strict=True)
            ],
        }
        return json.dumps(record, allow_nan=False)

    def hardware(self) -> Hardware:
        """Returns this process's hardware and settings."""
        devices = [f"{device.platform}: {device.device_kind}" for device in self.devices]
        return Hardware(devices, processor(self.devices[0]), settings())

    def program(self, index: int) -> Program:
        """Returns program `index`, uncompiled, and keeps it until `release(index)`."""
        if index not in self._programs:
            run, params = self.runs[index], self.params[index]
            self._programs[index] = Program(run, self.key, params, self.tile_size, self.devices)
        return self._programs[index]

    def release(self, index: int) -> None:
        """Drops a program and its arrays."""
        self._programs.pop(index, None)

    def name(self, index: int) -> str:
        """Returns the static values of a program as text; "program" if there are none."""
        static = self.static_points[index]
        return ", ".join(f"{name}={coordinate([value])[0]}" for name, value in static.items()) or "program"

    def identity(self) -> dict[str, Any]:
        """Returns a JSON-ready record of everything that the results of this sweep depend on; traces all programs."""
        self.check_programs()
        return identity(
            key=self.key,
            device=self.devices[0],
            compiler_options=compiler_options(self.devices[0].platform),
            tile_size=self.tile_size,
            num_seeds=self.num_seeds,
            axes={name: coordinate(values) for name, values in self.axes.items()},
            static_axes={name: coordinate(values) for name, values in self.static_axes.items()},
            coords=self.runs[0].coords,
            outputs=self.outputs,
            programs={
                self.name(index): {**self.program(index).hashes(), "guarantees": _claims_hash(self.guarantees[index])}
                for index in range(len(self.runs))
            },
        )

    def plays_by_rounds(self, program: int) -> bool:
        """Returns whether lanes play round by round, so that each iteration of the loop is one round."""
        made_by = self.runs[program].made_by
        return made_by is not None and made_by.arguments.get("engine") == "rounds"

    def tiles(self) -> str:
        """Formats the size of a tile and, if at least 0.5%, the percentage of unused lanes in a program's tiles."""
        size, lanes = self.tile_size, self.lanes.num_lanes
        unused = 1 - lanes / (-(-lanes // size) * size)
        return f"tiles of {size:,} lanes" + (f" ({unused:.0%} unused)" if unused >= 0.005 else "")

    def rounds(self, program: int) -> int | None:
        """Returns the last checkpoint, which counts as the number of rounds of a lane; None for runs without rounds."""
        checkpoints = self.runs[program].coords.get("round")
        return None if checkpoints is None else int(checkpoints[-1])


def _build_run(build: Callable[..., Run], static: Mapping[str, Any]) -> Run:
    if not callable(build):
        raise ValueError(
            f"build must be a run or a function that returns one, got an instance of {type(build).__name__}"
        )
    run = build(**static)
    if not isinstance(run, Run):
        raise ValueError(
            "build must return a run, as jaxdp.simulator and jaxdp.estimation_run do, got an instance of "
            f"{type(run).__name__} from {getattr(build, '__qualname__', build)}"
        )
    return run


def _claims_hash(guarantees: Sequence[Mapping[str, Guarantee]]) -> str:
    claims = [{name: claim.to_dict() for name, claim in point_claims.items()} for point_claims in guarantees]
    return hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()
