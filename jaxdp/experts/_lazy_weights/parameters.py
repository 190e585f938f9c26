"""Computes the privacy cost, the regret bound and the best parameters of `lazy_weights` on the host."""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float, leaf_rounded_down
from jaxdp.core.conversions import zcdp_rho
from jaxdp.experts._sequence_class import Sequences
from jaxdp.experts.classes import static
from jaxdp.mechanisms import round_up
from jaxdp.mechanisms.numerical import below_one
from jaxdp.validation import (
    check_choice,
    check_count,
    check_epsilon,
    check_horizon,
    check_number,
    check_positive,
    check_within,
)

ACCOUNTINGS = ("zcdp", "pure")
SIZES = 80  # maximum number of batch sizes in the first pass, a geometric grid; later passes refine it near the best
CHANCES = 97  # number of fake switch probabilities in each pass
SMALLEST = 1e-6  # minimum fake switch probability; it is still drawn with at least 26 bits of precision
HALVINGS = 60  # steps of the bisection for the learning rate
SLACK = 1e-9  # relative tolerance of the privacy budget, because a user's parameters may have rounding errors


class LazyParameters(NamedTuple):
    """Parameters of `lazy_weights`.

    Attributes:
        learning_rate: > 0.
        fake_switch_prob: p in [0, 1], the probability of a resample after a batch without losses.
        batch: number of rounds in a batch, >= 1.
        budget: maximum number of resamples, >= 0.
        regret_bound: bound on the expected regret against every sequence of the class with the given number of
            switches, for oblivious losses; at most the horizon, which regret cannot exceed.
    """

    learning_rate: float
    fake_switch_prob: float
    batch: int
    budget: int
    regret_bound: float


def privacy_cost(learning_rate, fake_switch_prob, budget, *, accounting: str):
    """Returns the privacy cost of all releases, rho ("zcdp") or epsilon ("pure"); arrays are broadcast.

    A replaced loss vector changes one decision and every later resample. The log odds of the decision vary in a range
    of width r = ln(1 + (e^rate - 1) / p), where p is `fake_switch_prob`. A resample is an exponential mechanism of
    range 2 * rate. A mechanism of range r is (r^2 / 8)-zCDP.
    """
    grown = np.expm1(learning_rate) / fake_switch_prob
    if accounting == "zcdp":
        return np.square(np.log1p(grown)) / 8 + budget * np.square(learning_rate) / 2
    stays = np.log1p((1 - fake_switch_prob) * -np.expm1(-learning_rate) / fake_switch_prob)
    return np.maximum(learning_rate, stays) + 2 * learning_rate * budget


def rounding_of_weights(chosen: LazyParameters, *, num_experts: int, num_weights: int, horizon: int) -> float | None:
    """Returns a bound on the delta that rounding causes in weights that are products of floats.

    Returns None if the bound is not below 1.

    `docs/proofs/lazy_weights.md` contains the proof.

    Args:
        chosen: parameters of the learner.
        num_experts: N.
        num_weights: number of weights in all rows.
        horizon: rounds T.
    """
    batches = -(-horizon // chosen.batch)
    units = batches * (14 * num_experts + 64) + 5 * chosen.learning_rate * horizon + num_weights + 32
    log = units * float(jnp.finfo(default_float()).eps) / 2
    return below_one(2 * chosen.budget * math.expm1(min(2 * log, 1.0)))


def enough_resamples(learning_rate, fake_switch_prob, num_decisions, horizon: int):
    """Returns a budget of resamples that is too small with probability at most 1 / horizon; arrays are broadcast.

    A decision causes a resample with probability at most p + rate * (loss of the batch). These probabilities sum to at
    most p * num_decisions + rate * horizon, which also bounds the sum of the variances. Freedman's inequality then
    gives the budget.
    """
    mean, log = fake_switch_prob * num_decisions + learning_rate * horizon, math.log(horizon)
    return np.minimum(num_decisions, np.ceil(mean + np.sqrt(2 * mean * log) + 2 / 3 * log))


def regret_bound(
    learning_rate: float,
    fake_switch_prob: float,
    batch: int,
    budget: int,
    *,
    horizon: int,
    num_switches: int,
    nats: float,
) -> float:
    """Returns the proved regret bound, at most the horizon; the horizon if `budget` is below `enough_resamples`.

    `nats` is the comparator's negative log prior, in nats, in the class over ceil(horizon / batch) batches.
    """
    decisions = -(-horizon // batch) - 1
    is_enough = budget >= enough_resamples(learning_rate, fake_switch_prob, decisions, horizon)
    capped = 0 if budget >= decisions else 1 if is_enough else horizon
    moved = num_switches * (batch // 2)
    return min(float(horizon), nats / learning_rate + learning_rate * batch * horizon / 8 + moved + capped)


def lazy_weights_parameters(
    *,
    epsilon: float,
    delta: float = 0.0,
    num_experts: int,
    horizon: int,
    num_switches: int = 0,
    sequences: Sequences | None = None,
    accounting: str = "zcdp",
) -> LazyParameters:
    """Returns the parameters of `lazy_weights` with the smallest proved regret bound, and this bound.

    Let B be the length of a batch, M = ceil(T / B) and p the probability of a fake switch. The bound is

        ln(1 / pi(E)) / rate + rate * B * T / 8 + S * floor(B / 2) + 1

    for sequences E with S switches between batches, where pi is the prior of the class over M steps. The third term is
    the cost of moving each switch of the comparator to the nearest end of a batch. The last term bounds T times the
    probability that the budget of resamples is too small, because this probability is at most 1 / T. The bound is
    minimised over a grid of B and p, which is refined around the best point. At each point of the grid, the rate is the
    best rate that the privacy budget allows.

    Args:
        epsilon: privacy budget, > 0; infinity gives the non-private tuning: p = 0 and batches of one round.
        delta: in (0, 1), for "zcdp"; ignored for "pure".
        num_experts: N, >= 2.
        horizon: T, >= 1.
        num_switches: the comparator's number of switches S, >= 0.
        sequences: the class, by default `static()`.
        accounting: "zcdp" or "pure".

    Returns:
        The parameters. For short horizons the bound is a large fraction of the horizon. With the class `switching` at S
        = 3, T = 10^4, N = 10 and delta = 10^-6, it is 0.23 T for epsilon = 1 and 0.39 T for epsilon = 0.3.

    Raises:
        ValueError: if an argument is out of range, the class has no sequence with S switches, or epsilon is so small
            that no learning rate is private.

    Source:
        Algorithm: Asi, Feldman, Koren & Talwar (2023) and Asi, Koren, Liu & Talwar (2024); bound and
        accounting are proved in `lazy_weights`.

    Examples:
        >>> best = lazy_weights_parameters(epsilon=1.0, delta=1e-6, num_experts=10, horizon=10**5)
        >>> best.batch, round(best.regret_bound)
        (2, 605)
    """
    check_choice("accounting", accounting, ACCOUNTINGS)
    check_count("num_experts", num_experts, 2)
    check_horizon(horizon)
    sequences = static() if sequences is None else sequences
    epsilon, delta = check_epsilon(epsilon), check_number("delta", delta) if accounting == "zcdp" else 0.0
    return _best(
        epsilon, delta, num_experts, horizon, check_count("num_switches", num_switches, 0), sequences, accounting
    )


@functools.lru_cache(maxsize=1024)
def _best(
    epsilon: float,
    delta: float,
    num_experts: int,
    horizon: int,
    num_switches: int,
    sequences: Sequences,
    accounting: str,
) -> LazyParameters:
    allowed = zcdp_rho(epsilon, delta) if accounting == "zcdp" else epsilon
    chain = sequences(num_experts=num_experts, horizon=horizon)

    def nats(batch: int) -> float:
        steps = -(-horizon // batch)
        return chain.log_inverse_prior(num_switches, steps) if num_switches < steps else math.inf

    if not nats(1) < math.inf:
        raise ValueError(f"num_switches must be < horizon, and a possible number for {chain.name}, got {num_switches}")
    if epsilon == math.inf:
        rate = math.sqrt(8 * nats(1) / horizon)
        return LazyParameters(rate, 0.0, 1, horizon - 1, min(float(horizon), math.sqrt(nats(1) * horizon / 2)))

    def try_all(batches: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the regret bounds and the best allowed rates, [len(batches), len(chances)] each."""
        size, p = batches[:, None].astype(float), chances[None]
        price = np.asarray([nats(int(batch)) for batch in batches])[:, None]
        decisions = np.ceil(horizon / size) - 1
        high = np.minimum(np.sqrt(8 * price / (size * horizon)), 700.0) + 0 * p
        low = np.zeros_like(high)

        def costs(rate: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):
                return privacy_cost(rate, p, enough_resamples(rate, p, decisions, horizon), accounting=accounting)

        high = np.where(np.isfinite(high), high, 700.0)
        low = np.where(costs(high) <= allowed, high, low)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            fits = costs(middle) <= allowed
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        with np.errstate(divide="ignore"):
            bounds = price / low + low * size * horizon / 8 + num_switches * (size // 2)
        return bounds, low

    batches = np.unique(np.rint(np.geomspace(1, horizon, SIZES)).astype(int))
    chances = np.geomspace(SMALLEST, 1, CHANCES)
    best = (0.0, 1.0, horizon)
    for _ in range(4):
        bounds, rates = try_all(batches, chances)
        row, column = np.unravel_index(np.argmin(bounds), bounds.shape)
        best = (float(rates[row, column]), float(chances[column]), int(batches[row]))
        around = batches[max(row - 1, 0)], batches[min(row + 1, len(batches) - 1)]
        batches = np.unique(np.rint(np.geomspace(*around, 24)).astype(int))
        chances = np.geomspace(chances[max(column - 1, 0)], chances[min(column + 1, CHANCES - 1)], CHANCES)
    rate, p, batch = best
    if rate == 0:
        raise ValueError(f"epsilon must be larger, got {epsilon}: no learning rate is private at horizon {horizon}")
    budget = int(enough_resamples(rate, p, -(-horizon // batch) - 1, horizon))
    problem = {"horizon": horizon, "num_switches": num_switches, "nats": nats(batch)}
    return LazyParameters(rate, p, batch, budget, regret_bound(rate, p, batch, budget, **problem))


def chosen_parameters(
    epsilon: float,
    delta: float,
    learning_rate: float | None,
    fake_switch_prob: float | None,
    batch: int | None,
    budget: int | None,
    **problem: Any,
) -> LazyParameters:
    """Returns the given or tuned parameters that the learner uses: the rate rounded down, the probability up.

    `regret_bound` is the bound of the tuned parameters, even if other parameters are given.
    """
    return _choose(
        check_epsilon(epsilon),
        check_number("delta", delta),
        None if learning_rate is None else check_positive("learning_rate", learning_rate),
        None if fake_switch_prob is None else check_number("fake_switch_prob", fake_switch_prob),
        None if batch is None else check_count("batch", batch),
        None if budget is None else check_count("budget", budget, 0),
        dtype=default_float(),
        **problem,
    )


@functools.lru_cache(maxsize=1024)
def _choose(
    epsilon: float,
    delta: float,
    learning_rate: float | None,
    fake_switch_prob: float | None,
    batch: int | None,
    budget: int | None,
    *,
    dtype: np.dtype,
    num_experts: int,
    horizon: int,
    switches: int,
    sequences: Sequences,
    accounting: str,
) -> LazyParameters:
    best = lazy_weights_parameters(
        epsilon=epsilon,
        delta=delta,
        num_experts=num_experts,
        horizon=horizon,
        num_switches=switches,
        sequences=sequences,
        accounting=accounting,
    )
    is_private = epsilon < math.inf
    given_any = not (learning_rate is None and fake_switch_prob is None and batch is None)
    rate = best.learning_rate if learning_rate is None else learning_rate
    fake = best.fake_switch_prob if fake_switch_prob is None else fake_switch_prob
    check_within("fake_switch_prob", fake, 0.0, 1.0)
    if is_private and not fake >= SMALLEST:
        raise ValueError(f"fake_switch_prob must be >= {SMALLEST:g} at a finite epsilon, got {fake}")
    size = best.batch if batch is None else batch
    if size > horizon:
        raise ValueError(f"batch must be <= horizon, got {size} at horizon {horizon}")
    rate, fake = float(leaf_rounded_down("learning_rate", rate)), float(round_up(fake, dtype))
    decisions = -(-horizon // size) - 1
    cap = decisions
    if is_private:
        allowed = (zcdp_rho(epsilon, delta) if accounting == "zcdp" else epsilon) * (1 + SLACK)
        once, full_cost = (float(privacy_cost(rate, fake, count, accounting=accounting)) for count in (0, decisions))
        if once > allowed:
            raise ValueError(
                f"epsilon must pay for one decision at learning_rate {rate:g} and fake_switch_prob {fake:g}, got "
                f"{epsilon}: increase fake_switch_prob or reduce learning_rate"
            )
        if full_cost > allowed:  # the cost is linear in the number of resamples
            cap = int((allowed - once) / (full_cost - once) * decisions)
    if budget is None:
        budget = cap if given_any else min(best.budget, cap)
    elif budget > cap and is_private:
        raise ValueError(
            f"budget must be <= {cap}, the largest number of resamples at this epsilon and horizon, got {budget}"
        )
    return LazyParameters(rate, fake, size, int(budget), best.regret_bound)
