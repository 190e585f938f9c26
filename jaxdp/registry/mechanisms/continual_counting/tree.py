"""The entry of `tree_counter`."""

from jaxdp.mechanisms import tree_counter
from jaxdp.registry.mechanisms.continual_counting._counters import counter_entry

ORDER = 100  # position of the entries in lists

ENTRIES = {
    "tree_counter": counter_entry(
        "estimates all prefix sums of a stream from a tree of noisy blocks",
        tree_counter,
        "Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015), from the leaves up",
        "Laplace mechanism on blocks; an entry is in one block of each level",
        variant={"arity": 2},
    ),
}
USES = {  # shown on pages of the site
    "tree_counter": {
        "use": (
            "Use it for all prefix sums of a stream with pure privacy, or with Gaussian noise; `combine` lowers the "
            "variance at no cost."
        ),
        "not": (
            "With δ > 0 and a known horizon `toeplitz_counter` has the smaller variance. If the length is unknown, "
            "use `doubling_counter`."
        ),
    },
}
