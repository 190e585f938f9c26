"""The entry of `doubling_counter`."""

from jaxdp.mechanisms import doubling_counter
from jaxdp.registry.mechanisms.continual_counting._counters import counter_entry

ORDER = 120  # position of the entries in lists

ENTRIES = {
    "doubling_counter": counter_entry(
        "estimates all prefix sums of a stream of any length from ever larger trees of noisy blocks",
        doubling_counter,
        "Chan, Shi & Song (2011), the hybrid mechanism",
        "Laplace mechanism on blocks; an entry is in one tree, once in each level",
        other_sizes=({"horizon": 7},),
        moved=1,  # in the second epoch, which has two levels
    ),
}
USES = {  # shown on pages of the site
    "doubling_counter": {
        "use": "Use it for prefix sums of a stream whose length is unknown.",
        "not": "If the horizon is known, one tree for it has a smaller variance.",
    },
}
