"""The entry of `thurstone_rr`."""

from jaxdp import estimation
from jaxdp.registry.entries import EstimatorEntry
from jaxdp.registry.estimation._problems import DP_REWARD, SAMPLES

ORDER = 530  # in lists

ENTRIES = {
    "thurstone_rr": EstimatorEntry(
        family="estimation",
        summary="one pass of projected SGD under Thurstone's model over randomized labels",
        source=f"{DP_REWARD}, section 4.4, and eq. (10)",
        proof="proved",
        factory=estimation.thurstone_rr,
        sizes=SAMPLES,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
}
