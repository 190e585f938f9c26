"""The entry of `sgd_krr`."""

from jaxdp import estimation
from jaxdp.registry.data import CHOICES, tiny_choices
from jaxdp.registry.entries import EstimatorEntry
from jaxdp.registry.estimation._problems import CHOSEN, DP_REWARD

ORDER = 550  # in lists

ENTRIES = {
    "sgd_krr": EstimatorEntry(
        family="estimation",
        summary="one pass of projected SGD over K-ary randomized choices",
        source=f"{DP_REWARD}, eq. (12), Theorem C.2, Algorithm 1",
        proof="proved",
        factory=estimation.sgd_krr,
        sizes=CHOSEN,
        values={"epsilon": 1.0, "radius": 3.0},
        data=tiny_choices,
        neighbours=CHOICES,
    ),
}
