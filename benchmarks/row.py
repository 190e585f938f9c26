"""A row of the benchmarks as data: its name, our call, the peers' calls, and the size."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxdp
from benchmarks.measure import CPU, Case, Work
from benchmarks.programs import Call, compile_lanes, compile_plain, operations, rate
from jaxdp.core import Environment, Learner
from jaxdp.simulation.sweeps.tiles import default_tile_size, state_bytes

PLAIN_ROUNDS = 200
QUICK_LANES = 16
MANY = 10**5  # lanes of a sweep with many lanes
Size = Mapping[str, int]
# (horizon, the run's params) -> (regret to fill, [lanes]) -> anything
Peer = Callable[[int, Any], Callable[[np.ndarray], Any]]
# (horizon, tile) -> a call that runs one tile
Floor = Callable[[int, int], Call]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Any call beside its peers.

    Attributes:
        name: of the row: the algorithm or function, then what distinguishes its rows, separated by commas.
        make: (**size) -> Case.
        size: of the measurement.
        quick: replaces entries of the size, for a try.
        in_table: whether `make bench` measures the row; others are measured by name.
    """

    name: str
    make: Callable[..., Case]
    size: Size
    quick: Size
    in_table: bool = False

    def prepare(self, *, quick: bool = False, floors: bool = False) -> Case:
        """Builds and compiles everything that the row needs."""
        del floors
        return self.make(**{**self.size, **(self.quick if quick else {})})


@dataclass(frozen=True, kw_only=True)
class LearnerRow:
    """A learner against a world, beside peers that play as many lanes.

    A lane-round is the unit of work. Ours runs tiles of lanes as a sweep does. Regrets of ours and of each peer must
    agree.

    Attributes:
        title: the name without the engine.
        learner: (horizon) -> the learner.
        world: (horizon) -> the environment.
        values: of their params.
        engine: of the simulator.
        lanes: minimum number of lanes that are played; rounded up so that each core plays as many tiles.
        tile: lanes of a tile; None for the default of a sweep with many lanes on a CPU.
        horizon: rounds.
        peers: by name, (horizon, params) -> a function that fills the regrets of all lanes.
        scripts: by name, (rounds) -> the regret of one lane, step by step on one core.
        script_rounds: rounds of the scripts.
        floor: (horizon, tile) -> a call that does only what the learner cannot do without, for one tile.
        outcomes: that are summed; None for all.
        quick_horizon: for a try.
        in_table: as in `Row`.
    """

    title: str
    learner: Callable[[int], Learner]
    world: Callable[[int], Environment]
    values: Mapping[str, Any]
    lanes: int
    horizon: int
    tile: int | None = None
    engine: str = "rounds"
    peers: Mapping[str, Peer] = field(default_factory=dict)
    scripts: Mapping[str, Callable[[int], Any]] = field(default_factory=dict)
    script_rounds: int = 3000
    floor: Floor | None = None
    outcomes: tuple[str, ...] | None = ("pseudo_regret",)
    quick_horizon: int = 48
    in_table: bool = False

    @property
    def name(self) -> str:
        """The name of the row, as in `Row`."""
        return f"{self.title}, by {self.engine}"

    def prepare(self, *, quick: bool = False, floors: bool = False) -> Case:
        """Builds and compiles everything that the row needs."""
        horizon = min(self.horizon, self.quick_horizon) if quick else self.horizon
        learner, world = self.learner(horizon), self.world(horizon)
        run = jaxdp.simulator(learner, world, horizon, engine=self.engine, outcomes=self.outcomes)
        params = run.params(**self.values)
        tile = QUICK_LANES if quick else self.tile or tile_of_many(run, params)
        in_flight = tile * (os.cpu_count() or 1)
        lanes = QUICK_LANES if quick else -(-self.lanes // in_flight) * in_flight
        call, compiling = compile_lanes(run, CPU, lanes, tile, params)
        rounds = lanes * horizon
        regrets = {name: np.zeros(lanes) for name in self.peers}
        works = {"jaxdp": Work(call, rounds, compiling=compiling)}
        for name, peer in self.peers.items():
            works[name] = Work(partial(peer(horizon, params), regrets[name]), rounds)
        for name, script in self.scripts.items():
            script_rounds = QUICK_LANES if quick else self.script_rounds
            works[name] = Work(partial(script, script_rounds), script_rounds, cores=1)
        if floors and self.floor is not None:
            works["floor"] = Work(self.floor(horizon, tile), tile * horizon, cores=1)
        if self.in_table:
            rounds_of_plain = min(horizon, PLAIN_ROUNDS)
            plain = compile_plain(learner, world, rounds_of_plain, lanes, params, self.outcomes)
            works["plain"] = Work(plain, lanes * rounds_of_plain)
        if jax.default_backend() != "cpu":
            works["GPU"] = Work(compile_lanes(run, jax.devices()[0], lanes, tile, params)[0], rounds)

        def check() -> None:
            ours = np.asarray(call()["pseudo_regret"], float)[:, -1]
            for name, regret in regrets.items():
                check_agreement(f"the regrets of {self.name} and of {name}", ours, regret)

        return Case(
            works=works,
            size=f"{lanes:,} x {horizon:,}",
            unit="lane-round",
            check=check,
            figures=partial(self._figures, learner, world, params),
        )

    def _figures(self, learner: Learner, world: Environment, params: Any) -> dict[str, float | None]:
        if not self.in_table:
            return {}
        return {"operations": operations(learner, world, params), "operations_per_second_and_core": rate()}


def tile_of_many(run: jaxdp.Run, params: Any) -> int:
    """Returns the lanes of a tile in a sweep with many lanes on a CPU."""
    return default_tile_size("cpu", MANY, lambda: 0, lambda: state_bytes(run, jax.random.key(0), params))


def check_agreement(what: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Checks that two samples have the same mean, up to five standard errors.

    Raises:
        AssertionError: if they have not.
    """
    error = np.hypot(ours.std() / np.sqrt(len(ours)), theirs.std() / np.sqrt(len(theirs)))
    if not abs(ours.mean() - theirs.mean()) <= 5 * error + 1e-5 * abs(ours.mean()):  # a float32 sum has rounding
        raise AssertionError(f"{what} must agree, got means {ours.mean()} and {theirs.mean()}, error {error}")
