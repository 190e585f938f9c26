"""Worlds, users and neighbours for several convex bandits."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, full_information
from jaxdp.bandits import convex
from jaxdp.core import Environment, default_float
from jaxdp.registry.draws import change_answers
from jaxdp.registry.entries import LearnerEntry

ON_REPORTS = "on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1"
# Users may have a loss beyond the bound to which a learner clips.
BEYOND = 7.0


def one_loss_moves() -> tuple[UserData, UserData]:
    """Returns users of two runs of two rounds: the first loss is NaN (first run) or above the bound (second run).

    NaN counts as the smallest loss. The loss of round two is 0.
    """
    return change_answers(np.array([np.nan, 0.0]), 0, BEYOND)


def draw_loss(key: jax.Array) -> UserData:
    """Draws a loss above the bound or below minus the bound, or NaN."""
    return UserData(jax.random.choice(key, jnp.asarray([-BEYOND, BEYOND, np.nan], default_float())))


def quadratic(dim: int = 1) -> Environment:
    return convex.quadratic_losses(dim=dim)


def entry(
    summary: str,
    factory: Any,
    *,
    report: str,
    source: str,
    variant: Mapping[str, Any] | None = None,
    values: Mapping[str, float] | None = None,
    dim: int = 3,
    environment: Any = quadratic,
) -> LearnerEntry:
    """Makes an entry of a learner that plays points; `report` is an argument of the learner's factory.

    dim = 0 means that the learner plays on a line and has no size `dim`.
    """
    return LearnerEntry(
        family="convex bandits",
        summary=summary,
        source=source,
        proof="proved",
        factory=factory,
        variant={"report": report, **(variant or {})},
        sizes={**({"dim": dim} if dim else {}), "horizon": 24},
        values={"epsilon": 1.0, **({"delta": 1e-3} if report == "gaussian" else {}), **(values or {})},
        environment=environment,
        neighbours=one_loss_moves,
        draw_user=draw_loss,
        users_answer=full_information,
        randomizes=report == "rr",
    )


BENT = {"smoothness": 0.5}
CURVED = {"strong_convexity": 0.5}
