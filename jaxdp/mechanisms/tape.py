"""A tape on which mechanisms write down what they noise, for an auditor who opens one. Closed, it costs nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import jax

NORMS = ("l1", "l2", "max", "changed")


class Entry(NamedTuple):
    """One release, before its noise.

    Attributes:
        name: of the mechanism.
        value: [...] the exact value. Secret.
        norm: in which a change of the value is measured, and sensitivity declared: "l1", "l2", "max" (the largest
            entry of each vector along the last axis; vectors add up) or "changed" (the number of entries that differ).
        sensitivity: [] float, largest change that the caller declares; None if it declares none.
        epsilon: [] float, what a change by `sensitivity` (by 1, if None) costs, in proportion; None where
            `noise_stddev` tells.
        noise_stddev: [] float, of Gaussian noise; None for other mechanisms.
        noise: [...] what was drawn for this release, before it is scaled; None where it is not additive noise.
        each: whether entries are randomized one by one: a change costs epsilon for every entry that differs.
        lasts: whether one budget pays for this entry and for all later ones of this name until one that `starts`.
        starts: whether a new budget begins, as at the start of a run of AboveThreshold.
    """

    name: str
    value: jax.Array
    norm: str
    sensitivity: jax.Array | float | None
    epsilon: jax.Array | float | None = None
    noise_stddev: jax.Array | float | None = None
    noise: jax.Array | None = None
    each: bool = False
    lasts: bool = False
    starts: bool = False


_open: ContextVar[list[Entry] | None] = ContextVar("jaxdp_tape", default=None)


@contextmanager
def recording() -> Iterator[list[Entry]]:
    """Opens a tape: what mechanisms are asked to noise inside the block, in order.

    Under `jit`, `vmap` or `scan` the entries are tracers, to be returned by the function inside which the tape was
    opened. A tape opened inside another hides it.

    >>> from jaxdp.mechanisms import laplace
    >>> with recording() as entries:
    ...     noisy = laplace(jax.random.key(0), jnp.array([3.0]), 0.5, l1_sensitivity=1.0)
    >>> entries[0].name, entries[0].value.tolist(), float(entries[0].sensitivity), float(entries[0].epsilon)
    ('laplace', [3.0], 1.0, 0.5)
    """
    entries: list[Entry] = []
    token = _open.set(entries)
    try:
        yield entries
    finally:
        _open.reset(token)


def record(entry: Entry) -> None:
    """Writes an entry, if a tape is open. A mechanism of one's own calls this just before it adds its noise."""
    entries = _open.get()
    if entries is not None:
        entries.append(entry)
