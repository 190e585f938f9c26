"""Entries of `fkm` and `strongly_convex_one_point`."""

from jaxdp.bandits import convex
from jaxdp.core import Environment
from jaxdp.registry.bandits.convex._losses import CURVED, entry

ORDER = 230  # in lists


def _quadratic(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim)


def _quadratic_on_box(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim, domain="box")


ONE = {"environment": _quadratic}
FKM = "Flaxman, Kalai & McMahan (2005); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1"
STRONG = "Agarwal, Dekel & Xiao (2010); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 1"
ENTRIES = {
    "fkm": entry(
        "descends by one loss per round, reported by randomized response", convex.fkm, report="rr", source=FKM, **ONE
    ),
    "fkm_gaussian": entry(
        "descends by one loss per round, reported with Gaussian noise", convex.fkm, report="gaussian", source=FKM, **ONE
    ),
    "fkm_laplace": entry(
        "descends by one loss per round, reported with Laplace noise", convex.fkm, report="laplace", source=FKM, **ONE
    ),
    "fkm_box": entry(
        "descends on a box by one loss per round, reported by randomized response",
        convex.fkm,
        report="rr",
        source=FKM,
        variant={"domain": "box"},
        environment=_quadratic_on_box,
    ),
    "strongly_convex_one_point": entry(
        "descends by one strongly convex loss per round, in shrinking steps",
        convex.strongly_convex_one_point,
        report="rr",
        source=STRONG,
        values=CURVED,
        **ONE,
    ),
}
