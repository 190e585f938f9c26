"""Classes of sequences of experts, with priors, for exponential weights over sequences.

Under the prior, a sequence is a Markov chain; `Label` is the chain's state. The weight of a sequence is its prior times
exp(-learning_rate * its total loss so far). For each state, a class stores the total weight of all sequences in this
state. So it stores one number for each state, not for each sequence.

>>> from jaxdp.experts import classes
>>> sequences = classes.switching(num_switches=2)
>>> sequences
switching(num_switches=2)
>>> three_experts = sequences(num_experts=3, horizon=6)
>>> round(float(np.exp(three_experts.log_inverse_prior(2))))  # 3 + 5 * 3 * 2 + 10 * 3 * 2 * 2
153
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.experts._filter import _filter
from jaxdp.experts._filter import columns as _filter_columns
from jaxdp.experts._filter import kernels as _filter_kernels
from jaxdp.experts._scaled import NOTHING, Scaled, normalise, times
from jaxdp.experts._sequence_class import Label, SequenceClass, Sequences, Weights
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import own_kernel
from jaxdp.numerics.lookup import nearest_entry
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_count, check_horizon, check_number, check_within

LONGEST_MIXTURE = 2**29  # rounds; the weights of two rates may differ by a factor of 2 to this power


@dataclass(frozen=True)
class _Static:
    """The class that `static` returns."""

    def __repr__(self) -> str:
        return "static()"

    @property
    def __name__(self) -> str:
        return repr(self)

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)

        def log_inverse_prior(num_switches: int, num_rounds: int = horizon) -> float:
            _check_switches(num_switches, num_rounds)
            return math.log(num_experts) if num_switches == 0 else math.inf

        return _chain(
            repr(self),
            num_experts,
            horizon,
            log_inverse_prior,
            start=np.zeros(1),
            flow=_filter.Flow(None, 0),
            outlook=_even,
            chances=lambda round: jnp.zeros(1, default_float()),
            num_switches=0,
            evidence_of="experts",
        )


@dataclass(frozen=True)
class _Switching:
    """The class that `switching` returns."""

    num_switches: int

    def __repr__(self) -> str:
        return f"switching(num_switches={self.num_switches})"

    @property
    def __name__(self) -> str:
        return repr(self)

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
        largest = self.num_switches
        if not largest < horizon:
            raise ValueError(f"num_switches must be < horizon, got {largest} at horizon {horizon}")

        def log_inverse_prior(num_switches: int, num_rounds: int = horizon) -> float:
            _check_switches(num_switches, num_rounds)
            if num_switches > largest:
                return math.inf
            choices = [
                _log_choose(num_rounds - 1, k) + k * math.log(num_experts - 1)
                for k in range(min(largest, num_rounds - 1) + 1)
            ]
            return math.log(num_experts) + float(np.logaddexp.reduce(choices))

        def rounds_left(round: jax.Array) -> jax.Array:
            return jnp.maximum(horizon - 1 - round, 0).astype(default_float())

        def shares_before(rounds_left: jax.Array) -> jax.Array:
            """Returns, for m = 1, ..., S, terms 0 to m - 1 of `_growth` as a fraction of terms 0 to m, [S] float."""
            return jnp.stack(
                [1 / (1 + ratio) for ratio in _growth(rounds_left, largest, num_experts)] or [rounds_left]
            )[:largest]

        def outlook(weights: Weights, round: jax.Array) -> Scaled:
            """Returns G(c) / G(0) for c = 0, ..., S, where G(c) is the number of continuations after c switches."""
            del weights
            one = jnp.ones((), default_float())
            futures = [Scaled(one, jnp.int32(0))]
            # For G(c), one switch fewer is left than for G(c - 1). The ratios have a separate kernel, because each
            # ratio is used several times.
            for share in own_kernel(shares_before, rounds_left(round))[::-1]:
                futures.append(times(futures[-1], normalise(share, jnp.int32(0))))
            return jax.tree.map(lambda *parts: jnp.stack(parts), *futures)

        def chances(round: jax.Array) -> jax.Array:
            """Returns the probability ([S + 1] float) of a switch after `round`, given 0, ..., S switches so far."""
            odds = [
                (num_experts - 1) / (1 + ratio) for ratio in _growth(rounds_left(round) - 1, largest, num_experts)[::-1]
            ]
            zero = jnp.zeros((), default_float())
            return jnp.stack([jnp.where(rounds_left(round) > 0, ratio / (1 + ratio), 0) for ratio in odds] + [zero])

        return _chain(
            repr(self),
            num_experts,
            horizon,
            log_inverse_prior,
            start=np.where(np.arange(largest + 1) == 0, 0, NOTHING),
            flow=_filter.Flow(np.ones(largest + 1), 1),
            outlook=outlook,
            chances=chances,
            num_switches=largest,
        )


@dataclass(frozen=True)
class _Markov:
    """The class that `markov` returns."""

    switch_rate: float | None

    def __repr__(self) -> str:
        return "markov()" if self.switch_rate is None else f"markov(switch_rate={self.switch_rate:g})"

    @property
    def __name__(self) -> str:
        return repr(self)

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
        if self.switch_rate is None:
            if horizon > LONGEST_MIXTURE:
                raise ValueError(f"horizon must be <= {LONGEST_MIXTURE} for the mixture over rates, got {horizon}")
            rates = 2.0 ** -np.arange(1, max(1, (horizon - 1).bit_length()) + 1)
        else:
            rates = np.asarray([self.switch_rate])

        def log_inverse_prior(num_switches: int, num_rounds: int = horizon) -> float:
            _check_switches(num_switches, num_rounds)
            stays = num_rounds - 1 - num_switches
            logs = num_switches * np.log(rates / (num_experts - 1)) + stays * np.log1p(-rates)
            return math.log(num_experts) + math.log(len(rates)) - float(np.logaddexp.reduce(logs))

        odds = rates / (1 - rates) / (num_experts - 1)  # of a switch to one other expert, against no switch

        def outlook(weights: Weights, round: jax.Array) -> Scaled:
            if len(rates) == 1 and self.switch_rate is not None:
                return _even(weights, round)
            assert isinstance(weights.evidence, compensated.Sum)
            assert isinstance(weights.sums, Scaled)
            return _filter.outlook_of(weights.evidence, weights.sums)

        return _chain(
            repr(self),
            num_experts,
            horizon,
            log_inverse_prior,
            start=np.zeros(len(rates)),
            flow=_filter.Flow(odds, 0),
            outlook=outlook,
            chances=lambda round: jnp.asarray(rates, default_float()),
            num_switches=None if self.switch_rate is None else round(self.switch_rate * (horizon - 1)),
            evidence_of="rows" if self.switch_rate is None else None,
        )


def static() -> Sequences:
    """Returns the class of the N sequences that never switch experts, each with prior 1 / N.

    Source:
        Standard.

    Deviations:
        None.
    """
    return _Static()


def switching(*, num_switches: int) -> Sequences:
    """Returns the class of all sequences with at most S switches, with a uniform prior.

    A round needs O((S + 1) N) operations. If R rounds are left, a sequence that has switched c times has G(c) = sum_{k
    <= S - c} C(R, k) (N - 1)^k continuations. Ratios of these numbers are computed from R in every round, with O(S)
    operations, without a table.

    Args:
        num_switches: S, >= 0 and < horizon.

    Returns:
        A class for learners.

    Raises:
        ValueError: if num_switches is not an integer >= 0; when a learner uses the class, if num_switches is not <
            horizon.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), the class of Theorem 4.1, with each sequence
        counted once. The recursion over (switches so far, expert) is as in Herbster & Warmuth (1998) and the switching
        HMMs of Koolen & de Rooij (2013).

    Deviations:
        The paper counts a sequence once for each way to place S switches, so the paper's prior on sequences is not
        uniform.
    """
    return _Switching(check_count("num_switches", num_switches, 0))


def markov(*, switch_rate: float | None = None) -> Sequences:
    """Returns the class of all sequences; under the prior, sequences switch after each round with constant probability.

    A switch leads to one of the other experts, which is drawn uniformly. The negative log prior of a sequence with S
    switches is ln N + S ln((N - 1) / rate) + (T - 1 - S) ln(1 / (1 - rate)) nats. At the rate S / (T - 1), for S >= 1
    and much smaller than T, this is about ln(2 pi S) / 2 nats more than for `switching`.

    Args:
        switch_rate: in (0, 1). If None, the prior is the average of the priors for the rates 1/2, 1/4, ..., down to 1 /
            T or less. A round then needs O(N log T) operations, and the negative log prior is at most ln log2 T + S ln
            2 + 1 nats larger than at the best rate.

    Returns:
        A class for learners.

    Raises:
        ValueError: if switch_rate is not in (0, 1); when a learner uses the class without a switch_rate, if the horizon
            is above 2^29.

    Source:
        Herbster & Warmuth (1998), for the prior of fixed share.

    Deviations:
        None.
    """
    if switch_rate is not None:
        check_within("switch_rate", check_number("switch_rate", switch_rate), 0.0, 1.0)
        if not 0 < switch_rate < 1:
            raise ValueError(f"switch_rate must be in (0, 1), got {switch_rate}")
        switch_rate = float(switch_rate)
    return _Markov(switch_rate)


def _chain(
    name: str,
    num_experts: int,
    horizon: int,
    log_inverse_prior: Callable[..., float],
    *,
    start: np.ndarray,  # [num_rows], the initial weights' powers of two
    flow: _filter.Flow,
    outlook: Callable[[Weights, jax.Array], Scaled],  # [num_rows], the rows' factors in the distribution of states
    chances: Callable[[jax.Array], jax.Array],  # (round) -> [num_rows] float, the probabilities of a switch
    num_switches: int | None,
    evidence_of: str | None = None,
) -> SequenceClass:
    # `evidence_of` determines which weights are stored as logarithms. "rows": each row's weight, in addition to the
    # sums, if weight stays in its row. "experts": each expert's weight, instead of the sums, if there is no flow. None:
    # no weights.
    num_rows = len(start)
    if max(num_experts, num_rows) <= _filter_kernels.MOST:
        form = _filter_kernels
    else:
        form = _filter_columns if num_rows == 1 and not flow.row_step else _filter

    def init() -> Weights:
        powers = np.broadcast_to(start.astype(np.int32)[:, None], (num_rows, num_experts))
        sums = Scaled(jnp.ones((num_rows, num_experts), default_float()), jnp.asarray(powers))
        if evidence_of is None:
            return Weights(sums, jnp.int32(0), ())
        size = num_rows if evidence_of == "rows" else num_experts
        evidence = compensated.zero(jnp.zeros(size, default_float()))
        return Weights(sums if evidence_of == "rows" else (), jnp.int32(0), evidence)

    def forward(weights: Weights, round: jax.Array, scaled_losses: jax.Array) -> Weights:
        del round
        evidence = weights.evidence
        if not isinstance(weights.sums, Scaled):
            assert isinstance(evidence, compensated.Sum)
            return weights._replace(evidence=compensated.add(evidence, scaled_losses * (-1 / math.log(2))))
        sums, power = form.step(flow, weights.sums, scaled_losses)
        if isinstance(evidence, compensated.Sum):
            evidence = compensated.add(evidence, form.gains(weights.sums, scaled_losses))
        return Weights(sums, weights.removed + power, evidence)

    def sums_of(weights: Weights) -> Scaled:
        if isinstance(weights.sums, Scaled):
            return weights.sums
        assert isinstance(weights.evidence, compensated.Sum)
        return jax.tree.map(lambda leaf: leaf[None], _filter.powers_of(weights.evidence))

    def odds(weights: Weights, round: jax.Array) -> jax.Array:
        return form.odds_of(sums_of(weights), outlook(weights, round))

    def marginal(weights: Weights, round: jax.Array) -> jax.Array:
        return form.columns(sums_of(weights), outlook(weights, round))

    def draw(key: jax.Array, weights: Weights, round: jax.Array) -> Label:
        return Label(*form.draw(two_uniforms(key), sums_of(weights), outlook(weights, round)))

    def roll(key: jax.Array, label: Label, round: jax.Array) -> Label:
        uniforms = two_uniforms(key)
        switches = uniforms[0] < nearest_entry(chances(round), label.row)
        other = jnp.minimum((uniforms[1] * (num_experts - 1)).astype(jnp.int32), num_experts - 2)
        other = other + (other >= label.expert).astype(jnp.int32)
        return Label(
            jnp.where(switches, other, label.expert).astype(jnp.int32),
            label.row + jnp.where(switches, flow.row_step, 0).astype(jnp.int32),
        )

    return SequenceClass(
        log_inverse_prior, init, forward, odds, marginal, draw, roll, name, num_experts, horizon, num_switches
    )


def _even(weights: Weights, round: jax.Array) -> Scaled:
    """Returns the outlook of classes with a single row, which is the factor 1."""
    del weights, round
    return Scaled(jnp.ones(1, default_float()), jnp.zeros(1, jnp.int32))


def _growth(rounds_left: jax.Array, largest: int, num_experts: int) -> list[jax.Array]:
    """Returns term m divided by the sum of terms 0 to m - 1, for m = 1, ..., S; term k is C(left, k) (N - 1)^k."""
    share, growth = jnp.ones((), rounds_left.dtype), []  # `share` is the fraction of the last term in the sum so far
    for m in range(1, largest + 1):
        ratio = jnp.maximum(rounds_left - (m - 1), 0) * ((num_experts - 1) / m) * share
        growth.append(ratio)
        share = ratio / (1 + ratio)
    return growth


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check_switches(num_switches: Any, num_rounds: int) -> None:
    if check_count("num_switches", num_switches, 0) >= check_count("num_rounds", num_rounds):
        raise ValueError(f"num_switches must be < num_rounds, got {num_switches} of {num_rounds} rounds")
