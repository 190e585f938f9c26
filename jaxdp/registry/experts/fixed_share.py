"""The entry of `fixed_share`."""

from jaxdp import experts
from jaxdp.registry.experts._worlds import all_losses_move, expert_entry, shifting

ORDER = 400  # position of the entries in lists

ENTRIES = {
    "fixed_share": expert_entry(
        summary="plays experts by exponential weights of exact losses; experts exchange weight, to follow shifts",
        source="Herbster & Warmuth (1998)",
        proof="none",
        factory=experts.fixed_share,
        variant={"num_switches": 1},
        sizes={"num_experts": 3, "horizon": 6},
        values={"learning_rate": 0.5},
        environment=shifting,
        neighbours=all_losses_move,
    ),
}
USES = {  # shown on pages of the site
    "fixed_share": {
        "use": "Use it as the non-private reference for sequences of experts that switch.",
        "not": "It makes no privacy claim.",
    },
}
