"""Registry entries of `barrier_smooth`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._losses import BENT, ON_REPORTS, entry

ORDER = 250  # position of the entries in lists

SMOOTH = f"Saha & Tewari (2011), Algorithm 1; {ON_REPORTS}"
ENTRIES = {
    "barrier_smooth": entry(
        "follows a leader regularised by a barrier, from one smooth loss per round, by randomized response",
        convex.barrier_smooth,
        report="rr",
        source=SMOOTH,
        values=BENT,
    ),
    "barrier_smooth_gaussian": entry(
        "follows a leader regularised by a barrier, from one smooth loss per round, with Gaussian noise",
        convex.barrier_smooth,
        report="gaussian",
        source=SMOOTH,
        values=BENT,
    ),
}
USES = {  # shown on pages of the site
    "barrier_smooth": {
        "use": "Use it for smooth convex losses on a ball or a box with one point per user.",
        "not": "Its proof limits the step; at short horizons or small ε the limit binds, and `fkm` may do as well.",
    },
}
