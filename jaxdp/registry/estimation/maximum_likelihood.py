"""Registry entries of `mle`, `mle_rr` and `debiased_rr`."""

from dataclasses import replace

from jaxdp import estimation
from jaxdp.registry.estimation._problems import DP_REWARD, SAMPLES, estimator_entry

ORDER = 490  # position of the entries in lists

MLE = estimator_entry(
    summary="non-private maximum likelihood from exact labels",
    source=f"Zhu, Jiao & Jordan (2023); {DP_REWARD}, eq. (8)",
    proof="none",
    factory=estimation.mle,
    sizes=SAMPLES,
    values={"radius": 3.0},
)
ENTRIES = {
    "mle": MLE,
    "mle_rr": replace(
        MLE,
        summary="maximum likelihood of randomized labels",
        source=f"{DP_REWARD}, eq. (3), Theorem 4.1",
        proof="proved",
        factory=estimation.mle_rr,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
    "debiased_rr": replace(
        MLE,
        summary="minimum of the de-biased loss of randomized labels",
        source=f"{DP_REWARD}, eq. (4)-(6), Theorem 4.2",
        proof="proved",
        factory=estimation.debiased_rr,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
}
USES = {  # shown on pages of the site
    "mle": {
        "use": "Use it as the non-private reference for two-way preferences.",
        "not": "It makes no privacy claim.",
    },
    "mle_rr": {
        "use": "Use it with randomized labels at large ε, where the likelihood of the reports is used in full.",
        "not": "Its objective is not convex at small ε: the certificate then certifies only a stationary point.",
    },
    "debiased_rr": {
        "use": (
            "Use it with randomized labels from about ε = 1 on: for the logistic link it is convex. At small ε or "
            "with few labels set a radius: without one there may be no finite minimiser, and the error can exceed a "
            "million."
        ),
        "not": (
            "At small ε `sgd_rr` is more accurate. With a curator `objective_perturbation` usually has less noise: "
            "predict both with `predicted_errors`."
        ),
    },
}
