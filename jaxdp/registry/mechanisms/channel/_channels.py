"""Entries of local randomizers, as mechanisms with one user's value as input."""

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
    """Makes an entry with functions that make the channel at the sizes that they are given.

    If the channel has totals of reports, `total` reports the total of one user's report.
    """
    sizes = sizes or {}
    size_parameters = [Parameter(name, Parameter.KEYWORD_ONLY) for name in sizes]
    replacements = {"report": report, "total": total}

    def of_channel(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            channel = factory(**variant, **{size: named.pop(size) for size in sizes})
            instead = replacements.get(name)
            function = partial(instead, channel) if instead else getattr(channel, name)
            return function(*arguments, **named)

        values_ = Parameter("values", Parameter.VAR_KEYWORD)
        inputs = [Parameter(argument, Parameter.POSITIONAL_ONLY) for argument in ("key", "params", "data")]
        is_release = name in replacements
        signature = Signature([*inputs, *size_parameters] if is_release else [*size_parameters, values_])
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
    """Returns the domain of all values that a user's device may hold, numbers or not."""

    def draw(key: jax.Array) -> jax.Array:
        return 3 * jax.random.normal(key, shape, np.float32)

    return replaced_rows(draw, specials=[(*ANYTHING, *NO_NUMBERS, HUGE, -HUGE, 0.999, 1.001)])


def _any_label(num_labels: int) -> Domain:
    """Returns the domain of labels and of numbers outside, which are clipped."""
    return replaced_rows(
        lambda key: jax.random.randint(key, (), -2, num_labels + 2, jnp.int32), specials=[(-7, 9, 2**30)]
    )


LAPLACE, GAUSSIAN = "Dwork & Roth (2014), Theorem 3.6", "Balle & Wang (2018), Theorem 8"
