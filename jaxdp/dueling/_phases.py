"""What phased eliminations by effective Borda scores share: the order of duels, their counts, and the ends of phases.

An algorithm adds how long its phases are, what a user reports, and what is released at the end of a phase.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    BlockPlan,
    Blocks,
    CountPlan,
    CountPrivatizeFn,
    Counts,
    Guarantee,
    Interface,
    Learner,
    PrivatizeFn,
    Space,
    State,
    pairs,
)

BLOCK_PER_ARM = 16


class Private(NamedTuple):
    """What the curator knows, or the shuffler.

    Attributes:
        wins: [num_arms] integer, duels of the phase that each arm has won as the left one, or is reported to have won.
            They are counted from zero again in the first round of a phase.
    """

    wins: jax.Array


class Public(NamedTuple):
    """What has been released, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        phase: [] int32, phases that have ended.
        played: [] integer, rounds of this phase played.
        seen: pytree, what was released at the end of the last phase besides `active`.
    """

    active: jax.Array
    phase: jax.Array
    played: jax.Array
    seen: Any


class ReleaseFn(Protocol):
    """What is released at the end of a phase: ([num_arms] bool, the arms that stay; `Public.seen`).

    `public` is that of the phase's last round, and `wins` are those of the whole phase.
    """

    def __call__(self, key: jax.Array, params: Any, public: Public, wins: jax.Array) -> tuple[jax.Array, Any]: ...


def largest_integer() -> int:
    """Stands for a phase that is too long to end."""
    return int(jnp.iinfo(jnp.result_type(int)).max)


def num_phases() -> int:
    """How many phases tables have; the last one would be too long to end, with at least 8 x 4^e duels an arm."""
    return jnp.result_type(int).itemsize * 4


def phases_and_sizes(num_arms: int) -> Iterator[tuple[int, int]]:
    """All pairs of a phase e = 1, 2, ... and a number of active arms."""
    return ((phase, size) for phase in range(1, num_phases() + 1) for size in range(1, num_arms + 1))


def empty_passes(num_arms: int) -> np.ndarray:
    """[num_phases, num_arms + 1] integers, of phases that are all too long to end."""
    return np.full((num_phases(), num_arms + 1), largest_integer(), jnp.result_type(int))


def passes_of(duels: float, size: int) -> int | None:
    """How often a phase plays all pairs of `size` arms, so that each is the left one in at least `duels` of them.

    None where the rounds of the phase are more than integers count.
    """
    largest = largest_integer()
    if not duels * size < largest:
        return None
    passes = -(-math.ceil(duels) // size)
    return passes if passes * size**2 < largest else None


def size_of(public: Public) -> jax.Array:
    """[] integer, active arms."""
    return jnp.sum(public.active, dtype=public.played.dtype)


def of_phase(table: Any, public: Public) -> jax.Array:
    """The entry of a table [num_phases, num_arms + 1, ...] for this phase and the number of active arms."""
    table = jnp.asarray(table)
    return table[jnp.minimum(public.phase, len(table) - 1), size_of(public)]


def length(params: Any, public: Public) -> jax.Array:
    """Rounds of this phase; a lone arm plays on for ever."""
    largest, size, each = largest_integer(), size_of(public), of_phase(params.passes, public)
    return jnp.where((size == 1) | (each == largest), largest, each * jnp.where(each == largest, 0, size * size))


def duels_of_each(params: Any, public: Public) -> jax.Array:
    """How many duels of the phase each active arm is the left one in."""
    return length(params, public) // size_of(public)


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
    """A learner that plays all pairs of active arms in turn, and drops arms at the end of each phase.

    Args:
        num_arms: number of arms.
        params: (**values) -> Params, whose `passes` are [num_phases, num_arms + 1] integers >= 1: how often each phase
            plays all pairs of so many active arms; the largest integer stands for a phase that is too long to end.
        guarantee: for the same values.
        privatize: returns the pair of arms, and 1 if the left one won or is reported to have won.
        privatize_counts: the same for totals: how often each pair was played, and how many of those the left arm won.
        release: at the end of a phase.
        nothing_seen: () -> `Public.seen` of the first phase.

    Returns:
        The learner, with blocks, and with counts of ordered pairs in the order of a flattened matrix.
    """
    integer = jnp.result_type(int)

    def init(key, params: Any) -> State:
        del key, params
        public = Public(jnp.ones(num_arms, bool), jnp.int32(0), jnp.zeros((), integer), nothing_seen())
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def duels(public: Public, played: jax.Array) -> jax.Array:
        """The pairs [..., 2] of these rounds of the phase: left arms in turn, and after all of them the next right."""
        arms = jnp.argsort(~public.active, stable=True).astype(jnp.int32)  # active ones first
        size = size_of(public)
        return jnp.stack([arms[played % size], arms[played // size % size]], axis=-1)

    def act(key, params: Any, public: Public, context: None) -> jax.Array:
        del key, params, context
        return duels(public, public.played)

    def wins_so_far(state: State) -> jax.Array:
        return jnp.where(state.public.played == 0, 0, state.private.wins)

    def end(key, params: Any, public: Public, wins: jax.Array) -> Public:
        kept, seen = release(key, params, public, wins)
        return Public(public.active & kept, public.phase + 1, jnp.zeros_like(public.played), seen)

    def advance(key, params: Any, public: Public, wins: jax.Array, rounds: jax.Array) -> State:
        """Goes on by some rounds of the phase, and drops arms if it ends with the last of them."""
        after = public._replace(played=public.played + rounds)
        after = jax.lax.cond(
            (after.played == length(params, public)) & (size_of(public) > 1),
            lambda: end(key, params, public, wins),
            lambda: after,
        )
        return State(Private(wins), after)

    def update(key, params: Any, state: State, report) -> State:
        action, won = report
        mine = jnp.arange(num_arms, dtype=action.dtype) == action[0]
        wins = wins_so_far(state) + jnp.where(mine, jnp.clip(won, 0, 1), 0).astype(integer)
        return advance(key, params, state.public, wins, jnp.ones((), integer))

    def rounds_ahead(params: Any, public: Public, limit: jax.Array) -> jax.Array:
        return jnp.minimum(limit, length(params, public) - public.played)

    def plan_block(keys, params: Any, public: Public, contexts: None, limit) -> BlockPlan:
        del contexts
        played = public.played + jnp.arange(len(keys), dtype=integer)
        return BlockPlan(duels(public, played), rounds_ahead(params, public, limit))

    def absorb_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        won = jnp.where(planned, jnp.clip(feedback, 0, 1), 0).astype(integer)
        wins = wins_so_far(state) + won @ jax.nn.one_hot(actions[:, 0], num_arms, dtype=integer)
        return advance(keys[plan.length - 1], params, state.public, wins, plan.length), plan.length

    def plan_counts(key, params: Any, public: Public, limit) -> CountPlan:
        del key
        ahead, size = rounds_ahead(params, public, limit), size_of(public)
        rank = jnp.cumsum(public.active, dtype=integer) - 1
        place = rank[:, None] + size * rank[None, :]  # of the pair among the rounds of a pass
        every = size * size
        last = public.played + ahead - 1
        counts = (last - place) // every - (public.played - 1 - place) // every
        return CountPlan(jnp.where(public.active[:, None] & public.active[None, :], counts, 0).ravel())

    def absorb_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        won = jnp.clip(won, 0, counts).astype(integer).reshape(num_arms, num_arms).sum(1)
        return advance(key, params, state.public, wins_so_far(state) + won, counts.sum(dtype=integer))

    return Learner(
        params=params,
        guarantee=guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(BLOCK_PER_ARM * num_arms, plan_block, absorb_block),),
        counts=Counts(plan_counts, privatize_counts, absorb_counts),
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
