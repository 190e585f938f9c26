"""Registry entries of `objective_perturbation`, `sgd_objective_perturbation` and `literal_objective_perturbation`."""

from dataclasses import replace

from jaxdp import estimation
from jaxdp.registry.data import MOVES_A_CUT
from jaxdp.registry.estimation._problems import DP_REWARD, HARDT, SAMPLES, estimator_entry
from jaxdp.registry.second import Second

ORDER = 510  # position of the entries in lists

OBJECTIVE_PERTURBATION = estimator_entry(
    summary="maximum likelihood with a sufficient statistic of the labels with Gaussian noise",
    source=f"{DP_REWARD}, Theorem 5.2, Algorithm 2",
    factory=estimation.objective_perturbation,
    sizes=SAMPLES,
    values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
)
ENTRIES = {
    "objective_perturbation": OBJECTIVE_PERTURBATION,
    "objective_perturbation_cut": replace(
        OBJECTIVE_PERTURBATION,
        summary="maximum likelihood with Gaussian noise in the statistic; weights limit large features, for less noise",
        source=f"{DP_REWARD}, Theorem 5.2, Algorithm 2, with public weights",
        variant={"weights": "cut"},
        second=Second(values={"epsilon": 4.0}, neighbours=MOVES_A_CUT),
    ),
    "objective_perturbation_cut_k_norm": replace(
        OBJECTIVE_PERTURBATION,
        summary="maximum likelihood with K-norm noise in the statistic, for pure privacy; weights limit large features",
        source=f"{DP_REWARD}, Theorem 5.2, Algorithm 2, with public weights; {HARDT}",
        variant={"weights": "cut", "noise": "k_norm"},
        values={"epsilon": 1.0, "radius": 3.0},
        second=Second(values={"epsilon": 4.0}, neighbours=MOVES_A_CUT),
    ),
    "objective_perturbation_whitened": replace(
        OBJECTIVE_PERTURBATION,
        summary="maximum likelihood with Gaussian noise in coordinates that whiten the public features",
        source=f"{DP_REWARD}, Theorem 5.2, Algorithm 2, with noise shaped by the features",
        variant={"geometry": "whitened"},
    ),
    "sgd_objective_perturbation": replace(
        OBJECTIVE_PERTURBATION,
        summary="one pass of projected SGD with a sufficient statistic of the labels with Gaussian noise",
        source=f"{DP_REWARD}, section 6 (objective perturbation using SGD updates)",
        factory=estimation.sgd_objective_perturbation,
    ),
    "sgd_objective_perturbation_cut_k_norm": replace(
        OBJECTIVE_PERTURBATION,
        summary="one pass of projected SGD with public weights and a statistic of the labels with K-norm noise",
        source=f"{DP_REWARD}, section 6, with public weights; {HARDT}",
        factory=estimation.sgd_objective_perturbation,
        variant={"weights": "cut", "noise": "k_norm"},
        values={"epsilon": 1.0, "radius": 3.0},
        second=Second(values={"epsilon": 4.0}, neighbours=MOVES_A_CUT),
    ),
    "literal_objective_perturbation": replace(
        OBJECTIVE_PERTURBATION,
        summary="SGD on exact labels with a noisy linear term, as in the paper's simulation; no proof of privacy",
        source=f"{DP_REWARD}, section 6, with sigma of Theorem 5.2",
        proof="none",
        factory=estimation.literal_objective_perturbation,
    ),
}
USES = {  # shown on pages of the site
    "objective_perturbation": {
        "use": (
            'Use it with a curator when features are public and labels private. `weights="cut"` usually lowers the '
            'error; `geometry="whitened"` serves margins.'
        ),
        "not": (
            "At small ε without a radius or regularization there may be no finite minimiser, and the error can "
            "exceed a million. If features are private too, use `objective_perturbation_full`."
        ),
    },
    "sgd_objective_perturbation": {
        "use": "Use it to see what one pass costs beside the exact minimiser of the same noisy objective.",
        "not": (
            "If a radius bounds its estimate, `objective_perturbation` is usually more accurate from about ε = 1 on."
            " At ε = 0.1 one pass was more accurate on three of the benchmark's four reward problems."
        ),
    },
    "literal_objective_perturbation": {
        "use": "Use it only to reproduce the published simulation.",
        "not": "Its updates use raw labels, and it makes no privacy claim.",
    },
}
