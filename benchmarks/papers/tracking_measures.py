"""Measures of Tracking (Asi, Raman & Saha, 2025)."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from benchmarks.papers.measures import (
    exponent,
    largest,
    lower_bound,
    mean,
    mean_ratio,
    share,
    smallest,
    upper_bound,
)
from benchmarks.papers.rows import Interval, Measures, Size
from jaxdp import experts, registry
from jaxdp.audit import exact_budget, exact_epsilon, full_information, grey_box
from jaxdp.core import Environment, Learner
from jaxdp.experts import classes
from jaxdp.registry.distributions import above_threshold_distribution, noisy_max_distribution
from jaxdp.simulation import simulator, sweep
from jaxdp.studies.tiles import cpu_tile
from jaxdp.studies.tracking import ADVERSARIES, LEARNERS, Setting, proved_bound, tracking_run
from jaxdp.theory import tracking as theory

NUM_EXPERTS, SWITCHES, GAP, DELTA = 10, 3, 0.3, 1e-6
HORIZONS = (2_000, 20_000)
FAILURE_PROB = 0.05
TILE_SIZE = 16
MEANS = [0.5] * (NUM_EXPERTS - 1) + [0.3]  # for losses of one distribution


# ---- simulations that rows share -------------------------------------------------------------------------------------
@functools.cache
def tracked(size: Size, learner: str, adversary: str, ratio: float | None = None, num_seeds: int = 8) -> xr.Dataset:
    """Plays a study's learner against a study's adversary at two horizons.

    Epsilon is 1, 4 and infinity, or ratio sqrt(S / T).
    """
    horizons = (60, 240) if size.name == "small" else HORIZONS
    gap = {horizon: _gap(adversary, horizon) for horizon in horizons}
    found = []
    for horizon in horizons:
        setting = Setting(adversary, NUM_EXPERTS, horizon, SWITCHES)
        budgets = [1.0, 4.0, math.inf] if ratio is None else [ratio * math.sqrt(SWITCHES / horizon)]
        made = LEARNERS[learner](NUM_EXPERTS, horizon, SWITCHES)
        run = tracking_run(made, ADVERSARIES[adversary].make(setting, gap[horizon]), horizon, DELTA)
        results = sweep(
            run,
            axes={"epsilon": budgets},
            num_seeds=size.repeats(num_seeds, small=6),
            key=size.key,
            tile_size=cpu_tile(TILE_SIZE),
        )
        found.append(results.assign_coords(epsilon=budgets if ratio is None else [ratio]))
    joined = xr.concat(found, xr.IndexVariable("horizon", list(horizons)), combine_attrs="drop")
    assert isinstance(joined, xr.Dataset)
    return joined


def _gap(adversary: str, horizon: int) -> float:
    """Returns the gap: for hard losses the one barely seen in one phase, for others the studies' gap."""
    if adversary != "lower_bound":
        return GAP
    return min(0.5, math.sqrt((SWITCHES + 1) * math.log(NUM_EXPERTS) / horizon))


def grows(size: Size, learner: str, adversary: str, epsilon: float = 4.0, num_seeds: int = 8) -> Measures:
    """Measures the exponent of T of the dynamic regret."""
    regret = tracked(size, learner, adversary, num_seeds=num_seeds).dynamic_regret.sel(epsilon=epsilon)
    return {
        f"exponent of T, ε = {epsilon:g}": exponent(regret, "horizon"),
        "regret / T at the largest T": Interval(*(each / int(regret.horizon[-1]) for each in mean(regret[-1]))),
    }


def of_table_1(size: Size) -> Measures:
    """Measures the exponent of T of counter weights, against shifting losses and alternating ones."""
    found = {}
    for kind, adversary in (("shifting", "shifting"), ("oblivious", "alternating")):
        regret = tracked(size, "counter_weights", adversary).dynamic_regret.sel(epsilon=4.0)
        found[f"exponent of T, {kind}"] = exponent(regret, "horizon")
    return found


# ---- section 3 -------------------------------------------------------------------------------------------------------
@functools.cache
def limited(size: Size, maximum: bool = False) -> xr.Dataset:
    """Measures regret of Algorithm 1 on losses of one distribution; `maximum` selects as line 4 is printed."""
    learner = experts.limited_updates(num_experts=NUM_EXPERTS, losses="binary")
    if maximum:  # the least total of 1 - loss is the largest of losses
        honest = learner.privatize

        def privatize(key, params, public, context, action, feedback):
            return honest(key, params, public, context, action, 1 - feedback)

        learner = learner._replace(privatize=privatize, blocks=(), counts=None)
    rounds = [50, 200] if size.name == "small" else [2_000, 20_000]
    return sweep(
        simulator(learner, experts.stochastic_losses(MEANS), rounds[-1], checkpoints=rounds),
        axes={"epsilon": [0.1, 1.0]},
        num_seeds=size.repeats(100, small=20),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )


def selection(size: Size) -> Measures:
    """Measures regret of the arg max and of the arg min."""
    return {
        name: exponent(limited(size, maximum).pseudo_regret.sel(epsilon=1.0), "round")
        for name, maximum in (("exponent of T, arg max", True), ("exponent of T, arg min", False))
    }


def windows(size: Size) -> Measures:
    """Measures how often the regret of all rounds is within Theorem 3.1, and the mean over it."""
    results, found, shares = limited(size), [], []
    for epsilon in results.epsilon.values:
        for rounds in results["round"].values:
            bound = float(theory.window_upper(epsilon, rounds, NUM_EXPERTS, rounds, FAILURE_PROB))
            regret = results.pseudo_regret.sel(epsilon=epsilon, round=rounds)
            shares.append(share(regret <= bound))
            found.append(mean(regret / bound))
    return {"share of runs within": smallest(shares), "largest mean / bound": largest(found)}


def selections_spend(size: Size) -> Measures:
    """Computes exact budgets of the registered distributions of Algorithm 1 and its mechanisms, over their claims."""
    del size
    found = {}
    for name in ("noisy_max_laplace", "above_threshold", "limited_updates"):
        entry = {**registry.MECHANISMS, **registry.LEARNERS}[name]
        found[f"exact ε / claimed, {name}"] = Interval.exact(round(_spent(entry), 6))
    return found


def _spent(entry: registry.Entry) -> float:
    distribution, made = entry.make_distribution(), entry.make()  # pyright: ignore[reportAttributeAccessIssue]
    assert distribution is not None
    first, second = (distribution(made.params(**entry.values), data) for data in entry.make_neighbours())
    claim = made.guarantee(**entry.values)
    claimed = claim.rho if claim.rho is not None else claim.epsilon
    return exact_budget(first, second, claim) / claimed


def questions(size: Size) -> Measures:
    """Measures how far one loss vector moves a window's regret, and the cost of the tests out of their half.

    Expert 0 plays ten rounds with losses 1 and 0; in one round they are exchanged. Half of epsilon is 1. 200 questions
    are moved by 2, and one that is not is answered "above".
    """
    del size
    losses = np.tile([1.0, 0.0], (10, 1))
    other = losses.copy()
    other[0] = losses[0, ::-1]
    regrets = [(each[:, :1] - each).sum(0).max() for each in (losses, other)]
    shares = {}
    for sensitivity in (1.0, 2.0):
        asked = [np.append(np.full(200, shift), 0.0) / sensitivity + 0.5 for shift in (0.0, -2.0)]
        first, second = (above_threshold_distribution(np.float64(1.0), each, split="even") for each in asked)
        shares[sensitivity] = exact_epsilon(first, second)
    return {
        "change of a window's regret": Interval.exact(abs(regrets[0] - regrets[1])),
        "exact ε / its half, noise for 1": Interval.exact(round(shares[1.0], 6)),
        "exact ε / its half, noise for 2": Interval.exact(round(shares[2.0], 6)),
    }


def restart_reuse(size: Size) -> Measures:
    """Measures a loss vector that ends one block and begins the next epoch: two selections of half of epsilon each."""
    del size
    epsilon = 1.0
    scores = ([0.0, -1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0])
    one, other = (
        noisy_max_distribution(np.float64(epsilon / 2), np.asarray(each), noise="exponential") for each in scores
    )
    once = exact_epsilon(one, other)
    first, second = (
        {(i, j): p * q for i, p in distribution.items() for j, q in distribution.items()}
        for distribution in (one, other)
    )
    twice = exact_epsilon(first, second)
    return {
        "exact ε of selections / (ε/2), as printed": Interval.exact(round(twice / (epsilon / 2), 6)),
        "exact ε of selections / (ε/2), from t + 1": Interval.exact(round(once / (epsilon / 2), 6)),
    }


def false_restarts(size: Size) -> Measures:
    """Measures how often Algorithm 2 restarts although the distribution of losses never changes."""
    horizon = 200 if size.name == "small" else 5_000
    learner = experts.svt_restarts(num_experts=NUM_EXPERTS, horizon=horizon, check_every=16)
    run = simulator(
        learner,
        experts.stochastic_losses(MEANS),
        horizon,
        checkpoints=[horizon],
        record={"restarts": lambda snapshot: snapshot.public.restarts},
    )
    results = sweep(
        run,
        axes={"epsilon": [1.0], "failure_prob": [FAILURE_PROB]},
        num_seeds=size.repeats(128),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )
    return {"share of runs with a restart": share(results.restarts.squeeze() > 0)}


# ---- section 4 -------------------------------------------------------------------------------------------------------
def class_size(size: Size) -> Measures:
    """Computes ln |C(T, S)| less 2 S ln(N T)."""
    del size
    horizon, found = 1000, {}
    for switches in (0, 3):
        made = classes.switching(num_switches=switches) if switches else classes.static()
        counted = made(num_experts=NUM_EXPERTS, horizon=horizon).log_inverse_prior(switches)
        found[f"ln of the class less 2 S ln(NT), S = {switches}"] = Interval.exact(
            counted - 2 * switches * math.log(NUM_EXPERTS * horizon)
        )
    return found


def reduction(size: Size) -> Measures:
    """Computes exact privacy of the reduction on a tiny world, and regret over its proved bound."""
    results = tracked(size, "lazy_weights", "shifting")
    ratios = []
    for epsilon in results.epsilon.values:
        for horizon in results.horizon.values:
            setting = Setting("shifting", NUM_EXPERTS, int(horizon), SWITCHES)
            bound = proved_bound("lazy_weights", setting, float(epsilon), DELTA)
            assert bound is not None
            ratios.append(mean(results.dynamic_regret.sel(epsilon=epsilon, horizon=horizon) / bound))
    return {
        "exact budget / claimed": Interval.exact(_spent(registry.LEARNERS["lazy_weights_switching"])),
        "regret / proved bound, largest": largest(ratios),
    }


def proved_orders(size: Size) -> Measures:
    """Computes, on the host, how the cost of privacy in the proved bound of lazy weights grows.

    Regret may grow more slowly: the bound's exponent of T is the largest possible one, and of ε the smallest.
    """
    del size
    horizons, budgets = np.array([1e7, 1e9]), np.array([0.003, 0.03])

    def added(epsilon: float, horizon: float) -> float:
        about: dict[str, Any] = {"delta": DELTA, "num_experts": NUM_EXPERTS, "horizon": int(horizon)}
        private, clear = (
            experts.lazy_weights_parameters(epsilon=each, **about).regret_bound for each in (epsilon, math.inf)
        )
        return private - clear

    along_t = np.polyfit(np.log(horizons), np.log([added(budgets[0], each) for each in horizons]), 1)[0]
    along_e = np.polyfit(np.log(budgets), np.log([added(each, 1e9) for each in budgets]), 1)[0]
    return {"exponent of T, what privacy adds": upper_bound(along_t), "exponent of ε": lower_bound(along_e)}


# ---- section 5 -------------------------------------------------------------------------------------------------------
def punished(size: Size) -> Measures:
    """Measures regret at epsilon = sqrt(S / T) / 10 against losses that react and against losses fixed in advance."""
    found = {}
    for name in ("lazy_weights", "mirror_descent"):
        regret = tracked(size, name, "punish_repeats", 0.1).dynamic_regret.squeeze("epsilon")
        found[f"exponent of T, {name}"] = exponent(regret, "horizon")
    return found


def _grey(size: Size, learner: Learner, values: dict[str, float]):
    entry = registry.LEARNERS["mirror_descent"].sized(num_experts=learner.interface.feedback.shape[0])  # pyright: ignore
    return grey_box(
        size.key, learner, values, entry.make_user, rounds=8, answer=full_information, num_bases=2, num_neighbours=64
    )


def published_noise(size: Size) -> Measures:
    """Computes the cost of Algorithm 3's releases, as published and by sampling, and of its plays alone."""
    about: dict[str, Any] = {"num_experts": 4, "horizon": 40, "num_switches": 1}
    published = _grey(size, experts.mirror_descent(**about, constants="paper"), {"epsilon": 1.0})
    corrected = experts.mirror_descent(**about)
    values = {"epsilon": 1.0, "delta": DELTA}
    mended = _grey(size, corrected, values)
    claimed = corrected.guarantee(**values)
    return {
        "ε of a loss vector's releases / claimed, N = 4": Interval.exact(round(published.spent, 4)),
        "faults found in the corrected form": Interval.exact(len(mended.faults)),
        "claimed (ε at δ) of the corrected form / ε": Interval.exact(round(claimed.epsilon_at(DELTA), 6)),
    }


def plays_of_the_published_form(size: Size) -> Measures:
    """Measures how much likelier plays that avoid one half of N = 2000 experts are under one of two first loss vectors.

    The noise is conditioned on: the chance of such plays given the noise is a product of weights, and its mean over
    runs is the chance. The interval resamples runs.
    """
    num_experts, horizon, epsilon = (200, 40, 0.5) if size.name == "small" else (2000, 100, 0.5)
    learner = experts.mirror_descent(num_experts=num_experts, horizon=horizon, num_switches=10, constants="paper")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    half = jnp.arange(num_experts) < num_experts // 2

    def lane(key: jax.Array, first: jax.Array) -> jax.Array:
        def step(state, round_):
            losses = (first & (round_ == 0)).astype(float)
            keys = jax.random.split(jax.random.fold_in(key, round_))
            report = learner.privatize(keys[0], params, state.public, None, jnp.int32(0), losses)
            state = learner.update(keys[1], params, state, report)
            return state, jnp.log(jnp.sum(jnp.where(half, 0, state.public)))

        start = learner.init(jax.random.fold_in(key, horizon), params)
        return jax.lax.scan(step, start, jnp.arange(horizon - 1))[1].sum()

    keys = jax.random.split(size.key, size.repeats(64, small=16))
    run = jax.jit(jax.vmap(lane, (0, None)))  # the same noise for both
    logs = np.stack([np.asarray(run(keys, first), np.float64) for first in (half, ~half)])

    def ratio(logs: np.ndarray) -> float:
        return float(abs(np.logaddexp.reduce(logs[0]) - np.logaddexp.reduce(logs[1]))) / epsilon

    rng = np.random.default_rng(0)
    again = [ratio(logs[:, rng.integers(len(keys), size=len(keys))]) for _ in range(1000)]
    return {"log ratio / ε": Interval(ratio(logs), *np.quantile(again, [0.025, 0.975]))}


def adversaries_that_react(size: Size) -> Measures:
    """Measures regret on noisy losses, over the bound that is proved against losses fixed in advance."""
    horizon = 200 if size.name == "small" else 5_000
    learner = experts.mirror_descent(num_experts=8, horizon=horizon, num_switches=1, form="noisy_losses")
    world: Callable[..., Environment] = experts.adaptive_losses
    run = simulator(learner, world([0.5] * 8, penalty=0.3, num_switches=1), horizon, checkpoints=[horizon])
    results = sweep(
        run,
        axes={"epsilon": [4.0], "delta": [DELTA]},
        num_seeds=size.repeats(16),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )
    bound = experts.mirror_descent_parameters(
        epsilon=4.0, delta=DELTA, num_experts=8, horizon=horizon, num_switches=1, form="noisy_losses"
    ).regret_bound
    regret = results.dynamic_regret.squeeze(drop=True)
    return {"regret / oblivious bound": mean_ratio(regret, xr.full_like(regret, bound))}
