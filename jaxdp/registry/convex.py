"""Convex bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users, whole
from jaxdp.bandits import convex
from jaxdp.core import Environment, default_float
from jaxdp.registry.entries import LearnerEntry

# Losses beyond the bound to which a learner clips them are a user's to hold, too; and none at all.
BEYOND = 7.0


def _quadratic(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim)


def _boxed(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim, domain="box")


def _differences(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim, feedback="difference")


def one_loss_moves() -> tuple[Users, Users]:
    """The first of two users has no loss, which counts as the smallest, or a loss beyond the bound."""
    none = np.array([np.nan, 0.0])
    large = none.copy()
    large[0] = BEYOND
    return Users(none), Users(large)


def draw_loss(key: jax.Array) -> Users:
    """A loss beyond the bound on either side, or none."""
    return Users(jax.random.choice(key, jnp.asarray([-BEYOND, BEYOND, np.nan], default_float())))


def _entry(summary: str, factory: Any, *, report: str, source: str, **options: Any) -> LearnerEntry:
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


ONE = {"environment": _quadratic}
TWO = {"environment": _differences}
FKM = "Flaxman, Kalai & McMahan (2005); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1"
STRONG = "Agarwal, Dekel & Xiao (2010); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1"
PAIRS = "Agarwal, Dekel & Xiao (2010); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 2"
CURVED = {"strong_convexity": 0.5}

CONVEX = {
    "fkm": _entry(
        "descends by one loss a round, reported by randomized response",
        convex.fkm,
        report="rr",
        source=FKM,
        **ONE,
    ),
    "fkm_gaussian": _entry(
        "the same with Gaussian reports",
        convex.fkm,
        report="gaussian",
        source=FKM,
        **ONE,
    ),
    "fkm_laplace": _entry(
        "the same with Laplace reports",
        convex.fkm,
        report="laplace",
        source=FKM,
        **ONE,
    ),
    "fkm_box": _entry(
        "the same on a box",
        convex.fkm,
        report="rr",
        source=FKM,
        variant={"domain": "box"},
        environment=_boxed,
    ),
    "strongly_convex_one_point": _entry(
        "descends by one strongly convex loss a round, in shrinking steps",
        convex.strongly_convex_one_point,
        report="rr",
        source=STRONG,
        values=CURVED,
        **ONE,
    ),
    "two_point": _entry(
        "descends by the reported slope of a loss between two points",
        convex.two_point,
        report="rr",
        source=PAIRS,
        **TWO,
    ),
    "two_point_gaussian": _entry(
        "the same with Gaussian reports",
        convex.two_point,
        report="gaussian",
        source=PAIRS,
        **TWO,
    ),
    "two_point_strongly_convex": _entry(
        "the same for strongly convex losses, in shrinking steps",
        convex.two_point,
        report="rr",
        source=PAIRS,
        variant={"losses": "strongly_convex"},
        values=CURVED,
        **TWO,
    ),
}
