"""The entry of `sgd_krr`."""

from jaxdp import estimation
from jaxdp.registry.data import CHOICES, tiny_choices
from jaxdp.registry.estimation._problems import CHOSEN, DP_REWARD, estimator_entry

ORDER = 550  # position of the entries in lists

ENTRIES = {
    "sgd_krr": estimator_entry(
        summary="one pass of projected SGD over K-ary randomized choices",
        source=f"{DP_REWARD}, eq. (12), Theorem C.2, Algorithm 1",
        factory=estimation.sgd_krr,
        sizes=CHOSEN,
        values={"epsilon": 1.0, "radius": 3.0},
        data=tiny_choices,
        neighbours=CHOICES,
    ),
}
USES = {  # shown on pages of the site
    "sgd_krr": {
        "use": "Use it to reproduce the source paper's K-wise updates, or for streams of choices.",
        "not": (
            "On data that fit in memory, if a radius bounds its estimate, `plackett_luce_debiased_krr` is more "
            "accurate from about ε = 1 on. In the measured choices one pass was more accurate at ε = 0.1."
        ),
    },
}
