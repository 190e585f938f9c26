"""What is measured of LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020)."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

import functools
import math
from collections.abc import Callable
from typing import Any

import xarray as xr

from jaxdp import bandits
from jaxdp.bandits import contextual
from jaxdp.core import Environment, Learner
from jaxdp.mechanisms import analytic_gaussian, gaussian_delta, gaussian_epsilon
from jaxdp.simulation import simulator, sweep
from jaxdp.simulation.run.values import parameters
from jaxdp.studies.ldp_bandits import ldp_bandits
from jaxdp.studies.ldp_best_arm import ldp_best_arm
from jaxdp.studies.ldp_linear import uniform_regret
from jaxdp.studies.reproduce.measures import exponent, largest, mean, mean_ratio, worst_over
from jaxdp.studies.reproduce.rows import Interval, Measures, Size
from jaxdp.theory import ldp_bandits as theory

DELTA, EPSILON, DIM, NUM_ARMS = 1e-5, 0.9, 5, 20
HORIZONS = (100_000, 1_000_000)
TILE_SIZE = 16


# ---- context-free ----------------------------------------------------------------------------------------------------
@functools.cache
def problem(size: Size, name: str) -> xr.Dataset:
    """Regret of one row of the study of Table 1."""
    return ldp_bandits(
        problem=(name,),
        epsilon=(0.5, 1.0),
        horizon=(50, 200) if size.name == "small" else HORIZONS,
        num_seeds=size.repeats(96 if name.startswith("strongly_convex") else 24),
        key=size.key,
    ).isel(problem=0, drop=True)


def of_table_1(size: Size, name: str) -> Measures:
    """Exponents of T and of c = (e^ε + 1)/(e^ε - 1), and the largest mean regret over its bound."""
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
    """Tsallis-INF at the gap that is barely seen in T rounds: the exponent of T, and regret over its bound."""
    horizons, found, ratios = (100, 400) if size.name == "small" else (10_000, 100_000), [], []
    for horizon in horizons:
        gap = min(0.5, 2 * math.sqrt(5 / horizon) * float(theory.noise_factor(1.0)))
        world = bandits.bernoulli_bandit([0.5 + gap / 2, *[0.5 - gap / 2] * 4])
        run = simulator(bandits.tsallis_inf(num_arms=5), world, horizon, checkpoints=[horizon])
        results = sweep(run, axes={"epsilon": [1.0]}, num_seeds=size.repeats(32), key=size.key, tile_size=TILE_SIZE)
        found.append(results.pseudo_regret.squeeze(drop=True))
        ratios.append(mean(found[-1] / float(theory.tsallis_inf_upper(1.0, horizon, 5))))
    regret = xr.concat(found, xr.IndexVariable("horizon", list(horizons)))
    assert isinstance(regret, xr.DataArray)
    return {"exponent of T": exponent(regret, "horizon"), "mean regret / bound, largest": largest(ratios)}


def best_arm(size: Size) -> Measures:
    """The exponent of c in the mean stopping time of successive elimination."""
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
        "share of wrong answers": Interval.exact(float(results.wrong.mean())),
    }


# ---- contextual ------------------------------------------------------------------------------------------------------
@functools.cache
def played(size: Size, name: str) -> xr.DataArray:
    """Regret of a contextual learner, of dimensions epsilon, round and seed."""
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
    results = sweep(run, axes={"epsilon": budgets, **values}, num_seeds=size.repeats(16), key=size.key, tile_size=8)
    return results.pseudo_regret.squeeze("delta", drop=True)


def contextual_orders(size: Size, name: str) -> Measures:
    """Exponents of T and 1/ε, and regret over that of uniform play where it is known."""
    regret = played(size, name)
    largest_epsilon = float(regret.epsilon.values[-1])
    last = regret.isel(round=-1)
    found = {
        f"exponent of T, ε = {largest_epsilon:g}": exponent(regret.sel(epsilon=largest_epsilon), "round"),
        "exponent of 1/ε": exponent(last.assign_coords(epsilon=1 / last.epsilon), "epsilon"),
    }
    if name != "generalized":
        uniform = uniform_regret(NUM_ARMS, DIM) * int(regret["round"][-1])
        found[f"regret / uniform play's, ε = {largest_epsilon:g}"] = Interval(
            *(each / uniform for each in mean(last.sel(epsilon=largest_epsilon)))
        )
    return found


def joint_against_local(size: Size) -> Measures:
    """Regret under joint privacy over that under local privacy, epsilon = 1."""
    joint, local = (played(size, name).sel(epsilon=1.0).isel(round=-1) for name in ("joint", "linear"))
    return {"regret joint / local": mean_ratio(joint, local)}


# ---- privacy ---------------------------------------------------------------------------------------------------------
def classical_noise(size: Size) -> Measures:
    """The exact δ of the published σ, over the claim, below ε = 1 and far above it; and σ over the least one."""
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
    """What a report of a loss 5 B away from another one spends, with noise for losses in [-B, B]."""
    del size
    sigma = 2 * math.sqrt(2 * math.log(1.25 / DELTA)) / EPSILON
    return {
        f"exact ε / claimed, losses {name}": Interval.exact(gaussian_epsilon(DELTA, sigma, apart) / EPSILON)
        for name, apart in (("of sub-Gaussian noise, 10 B apart", 10.0), ("clipped to [-B, B]", 2.0))
    }


def three_releases(size: Size) -> Measures:
    """What the three releases of Algorithm 5 and Algorithm 3 spend together, over the claim.

    Together they are one Gaussian mechanism: the squares of changes over noise add up.
    """
    del size
    sigma5 = 6 * math.sqrt(2 * math.log(2.5 / DELTA)) / EPSILON
    sigma3 = 6 * math.sqrt(2 * math.log(3.75 / DELTA)) / EPSILON

    def spent(*ratios: float) -> Interval:
        total = math.sqrt(sum(each * each for each in ratios))
        return Interval.exact(gaussian_epsilon(DELTA, 1.0, total) / EPSILON)

    found = {"exact ε / claimed, Alg. 5": spent(2 / sigma5, 4 / sigma5)}
    for bound in (0.5, 1.0):
        change = 2 * (2 * bound + 1)
        found[f"exact ε / claimed, Alg. 3, C = {bound:g}"] = spent(2 / sigma3, 2 / sigma3, change / (bound * sigma3))
    found["exact ε of gradients / (ε/3), C = 1"] = Interval.exact(
        gaussian_epsilon(DELTA / 3, sigma3, 6.0) / (EPSILON / 3)
    )
    found["exact ε of gradients / (ε/3), noise for 2 C + 1"] = Interval.exact(
        gaussian_epsilon(DELTA / 3, 3 * sigma3, 6.0) / (EPSILON / 3)
    )
    return found


def accumulated_shift(size: Size) -> Measures:
    """By which factor the regularizer shrinks the model in directions that are looked at evenly, T = 10^10, d = 5.

    θ = V^-1 u with V = Σ x x^T + shift I has the mean (T/d) / (T/d + shift) θ*. The sum of the roots of 1 to T is
    2 T^(3/2) / 3, but for lower orders.
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
