"""Registry entries of `sgd` and `sgd_rr`."""

from dataclasses import replace

from jaxdp import estimation
from jaxdp.registry.estimation._problems import DP_REWARD, SAMPLES, estimator_entry

ORDER = 500  # position of the entries in lists

SGD = estimator_entry(
    summary="one non-private pass of projected SGD over exact labels",
    source=f"{DP_REWARD}, section 6",
    proof="none",
    factory=estimation.sgd,
    sizes=SAMPLES,
    values={"radius": 3.0},
)
ENTRIES = {
    "sgd": SGD,
    "sgd_rr": replace(
        SGD,
        summary="one pass of projected SGD over randomized labels",
        source=f"{DP_REWARD}, eq. (10), Theorem 4.5, Algorithm 1",
        proof="proved",
        factory=estimation.sgd_rr,
        values={"epsilon": 1.0, "radius": 3.0},
    ),
}
USES = {  # shown on pages of the site
    "sgd": {
        "use": "Use it as the non-private reference for `sgd_rr`.",
        "not": "It makes no privacy claim.",
    },
    "sgd_rr": {
        "use": "Use it when labels arrive as a stream, or to reproduce the source paper's one pass.",
        "not": (
            "On data that fit in memory, if a radius bounds its estimate, `debiased_rr` is usually more accurate "
            "from about ε = 1 on. At ε = 0.1 one pass was more accurate on all four of the benchmark's reward "
            "problems."
        ),
    },
}
