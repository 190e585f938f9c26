"""Convex bandits with barriers, and on an interval."""

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


def _quadratic(dim: int = 1) -> Environment:
    return convex.quadratic_losses(dim=dim)


def _one_loss_moves(rounds: int) -> tuple[Users, Users]:
    """The first user has no loss, which counts as the smallest, or a loss beyond the bound."""
    none = np.zeros(rounds)
    none[0] = np.nan
    large = none.copy()
    large[0] = BEYOND
    return Users(none), Users(large)


def _draw_loss(key: jax.Array) -> Users:
    """A loss beyond the bound on either side, or none."""
    return Users(jax.random.choice(key, jnp.asarray([-BEYOND, BEYOND, np.nan], default_float())))


def _entry(summary: str, factory: Any, *, report: str, source: str, dim: int = 0, values: Any = ()) -> LearnerEntry:
    return LearnerEntry(
        family="convex bandits",
        summary=summary,
        source=f"{source}; on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1",
        proof="proved",
        factory=factory,
        variant={"report": report},
        sizes={**({"dim": dim} if dim else {}), "horizon": 24, "rounds": 2},
        values={"epsilon": 1.0, **({"delta": 1e-3} if report == "gaussian" else {}), **dict(values)},
        environment=_quadratic,
        neighbours=_one_loss_moves,
        draw_user=_draw_loss,
        users_answer=whole,
        randomizes=report == "rr",
    )


SMOOTH = "Saha & Tewari (2011), Algorithm 1"
STRONG = "Hazan & Levy (2014), Algorithm 1"
INTERVAL = "Agarwal, Foster, Hsu, Kakade & Rakhlin (2011), Algorithm 1"
BENT = {"smoothness": 0.5}
CURVED = {**BENT, "strong_convexity": 0.5}

BARRIERS = {
    "barrier_smooth": _entry(
        "follows a leader within a barrier by one smooth loss a round, reported by randomized response",
        convex.barrier_smooth,
        report="rr",
        source=SMOOTH,
        dim=2,
        values=BENT,
    ),
    "barrier_smooth_gaussian": _entry(
        "the same with Gaussian reports",
        convex.barrier_smooth,
        report="gaussian",
        source=SMOOTH,
        dim=2,
        values=BENT,
    ),
    "barrier_smooth_laplace": _entry(
        "the same with Laplace reports",
        convex.barrier_smooth,
        report="laplace",
        source=SMOOTH,
        dim=2,
        values=BENT,
    ),
    "barrier_strongly_convex": _entry(
        "follows a leader within a barrier by one smooth and strongly convex loss a round",
        convex.barrier_strongly_convex,
        report="rr",
        source=STRONG,
        dim=2,
        values=CURVED,
    ),
    "barrier_strongly_convex_gaussian": _entry(
        "the same with Gaussian reports",
        convex.barrier_strongly_convex,
        report="gaussian",
        source=STRONG,
        dim=2,
        values=CURVED,
    ),
    "stochastic_1d": _entry(
        "cuts off quarters of an interval by randomized losses at three points",
        convex.stochastic_1d,
        report="rr",
        source=INTERVAL,
    ),
    "stochastic_1d_gaussian": _entry(
        "the same with Gaussian reports",
        convex.stochastic_1d,
        report="gaussian",
        source=INTERVAL,
    ),
}
