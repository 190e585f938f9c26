"""Registry entries of `plackett_luce_mle`, `plackett_luce_debiased_krr` and `plackett_luce_objective_perturbation`."""

from dataclasses import replace

from jaxdp import estimation
from jaxdp.registry.data import CHOICES, CHOICES_MOVE_A_CUT, tiny_choices
from jaxdp.registry.estimation._problems import CHOSEN, DP_REWARD, HARDT, estimator_entry
from jaxdp.registry.second import Second

ORDER = 540  # position of the entries in lists

PLACKETT_LUCE_MLE = estimator_entry(
    summary="non-private maximum likelihood from exact choices among K actions",
    source=f"Plackett (1975), Luce (1959); {DP_REWARD}, eq. (11) and appendix C.4",
    proof="none",
    factory=estimation.plackett_luce_mle,
    sizes=CHOSEN,
    values={"radius": 3.0},
    data=tiny_choices,
    neighbours=CHOICES,
)
ENTRIES = {
    "plackett_luce_mle": PLACKETT_LUCE_MLE,
    "plackett_luce_debiased_krr": replace(
        PLACKETT_LUCE_MLE,
        summary="minimum of the de-biased loss of K-ary randomized choices",
        source=f"{DP_REWARD}, eq. (12); de-biasing as in its eq. (4)-(6)",
        proof="proved",
        factory=estimation.plackett_luce_debiased_krr,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
    "plackett_luce_objective_perturbation": replace(
        PLACKETT_LUCE_MLE,
        summary="maximum likelihood with a sufficient statistic of choices among K actions with Gaussian noise",
        source=f"{DP_REWARD}, Theorem 5.2 and Algorithm 2, for K actions",
        proof="proved",
        reached=0.8,
        factory=estimation.plackett_luce_objective_perturbation,
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
    ),
    "plackett_luce_objective_perturbation_cut_k_norm": replace(
        PLACKETT_LUCE_MLE,
        summary="maximum likelihood with public weights and a statistic of choices among K actions with K-norm noise",
        source=f"{DP_REWARD}, Theorem 5.2 and Algorithm 2, for K actions; {HARDT}",
        proof="proved",
        factory=estimation.plackett_luce_objective_perturbation,
        variant={"weights": "cut", "noise": "k_norm"},
        values={"epsilon": 1.0, "radius": 3.0},
        second=Second(values={"epsilon": 4.0}, neighbours=CHOICES_MOVE_A_CUT),
    ),
}
USES = {  # shown on pages of the site
    "plackett_luce_mle": {
        "use": "Use it as the non-private reference for choices among K.",
        "not": "It makes no privacy claim.",
    },
    "plackett_luce_debiased_krr": {
        "use": (
            "Use it for choices among K without a curator, from about ε = 1 on. At small ε set a radius: the loss is"
            " convex, but without a radius it may have no finite minimiser."
        ),
        "not": (
            "At small ε `sgd_krr` is more accurate. With many alternatives K-ary randomized response reports little;"
            " ask for pairs instead."
        ),
    },
    "plackett_luce_objective_perturbation": {
        "use": (
            "Use it for choices among K with a curator and public features. At small ε set a radius or "
            "regularization: without both there may be no finite minimiser."
        ),
        "not": "Rankings are not supported: they do not enter the loss through one sum.",
    },
}
