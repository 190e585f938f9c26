"""Registry entries of `exponential_weights`."""

from dataclasses import replace

from jaxdp import experts
from jaxdp.registry.experts._worlds import adaptive, all_losses_move, draw_losses, expert_entry, stochastic

ORDER = 310  # position of the entries in lists

SOURCE = "Freund & Schapire (1997), Hedge; noise by Dwork & Roth (2014), Theorem 3.6, or Balle & Wang (2018), Theorem 8"
EXPONENTIAL_WEIGHTS = expert_entry(
    summary="plays experts by exponential weights of reported losses, with Laplace noise in each report",
    source=SOURCE,
    factory=experts.exponential_weights,
    sizes={"num_experts": 5, "horizon": 30},
    values={"epsilon": 1.0},
    environment=adaptive,
    neighbours=all_losses_move,
    draw_user=draw_losses,
)
ENTRIES = {
    "exponential_weights": EXPONENTIAL_WEIGHTS,
    "exponential_weights_gaussian": replace(
        EXPONENTIAL_WEIGHTS,
        summary="plays experts by exponential weights of reported losses, with Gaussian noise in each report",
        variant={"noise": "gaussian"},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=stochastic,
    ),
}
USES = {  # shown on pages of the site
    "exponential_weights": {
        "use": "Use it for experts without a curator: each loss vector is randomized before it leaves its owner.",
        "not": (
            "Local noise on all experts is large. With a curator, `lazy_weights` and `counter_weights` need far less."
        ),
    },
}
