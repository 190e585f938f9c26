"""Channels, as mechanisms whose input is one user's value."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Domain, replaced_rows
from jaxdp.audit.domains import ANYTHING, NO_NUMBERS
from jaxdp.core import Channel, default_float
from jaxdp.mechanisms import exact_moments, label_channel, moment_channel, scalar_channel, vector_channel
from jaxdp.numerics.small_linear_algebra import square_triangle
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.laws import label_law, scalar_law

HUGE = 2.0**100  # its square overflows
# Values outside the domain, which count as values at its edge, and these two are as far apart as any, or nearly so.
_SCALARS = (np.asarray(np.nan, np.float32), np.asarray(HUGE, np.float32))
_BITS = (np.asarray(-7, np.int32), np.asarray(9, np.int32))
_L1_VECTORS = (np.asarray([np.inf, np.nan, 0, 0], np.float32), np.asarray([-np.inf, 0, 0, 0], np.float32))
_USERS = (  # contexts about 60 degrees apart, and after each the reward
    np.asarray([HUGE, 0, np.inf], np.float32),
    np.asarray([1 / 2, 27 / 32, -HUGE], np.float32),
)


def _entry(
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


def _within_one(data: jax.Array) -> jax.Array:
    return jnp.where(data > -1, jnp.minimum(data, 1), -1).astype(default_float())


def _l1_edge(data: jax.Array) -> jax.Array:
    """Of a vector with one infinite entry."""
    return jnp.where(jnp.isinf(data), jnp.sign(data), 0).astype(default_float())


def _square(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two corners of a cube, whose norms overflow."""
    return np.full(size, HUGE, np.float32), np.full(size, -HUGE, np.float32)


def _l2_edge(data: jax.Array) -> jax.Array:
    """Of a vector with equal entries."""
    return jnp.sign(data).astype(default_float()) / jnp.sqrt(jnp.asarray(data.size, default_float()))


def _clip_label(data: jax.Array, num_labels: int) -> jax.Array:
    return jnp.clip(data, 0, num_labels - 1)


def _clipped_moments(data: jax.Array) -> jax.Array:
    x, y = jnp.minimum(data[:2], 1).astype(default_float()), jnp.where(data[2] > 0, 1, -1)
    return jnp.concatenate([square_triangle(x), y.astype(x.dtype) * x])


def _total_labels(channel: Channel, key: jax.Array, params: Any, data: jax.Array, num_labels: int) -> jax.Array:
    label = jnp.clip(data, 0, num_labels - 1)
    totals = label if num_labels == 2 else (jnp.arange(num_labels, dtype=label.dtype) == label).astype(label.dtype)
    assert channel.total is not None
    return channel.total(key, params, totals, jnp.ones_like(totals))


def _report_moments(channel: Channel, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    outer, cross = channel.report(key, params, (data[:2], data[2]))
    return jnp.concatenate([outer, cross])


def _total_moments(channel: Channel, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    """Of one user."""
    assert channel.total is not None
    outer, cross = channel.total(key, params, exact_moments(params, (data[:2], data[2])), jnp.ones((), jnp.int32))
    return jnp.concatenate([outer, cross])


WARNER = "Warner (1965); Kairouz, Bonawitz & Ramage (2016), for K labels"
LAPLACE, GAUSSIAN = "Dwork & Roth (2014), Theorem 3.6", "Balle & Wang (2018), Theorem 8"

CHANNELS: dict[str, MechanismEntry] = {
    **{
        f"scalar_channel_{report}": _entry(
            f"reports a number of an interval {text}",
            scalar_channel,
            source,
            _SCALARS,
            _within_one,
            variant={"report": report},
            values={"low": -1.0, **more},
            grid={"low": (0.5, -3.0)},
            law=scalar_law if report == "rr" else None,
        )
        for report, text, source, more in (
            (
                "rr",
                "as one of two numbers, without bias",
                "Duchi, Jordan & Wainwright (2018), in one dimension",
                {},
            ),
            ("laplace", "with Laplace noise", LAPLACE, {}),
            ("gaussian", "with Gaussian noise", GAUSSIAN, {"delta": 1e-2}),
        )
    },
    **{
        f"label_channel_{num_labels}": _entry(
            f"reports one of {num_labels} labels by randomized response",
            label_channel,
            WARNER,
            _BITS,
            _clip_label,
            variant={},
            sizes={"num_labels": num_labels},
            total=partial(_total_labels, num_labels=num_labels),
            law=label_law,
        )
        for num_labels in (2, 4)
    },
    "vector_channel_l1": _entry(
        "reports a vector of bounded L1 norm with Laplace noise",
        vector_channel,
        LAPLACE,
        _L1_VECTORS,
        _l1_edge,
        variant={"shape": (4,), "norm": "l1"},
    ),
    "vector_channel_l2": _entry(
        "reports a vector of bounded L2 norm with Gaussian noise",
        vector_channel,
        GAUSSIAN,
        _square(4),
        _l2_edge,
        variant={"shape": (4,), "norm": "l2"},
        values={"delta": 1e-2},
    ),
    **{
        name: _entry(
            f"reports x x^T and y x of a context x and its reward y {text}",
            moment_channel,
            source,
            _USERS,
            _clipped_moments,
            variant={"dim": 2, **variant},
            report=_report_moments,
            total=total,
            values=values,
            grid={"epsilon": (0.1, 1.0)} if values.get("epsilon") else None,
        )
        for name, text, source, variant, total, values in (
            (
                "moment_channel",
                "with Gaussian noise",
                f"Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5; {GAUSSIAN}",
                {},
                _total_moments,
                {"delta": 1e-2},
            ),
            (
                "moment_channel_paper",
                "with noise apart, as published",
                "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5",
                {"constants": "paper"},
                _total_moments,
                {"epsilon": 1.4, "delta": 1e-2},  # of less the noise hides too much to be told
            ),
            (
                "moment_channel_l2_ball",
                "as a vector of a sphere",
                "Duchi, Jordan & Wainwright (2018), section 4.2.3",
                {"report": "l2_ball"},
                None,
                {},
            ),
        )
    },
}
