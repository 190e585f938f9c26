"""Runs stages in processes of their own, two at a time, and gives their outcomes in order."""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tests.loop.budgets import cpu_seconds

AT_A_TIME = 2
FORK = multiprocessing.get_context("fork")  # imported modules need not be imported again


class Stage(NamedTuple):
    """Something to check.

    Attributes:
        name: of the stage.
        run: returns a note, or raises `FailedError`.
    """

    name: str
    run: Callable[[], str]


class Outcome(NamedTuple):
    """The outcome of a stage.

    Attributes:
        failure: one sentence that begins with the name of the check that failed; empty if none did.
        note: its report otherwise.
        printed: its whole output.
        wall: seconds.
        cpu: seconds of processors.
    """

    failure: str
    note: str
    printed: str
    wall: float
    cpu: float


class FailedError(Exception):
    """A check failed; its text begins with the check's name."""


class _Running:
    """A stage in a process of its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.start = stage, time.monotonic()
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed with its outcome
        self.answer, other = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_in_child, args=(stage, other, self.file.fileno()), daemon=False)
        self.process.start()
        other.close()
        with contextlib.suppress(OSError):  # it does so itself, sooner or later
            os.setpgid(self.process.pid or 0, 0)

    def outcome(self) -> Outcome:
        try:
            failure, note, cpu = self.answer.recv()
        except EOFError:
            self.process.join()
            failure, note, cpu = f"{self.stage.name}: the process ended with {self.process.exitcode}", "", 0.0
        self.process.join()
        self.file.seek(0)
        printed = self.file.read().decode(errors="replace")
        self.file.close()
        return Outcome(failure, note, printed, time.monotonic() - self.start, cpu)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.join()
        self.file.close()


def run_in_order(stages: Sequence[Stage]) -> Iterator[tuple[Stage, Outcome]]:
    """Runs stages, and yields each with its outcome, in the given order.

    After one has failed no later one is started or yielded: what runs before it in the order is still waited for.

    Args:
        stages: to run.
    """
    running: dict[int, _Running] = {}
    outcomes: dict[int, Outcome] = {}
    ahead, last = 0, len(stages)  # stages from `last` on are of no interest any more
    try:
        for number, stage in enumerate(stages):
            while number not in outcomes:
                while ahead < last and len(running) < AT_A_TIME:
                    running[ahead] = _Running(stages[ahead])
                    ahead += 1
                answers: dict[Any, int] = {each.answer: index for index, each in running.items()}
                for ready in wait(list(answers)):
                    index = answers[ready]
                    outcomes[index] = running.pop(index).outcome()
                    if outcomes[index].failure:
                        last = min(last, index + 1)
                        for late in [each for each in running if each > index]:
                            running.pop(late).stop()
            yield stage, outcomes[number]
            if outcomes[number].failure:
                return
    finally:
        for each in running.values():
            each.stop()


def _in_child(stage: Stage, answer: Connection, file: int) -> None:
    os.setpgid(0, 0)  # so that its own processes stop with it
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115  # pytest may have put others in their place
    failure, note = "", ""
    try:
        note = stage.run()
    except FailedError as error:
        failure = str(error)
    except BaseException as error:
        traceback.print_exc()
        failure = f"{stage.name}: {type(error).__name__}: {error}"
    sys.stdout.flush()
    answer.send((failure, note, cpu_seconds()))
    answer.close()
    os._exit(0)  # JAX's threads need not be waited for
