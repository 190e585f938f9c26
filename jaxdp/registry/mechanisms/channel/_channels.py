"""Entries of channels, as mechanisms whose input is one user's value."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Domain, replaced_rows
from jaxdp.audit.domains import ANYTHING, NO_NUMBERS
from jaxdp.core import Channel
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.laws import label_law

HUGE = 2.0**100  # its square overflows


def entry(
    summary: str,
    factory: Callable[..., Channel],
    source: str,
    neighbours: Any,
    clipped: Callable[..., jax.Array],
    *,
    variant: Mapping[str, Any],
    sizes: Mapping[str, Any] | None = None,
    report: Callable[..., Any] | None = None,
    total: Callable[..., Any] | None = None,
    values: Mapping[str, float] | None = None,
    law: Callable[..., Any] | None = None,
    grid: Mapping[str, tuple[float, ...]] | None = None,
    reached: float | None = None,
) -> MechanismEntry:
    """An entry whose functions make the channel of the sizes that they are told.

    Where the channel has totals of reports, `total` reports that of one user's.
    """
    sizes = sizes or {}
    told = [Parameter(name, Parameter.KEYWORD_ONLY) for name in sizes]

    own = {"report": report, "total": total}

    def of_channel(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            channel = factory(**variant, **{size: named.pop(size) for size in sizes})
            instead = own.get(name)
            function = partial(instead, channel) if instead else getattr(channel, name)
            return function(*arguments, **named)

        values_ = Parameter("values", Parameter.VAR_KEYWORD)
        places = [Parameter(each, Parameter.POSITIONAL_ONLY) for each in ("key", "params", "data")]
        signature = Signature([*places, *told] if name in own else [*told, values_])
        call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
        return call

    return MechanismEntry(
        summary=summary,
        family="channels",
        source=source,
        proof="proved",
        factory=factory,
        variant=variant,
        sizes=sizes,
        values={"epsilon": 0.5, **(values or {})},
        params=of_channel("params"),
        guarantee=of_channel("guarantee"),
        release=of_channel("report"),
        others={"total": of_channel("total")} if total else {},
        neighbours=neighbours,
        domain=_any_label if law is label_law else partial(_anything, np.shape(neighbours[0])),
        grid={"epsilon": (0.1, 4.0), **(grid or {})},
        exact=clipped,
        law=law,
        reached=reached,
    )


def _anything(shape: tuple[int, ...]) -> Domain:
    """Whatever a user's device may hold, numbers or not."""

    def draw(key: jax.Array) -> jax.Array:
        return 3 * jax.random.normal(key, shape, np.float32)

    return replaced_rows(draw, specials=[(*ANYTHING, *NO_NUMBERS, HUGE, -HUGE, 0.999, 1.001)])


def _any_label(num_labels: int) -> Domain:
    """Labels, and numbers beyond, which are clipped."""
    return replaced_rows(
        lambda key: jax.random.randint(key, (), -2, num_labels + 2, jnp.int32), specials=[(-7, 9, 2**30)]
    )


LAPLACE, GAUSSIAN = "Dwork & Roth (2014), Theorem 3.6", "Balle & Wang (2018), Theorem 8"
