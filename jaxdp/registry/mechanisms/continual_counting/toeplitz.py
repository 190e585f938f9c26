"""The entry of `toeplitz_counter`."""

from typing import Any

from jaxdp.mechanisms import toeplitz_counter
from jaxdp.mechanisms.numerical import TOEPLITZ_STEPS, gaussian_rho, normal_delta
from jaxdp.registry.mechanisms._releases import claim
from jaxdp.registry.mechanisms.continual_counting._counters import (
    LONGEST,
    UNIT,
    counter_entry,
    fed,
    prefixes,
    the_first_entry_moves,
)

ORDER = 110  # in lists


def _in_entries(epsilon: float, delta: float) -> float | None:
    return normal_delta(LONGEST, rho=gaussian_rho(epsilon, delta), steps=TOEPLITZ_STEPS)


def _toeplitz_params(*, epsilon: float, delta: float, horizon: int) -> Any:
    return toeplitz_counter(horizon=horizon).params(epsilon=epsilon, delta=delta)


def _toeplitz(key, params, data, *, horizon):
    return prefixes(toeplitz_counter(horizon=horizon), key, params, data)


def _fed_toeplitz(key, params, data, *, horizon):
    return fed(toeplitz_counter(horizon=horizon), key, params, data)


ENTRIES = {
    "toeplitz_counter": counter_entry(
        summary="estimates all prefix sums of a stream with correlated Gaussian noise",
        source="Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024)",
        proof="proved",
        factory=toeplitz_counter,
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_toeplitz_params,
        guarantee=claim(
            "central", UNIT, "analytic Gaussian mechanism on C x, of which estimates are a function", _in_entries
        ),
        release=_toeplitz,
        others={"feed": _fed_toeplitz},
        other_sizes=({"horizon": 4}, {"horizon": 8}),
        neighbours=the_first_entry_moves,
    ),
}
