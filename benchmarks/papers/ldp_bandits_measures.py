"""Measures of LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020)."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, root_scalar
from scipy.stats import beta

from benchmarks.papers.measures import exponent, largest, mean, mean_ratio, share, worst_over
from benchmarks.papers.rows import Interval, Measures, Size
from jaxdp import bandits
from jaxdp.bandits import contextual
from jaxdp.core import Environment, Learner
from jaxdp.mechanisms import analytic_gaussian, gaussian_delta, gaussian_epsilon
from jaxdp.simulation import simulator, sweep
from jaxdp.simulation.run.values import parameters
from jaxdp.studies.ldp_bandits import ldp_bandits
from jaxdp.studies.ldp_best_arm import ldp_best_arm
from jaxdp.studies.ldp_linear import uniform_regret
from jaxdp.studies.tiles import cpu_tile
from jaxdp.theory import ldp_bandits as theory

DELTA, EPSILON, DIM, NUM_ARMS = 1e-5, 0.9, 5, 20
HORIZONS = (100_000, 1_000_000)
TILE_SIZE = 16


# ---- context-free ----------------------------------------------------------------------------------------------------
@functools.cache
def problem(size: Size, name: str) -> xr.Dataset:
    """Measures regret of one row of the study of Table 1."""
    return ldp_bandits(
        problem=(name,),
        epsilon=(0.5, 1.0),
        horizon=(50, 200) if size.name == "small" else HORIZONS,
        num_seeds=size.repeats(96 if name.startswith("strongly_convex") else 24),
        key=size.key,
    ).isel(problem=0, drop=True)


def of_table_1(size: Size, name: str) -> Measures:
    """Measures exponents of T and of c = (e^ε + 1)/(e^ε - 1), and the largest mean regret over its bound."""
    results = problem(size, name)
    regret = results.pseudo_regret
    cost = theory.noise_factor(regret.epsilon.values)
    last = regret.isel(horizon=-1).assign_coords(epsilon=cost)
    return {
        "exponent of T, ε = 1": exponent(regret.sel(epsilon=1.0), "horizon"),
        "exponent of c": exponent(last, "epsilon"),
        "mean regret / bound, largest": worst_over(regret / results.upper),
    }


def adversarial_arms(size: Size) -> Measures:
    """Measures Tsallis-INF at the gap that is barely seen in T rounds: the exponent of T, and regret over its bound."""
    horizons, found, ratios = (100, 400) if size.name == "small" else (10_000, 100_000), [], []
    for horizon in horizons:
        gap = min(0.5, 2 * math.sqrt(5 / horizon) * float(theory.noise_factor(1.0)))
        world = bandits.bernoulli_bandit([0.5 + gap / 2, *[0.5 - gap / 2] * 4])
        run = simulator(bandits.tsallis_inf(num_arms=5), world, horizon, checkpoints=[horizon])
        results = sweep(
            run, axes={"epsilon": [1.0]}, num_seeds=size.repeats(32), key=size.key, tile_size=cpu_tile(TILE_SIZE)
        )
        found.append(results.pseudo_regret.squeeze(drop=True))
        ratios.append(mean(found[-1] / float(theory.tsallis_inf_upper(1.0, horizon, 5))))
    regret = xr.concat(found, xr.IndexVariable("horizon", list(horizons)))
    assert isinstance(regret, xr.DataArray)
    return {"exponent of T": exponent(regret, "horizon"), "mean regret / bound, largest": largest(ratios)}


def best_arm(size: Size) -> Measures:
    """Measures the exponent of c in the mean stopping time of successive elimination, and its errors at all epsilon."""
    results = ldp_best_arm(
        epsilon=(0.5, 1.0),
        learner=("successive_elimination",),
        num_seeds=size.repeats(48),
        gap=0.9 if size.name == "small" else 0.4,
        horizon=10**7,
        key=size.key,
    ).isel(learner=0)
    rounds = results.rounds.assign_coords(epsilon=theory.noise_factor(results.epsilon.values))
    return {
        "exponent of c in rounds": exponent(rounds, "epsilon"),
        "share of wrong answers": share(results.wrong.values.ravel()),
    }


# ---- contextual ------------------------------------------------------------------------------------------------------
@functools.cache
def played(size: Size, name: str) -> xr.DataArray:
    """Plays a contextual learner: regret of dimensions epsilon, round and seed."""
    horizon = 400 if size.name == "small" else 50_000
    about: dict[str, Any] = {"num_arms": NUM_ARMS, "dim": DIM, "horizon": horizon}
    linear: Callable[[], Environment] = lambda: contextual.linear_contexts(num_arms=NUM_ARMS, dim=DIM)  # noqa: E731
    made: dict[str, tuple[Callable[[], Learner], Callable[[], Environment]]] = {
        "linear": (lambda: contextual.linear_ucb(**about), linear),
        "published": (lambda: contextual.linear_ucb(**about, constants="paper"), linear),
        "joint": (lambda: contextual.linear_ucb_joint(**about), linear),
        "generalized": (
            lambda: contextual.generalized_linear(**about),
            lambda: contextual.generalized_linear_contexts(num_arms=NUM_ARMS, dim=DIM),
        ),
    }
    make_learner, make_world = made[name]
    learner, world = make_learner(), make_world()
    run = simulator(learner, world, horizon, checkpoints=[horizon // 10, horizon])
    values = {"delta": [DELTA]} if "delta" in parameters(learner.params) else {}
    budgets = [0.5, 1.0] if name != "generalized" else [1.0, 2.0]
    results = sweep(
        run, axes={"epsilon": budgets, **values}, num_seeds=size.repeats(16), key=size.key, tile_size=cpu_tile(8)
    )
    return results.pseudo_regret.squeeze("delta", drop=True)


def contextual_orders(size: Size, name: str) -> Measures:
    """Measures exponents of T and 1/ε, and regret over the regret of uniform play."""
    regret = played(size, name)
    largest_epsilon = float(regret.epsilon.values[-1])
    last = regret.isel(round=-1)
    found = {
        f"exponent of T, ε = {largest_epsilon:g}": exponent(regret.sel(epsilon=largest_epsilon), "round"),
        "exponent of 1/ε": exponent(last.assign_coords(epsilon=1 / last.epsilon), "epsilon"),
    }
    in_a_round = _uniform_logistic() if name == "generalized" else uniform_regret(NUM_ARMS, DIM)
    uniform = in_a_round * int(regret["round"][-1])
    found[f"regret / uniform play's, ε = {largest_epsilon:g}"] = Interval(
        *(each / uniform for each in mean(last.sel(epsilon=largest_epsilon)))
    )
    return found


def _uniform_logistic() -> float:
    """Computes `uniform_regret` for the logistic link, |theta| = 1: mean rewards are 1/2 on average."""
    shares = (np.arange(20_000) + 0.5) / 20_000
    margins = 2 * beta.ppf(shares ** (1 / NUM_ARMS), (DIM - 1) / 2, (DIM - 1) / 2) - 1
    return float((1 / (1 + np.exp(-margins))).mean()) - 0.5


def joint_against_local(size: Size) -> Measures:
    """Measures exponents of T under joint and local privacy, epsilon = 1, and the ratio of regrets after all rounds."""
    joint, local = (played(size, name).sel(epsilon=1.0) for name in ("joint", "linear"))
    ratio = mean_ratio(joint.isel(round=-1), local.isel(round=-1))
    before = mean_ratio(joint.isel(round=0), local.isel(round=0))
    decades = math.log10(joint["round"].values[-1] / joint["round"].values[0])
    return {
        "exponent of T, joint": exponent(joint, "round"),
        "exponent of T, joint less local": _slope(before, ratio, decades),
        "regret joint / local": ratio,
    }


def _slope(before: Interval, after: Interval, decades: float) -> Interval:
    """Returns the exponent between two ratios, with their limits at their worst (each alone at 95%)."""
    ends = (after.value, before.value), (after.low, before.high), (after.high, before.low)
    return Interval(*(math.log10(late / early) / decades if min(late, early) > 0 else math.nan for late, early in ends))


# ---- privacy ---------------------------------------------------------------------------------------------------------
def classical_noise(size: Size) -> Measures:
    """Computes the exact δ of the published σ over the claim, below ε = 1 and far above; and σ over the least one."""
    del size
    found = {}
    for epsilon, delta in ((EPSILON, DELTA), (8.0, 1e-3)):
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        found[f"exact δ / claimed, ε = {epsilon:g}"] = Interval.exact(gaussian_delta(epsilon, sigma) / delta)
    least = analytic_gaussian(8.0, 1e-3)
    sigma = math.sqrt(2 * math.log(1.25 / DELTA)) / EPSILON
    found["exact δ / claimed, least σ, ε = 8"] = Interval.exact(round(gaussian_delta(8.0, least) / 1e-3, 6))
    found["published σ / least σ, ε = 0.9"] = Interval.exact(sigma / analytic_gaussian(EPSILON, DELTA))
    return found


def unbounded_losses(size: Size) -> Measures:
    """Computes the cost of a report of a loss 10 B away from another one, with noise for losses in [-B, B]."""
    del size
    sigma = 2 * math.sqrt(2 * math.log(1.25 / DELTA)) / EPSILON
    return {
        f"exact ε / claimed, losses {name}": Interval.exact(gaussian_epsilon(DELTA, sigma, apart) / EPSILON)
        for name, apart in (("of sub-Gaussian noise, 10 B apart", 10.0), ("clipped to [-B, B]", 2.0))
    }


@functools.cache
def farthest_users(model: float, vector: float) -> float:
    """Finds by optimisation the largest distance between two users' releases, taken together.

    A user has x in the unit ball and a number r in [-1, 1]. Released are the upper triangle of x x^T, `model` times (x
    x^T) theta for some theta in the unit ball, and `vector` times r x; distances are Euclidean. Two dimensions are
    enough: two users differ only in the plane of their x, and the upper triangle is the longest where their difference
    x x^T - x' x'^T is diagonal.
    """

    def apart(place: np.ndarray) -> float:
        lengths, angles = np.sin(place[:3]), place[3:6]
        x, other, theta = lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        matrix = np.outer(x, x) - np.outer(other, other)
        numbers = np.sin(place[6:])
        change = np.concatenate(
            [
                matrix[np.triu_indices(2)],
                model * (matrix @ theta),
                vector * (numbers[0] * x - numbers[1] * other),
            ]
        )
        return float(change @ change)

    starts = np.random.default_rng(0).uniform(-math.pi, math.pi, size=(24, 8))
    return math.sqrt(max(-minimize(lambda place: -apart(place), start).fun for start in starts))


def _spent(distance: float) -> float:
    """Computes the cost of a Gaussian mechanism on inputs so many standard deviations apart, over the claim."""
    return gaussian_epsilon(DELTA, 1.0, distance) / EPSILON


def two_releases(size: Size) -> Measures:
    """Computes the cost of Algorithm 5's two releases over the claim: of the worst two users, and a bound.

    Together they are one Gaussian mechanism. Its worst two users have x' = -x and the largest reward, where x x^T does
    not move; the bound adds the squares of the largest changes of each release, which no two users have at once.
    """
    del size
    sigma = 6 * math.sqrt(2 * math.log(2.5 / DELTA)) / EPSILON
    return {
        "exact ε / claimed, Alg. 5": Interval.exact(round(_spent(farthest_users(0.0, 2.0) / sigma), 6)),
        "bound on ε / claimed, worst changes added up": Interval.exact(_spent(math.hypot(2, 4) / sigma)),
    }


def three_releases(size: Size) -> Measures:
    """Computes the cost of Algorithm 3's three releases over the claim: of the worst users and link |g| <= C.

    A gradient is r x with |r| <= 2 C + 1, where g(x.w) = C and y = -C - 1. The worst two users have x' = -x and the
    largest r both, where x x^T and z x = (x x^T) w do not move. No link that increases has that, but a steep one,
    C tanh(k a), comes as near as one likes: two users with x' near -x and both x.w > 0.
    """
    del size
    sigma = 6 * math.sqrt(2 * math.log(3.75 / DELTA)) / EPSILON

    def of_the_claim(bound: float) -> float:
        return _spent(farthest_users(1.0, (2 * bound + 1) / bound) / sigma)

    found = {f"exact ε / claimed, C = {c:g}": Interval.exact(round(of_the_claim(c), 6)) for c in (0.4, 0.5, 1.0)}
    least = root_scalar(lambda c: of_the_claim(c) - 1, bracket=(0.4, 1.0), xtol=1e-4)
    added = math.hypot(2, 2, 2 * (2 * 0.5 + 1) / 0.5)
    return {
        **found,
        "exact ε / claimed, noise for 2 C + 1": Interval.exact(round(_spent(farthest_users(1.0, 1.0) / sigma), 6)),
        "C at which exact ε = claimed": Interval.exact(least.root),
        "bound on ε / claimed, worst changes added up, C = 0.5": Interval.exact(_spent(added / sigma)),
    }


def accumulated_shift(size: Size) -> Measures:
    """Computes the factor by which the regularizer shrinks the model in directions that are looked at evenly.

    T = 10^10, d = 5. θ = V^-1 u with V = Σ x x^T + shift I has the mean (T/d) / (T/d + shift) θ*. The sum of the roots
    of 1 to T is 2 T^(3/2) / 3, up to lower orders.
    """
    del size
    horizon = 1e10
    sigma = 6 * math.sqrt(2 * math.log(3.75 / DELTA)) / EPSILON
    shift = 2 * sigma * math.sqrt(horizon) * (4 * math.sqrt(DIM) + 2 * math.log(2 * horizon / 0.05))
    even = horizon / DIM
    return {
        "E θ / θ*, shifts added up": Interval.exact(even / (even + 2 / 3 * horizon * shift)),
        "E θ / θ*, the last shift alone": Interval.exact(even / (even + shift)),
    }
