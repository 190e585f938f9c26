"""Common parts of phased elimination by effective Borda scores: the order of duels, the wins, and the end of a phase.

A pass plays all ordered pairs of active arms, including each arm with itself, one after the other. A phase consists of
whole passes. An algorithm defines the number of passes of a phase, the users' reports, and the release at the end of a
phase. `_phases_bulk` plays many rounds of a phase at once.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    CountPrivatizeFn,
    Guarantee,
    Interface,
    Learner,
    PrivatizeFn,
    Space,
    State,
    pairs,
)
from jaxdp.dueling import _phases_bulk as bulk
from jaxdp.mechanisms.branches import branch
from jaxdp.numerics.lookup import nth_true
from jaxdp.validation import largest_integer


class Private(NamedTuple):
    """The state that only the curator, or the shuffler, knows.

    Attributes:
        wins: [num_arms] integer, number of duels of this phase that each arm won, or is reported to have won, as the
            left arm. Before a phase's first duel the array still contains the previous phase's wins, which are then
            discarded.
    """

    wins: jax.Array


class Public(NamedTuple):
    """The releases so far, and values computed from them.

    Attributes:
        active: [num_arms] bool, the remaining arms.
        phase: [] int32, number of phases that have ended.
        played: [] integer, number of rounds of this phase that have been played.
        seen: pytree, the further values that the last phase's release made public.
    """

    active: jax.Array
    phase: jax.Array
    played: jax.Array
    seen: Any


class ReleaseFn(Protocol):
    """Makes the release at the end of a phase from the phase's `wins`, and returns (arms that stay, `Public.seen`).

    The arms that stay are [num_arms] bool; an entry for an inactive arm has no effect. `public` may be the public state
    of any round of the phase. The function must not use `public.played`, which differs between the rounds of a phase;
    the other fields do not differ.
    """

    def __call__(self, key: jax.Array, params: Any, public: Public, wins: jax.Array) -> tuple[jax.Array, Any]: ...


def phased_learner(
    *,
    num_arms: int,
    params: Callable[..., Any],
    guarantee: Callable[..., Guarantee],
    privatize: PrivatizeFn,
    privatize_counts: CountPrivatizeFn,
    release: ReleaseFn,
    nothing_seen: Callable[[], Any],
) -> Learner:
    """Builds a learner that plays all pairs of active arms in a fixed order, and drops arms at the end of each phase.

    Args:
        num_arms: number of arms.
        params: (**values) -> Params with a field `passes`, [num_phases, num_arms + 1] integers >= 1: the number of
            passes for each phase and number of active arms. The largest integer marks a phase that never ends.
        guarantee: (**values) -> Guarantee, for the same values.
        privatize: returns (the pair of arms; 1 if the left arm won or is reported to have won).
        privatize_counts: the form of `privatize` for totals. Returns (number of duels of each pair; number of these
            duels that the left arm won or is reported to have won).
        release: makes the release at the end of a phase.
        nothing_seen: () -> `Public.seen` in the first phase, before any release.

    Returns:
        A learner with blocks and counts. Counts are for ordered pairs (left, right), in the order of a flattened
        [num_arms, num_arms] matrix.
    """
    integer = jnp.result_type(int)

    def init(key, params: Any) -> State:
        del key, params
        public = Public(jnp.ones(num_arms, bool), jnp.int32(0), jnp.zeros((), integer), nothing_seen())
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def duels(public: Public, rounds: jax.Array) -> jax.Array:
        """Returns the pairs of arms in these rounds of the phase, [rounds, 2] int32; the left arm varies fastest."""
        arms = jnp.argsort(~public.active, stable=True).astype(jnp.int32)  # active arms first
        size = num_active(public)
        return jnp.stack([arms[rounds % size], arms[rounds // size % size]], axis=-1)

    def act(key, params: Any, public: Public, context: None) -> jax.Array:
        del key, params, context
        left, right = public.played, public.played // num_active(public)
        return jnp.stack([nth_true(public.active, index % num_active(public)) for index in (left, right)])

    def wins_so_far(state: State) -> jax.Array:
        """Returns the wins of this phase, [num_arms] integer."""
        return jnp.where(state.public.played == 0, 0, state.private.wins)

    def next_phase(key, params: Any, public: Public, wins: jax.Array) -> Public:
        stays, seen = release(key, params, public, wins)
        return Public(public.active & stays, public.phase + 1, jnp.zeros_like(public.played), seen)

    def advance(key, params: Any, public: Public, wins: jax.Array, rounds: jax.Array) -> State:
        """Adds `rounds` to the round counter (`wins` includes them already); starts the next phase if this one ends."""
        after = public._replace(played=public.played + rounds)
        after = branch(
            (after.played == rounds_of_phase(params, public)) & (num_active(public) > 1),
            lambda: next_phase(key, params, public, wins),
            lambda: after,
        )
        return State(Private(wins), after)

    def update(key, params: Any, state: State, report) -> State:
        action, won = report
        is_left = jnp.arange(num_arms, dtype=action.dtype) == action[0]
        wins = wins_so_far(state) + jnp.where(is_left, jnp.clip(won, 0, 1), 0).astype(integer)
        return advance(key, params, state.public, wins, jnp.ones((), integer))

    steps = bulk.Algorithm(num_arms, integer, num_active, duels, rounds_of_phase, wins_so_far, advance)
    return Learner(
        params=params,
        guarantee=guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(bulk.blocks(steps),),
        counts=bulk.counts(steps, privatize_counts),
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )


def num_phases() -> int:
    """Returns the number of phases (rows) in a table such as `passes`: half the number of bits of an integer.

    Later phases use the last row. With a confidence_multiplier of 1, phase e = 1, 2, ... has at least 4^e duels, so no
    run reaches the end of a phase that uses the last row.
    """
    return jnp.result_type(int).itemsize * 4


def phases_and_sizes(num_arms: int) -> Iterator[tuple[int, int]]:
    """Iterates over all pairs of a phase (1, 2, ...) and a number of active arms."""
    return ((phase, size) for phase in range(1, num_phases() + 1) for size in range(1, num_arms + 1))


def empty_passes(num_arms: int) -> np.ndarray:
    """Makes a table of passes ([num_phases, num_arms + 1] integers) in which no phase ever ends."""
    return np.full((num_phases(), num_arms + 1), largest_integer(), jnp.result_type(int))


def passes_of(duels: float, size: int) -> int | None:
    """Returns the least number of passes in which each of `size` active arms is the left arm in >= `duels` duels.

    Returns None if the phase would have `largest_integer()` or more rounds.
    """
    largest = largest_integer()
    if not duels * size < largest:
        return None
    passes = -(-math.ceil(duels) // size)
    return passes if passes * size**2 < largest else None


def num_active(public: Public) -> jax.Array:
    """Counts the active arms, [] integer."""
    return jnp.sum(public.active, dtype=public.played.dtype)


def of_phase(table: Any, public: Public) -> jax.Array:
    """Returns the entry of a table [num_phases, num_arms + 1, ...] for this phase and the number of active arms."""
    table = jnp.asarray(table)
    return table[jnp.minimum(public.phase, len(table) - 1), num_active(public)]


def rounds_of_phase(params: Any, public: Public) -> jax.Array:
    """Returns the number of rounds of this phase, [] integer; the largest integer if the phase never ends."""
    largest, size, passes = largest_integer(), num_active(public), of_phase(params.passes, public)
    ends = (size > 1) & (passes < largest)
    return jnp.where(ends, jnp.where(ends, passes, 0) * (size * size), largest)  # the inner `where` avoids overflow


def duels_of_each(params: Any, public: Public) -> jax.Array:
    """Returns the number of this phase's duels in which each active arm is on the left, [] integer."""
    return rounds_of_phase(params, public) // num_active(public)
