"""Entries of `stochastic_1d`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._barriers import entry

ORDER = 270  # in lists

INTERVAL = "Agarwal, Foster, Hsu, Kakade & Rakhlin (2011), Algorithm 1"
ENTRIES = {
    "stochastic_1d": entry(
        "cuts off quarters of an interval by randomized losses at three points",
        convex.stochastic_1d,
        report="rr",
        source=INTERVAL,
    ),
    "stochastic_1d_gaussian": entry(
        "cuts off quarters of an interval by losses with Gaussian noise at three points",
        convex.stochastic_1d,
        report="gaussian",
        source=INTERVAL,
    ),
}
