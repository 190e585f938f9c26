"""Registry entries of `two_point`."""

from jaxdp.bandits import convex
from jaxdp.core import Environment
from jaxdp.registry.bandits.convex._losses import CURVED, entry

ORDER = 240  # position of the entries in lists


def _differences(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim, feedback="difference")


PAIRS = "Agarwal, Dekel & Xiao (2010); on reports: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 2"
ENTRIES = {
    "two_point": entry(
        "descends by the reported slope of a loss between two points",
        convex.two_point,
        report="rr",
        source=PAIRS,
        environment=_differences,
    ),
    "two_point_gaussian": entry(
        "descends by the slope of a loss between two points, with Gaussian noise",
        convex.two_point,
        report="gaussian",
        source=PAIRS,
        environment=_differences,
    ),
    "two_point_strongly_convex": entry(
        "descends by the slope of a strongly convex loss between two points, in shrinking steps",
        convex.two_point,
        report="rr",
        source=PAIRS,
        variant={"losses": "strongly_convex"},
        values=CURVED,
        environment=_differences,
    ),
}
USES = {  # shown on pages of the site
    "two_point": {
        "use": (
            "Use it for convex losses whenever a user can evaluate two points: it has the best rate of the one- and "
            "two-point learners."
        ),
        "not": "If a user can see only one point, use `fkm` or a barrier method.",
    },
}
