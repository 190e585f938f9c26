"""A tape on which mechanisms write down what they noise, for an auditor who opens one. Closed, it costs nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

NORMS = ("l1", "l2", "max", "spread", "changed", "any")
LAWS = ("laplace", "normal", "gumbel", "exponential")


class Entry(NamedTuple):
    """One release, before its noise. Numbers may be arrays, or traced.

    Attributes:
        name: of the mechanism.
        value: [...] the exact value. Secret.
        norm: in which a change of the value is measured, and sensitivity declared: "l1"; "l2"; "max", of its entries;
            "spread", half the distance between the largest and the smallest change of a vector's entries (the last
            axis), which is what a selection sees; "changed", how many entries differ; "any", 1 if one of them does.
        key: that the noise comes from; None if it is not known.
        sensitivity: [] float, largest change that the caller declares, of each vector where there are several; None if
            it declares none.
        epsilon: [] float, what a change by `sensitivity` (by 1, if None) costs, in proportion; None where
            `noise_stddev` tells.
        rho: [] float, the same as zero-concentrated DP, in proportion to the square; None is epsilon^2 / 2.
        noise_stddev: [] float, of Gaussian noise; None for other mechanisms.
        noise: [...] what was drawn for this release, before it is scaled; None where it is not additive noise.
        law: of each number of the noise, independent of the others: "laplace", of scale 1; "normal", standard;
            "gumbel", standard; "exponential", of mean 1. An auditor draws it again and compares. None where noise has
            another law.
        each: whether entries are randomized one by one: each that differs costs epsilon, and sensitivity is of each.
        low: [] float, the value's entries must not lie below, or the cost is not as told; None for any.
        high: [] float, they must not lie above.
        run: [] what tells a run of AboveThreshold from others: one epsilon pays for all its entries up to one that is
            reported. None for a release that pays for itself.
        halted: [] bool, of a run: it has ended, and nothing is released.
        reported: [] bool, of a run: this entry is reported above; later ones cost epsilon again.
        released: [...] what is released, where that is the value and scaled noise: `sensitivity` / `epsilon` times
            Laplace noise, or `noise_stddev` times normal noise; None where an auditor need not compare.
    """

    name: str
    value: Any
    norm: str
    key: Any = None
    sensitivity: Any = None
    epsilon: Any = None
    rho: Any = None
    noise_stddev: Any = None
    noise: Any = None
    law: str | None = None
    each: bool = False
    low: Any = None
    high: Any = None
    run: Any = None
    halted: Any = None
    reported: Any = None
    released: Any = None


class Tape(NamedTuple):
    """An open tape.

    Attributes:
        entries: so far.
        use: value -> the value that the mechanism noises in its place.
    """

    entries: list[Entry]
    use: Callable[[jax.Array], jax.Array]


_open: ContextVar[Tape | None] = ContextVar("jaxdp_tape", default=None)


@contextmanager
def recording(use: Callable[[jax.Array], jax.Array] = lambda value: value) -> Iterator[list[Entry]]:
    """Opens a tape: what mechanisms are asked to noise inside the block, in order.

    Under `jit`, `vmap` or `scan` the entries are tracers, to be returned by the function inside which the tape was
    opened. A tape opened inside another hides it.

    Args:
        use: value -> the value of the same shape and dtype that is noised in its place; by default itself.

    Yields:
        The list of entries, which grows.

    Examples:
        >>> from jaxdp.mechanisms import laplace
        >>> with recording() as entries:
        ...     noisy = laplace(jax.random.key(0), jnp.array([3.0]), 0.5, l1_sensitivity=1.0)
        >>> entries[0].name, entries[0].value.tolist(), float(entries[0].sensitivity), float(entries[0].epsilon)
        ('laplace', [3.0], 1.0, 0.5)
    """
    tape = Tape([], use)
    token = _open.set(tape)
    try:
        yield tape.entries
    finally:
        _open.reset(token)


def is_open() -> bool:
    """Returns whether a tape is open, so that noise must be recorded apart from what it is added to."""
    return _open.get() is not None


def record(entry: Entry) -> jax.Array:
    """Writes an entry, if a tape is open. A mechanism of one's own calls this just before it adds its noise.

    Args:
        entry: the release; a typed key is kept as its data.

    Returns:
        The value to noise, an array or a sum as the entry has it: its own, if no tape is open that puts in another.

    Raises:
        ValueError: if the entry has an unknown norm or law, an empty value or no cost.
    """
    if entry.norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {entry.norm!r}")
    if entry.law not in (None, *LAWS):
        raise ValueError(f"law must be one of {', '.join(LAWS)}, or None, got {entry.law!r}")
    if entry.epsilon is None and entry.noise_stddev is None:
        raise ValueError("epsilon or noise_stddev must be given for an entry, got None for both")
    tape = _open.get()
    if tape is None:
        return entry.value
    value = jax.tree.map(jnp.asarray, entry.value)
    if any(leaf.size == 0 for leaf in jax.tree.leaves(value)):
        raise ValueError(f"value must not be empty, got shape {jax.tree.map(jnp.shape, value)}")
    key = entry.key
    if key is not None and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    tape.entries.append(entry._replace(value=value, key=key))
    return jax.tree.map(tape.use, value)


def amend(**fields: Any) -> None:
    """Adds to the entry written last what is known only after its noise was drawn, if a tape is open."""
    tape = _open.get()
    if tape is not None:
        tape.entries[-1] = tape.entries[-1]._replace(**fields)
