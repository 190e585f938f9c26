"""Waiting for an executor that may never answer: the log says what is awaited, and a time limit is kept."""

import logging
import math
import time
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

HEARTBEAT = 60.0  # seconds between two lines that say what is waited for
POLL = 1.0  # seconds; futures that a closing executor cancels wake nobody up
LOG = logging.getLogger("jaxdp")


class Patience:
    """How long to wait for what an executor owes."""

    def __init__(self, timeout: float | None) -> None:
        """Starts waiting.

        Args:
            timeout: seconds without an answer after which to give up; None is never.
        """
        self._timeout = math.inf if timeout is None else timeout
        self.answered()

    def answered(self) -> None:
        """Starts to count anew: something came, or the time since was not spent on waiting."""
        self._since = self._told = time.monotonic()

    def wait(self, futures: Collection[Future[Any]], what: str) -> list[Future[Any]]:
        """Waits until some of the futures are done, or cancelled.

        Args:
            futures: at least one.
            what: they stand for, in messages.

        Returns:
            Those that are done.

        Raises:
            TimeoutError: if none is done within the time since the last answer.
        """
        while True:
            left = self._since + self._timeout - time.monotonic()
            wait(futures, timeout=max(0.0, min(POLL, left)), return_when=FIRST_COMPLETED)
            done = [future for future in futures if future.done()]
            if done:
                self.answered()
                return done
            now = time.monotonic()
            running = sum(future.running() for future in futures)
            text = f"{what} ({running} of {len(futures)} running, {len(futures) - running} not begun)"
            if now - self._since >= self._timeout:
                raise TimeoutError(
                    f"executor must finish something within timeout = {self._timeout:g} seconds, got nothing of {text}"
                )
            if now - self._told >= HEARTBEAT:
                self._told = now
                LOG.warning("the executor has finished nothing for %.0f s; waiting for %s", now - self._since, text)
