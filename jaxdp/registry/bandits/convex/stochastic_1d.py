"""Registry entries of `stochastic_1d`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._losses import ON_REPORTS, entry

ORDER = 270  # position of the entries in lists

INTERVAL = f"Agarwal, Foster, Hsu, Kakade & Rakhlin (2011), Algorithm 1; {ON_REPORTS}"
ENTRIES = {
    "stochastic_1d": entry(
        "cuts off quarters of an interval by randomized losses at three points",
        convex.stochastic_1d,
        report="rr",
        source=INTERVAL,
        dim=0,
    ),
    "stochastic_1d_gaussian": entry(
        "cuts off quarters of an interval by losses with Gaussian noise at three points",
        convex.stochastic_1d,
        report="gaussian",
        source=INTERVAL,
        dim=0,
    ),
}
USES = {  # shown on pages of the site
    "stochastic_1d": {
        "use": (
            "Use it for one-dimensional convex losses with fixed means, where its regret grows as the square root of T."
        ),
        "not": "It is defined on an interval only, and losses may not drift.",
    },
}
