"""Common parts of the entries of barrier methods."""

from typing import Any

from jaxdp.audit import whole
from jaxdp.bandits import convex
from jaxdp.core import Environment
from jaxdp.registry.bandits.convex._losses import draw_loss, one_loss_moves
from jaxdp.registry.entries import LearnerEntry


def _quadratic(dim: int = 1) -> Environment:
    return convex.quadratic_losses(dim=dim)


def entry(summary: str, factory: Any, *, report: str, source: str, dim: int = 0, values: Any = ()) -> LearnerEntry:
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


BENT = {"smoothness": 0.5}
