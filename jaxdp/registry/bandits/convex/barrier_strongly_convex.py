"""The entry of `barrier_strongly_convex`."""

from jaxdp.bandits import convex
from jaxdp.registry.bandits.convex._losses import BENT, CURVED, ON_REPORTS, entry

ORDER = 260  # position of the entries in lists

ENTRIES = {
    "barrier_strongly_convex": entry(
        "follows a leader regularised by a barrier, from one smooth and strongly convex loss per round",
        convex.barrier_strongly_convex,
        report="rr",
        source=f"Hazan & Levy (2014), Algorithm 1; {ON_REPORTS}",
        values={**BENT, **CURVED},
    )
}
USES = {  # shown on pages of the site
    "barrier_strongly_convex": {
        "use": "Use it for smooth and strongly convex losses with one point per user.",
        "not": (
            "At short horizons its step is reduced until the proof holds; see `Deviations` before you compare rates."
        ),
    },
}
