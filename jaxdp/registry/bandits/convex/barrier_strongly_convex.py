"""The entry of `barrier_strongly_convex`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._barriers import BENT, entry

ORDER = 260  # in lists

STRONG = "Hazan & Levy (2014), Algorithm 1"
CURVED = {**BENT, "strong_convexity": 0.5}
ENTRIES = {
    "barrier_strongly_convex": entry(
        "follows a leader within a barrier by one smooth and strongly convex loss per round",
        convex.barrier_strongly_convex,
        report="rr",
        source=STRONG,
        dim=3,
        values=CURVED,
    )
}
