"""Waits for an executor that may never respond. Logs missing results and enforces a time limit."""

import logging
import math
import time
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

HEARTBEAT = 60.0  # seconds between two log lines
POLL = 1.0  # seconds; futures cancelled by a closing executor do not end `wait`
LOG = logging.getLogger("jaxdp")


class Patience:
    """A clock that limits how long a sweep waits for an executor."""

    def __init__(self, timeout: float | None) -> None:
        """Starts the clock. `wait` raises an error after `timeout` seconds without a result; None means no limit."""
        self._timeout = math.inf if timeout is None else timeout
        self.restart()

    def restart(self) -> None:
        """Restarts the clock, after a result or after a time in which the sweep did not wait."""
        self._since = self._last_logged = time.monotonic()

    def wait(self, futures: Collection[Future[Any]], what: str) -> list[Future[Any]]:
        """Waits until some futures are done or cancelled, restarts the clock, and returns these futures.

        Args:
            futures: at least one future.
            what: name of the missing results, for messages.

        Raises:
            TimeoutError: if no future is done within `timeout` seconds after the clock was restarted.
        """
        while True:
            left = self._since + self._timeout - time.monotonic()
            wait(futures, timeout=max(0.0, min(POLL, left)), return_when=FIRST_COMPLETED)
            done = [future for future in futures if future.done()]
            if done:
                self.restart()
                return done
            time_now = time.monotonic()
            running = sum(future.running() for future in futures)
            text = f"{what} ({running} of {len(futures)} running, {len(futures) - running} not started)"
            if time_now - self._since >= self._timeout:
                raise TimeoutError(
                    f"executor must return a result within timeout = {self._timeout:g} seconds; still waiting for "
                    f"{text}"
                )
            if time_now - self._last_logged >= HEARTBEAT:
                self._last_logged = time_now
                LOG.warning(
                    "the executor has finished nothing for %.0f s; waiting for %s", time_now - self._since, text
                )
