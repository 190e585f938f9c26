"""The one way in which benchmarks measure: calls take turns, medians count, and ratios are within a turn."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from jaxdp.simulation.store.processor import cores

REPEATS = 7
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}
CPU = jax.devices("cpu")[0]


class Work(NamedTuple):
    """A call to time.

    Attributes:
        call: does the work; its result is ready when it returns.
        units: of work in one call, such as lane-rounds.
        cores: how many the call may use.
        compiling: seconds in which its program was compiled; None if unknown.
    """

    call: Callable[[], Any]
    units: float
    cores: int = cores()
    compiling: float | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row that is ready to be measured.

    Attributes:
        works: by name; the first one is ours, the second one, if any, its main peer.
        size: as text.
        unit: of work.
        check: called after the measurement; raises an AssertionError if results of ours and of peers disagree.
        figures: more numbers for the record, computed after the measurement, by name.
    """

    works: Mapping[str, Work]
    size: str
    unit: str
    check: Callable[[], None] = lambda: None
    figures: Callable[[], Mapping[str, float | None]] = dict


class Seconds(NamedTuple):
    """Seconds of each call, in the order of turns."""

    wall: list[float]
    processor: list[float]


def take_turns(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Seconds]:
    """Returns the times of each call over `repeats` turns, after a warm-up turn.

    In a turn all calls run once, one after the other, so that a busy moment of the machine meets all of them.
    """
    for call in calls.values():
        call()
    seconds = {name: Seconds([], []) for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            starts = [clock() for clock in CLOCKS.values()]
            call()
            for clock, start, times in zip(CLOCKS.values(), starts, seconds[name], strict=True):
                times.append(clock() - start)
    return seconds


def measure(case: Case, repeats: int = REPEATS, clock: str = "wall") -> dict[str, Any]:
    """Returns the record of a case.

    Args:
        case: to measure.
        repeats: turns.
        clock: "wall", or "processor": seconds of all cores, which other programs on the machine hardly change.
    """
    seconds = take_turns({name: work.call for name, work in case.works.items()}, repeats)
    case.check()
    units = {name: _nanoseconds(case.works[name], getattr(seconds[name], clock), clock) for name in case.works}
    ours = next(iter(units.values()))
    names = list(units)
    return {
        "size": case.size,
        "unit": case.unit,
        "clock": clock,
        "ns": statistics.median(ours),
        "ns_spread": [min(ours), max(ours)],
        "peer": names[1] if len(names) > 1 else None,
        "ratios": {name: _median_ratio(units[name], ours) for name in names[1:]},
        "compiling_seconds": next(iter(case.works.values())).compiling,
        "seconds": {name: times._asdict() for name, times in seconds.items()},
        **case.figures(),
    }


def _nanoseconds(work: Work, seconds: Sequence[float], clock: str) -> list[float]:
    """Returns nanoseconds of one core for a unit of work in each turn; `seconds` are by "wall" or "processor"."""
    used = work.cores if clock == "wall" else 1  # the processor's clock has added up cores
    return [each * used * 1e9 / work.units for each in seconds]


def _median_ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    return statistics.median(peer / own for peer, own in zip(theirs, ours, strict=True))


def machine() -> str:
    """Returns the machine that numbers are measured on, as text."""
    device = jax.devices()[0]
    where = f"{device.platform} ({device.device_kind})"
    return f"{platform.machine()}, {os.cpu_count()} cores, jax {jax.__version__} on {where}"
