"""Registry entries of `ballot_mle`, `ballot_objective_perturbation` and `ballot_rr`."""

from dataclasses import replace

from jaxdp import estimation
from jaxdp.registry.data import BALLOTS, ONE_BALLOT, tiny_election
from jaxdp.registry.estimation._problems import DP_REWARD, HARDT, estimator_entry
from jaxdp.registry.second import Second

ORDER = 560  # position of the entries in lists

VOTERS = {"num_voters": 40, "num_items": 4}
BALLOT_MLE = estimator_entry(
    summary="non-private maximum likelihood from exact ballots",
    source="Zhu, Jiao & Jordan (2023), pairwise losses of rankings; Bradley & Terry (1952)",
    proof="none",
    factory=estimation.ballot_mle,
    sizes=VOTERS,
    values={"radius": 3.0},
    data=tiny_election,
    neighbours=BALLOTS,
)
ENTRIES = {
    "ballot_mle": BALLOT_MLE,
    "ballot_objective_perturbation": replace(
        BALLOT_MLE,
        summary="maximum likelihood with a sufficient statistic of whole ballots with Gaussian noise",
        source=f"{DP_REWARD}, Theorem 5.2 and Algorithm 2, for whole ballots",
        proof="proved",
        factory=estimation.ballot_objective_perturbation,
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
    ),
    "ballot_objective_perturbation_k_norm": replace(
        BALLOT_MLE,
        summary="maximum likelihood with a sufficient statistic of whole ballots with K-norm noise",
        source=f"{DP_REWARD}, Theorem 5.2 and Algorithm 2, for whole ballots; {HARDT}",
        proof="proved",
        factory=estimation.ballot_objective_perturbation,
        variant={"noise": "k_norm"},
        values={"epsilon": 1.0, "radius": 3.0},
    ),
    "ballot_rr": replace(
        BALLOT_MLE,
        summary="minimum of the de-biased loss of voters' randomized answers about few pairs of items",
        source=f"{DP_REWARD}, eq. (4)-(6), for whole ballots; Warner (1965)",
        proof="proved",
        factory=estimation.ballot_rr,
        values={"epsilon": 1.0, "radius": 3.0},
        neighbours=ONE_BALLOT,
        second=Second(values={"epsilon": 5.0}),
    ),
}
USES = {  # shown on pages of the site
    "ballot_mle": {
        "use": "Use it as the non-private reference for ballots.",
        "not": "It makes no privacy claim.",
    },
    "ballot_objective_perturbation": {
        "use": "Use it with a curator when each voter's whole ballot is private.",
        "not": "With few voters and many items the noise on all items dominates; simulate with your numbers first.",
    },
    "ballot_rr": {
        "use": "Use it for ballots without a curator: voters answer about a few random pairs.",
        "not": (
            "It uses only the pairs that were asked. At small ε without a radius there may be no finite minimiser, "
            "and the error can exceed a million. With a curator use `ballot_objective_perturbation`."
        ),
    },
}
