"""Registry entries of `fkm` and `strongly_convex_one_point`."""

from jaxdp.bandits import convex
from jaxdp.core import Environment
from jaxdp.registry.bandits.convex._losses import CURVED, ON_REPORTS, entry

ORDER = 230  # position of the entries in lists


def _quadratic_on_box(dim: int) -> Environment:
    return convex.quadratic_losses(dim=dim, domain="box")


FKM = f"Flaxman, Kalai & McMahan (2005); {ON_REPORTS}"
STRONG = f"Agarwal, Dekel & Xiao (2010); {ON_REPORTS}"
ENTRIES = {
    "fkm": entry(
        "descends along gradients estimated from one loss per round, reported by randomized response",
        convex.fkm,
        report="rr",
        source=FKM,
    ),
    "fkm_gaussian": entry(
        "descends along gradients estimated from one loss per round, reported with Gaussian noise",
        convex.fkm,
        report="gaussian",
        source=FKM,
    ),
    "fkm_laplace": entry(
        "descends along gradients estimated from one loss per round, reported with Laplace noise",
        convex.fkm,
        report="laplace",
        source=FKM,
    ),
    "fkm_box": entry(
        "descends on a box along gradients estimated from one loss per round, by randomized response",
        convex.fkm,
        report="rr",
        source=FKM,
        variant={"domain": "box"},
        environment=_quadratic_on_box,
    ),
    "strongly_convex_one_point": entry(
        "descends along gradients estimated from one strongly convex loss per round, in shrinking steps",
        convex.strongly_convex_one_point,
        report="rr",
        source=STRONG,
        values=CURVED,
    ),
}
USES = {  # shown on pages of the site
    "fkm": {
        "use": (
            "Use it for convex losses on a ball or a box when each user sees one point, and nothing is known about "
            "curvature."
        ),
        "not": (
            "If a user can evaluate two points, `two_point` has a far lower regret. If losses are smooth or strongly "
            "convex, use the learners that know it."
        ),
    },
    "strongly_convex_one_point": {
        "use": "Use it when losses are strongly convex with a known constant, and each user sees one point.",
        "not": "If the constant is unknown or wrong, the steps are wrong; `fkm` does not need it.",
    },
}
