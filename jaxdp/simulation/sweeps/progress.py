"""Reports the progress of a sweep, with a bar in terminals and notebooks or by calling a function."""

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import xarray as xr

# tqdm's own rate and remaining time would include compilation, so the postfix shows the sweep's numbers instead.
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


# A function of (results, region), which must not change the results. They are complete only in the regions of this call
# and of earlier calls. A region is a tuple of slices, one for each dimension of (*static axes, *axes, seed).
Listener = Callable[["xr.Dataset", tuple[slice, ...]], object]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def listen_to_chunks(listener: Listener) -> Iterator[None]:
    """Calls `listener` for each chunk that sweeps without a store compute in a `with` block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def has_listener() -> bool:
    """Returns whether a listener waits for chunks."""
    return _listener.get() is not None


def report_chunk(dataset: "xr.Dataset", region: tuple[slice, ...]) -> None:
    """Calls the listener, if there is one, with results that are complete in one more region."""
    if (listener := _listener.get()) is not None:
        listener(dataset, region)


class Progress(NamedTuple):
    """The progress of a sweep.

    Attributes:
        lanes: number of lanes that are done, including lanes that were already in a store.
        num_lanes: total number of lanes of this call; with several processes, the number of lanes of this process.
        lanes_per_second: number of lanes that this call ran, divided by the time in which lanes ran, without tracing
            and compilation. With an executor, the first chunk is not counted, because its time includes compilation.
            0.0 until a lane is counted.
        rounds_per_second: lanes_per_second times the last checkpoint; None for runs without rounds.
        seconds_left: time for the remaining lanes at this rate, without compilation; None until there is a rate; 0.0 if
            no lanes remain.
        devices: the devices that run lanes.
    """

    lanes: int
    num_lanes: int
    lanes_per_second: float
    rounds_per_second: float | None
    seconds_left: float | None
    devices: tuple[str, ...]


class Reporter:
    """A reporter, which shows progress in a bar, passes it to a function, or does neither."""

    def __init__(self, show: bool | Callable[[Progress], object], num_lanes: int, rounds: int | None) -> None:
        """Makes a reporter, and shows its bar, if it has one, with the text "tracing".

        Args:
            show: a function to call each time lanes are done, True for a bar (only if `is_seen()`), or False for
                neither.
            num_lanes: total number of lanes.
            rounds: number of rounds of a lane (the last checkpoint); None for runs without rounds.
        """
        self._callback = show if callable(show) else None
        self._num_lanes, self._rounds = num_lanes, rounds
        self._lanes = self._counted = 0
        self._seconds, self._since = 0.0, None
        self._devices: tuple[str, ...] = ()
        self._tile = self._program = ""
        self._bar = None
        self.text = "tracing"
        if show is True and is_seen():
            self._bar = make_bar(desc=self.text, total=num_lanes, unit="lane", bar_format=BAR)

    def start(self, num_lanes: int, already: int, devices: Sequence[str]) -> None:
        """Sets and shows the total number of lanes of this call, the number that is already done, and the devices."""
        self._num_lanes, self._lanes, self._devices = num_lanes, already, tuple(devices)
        if self._bar is not None:
            self._bar.total, self._bar.n, self._bar.initial = num_lanes, already, already
            self._bar.set_postfix_str(self._devices_and_texts())
            if already == num_lanes:
                self.describe("complete")

    def describe(self, text: str) -> None:
        """Shows the current step, and keeps it as `text`."""
        self.text = text
        if self._bar is not None:
            self._bar.set_description_str(text)

    def set_tile(self, text: str) -> None:
        """Sets the text about tiles that is shown while lanes run."""
        self._tile = text

    def set_program(self, text: str) -> None:
        """Sets the text that the bar shows about the running program: compiled now, or read from the cache."""
        self._program = text

    @contextlib.contextmanager
    def running(self, name: str) -> Generator[None, None, None]:
        """Shows `name`, and adds the time of this `with` block, in which lanes run, to the time of the rate."""
        self.describe(name)
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._seconds, self._since = self._elapsed_seconds(), None

    def advance(self, lanes: int, *, counted: bool = True) -> None:
        """Reports that `lanes` more lanes are done. The rate includes them if `counted` is true."""
        self._lanes += lanes
        self._counted += lanes if counted else 0
        progress = self.progress()
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join([*_speed(progress), self._devices_and_texts()]), refresh=False)
            self._bar.update(lanes)
        if self._callback is not None:
            self._callback(progress)

    def progress(self) -> Progress:
        """Returns the lanes done, the rate and the time left, as a `Progress`."""
        rate = self._counted / max(self._elapsed_seconds(), 1e-9)
        to_do = self._num_lanes - self._lanes
        left = to_do / rate if rate else None if to_do else 0.0
        rounds = None if self._rounds is None else rate * self._rounds
        return Progress(self._lanes, self._num_lanes, rate, rounds, left, self._devices)

    def close(self) -> None:
        """Closes the bar."""
        if self._bar is not None:
            self._bar.close()

    def _elapsed_seconds(self) -> float:
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def _devices_and_texts(self) -> str:
        kinds = dict.fromkeys(self._devices)
        counts = (f"{self._devices.count(kind)} x {kind}" for kind in kinds)
        return ", ".join(part for part in (*counts, self._tile, self._program) if part)


def _speed(progress: Progress) -> list[str]:
    if progress.seconds_left is None:
        return []
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"
    rounds = [] if progress.rounds_per_second is None else [f"{progress.rounds_per_second:.2g} rounds/s"]
    return [f"{left} left", f"{progress.lanes_per_second:.3g} lanes/s", *rounds]


def is_seen() -> bool:
    """Returns whether a bar would be seen: stderr is a terminal, or the process is a notebook kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_kernel = "IPKernelApp" in getattr(shell, "config", ())
    return in_kernel or bool(sys.stderr is not None and sys.stderr.isatty())


def make_bar(**options: Any) -> Any:
    """Returns a tqdm bar with these options: a widget in notebooks with ipywidgets, otherwise text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about missing widgets
        from tqdm.auto import tqdm
    return tqdm(**options)
