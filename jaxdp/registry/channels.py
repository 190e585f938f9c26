"""Every channel, named once: as mechanisms whose input is one user's value."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Channel
from jaxdp.mechanisms import label_channel, moment_channel, scalar_channel, vector_channel
from jaxdp.registry.mechanisms import MechanismEntry

HUGE = 2.0**100  # its square overflows
# Values outside the domain, which count as values at its edge, and these two are as far apart as any, or nearly so.
_SCALARS = (np.asarray(np.nan, np.float32), np.asarray(HUGE, np.float32))
_BITS = (np.asarray(-7, np.int32), np.asarray(9, np.int32))
_L1_VECTORS = (np.asarray([np.inf, np.nan, 0, 0], np.float32), np.asarray([-np.inf, 0, 0, 0], np.float32))
_L2_VECTORS = (np.full(4, HUGE, np.float32), np.full(4, -HUGE, np.float32))
_USERS = (  # contexts about 60 degrees apart, and after each the reward
    np.asarray([HUGE, 0, np.inf], np.float32),
    np.asarray([1 / 2, 27 / 32, np.nan], np.float32),
)
_moments = moment_channel(2)


def _entry(
    summary: str,
    channel: Channel,
    neighbours: tuple[np.ndarray, np.ndarray],
    clipped: Callable[[jax.Array], jax.Array],
    **values: float,
) -> MechanismEntry:
    return MechanismEntry(
        summary=summary,
        values={"epsilon": 0.5, **values},
        params=channel.params,
        guarantee=channel.guarantee,
        release=channel.report,
        neighbours=neighbours,
        exact=clipped,
    )


def _within_one(data: jax.Array) -> jax.Array:
    return jnp.where(data > -1, jnp.minimum(data, 1), -1).astype(jnp.result_type(float))


def _l1_edge(data: jax.Array) -> jax.Array:
    """Of a vector with one infinite entry."""
    return jnp.where(jnp.isinf(data), jnp.sign(data), 0).astype(jnp.result_type(float))


def _l2_edge(data: jax.Array) -> jax.Array:
    """Of a vector with four equal entries."""
    return jnp.sign(data).astype(jnp.result_type(float)) / 2


def _clipped_moments(data: jax.Array) -> jax.Array:
    x, y = jnp.minimum(data[:2], 1).astype(jnp.result_type(float)), jnp.where(data[2] > 0, 1, -1)
    return jnp.concatenate([(x[:, None] * x[None, :]).ravel(), y.astype(x.dtype) * x])


def _report_moments(key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    outer, cross = _moments.report(key, params, (data[:2], data[2]))
    return jnp.concatenate([outer.ravel(), cross])


CHANNELS: dict[str, MechanismEntry] = {
    **{
        f"scalar_channel_{report}": _entry(
            f"reports a number of an interval {text}", scalar_channel(report), _SCALARS, _within_one, low=-1.0, **more
        )
        for report, text, more in (
            ("rr", "as one of two numbers, without bias", {}),
            ("laplace", "with Laplace noise", {}),
            ("gaussian", "with Gaussian noise", {"delta": 1e-2}),
        )
    },
    **{
        f"label_channel_{num_labels}": _entry(
            f"reports one of {num_labels} labels by randomized response",
            label_channel(num_labels),
            _BITS,
            lambda data, num_labels=num_labels: jnp.clip(data, 0, num_labels - 1),
        )
        for num_labels in (2, 4)
    },
    "vector_channel_l1": _entry(
        "reports a vector of bounded L1 norm with Laplace noise", vector_channel((4,), "l1"), _L1_VECTORS, _l1_edge
    ),
    "vector_channel_l2": _entry(
        "reports a vector of bounded L2 norm with Gaussian noise",
        vector_channel((4,), "l2"),
        _L2_VECTORS,
        _l2_edge,
        delta=1e-2,
    ),
    "moment_channel": _entry(
        "reports x x^T and y x of a context x and its reward y with Gaussian noise",
        _moments._replace(report=_report_moments),
        _USERS,
        _clipped_moments,
        delta=1e-2,
    ),
}
