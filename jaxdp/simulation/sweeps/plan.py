"""A sweep before it runs: everything checked, nothing compiled."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from jaxdp.core import Guarantee
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.store.identity import identity
from jaxdp.simulation.sweeps.keys import check_root
from jaxdp.simulation.sweeps.labels import Axes, check_outputs, coordinate, grid
from jaxdp.simulation.sweeps.lanes import COMPILER_OPTIONS, Device, Program
from jaxdp.simulation.sweeps.schedule import Lanes
from jaxdp.validation import check_count


class Plan:
    """What is to be run.

    Attributes:
        axes: values of the run's parameters.
        static_axes: values of `build`'s arguments.
        static_points: every combination of static values, one program each.
        points: the grid.
        runs: one for each program.
        params: [program][grid point].
        key: root key.
        num_seeds: seeds for every grid point.
        tile_size: lanes in a tile.
        devices: where tiles run.
        lanes: of one program.
    """

    def __init__(
        self,
        build: Callable[..., Run],
        axes: Axes,
        static_axes: Axes,
        *,
        num_seeds: int,
        key: jax.Array,
        tile_size: int,
        devices: Sequence[Device] | None,
    ) -> None:
        """Builds every run and validates the whole grid.

        Raises:
            ValueError: as `sweep` does.
        """
        self.axes, self.static_axes = axes, static_axes
        self.num_seeds = check_count("num_seeds", num_seeds)
        self.tile_size = check_count("tile_size", tile_size)
        self.key = check_root(key)
        self.devices = list(jax.local_devices() if devices is None else devices)
        if len({device.platform for device in self.devices}) != 1:
            raise ValueError(f"devices must be at least one, all of one kind, got {self.devices}")
        self.static_points, self.points = grid(static_axes), grid(axes)
        self.runs = [_built(build, static) for static in self.static_points]
        self.params = [[run.params(**point) for point in self.points] for run in self.runs]
        self._programs: dict[int, Program] = {}
        self.lanes = Lanes(self.num_seeds, len(self.points) * self.num_seeds)

    def program(self, index: int) -> Program:
        """One of the programs, not yet compiled. It is kept until `release`."""
        if index not in self._programs:
            run, params = self.runs[index], self.params[index]
            self._programs[index] = Program(run, self.key, params, self.tile_size, self.devices)
        return self._programs[index]

    def release(self, index: int) -> None:
        """Forgets a program, whose arrays may be large."""
        self._programs.pop(index, None)

    def outputs(self) -> Mapping[str, Any]:
        """What each lane returns, as `check_outputs`."""
        return check_outputs(self.runs, self.key, [own[0] for own in self.params])

    def name(self, index: int) -> str:
        """A program's static values as text."""
        static = self.static_points[index]
        return ", ".join(f"{name}={coordinate([value])[0]}" for name, value in static.items()) or "program"

    def identity(self) -> dict[str, Any]:
        """What tells this sweep from others: see `identity.identity`."""
        return identity(
            key=self.key,
            device=self.devices[0],
            compiler_options=COMPILER_OPTIONS.get(self.devices[0].platform, {}),
            tile_size=self.tile_size,
            num_seeds=self.num_seeds,
            axes={name: coordinate(values) for name, values in self.axes.items()},
            static_axes={name: coordinate(values) for name, values in self.static_axes.items()},
            coords=self.runs[0].coords,
            outputs=self.outputs(),
            programs={
                self.name(index): {**self.program(index).hashes(), "guarantees": self._guarantees_hash(index)}
                for index in range(len(self.runs))
            },
        )

    def guarantees(self, index: int) -> list[Mapping[str, Guarantee]]:
        """What one of the programs claims at every grid point."""
        return [self.runs[index].guarantee(**point) for point in self.points]

    def _guarantees_hash(self, index: int) -> str:
        claims = [{name: claim.to_dict() for name, claim in own.items()} for own in self.guarantees(index)]
        return hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()

    def rounds(self, program: int) -> int | None:
        """Rounds of a lane; None for runs that have none."""
        checkpoints = self.runs[program].coords.get("round")
        return None if checkpoints is None else int(checkpoints[-1])


def _built(build: Callable[..., Run], static: Mapping[str, Any]) -> Run:
    if not callable(build):
        raise ValueError(
            f"build must be a run or a function that returns one, got an instance of {type(build).__name__}"
        )
    run = build(**static)
    if not isinstance(run, Run):
        raise ValueError(
            "build must return a run, as jaxdp.simulator and jaxdp.estimation_run make, got an instance of "
            f"{type(run).__name__} from {getattr(build, '__qualname__', build)}"
        )
    return run
