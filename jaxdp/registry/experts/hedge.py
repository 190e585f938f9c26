"""The entry of `hedge`."""

from jaxdp import experts
from jaxdp.registry.experts._worlds import all_losses_move, expert_entry, stochastic

ORDER = 390  # position of the entries in lists

ENTRIES = {
    "hedge": expert_entry(
        summary="plays experts by exponential weights of exact losses (non-private)",
        source="Freund & Schapire (1997)",
        proof="none",
        factory=experts.hedge,
        sizes={"num_experts": 3, "horizon": 6},
        values={"learning_rate": 0.5},
        environment=stochastic,
        neighbours=all_losses_move,
    ),
}
USES = {  # shown on pages of the site
    "hedge": {
        "use": "Use it as the non-private reference for the best fixed expert.",
        "not": "It makes no privacy claim.",
    },
}
