"""Branches on public flags; an auditor can choose the side in advance, so that releases inside it are recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import jax

Result = TypeVar("Result")
Decide = Callable[[jax.Array], bool]

_decide: ContextVar[Decide | None] = ContextVar("jaxdp_decide", default=None)


def branch(flag: jax.Array, if_true: Callable[..., Result], if_false: Callable[..., Result], *operands: Any) -> Result:
    """Returns if_true(*operands) or if_false(*operands), as `jax.lax.cond` does.

    A tape (see `jaxdp.mechanisms.tape`) cannot record a release inside a compiled `jax.lax.cond`. Here an auditor can
    decide the flag in advance: then only the chosen function is traced, outside of any branch.

    Args:
        flag: [] bool, public.
        if_true: function of the operands.
        if_false: function of the operands; its result has the same structure, shapes and dtypes.
        operands: pytrees of arrays.
    """
    decide = _decide.get()
    if decide is None:
        return jax.lax.cond(flag, if_true, if_false, *operands)
    return (if_true if decide(flag) else if_false)(*operands)


@contextmanager
def deciding(decide: Decide) -> Iterator[None]:
    """Lets `decide` choose the side of each `branch` inside the `with` block.

    Args:
        decide: flag -> whether `if_true` runs. The flags may be traced.
    """
    token = _decide.set(decide)
    try:
        yield
    finally:
        _decide.reset(token)
