"""Shared parts of learners that identify the best arm: reports of rewards, sums of reports, and sweeps over arms.

A sweep plays each active arm once, in the order of the arms' indices.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import ENDS, REWARD, REWARDS, check_report, local_claim, randomizer_values, value_names
from jaxdp.core import ClipFn, CountPlan, Counts, Guarantee, Interface, Space, State, arms, default_float
from jaxdp.core.local_randomizer import TotalFn
from jaxdp.mechanisms import label_randomizer, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.validation import check_choice

REPORTS = ("rr", "gaussian")

Sums = jax.Array | compensated.Sum  # [num_arms] sums of reports: exact sums of integers, or compensated sums of floats


class Reports(NamedTuple):
    """A randomizer of rewards, with the claim and the interface of a learner that uses it.

    Attributes:
        names: names of the values of `params` and `variance_proxy`, as the learner calls them.
        params: (**values) -> Params of the randomizer.
        variance_proxy: (**values) -> float; reports are sub-Gaussian with this variance proxy.
        report: (key, params of the randomizer, reward) -> number.
        total: as `LocalRandomizer.total` if reports are bits; otherwise None.
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
        """Adds `reports`, [] or [num_arms], to the sums of the arms in `is_played`; the other sums do not change."""
        if isinstance(sums, compensated.Sum):
            added = compensated.add(sums, reports.astype(sums.total.dtype))
            return jax.tree.map(lambda new, old: jnp.where(is_played, new, old), added, sums)
        return sums + jnp.where(is_played, reports, 0).astype(sums.dtype)


def total(sums: Sums) -> jax.Array:
    return sums.total if isinstance(sums, compensated.Sum) else sums


def lowest(dtype: Any) -> Any:
    return jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -jnp.inf


def mean(sums: Sums, plays: jax.Array) -> jax.Array:
    """Returns each arm's mean report, [num_arms] float; 0 for an arm without plays."""
    dtype = default_float()
    return total(sums).astype(dtype) / jnp.maximum(plays, 1).astype(dtype)


def num_active(public: Any) -> jax.Array:
    """Returns the number of arms in the mask `public.active`, [] int32."""
    return jnp.sum(public.active, dtype=jnp.int32)


def rank(public: Any) -> jax.Array:
    """Returns each active arm's position, from 0, among the active arms in order of index.

    The result is [num_arms] int32; entries of other arms have no meaning.
    """
    return jnp.cumsum(public.active, dtype=jnp.int32) - 1


def sweep_counts(
    reports: Reports,
    sweeps_ahead: Callable[[Any, Any], jax.Array],
    drop: Callable[[Any, Any, jax.Array], Any],
) -> Counts:
    """Returns `Learner.counts` for a learner that plays its active arms in turn and receives bits as reports.

    The learner's public state has the fields `active`, `sweeps`, `turn` and `sums`, as in `successive_elimination`.

    Args:
        reports: the randomizer of rewards; a report is a bit.
        sweeps_ahead: (params, public) -> [] number, the number of sweeps until an arm can be dropped; values below 1
            count as 1.
        drop: (params, public, is_over) -> the public state after arms are dropped; `is_over`, [] bool, is true if a
            sweep ended.
    """

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        arms_left, ranks = num_active(public).astype(limit.dtype), rank(public)
        whole_sweeps = jnp.minimum(jnp.maximum(sweeps_ahead(params, public), 1).astype(limit.dtype), limit // arms_left)
        is_whole = (public.turn == 0) & (whole_sweeps > 0)
        in_part = (ranks >= public.turn) & ((ranks - public.turn).astype(limit.dtype) < limit)
        counts = jnp.where(is_whole, whole_sweeps, in_part.astype(limit.dtype))
        return CountPlan(jnp.where(public.active, counts, 0))

    def privatize(key, params: Any, public: Any, plan: CountPlan, totals):
        del public
        assert reports.total is not None
        return plan.counts, reports.total(key, params.randomizer, jnp.clip(totals, 0, plan.counts), plan.counts)

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        del key, plan
        public, (counts, reported) = state.public, report
        arms_left = num_active(public).astype(counts.dtype)
        turn = public.turn.astype(counts.dtype) + jnp.sum(counts, dtype=counts.dtype)  # this may be more than one sweep
        over, turn = turn // arms_left, turn % arms_left
        public = public._replace(
            sweeps=public.sweeps + over.astype(public.sweeps.dtype),
            turn=turn.astype(jnp.int32),
            sums=public.sums + reported.astype(public.sweeps.dtype),
        )
        return State((), drop(params, public, over > 0))

    return Counts(plan, privatize, update_counts)


def reports_of(report: str, rewards: str, num_arms: int) -> Reports:
    """Returns the randomizer of rewards for the given options, with its claim and interface.

    With randomized response, the report of a binary reward is a bit. If the mean reward is m, the mean report is 1/2 +
    (m - 1/2) / c with c = (e^epsilon + 1) / (e^epsilon - 1), and reports are 1/4-sub-Gaussian. All other reports are
    unbiased.

    Args:
        report: "rr" or "gaussian".
        rewards: "binary" or "bounded".
        num_arms: >= 2.

    Raises:
        ValueError: if report or rewards is not one of the names above.
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
