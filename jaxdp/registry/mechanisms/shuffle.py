"""The entry of `shuffled_ones`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, replace_one_row
from jaxdp.audit.exact import OutputDistribution
from jaxdp.audit.shuffle_distribution import distribution_of_ones
from jaxdp.core import Guarantee, default_float
from jaxdp.mechanisms._shuffle_accounting import LARGEST_EXACT
from jaxdp.registry.mechanisms._releases import mechanism_entry
from jaxdp.registry.second import Second

ORDER = 130  # position of the entries in lists

Bits = tuple[np.ndarray, np.ndarray]
VALUES = {"epsilon": 1.0, "delta": 1e-3}


def local_budget(*, epsilon: float, delta: float, num_users: int) -> np.ndarray:
    """Returns `shuffle_local_epsilon`, [] float rounded down; with it, shuffled reports are (epsilon, delta)-DP."""
    exact = mechanisms.shuffle_local_epsilon(epsilon, delta, num_users)
    rounded = np.asarray(exact, default_float())
    return np.nextafter(rounded, np.zeros_like(rounded)) if float(rounded) > exact else rounded


def guarantee(*, epsilon: float, delta: float, num_users: int) -> Guarantee:
    """Returns the claim of the batch, for the local epsilon of `local_budget`."""
    local_epsilon = float(local_budget(epsilon=epsilon, delta=delta, num_users=num_users))
    return mechanisms.shuffle_guarantee(epsilon, delta, local_epsilon=local_epsilon, batch=num_users)


def worst_bits(num_users: int) -> Bits:
    """Returns two batches of bits: the first user has bit 0 in one batch and bit 1 in the other.

    The number of other users with bit 1 is the number at which the entry's delta is attained (see `shuffle_worst_ones`;
    0 if the local budget is at most epsilon). It is not computed for more than 10,000 users: then all others have bit
    1, which often attains delta.
    """
    epsilon = VALUES["epsilon"]
    local_epsilon = mechanisms.shuffle_local_epsilon(epsilon, VALUES["delta"], num_users)
    zero = np.zeros(num_users, np.int32)
    if epsilon < local_epsilon:
        is_exact = num_users <= LARGEST_EXACT
        ones = mechanisms.shuffle_worst_ones(epsilon, local_epsilon, num_users) if is_exact else num_users - 1
        zero[1 : 1 + ones] = 1
    one = zero.copy()
    one[0] = 1
    return zero, one


def _all_others_hold_one(num_users: int) -> Bits:
    """Returns two batches: the first user has bit 0 or 1, all others have 1 (an extreme case for any accounting)."""
    one = np.ones(num_users, np.int32)
    zero = one.copy()
    zero[0] = 0
    return zero, one


def shuffled_reports(key: Any, local_epsilon: Any, data: Any) -> Any:
    """Returns all users' randomized responses to their bits `data`, in shuffled order."""
    key_report, key_order = jax.random.split(key)
    reports = mechanisms.randomized_response(key_report, data, local_epsilon)
    return mechanisms.shuffled(key_order, reports)


def _ones(key, local_epsilon, data, *, num_users):
    return mechanisms.shuffled_ones(key, data.sum(dtype=data.dtype), local_epsilon, batch=num_users)


def _distribution(params: Any, data: Any) -> OutputDistribution:
    return distribution_of_ones(np.asarray(data), float(params))


def _bits(num_users: int) -> Domain:
    return replace_one_row(lambda key: jax.random.bernoulli(key).astype(jnp.int32), count=num_users)


def _sum(data):
    return data.sum(dtype=data.dtype)


ENTRIES = {
    "shuffled_randomized_response": mechanism_entry(
        summary="counts the ones of a shuffled batch of binary randomized responses",
        source="Cheu et al. (2019); the hockey-stick divergence of the two distributions of the count",
        reached=0.7,  # the event that attains the claim, a large count, has a probability of only 0.4%
        factory=mechanisms.shuffled_ones,
        sizes={"num_users": 100},
        values=VALUES,
        params=local_budget,
        guarantee=guarantee,
        release=_ones,
        others={"reports": shuffled_reports},
        distribution=_distribution,
        other_sizes=({"num_users": 10},),
        domain=_bits,
        neighbours=worst_bits,
        exact=_sum,
        second=Second({"num_users": 40}, neighbours=_all_others_hold_one),
    ),
}
USES = {  # shown on pages of the site
    "shuffled_ones": {
        "use": "Use it to simulate a shuffler of binary reports: time does not depend on the number of users.",
        "not": "It draws the total only, and cannot report who answered what.",
    },
}
