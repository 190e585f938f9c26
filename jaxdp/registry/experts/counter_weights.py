"""Registry entries of `counter_weights`."""

from dataclasses import replace

from jaxdp import experts
from jaxdp.experts import classes
from jaxdp.registry.experts._worlds import a_loss_of_a_long_run, adaptive, all_losses_move, expert_entry, shifting
from jaxdp.registry.second import Second

ORDER = 370  # position of the entries in lists

COUNTED = "Hedge on noisy prefix sums after Agarwal & Singh (2017), with the square-root Toeplitz counter"
COUNTER_WEIGHTS = expert_entry(
    summary="plays experts by exponential weights of noisy losses from one continual counter",
    source=COUNTED,
    reached=0.5,  # black-box bounds on rho find this fraction for one Gaussian release; the grey box finds all of it
    factory=experts.counter_weights,
    sizes={"num_experts": 2, "horizon": 6},
    values={"epsilon": 1.0, "delta": 1e-3},
    environment=adaptive,
    neighbours=all_losses_move,
    second=Second({"horizon": 16}, neighbours=a_loss_of_a_long_run),
)
ENTRIES = {
    "counter_weights": COUNTER_WEIGHTS,
    "counter_weights_switching": replace(
        COUNTER_WEIGHTS,
        summary="plays by exponential weights of noisy losses from one counter, over sequences with at most one switch",
        source=f"{COUNTED}; sequences of Asi, Raman & Saha (2025), Theorem 4.1",
        reached=0.45,  # as for `counter_weights`
        variant={"sequences": classes.switching(num_switches=1)},
        sizes={"num_experts": 3, "horizon": 6},
        values={"epsilon": 0.5, "delta": 1e-3},
        environment=shifting,
    ),
}
USES = {  # shown on pages of the site
    "counter_weights": {
        "use": (
            "Use it with a curator and δ > 0 when all classes of sequences should cost the same: one counter, then "
            "any post-processing."
        ),
        "not": (
            "It needs noise on all experts in every round; with thousands of experts selections cost less than "
            "releases."
        ),
    },
}
