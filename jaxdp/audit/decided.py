"""Traces a function with fixed outcomes of its first branches, so that a tape can read releases inside the branches."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from jaxdp.mechanisms.branches import deciding

MOST_DECISIONS = 8  # maximum number; each decision needs a compiled program

Decisions = tuple[bool, ...]


class Undecided(NamedTuple):
    """The result of a function that reached a branch without a decision."""

    flag: jax.Array  # [] bool, the flag of this branch


class _UndecidedError(Exception):
    """Ends a trace at the first branch without a decision."""

    def __init__(self, flag: jax.Array) -> None:
        super().__init__(flag)
        self.flag = flag


def with_decisions(function: Callable[..., Any], decisions: Decisions) -> Callable[..., Any]:
    """Wraps a function for `jax.jit`: its first branches on traced flags take the sides that `decisions` gives.

    If the function reaches a further branch on a traced flag, the wrapped function returns the flag, as `Undecided`.
    JAX raises an error if this flag varies along the axis of a `jax.vmap`, or lies inside a branch, a loop or an inner
    `jit`. A branch on a known flag needs no decision.

    Args:
        function: function of arrays that calls `jaxdp.mechanisms.branches.branch`.
        decisions: the flags of its first branches on traced flags, in order.
    """

    def run(*arguments: Any) -> Any:
        remaining = list(decisions)

        def decide(flag: jax.Array) -> bool:
            if not isinstance(flag, Tracer):
                return bool(flag)
            if not remaining:
                raise _UndecidedError(flag)
            return remaining.pop(0)

        with deciding(decide):
            try:
                return function(*arguments)
            except _UndecidedError as stop:
                return Undecided(stop.flag)

    return run
