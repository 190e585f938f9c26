"""The entry of `objective_perturbation_full`."""

from jaxdp import estimation
from jaxdp.registry.data import ONE_RECORD
from jaxdp.registry.estimation._problems import DP_REWARD, SAMPLES, estimator_entry

ORDER = 520  # position of the entries in lists

ENTRIES = {
    "objective_perturbation_full": estimator_entry(
        summary="maximum likelihood with noise in the objective, which hides features and labels",
        source=f"{DP_REWARD}, Theorem E.1; Kifer, Smith & Thakurta (2012); Iyengar et al. (2019)",
        reached=0.08,  # the theorem assumes a shift of twice the true norm, and counts tails twice
        factory=estimation.objective_perturbation_full,
        sizes=SAMPLES,
        values={"epsilon": 1.0, "delta": 1e-3, "feature_norm": 1.0, "radius": 3.0},
        neighbours=ONE_RECORD,
    ),
}
USES = {  # shown on pages of the site
    "objective_perturbation_full": {
        "use": "Use it with a curator when a whole comparison is private, its features included.",
        "not": (
            "If features are public, `objective_perturbation` has far less noise. A failed solve is visible; see "
            "`Privacy`."
        ),
    },
}
