"""States of learners with delayed feedback, and the order in which reports arrive."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_last


@pytree_dataclass
class Params:
    """Parameters of a learner with delayed feedback.

    Attributes:
        learner: the learner's parameters.
        order: [number of reports] int32, the rounds that send a report, in the order in which reports arrive.
        arrived: [horizon + 1] int32, number of reports that arrived before each round.
        sends: [horizon] bool, whether each round sends a report.
    """

    learner: Any
    order: np.ndarray
    arrived: np.ndarray
    sends: np.ndarray


class Public(NamedTuple):
    """Public state: the learner's public state, and counts of reports, which follow from delays and actions.

    Reports wait in queues, one for each slot. A slot is an action; if feedback contains the losses of all experts,
    there is one slot. A report's number is its place in the order of arrivals.

    Attributes:
        learner: the learner's public state.
        round: [] integer, number of rounds played.
        action: the action about which the learner waits for a report; meaningless if `waits` is false.
        waits: [] bool, whether the learner waits for a report about `action`.
        used: [slots] int32, number of reports in each slot that the learner has used.
        queued: [slots] int32, number of reports in each slot that have entered the queue. If reports arrive in the
            order of their rounds, a report enters the queue when it is sent; otherwise, when it arrives.
        all_used: [] int32, the sum of `used`.
        all_queued: [] int32, the sum of `queued`, which is the number of the next report.
        numbers: [slots, size] int32, the number of each report in `Private.queues`.
        slots: [size] int32, the slots of the reports in `Private.sent`; () if reports arrive in the order of their
            rounds.
    """

    learner: Any
    round: jax.Array
    action: Any
    waits: jax.Array
    used: jax.Array
    queued: jax.Array
    all_used: jax.Array
    all_queued: jax.Array
    numbers: jax.Array
    slots: Any


class Private(NamedTuple):
    """Private state of the curator: the learner's private state, and reports.

    Attributes:
        learner: the learner's private state.
        queues: [slots, size, ...] the reports of each slot; the n-th report of a slot is at n modulo `size`, which is
            the maximum delay plus 1.
        sent: [size, ...] reports of the last `size` rounds, by round modulo `size`; () if reports arrive in the order
            of their rounds.
    """

    learner: Any
    queues: Any
    sent: Any


class LateReport(NamedTuple):
    """A round's action, and the learner's report. In a round without a report, `report` has a visit and zeros."""

    action: Any
    report: Any


def index_if(condition: Any, index: jax.Array, size: int) -> jax.Array:
    """Returns the index if the condition is true, otherwise `size`, at which JAX writes nothing."""
    return index if condition is True else jnp.where(condition, index, size)


def entry_at(values: jax.Array, slot: jax.Array) -> jax.Array:
    """Returns values[slot] of a [slots] array."""
    if len(values) > MAX_UNROLLED:
        return values[slot]
    entry = values[0]  # few entries are selected, because XLA's gather on CPU takes lanes one by one
    for index in range(1, len(values)):
        entry = jnp.where(slot == index, values[index], entry)
    return entry


def count_at(counts: jax.Array, slot: jax.Array, flag: Any) -> jax.Array:
    """Adds 1 to a slot of counts, [slots] int32, if the flag is true."""
    number = jnp.int32(flag)
    if len(counts) > MAX_UNROLLED:
        return counts.at[slot].add(number)
    return lanes_last(counts + jnp.where(jnp.arange(len(counts), dtype=jnp.int32) == slot, number, 0))


def write(buffers: Any, index: Any, values: Any) -> Any:
    """Writes each value at an index of its buffer."""
    return jax.tree.map(
        lambda buffer, value: buffer.at[index].set(jnp.asarray(value).astype(buffer.dtype)), buffers, values
    )


def arrivals(delays: np.ndarray, is_sent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rounds that send reports, in the order in which reports arrive, and counts of arrived reports.

    `delays` and `is_sent` are [horizon] arrays. Entry t of the counts is the number of reports that arrived before
    round t, for t up to and including the horizon.
    """
    due, sent = np.arange(len(delays)) + delays, np.flatnonzero(is_sent)
    order = sent[np.argsort(due[sent], kind="stable")]
    arrived = np.searchsorted(due[order], np.arange(len(delays) + 1), side="left")
    return order.astype(np.int32), arrived.astype(np.int32)
