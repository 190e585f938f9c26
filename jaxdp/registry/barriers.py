"""Convex bandits with barriers, and on an interval."""

from typing import Any

from jaxdp.audit import whole
from jaxdp.bandits import convex
from jaxdp.core import Environment
from jaxdp.registry.convex import draw_loss, one_loss_moves
from jaxdp.registry.entries import LearnerEntry


def _quadratic(dim: int = 1) -> Environment:
    return convex.quadratic_losses(dim=dim)


def _entry(summary: str, factory: Any, *, report: str, source: str, dim: int = 0, values: Any = ()) -> LearnerEntry:
    return LearnerEntry(
        family="convex bandits",
        summary=summary,
        source=f"{source}; on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1",
        proof="proved",
        factory=factory,
        variant={"report": report},
        sizes={**({"dim": dim} if dim else {}), "horizon": 24},
        values={"epsilon": 1.0, **({"delta": 1e-3} if report == "gaussian" else {}), **dict(values)},
        environment=_quadratic,
        neighbours=one_loss_moves,
        draw_user=draw_loss,
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
        dim=3,
        values=BENT,
    ),
    "barrier_smooth_gaussian": _entry(
        "the same with Gaussian reports",
        convex.barrier_smooth,
        report="gaussian",
        source=SMOOTH,
        dim=3,
        values=BENT,
    ),
    "barrier_strongly_convex": _entry(
        "follows a leader within a barrier by one smooth and strongly convex loss a round",
        convex.barrier_strongly_convex,
        report="rr",
        source=STRONG,
        dim=3,
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
