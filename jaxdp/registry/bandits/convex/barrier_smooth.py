"""Entries of `barrier_smooth`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._barriers import BENT, entry

ORDER = 250  # in lists

SMOOTH = "Saha & Tewari (2011), Algorithm 1"
ENTRIES = {
    "barrier_smooth": entry(
        "follows a leader within a barrier by one smooth loss per round, reported by randomized response",
        convex.barrier_smooth,
        report="rr",
        source=SMOOTH,
        dim=3,
        values=BENT,
    ),
    "barrier_smooth_gaussian": entry(
        "follows a leader within a barrier by one smooth loss per round, reported with Gaussian noise",
        convex.barrier_smooth,
        report="gaussian",
        source=SMOOTH,
        dim=3,
        values=BENT,
    ),
}
