"""Shared parts of best-arm learners: reports of rewards, and sums of reports."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import ENDS, REWARD, REWARDS, check_report, local_claim, randomizer_values, value_names
from jaxdp.core import ClipFn, Guarantee, Interface, Space, arms, default_float
from jaxdp.core.local_randomizer import TotalFn
from jaxdp.mechanisms import label_randomizer, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.validation import check_choice

REPORTS = ("rr", "gaussian")

Sums = jax.Array | compensated.Sum  # [num_arms] sums of reports: exact if integers, compensated if floats


class Reports(NamedTuple):
    """The randomizer from rewards to the server, with its names, claim and interface.

    Attributes:
        names: names of the randomizer's values.
        params: (those values) -> Params of the randomizer.
        variance_proxy: (those values) -> float; reports are sub-Gaussian with this proxy.
        report: (key, params of the randomizer, reward) -> number.
        total: as `LocalRandomizer.total` if reports are bits; else None.
        is_exact: whether reports are integers.
        claim: (epsilon, delta=0.0) -> Guarantee.
        interface: as `Learner.interface`.
        clip: as `Learner.clip`, with the randomizer's params in `Params.randomizer`; None for binary rewards.
    """

    names: tuple[str, ...]
    params: Callable[..., Any]
    variance_proxy: Callable[..., float]
    report: Callable[[jax.Array, Any, jax.Array], jax.Array]
    total: TotalFn | None
    is_exact: bool
    claim: Callable[..., Guarantee]
    interface: Interface
    clip: ClipFn | None

    def pick_values(self, values: dict[str, float]) -> dict[str, float]:
        return {name: value for name, value in values.items() if name in self.names}

    def zero_sums(self, num_arms: int) -> Sums:
        if self.is_exact:
            return jnp.zeros(num_arms, jnp.result_type(int))
        return compensated.zero(jnp.zeros(num_arms, default_float()))

    def add(self, sums: Sums, is_played: jax.Array, reports: jax.Array) -> Sums:
        """Adds a report to the sum of each arm in `is_played`; the other sums keep their bits.

        Args:
            sums: sums so far.
            is_played: [num_arms] bool.
            reports: [] or [num_arms].
        """
        if isinstance(sums, compensated.Sum):
            added = compensated.add(sums, reports.astype(sums.total.dtype))
            return jax.tree.map(lambda new, old: jnp.where(is_played, new, old), added, sums)
        return sums + jnp.where(is_played, reports, 0).astype(sums.dtype)


def total(sums: Sums) -> jax.Array:
    return sums.total if isinstance(sums, compensated.Sum) else sums


def lowest(dtype: Any) -> Any:
    return jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -jnp.inf


def mean(sums: Sums, plays: jax.Array) -> jax.Array:
    """Returns each arm's average report, [num_arms] float; 0 without plays."""
    dtype = default_float()
    return total(sums).astype(dtype) / jnp.maximum(plays, 1).astype(dtype)


def reports_of(report: str, rewards: str, num_arms: int) -> Reports:
    """Returns the reports for these options.

    A randomized bit of a binary reward stays a bit. Its mean is 1/2 + (mean - 1/2) / c with c = (e^epsilon + 1) /
    (e^epsilon - 1), and it is 1/4-sub-Gaussian. All other reports are unbiased.

    Args:
        report: "rr" or "gaussian".
        rewards: "binary" or "bounded".
        num_arms: >= 2.

    Raises:
        ValueError: if report or rewards is not one of these names, and for Laplace noise.
    """
    is_rr = check_report(report, REPORTS) == "rr"
    binary = check_choice("rewards", rewards, REWARDS) == "binary"
    randomizer = label_randomizer(2) if binary and is_rr else scalar_randomizer(report, binary=binary)
    names = value_names(report, *(() if binary else ENDS))

    def proxy(**values: float) -> float:
        return 0.25 if binary and is_rr else randomizer.variance_proxy(**randomizer_values(values))

    return Reports(
        names=names,
        params=lambda **values: randomizer.params(**randomizer_values(values)),
        variance_proxy=proxy,
        report=randomizer.report,
        total=randomizer.total if binary and is_rr else None,
        is_exact=binary and is_rr,
        claim=local_claim(report, REWARD),
        interface=Interface(
            arms(num_arms), Space("integers", (), 0, 1) if binary else Space("numbers"), recommendation=arms(num_arms)
        ),
        clip=None if binary else lambda params: (params.randomizer.low, params.randomizer.high),
    )
