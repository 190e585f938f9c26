"""Worlds, users and neighbours for several convex bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users, whole
from jaxdp.core import default_float
from jaxdp.registry.entries import LearnerEntry

# A user may also hold a loss beyond the bound to which a learner clips, or none.
BEYOND = 7.0


def one_loss_moves() -> tuple[Users, Users]:
    """Returns two users; the first one's loss is NaN, which counts as the smallest, or beyond the bound."""
    none = np.array([np.nan, 0.0])
    large = none.copy()
    large[0] = BEYOND
    return Users(none), Users(large)


def draw_loss(key: jax.Array) -> Users:
    """Draws a loss beyond the bound on either side, or NaN."""
    return Users(jax.random.choice(key, jnp.asarray([-BEYOND, BEYOND, np.nan], default_float())))


def entry(summary: str, factory: Any, *, report: str, source: str, **options: Any) -> LearnerEntry:
    variant = {"report": report, **options.pop("variant", {})}
    values = {"epsilon": 1.0, **({"delta": 1e-3} if report == "gaussian" else {}), **options.pop("values", {})}
    return LearnerEntry(
        family="convex bandits",
        summary=summary,
        source=source,
        proof="proved",
        factory=factory,
        variant=variant,
        sizes={"dim": 3, "horizon": 24},
        values=values,
        neighbours=one_loss_moves,
        draw_user=draw_loss,
        users_answer=whole,
        randomizes=report == "rr",
        **options,
    )


CURVED = {"strong_convexity": 0.5}
