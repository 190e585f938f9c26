"""Registry entries of `above_threshold`."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, perturb_entries
from jaxdp.mechanisms.numerical import sparse_vector_delta
from jaxdp.registry.distributions import above_threshold_distribution
from jaxdp.registry.entries import BUDGETS
from jaxdp.registry.mechanisms._releases import (
    SENSITIVITIES,
    UNIT,
    Pair,
    claim,
    for_sensitivity,
    mechanism_entry,
)

ORDER = 50  # position of the entries in lists


def _numerical_delta(epsilon: float, *, split: str) -> float | None:
    return sparse_vector_delta(epsilon, split=split)


def _above_threshold(key, params, data, *, split):
    return mechanisms.above_threshold(key, data, params.epsilon, threshold=0.5, sensitivity=params.bound, split=split)


def _first_above(data):
    return jnp.where(jnp.any(data >= 0.5), jnp.argmax(data >= 0.5), data.size).astype(jnp.int32)


def _last_above(num_queries: int, sensitivity: float = 1.0) -> Pair:
    """Returns the queries 0, ..., 0, s and s, ..., s, 0, with s the sensitivity.

    An audit distinguishes these inputs by the event that only the last query is above the threshold. With the second
    input this event is rare: the noisy threshold must exceed the noisy queries s, and noise must lift the last query,
    0, above the threshold.
    """
    last = np.zeros(num_queries, np.float32)
    last[-1] = sensitivity
    return last, np.float32(sensitivity) - last


def _queries_change(num_queries: int, sensitivity: float = 1.0) -> Domain:
    return perturb_entries((num_queries,), norm="max", by=sensitivity)


ENTRIES = {
    name: mechanism_entry(
        summary=f"finds the first of many queries above a threshold, with {text}",
        source="Dwork & Roth (2014), Algorithm 1 and Theorem 3.23; Lyu, Su & Li (2017), section 4.2, for the split",
        factory=mechanisms.above_threshold,
        variant={"split": split},
        sizes={"num_queries": 9},
        values={"epsilon": 1.0},
        params=for_sensitivity,
        guarantee=claim(
            "central",
            UNIT,
            f"AboveThreshold on queries of sensitivity {{sensitivity}}, {text}",
            partial(_numerical_delta, split=split),
        ),
        release=_above_threshold,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        other_sizes=({"num_queries": 3},),
        domain=_queries_change,
        neighbours=_last_above,
        exact=_first_above,
        distribution=above_threshold_distribution,
    )
    for name, split, text in (
        ("above_threshold", "even", "epsilon split evenly"),
        ("above_threshold_optimal_split", "optimal", "epsilon split 1 : 2^(2/3)"),
    )
}
USES = {  # shown on pages of the site
    "above_threshold": {
        "use": 'Use it to ask many questions when almost all answers are "below": only the first "above" costs budget.',
        "not": 'It ends at the first "above". Answers near the threshold are unreliable, and no values are released.',
    },
}
