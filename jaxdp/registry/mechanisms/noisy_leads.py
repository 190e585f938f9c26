"""The entry of `noisy_leads`."""

import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, perturb_entries
from jaxdp.core import default_float
from jaxdp.registry.entries import BUDGETS
from jaxdp.registry.mechanisms._releases import UNIT, Pair, claim, for_sensitivity, laplaces, mechanism_entry

ORDER = 40  # position of the entries in lists


def _noisy_leads(key, params, data):
    return mechanisms.noisy_leads(key, data, params.epsilon, l1_sensitivity=params.bound)


def _leads(data):
    return (data - data.max()).astype(default_float())


def _one_more(num_counts: int, sensitivity: float = 1.0) -> Pair:
    """Returns two vectors of large equal counts; the first entry of the second vector is larger by `sensitivity`.

    Rounding to float32 would turn a difference of 1 into 64.
    """
    totals = np.full(num_counts, 2**29 + 32, np.int32)
    more = totals.copy()
    more[0] += int(sensitivity)
    return totals, more


def _whole_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return perturb_entries((num_counts,), norm="l1", by=sensitivity, dtype=np.int32, low=0)


ENTRIES = {
    "noisy_leads": mechanism_entry(
        summary="adds Laplace noise to totals, and reports how far each noisy total is below the largest",
        source="Dwork & Roth (2014), Theorem 3.6",
        factory=mechanisms.noisy_leads,
        sizes={"num_counts": 5},  # with two counts there is only one difference, which reveals less
        values={"epsilon": 1.0},
        params=for_sensitivity,
        guarantee=claim(
            "central",
            UNIT,
            "Laplace mechanism at L1 sensitivity {sensitivity}; differences are post-processing",
            laplaces,
        ),
        release=_noisy_leads,
        grid={"epsilon": BUDGETS, "sensitivity": (3.0,)},
        other_sizes=({"num_counts": 2},),
        domain=_whole_change,
        neighbours=_one_more,
        exact=_leads,
    ),
}
USES = {  # shown on pages of the site
    "noisy_leads": {
        "use": "Use it to compare large noisy totals: only their differences matter, and these stay exact.",
        "not": "If the totals themselves are needed, use `laplace`.",
    },
}
