"""Registry entries of `moment_randomizer`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import LocalRandomizer, default_float
from jaxdp.mechanisms import exact_moments, moment_randomizer
from jaxdp.numerics.small_linear_algebra import square_triangle
from jaxdp.registry.mechanisms.local_randomizers._randomizers import GAUSSIAN, HUGE, entry

ORDER = 90  # position of the entries in lists

_USERS = (  # a context and then its reward, for each user; the contexts are about 60 degrees apart
    np.asarray([HUGE, 0, np.inf], np.float32),
    np.asarray([1 / 2, 27 / 32, -HUGE], np.float32),
)


def _clipped_moments(data: jax.Array) -> jax.Array:
    context, reward = jnp.minimum(data[:2], 1).astype(default_float()), jnp.where(data[2] > 0, 1, -1)
    return jnp.concatenate([square_triangle(context), reward.astype(context.dtype) * context])


def _report_moments(randomizer: LocalRandomizer, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    outer, cross = randomizer.report(key, params, (data[:2], data[2]))
    return jnp.concatenate([outer, cross])


def _total_moments(randomizer: LocalRandomizer, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    """Returns one user's report as one vector, drawn by the randomizer's `total` as the total of a single report.

    `data` has three numbers: the user's context [2], and the reward.
    """
    assert randomizer.total is not None
    outer, cross = randomizer.total(key, params, exact_moments(params, (data[:2], data[2])), jnp.ones((), jnp.int32))
    return jnp.concatenate([outer, cross])


ENTRIES = {
    name: entry(
        f"reports x x^T and y x of a context x and its reward y {text}",
        moment_randomizer,
        source,
        _USERS,
        _clipped_moments,
        variant={"dim": 2, **variant},
        report=_report_moments,
        **options,
    )
    for name, text, source, variant, options in (
        (
            "moment_randomizer",
            "with Gaussian noise",
            f"Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5; {GAUSSIAN}",
            {},
            {"total": _total_moments, "values": {"delta": 1e-2}},
        ),
        (
            "moment_randomizer_paper",
            "with separate noise, as published",
            "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5",
            {"constants": "paper"},
            {
                "total": _total_moments,
                "values": {"epsilon": 1.4, "delta": 1e-2},  # at a smaller epsilon the noise hides faults from audits
                "grid": {"epsilon": (0.1, 1.0)},
                "reached": 0.2,  # no pair of users attains the sensitivities of both releases; loose constants
            },
        ),
        (
            "moment_randomizer_l2_ball",
            "as a random vector on a sphere",
            "Duchi, Jordan & Wainwright (2018), section 4.2.3",
            {"report": "l2_ball"},
            {},
        ),
    )
}
USES = {  # shown on pages of the site
    "moment_randomizer": {
        "use": "Use it to report the moments x xᵀ and y x of one user to a server.",
        "not": "It has d (d + 1) / 2 + d numbers; with a curator sum the moments first (`linear_ucb_joint`).",
    },
}
