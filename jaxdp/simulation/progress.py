"""How far a sweep is: a bar where there is a terminal, a callback where there is not."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tqdm import tqdm


class Progress(NamedTuple):
    """How far a sweep is.

    Attributes:
        lanes: done, those included that a store already had.
        num_lanes: all.
        lanes_per_second: since the sweep started, compiling included.
        rounds_per_second: the same in rounds of the horizon; None for runs that have no rounds.
        seconds_left: an estimate; None before the first lane.
        devices: where lanes run.
    """

    lanes: int
    num_lanes: int
    lanes_per_second: float
    rounds_per_second: float | None
    seconds_left: float | None
    devices: tuple[str, ...]


class Reporter:
    """Tells progress to a bar on stderr, if it is a terminal, or to a function."""

    def __init__(
        self,
        show: bool | Callable[[Progress], object],
        num_lanes: int,
        already: int,
        rounds: int | None,
        devices: Sequence[str],
    ) -> None:
        """Starts.

        Args:
            show: a function to call after every tile, True for a bar where stderr is a terminal, or False.
            num_lanes: all lanes.
            already: lanes that are done at the start.
            rounds: in a lane; None for runs that have none.
            devices: where lanes run.
        """
        self._call = show if callable(show) else None
        self._lanes, self._already, self._num_lanes = already, already, num_lanes
        self._rounds, self._devices = rounds, tuple(devices)
        self._start = time.perf_counter()
        disable = None if show is True else True  # None: unless stderr is a terminal
        self._bar: Any = tqdm(total=num_lanes, initial=already, unit="lane", disable=disable)
        self._bar.set_postfix_str(self._where())

    def describe(self, text: str) -> None:
        """Says what is being run."""
        self._bar.set_description_str(text)

    def advance(self, lanes: int) -> None:
        """Tells that more lanes are done."""
        self._lanes += lanes
        now = self.now()
        if now.rounds_per_second is not None:
            self._bar.set_postfix_str(f"{now.rounds_per_second:.2g} rounds/s, {self._where()}", refresh=False)
        self._bar.update(lanes)
        if self._call is not None:
            self._call(now)

    def now(self) -> Progress:
        """How far it is."""
        done, seconds = self._lanes - self._already, max(time.perf_counter() - self._start, 1e-9)
        rate = done / seconds
        left = (self._num_lanes - self._lanes) / rate if done else None
        rounds = None if self._rounds is None else rate * self._rounds
        return Progress(self._lanes, self._num_lanes, rate, rounds, left, self._devices)

    def close(self) -> None:
        """Ends the bar."""
        self._bar.close()

    def _where(self) -> str:
        kinds = dict.fromkeys(self._devices)
        return ", ".join(f"{self._devices.count(kind)} x {kind}" for kind in kinds)
