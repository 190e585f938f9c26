"""How far a sweep is: a bar for terminals and notebooks, a callback for all else."""

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

# tqdm's own rate and time left would count compiling: the sweep's own follow in the postfix.
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Progress(NamedTuple):
    """How far a sweep is.

    Attributes:
        lanes: done, those included that a store already had.
        num_lanes: all.
        lanes_per_second: of those that this call ran, in the seconds in which lanes ran: tracing and compiling are not
            counted, of no program. With an executor, whose workers compile unseen, it counts what came after the first
            chunk. 0.0 before there is something to count.
        rounds_per_second: the same in rounds of the horizon; None for runs that have no rounds.
        seconds_left: the other lanes at this rate, without the compiling of programs that are yet to come; None before
            there is a rate.
        devices: where lanes run.
    """

    lanes: int
    num_lanes: int
    lanes_per_second: float
    rounds_per_second: float | None
    seconds_left: float | None
    devices: tuple[str, ...]


class Reporter:
    """Tells progress to a bar, where someone sees it, or to a function."""

    def __init__(self, show: bool | Callable[[Progress], object], num_lanes: int, rounds: int | None) -> None:
        """Shows a bar that says "tracing".

        Args:
            show: a function to call after every tile, True for a bar where stderr is a terminal or a notebook's, or
                False.
            num_lanes: all lanes.
            rounds: in a lane; None for runs that have none.
        """
        self._call = show if callable(show) else None
        self._num_lanes, self._rounds = num_lanes, rounds
        self._lanes = self._counted = 0
        self._seconds, self._since = 0.0, None
        self._devices: tuple[str, ...] = ()
        self._tile = self._program = ""
        self._bar = _bar(num_lanes, "tracing") if show is True and _is_seen() else None

    def start(self, num_lanes: int, already: int, devices: Sequence[str]) -> None:
        """Shows what is to be run.

        Args:
            num_lanes: all lanes of this call.
            already: lanes that are done at the start.
            devices: where lanes run.
        """
        self._num_lanes, self._lanes, self._devices = num_lanes, already, tuple(devices)
        if self._bar is not None:
            self._bar.total, self._bar.n, self._bar.initial = num_lanes, already, already
            self._bar.set_postfix_str(self._where())
            if already == num_lanes:
                self.describe("complete")

    def describe(self, text: str) -> None:
        """Says what is being done."""
        if self._bar is not None:
            self._bar.set_description_str(text)

    def set_tile(self, text: str) -> None:
        """Shows how large a tile is, once lanes run."""
        self._tile = text

    def set_program(self, text: str) -> None:
        """Shows where the program came from that runs now."""
        self._program = text

    @contextlib.contextmanager
    def running(self, name: str) -> Generator[None, None, None]:
        """Lanes of a program run in this block: its seconds count."""
        self.describe(name)
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._seconds, self._since = self._elapsed(), None

    def advance(self, lanes: int, *, counted: bool = True) -> None:
        """Tells that more lanes are done.

        Args:
            lanes: how many.
            counted: whether they ran in seconds that count.
        """
        self._lanes += lanes
        self._counted += lanes if counted else 0
        now = self.now()
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join([*_speed(now), self._where()]), refresh=False)
            self._bar.update(lanes)
        if self._call is not None:
            self._call(now)

    def now(self) -> Progress:
        """How far it is."""
        rate = self._counted / max(self._elapsed(), 1e-9)
        to_do = self._num_lanes - self._lanes
        left = to_do / rate if rate else None if to_do else 0.0
        rounds = None if self._rounds is None else rate * self._rounds
        return Progress(self._lanes, self._num_lanes, rate, rounds, left, self._devices)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()

    def _elapsed(self) -> float:
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def _where(self) -> str:
        kinds = dict.fromkeys(self._devices)
        places = (f"{self._devices.count(kind)} x {kind}" for kind in kinds)
        return ", ".join(part for part in (*places, self._tile, self._program) if part)


def _speed(now: Progress) -> list[str]:
    if now.seconds_left is None:
        return []
    minutes, seconds = divmod(round(now.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"
    rounds = [] if now.rounds_per_second is None else [f"{now.rounds_per_second:.2g} rounds/s"]
    return [f"{left} left", f"{now.lanes_per_second:.3g} lanes/s", *rounds]


def _is_seen() -> bool:
    """Whether stderr is a terminal, or a notebook's."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_kernel = "IPKernelApp" in getattr(shell, "config", ())
    return in_kernel or bool(sys.stderr is not None and sys.stderr.isatty())


def _bar(num_lanes: int, text: str) -> Any:
    """A bar; in a notebook one of ipywidgets, or without them one of text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that widgets are missing
        from tqdm.auto import tqdm
    return tqdm(desc=text, total=num_lanes, unit="lane", bar_format=BAR)
