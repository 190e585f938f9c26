"""The tape of an audit: a list on which mechanisms record each release's exact value and cost, before adding noise.

If no tape is open, nothing is recorded, at no cost.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

NORMS = ("l1", "l2", "max", "spread", "changed", "any")
NOISE_DISTRIBUTIONS = ("laplace", "geometric", "normal", "gumbel", "exponential")


class Entry(NamedTuple):
    """One release, recorded before its noise is added. Numbers may be arrays, or traced.

    Attributes:
        name: name of the mechanism.
        value: [...] the exact value. Secret.
        norm: the norm in which changes of the value, and sensitivity, are measured: "l1"; "l2"; "max", the largest
            change of an entry; "spread", half the difference of the largest and the smallest change of a vector's
            entries (the last axis), for selections; "changed", the number of entries that differ; "any", 1 if any entry
            differs.
        key: key of the noise; None if unknown.
        sensitivity: [] float, the maximum change that the caller declares; if the value consists of several vectors
            (along its last axis), the maximum change of each. None if the caller declares none.
        epsilon: [] float, cost of a change by `sensitivity` (by 1 if `sensitivity` is None); other changes cost in
            proportion. None if `noise_stddev` determines the cost.
        rho: [] float, cost of the same change in zCDP; other changes cost in proportion to their square. None means
            epsilon^2 / 2.
        noise_stddev: [] float, standard deviation of Gaussian noise; None for other mechanisms.
        noise: [...] the draws for this release, before scaling; None if noise is not additive or is not recorded.
        distribution: distribution of each noise entry, independent of the others: "laplace", of scale 1;
            "geometric", two-sided, integers times `epsilon` / `sensitivity`, each with a probability proportional to
            exp(-|noise|); "normal", standard; "gumbel", standard; "exponential", of mean 1. An auditor draws the noise
            again with many keys, and tests this distribution. None for other distributions.
        each: whether entries are randomized one by one. If so, every changed entry costs epsilon, and sensitivity is
            for one entry.
        low: [] float; the cost holds only if all entries of the value are >= low. None if there is no such condition.
        high: [] float; the cost holds only if all entries of the value are <= high. None if there is no such condition.
        run: [] identifies a run of AboveThreshold: one epsilon covers all its entries up to the first reported one.
            None for a release with a separate cost.
        halted: [] bool, for a run: whether it has ended, so that nothing is released.
        reported: [] bool, for a run: whether this entry is reported as above the threshold; later entries then cost
            epsilon again.
        released: [...] the release, if it is the value plus scaled noise: `sensitivity` / `epsilon` times Laplace
            or geometric noise, or `noise_stddev` times normal noise; None if an auditor need not compare it.
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
    distribution: str | None = None
    each: bool = False
    low: Any = None
    high: Any = None
    run: Any = None
    halted: Any = None
    reported: Any = None
    released: Any = None


class Tape(NamedTuple):
    """An open tape: the recorded entries, and a replacement for recorded values.

    Attributes:
        entries: the entries so far.
        use: value -> the value that the mechanism uses instead.
    """

    entries: list[Entry]
    use: Callable[[jax.Array], jax.Array]


_open: ContextVar[Tape | None] = ContextVar("jaxdp_tape", default=None)


@contextmanager
def recording(use: Callable[[jax.Array], jax.Array] = lambda value: value) -> Iterator[list[Entry]]:
    """Opens a tape that records the releases of mechanisms inside the `with` block, in order.

    Under `jit`, `vmap` or `scan` the entries are tracers; the function that opened the tape must return them. A tape
    that is opened inside another tape's `with` block hides the outer tape.

    Args:
        use: value -> a value of the same shape and dtype that the mechanism uses instead; by default the value itself.

    Yields:
        The list of entries; it grows with each release.

    Examples:
        >>> with recording(use=lambda value: value + 1) as entries:
        ...     value_to_noise = record(Entry("laplace", jnp.array([3.0]), "l1", sensitivity=1.0, epsilon=0.5))
        >>> entries[0].value.tolist(), value_to_noise.tolist()
        ([3.0], [4.0])
    """
    tape = Tape([], use)
    token = _open.set(tape)
    try:
        yield tape.entries
    finally:
        _open.reset(token)


def is_open() -> bool:
    """Returns whether a tape is open, so that noise must be recorded separately from the value."""
    return _open.get() is not None


def record(entry: Entry) -> jax.Array:
    """Records an entry if a tape is open. A mechanism must call this function just before adding noise.

    Args:
        entry: the release; a typed key is stored as its data.

    Returns:
        The value to which noise is added, in the form of the entry's value: the value itself, unless an open tape
        replaces it.

    Raises:
        ValueError: if the entry has an unknown norm or distribution, or neither epsilon nor noise_stddev; or if the
            value is empty and a tape is open.
    """
    if entry.norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {entry.norm!r}")
    if entry.distribution not in (None, *NOISE_DISTRIBUTIONS):
        raise ValueError(
            f"distribution must be one of {', '.join(NOISE_DISTRIBUTIONS)}, or None, got {entry.distribution!r}"
        )
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
    """Sets fields of the last entry that are known only after its noise was drawn, if a tape is open."""
    tape = _open.get()
    if tape is not None:
        tape.entries[-1] = tape.entries[-1]._replace(**fields)
