"""The entry of `thurstone_rr`."""

from jaxdp import estimation
from jaxdp.registry.estimation._problems import DP_REWARD, SAMPLES, estimator_entry

ORDER = 530  # position of the entries in lists

ENTRIES = {
    "thurstone_rr": estimator_entry(
        summary="one pass of projected SGD under Thurstone's model over randomized labels",
        source=f"{DP_REWARD}, section 4.4, and eq. (10)",
        factory=estimation.thurstone_rr,
        sizes=SAMPLES,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
}
USES = {  # shown on pages of the site
    "thurstone_rr": {
        "use": "Use it with randomized labels when the probit link is the model.",
        "not": "For the logistic link use `debiased_rr` or `sgd_rr`.",
    },
}
