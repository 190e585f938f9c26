"""Measures of DP-Dueling (Saha & Asi, 2024)."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from benchmarks.papers.measures import (
    exponent,
    lower_bound,
    mean,
    mean_ratio,
    relative,
    share,
    smallest,
    worst_over,
)
from benchmarks.papers.rows import Interval, Measures, Size
from jaxdp import dueling, registry
from jaxdp.audit import UserData, audit, feedback_of_pair, grey_box, learner_attack
from jaxdp.core import Learner
from jaxdp.design import ball_net, g_optimal, g_optimal_differences
from jaxdp.mechanisms import tree_radius
from jaxdp.preferences import effective_borda_scores, lower_bound_matrix, preference_gaps, utility_matrix
from jaxdp.simulation import simulator, sweep
from jaxdp.stats import crossover
from jaxdp.studies.dueling_linear import dueling_linear
from jaxdp.studies.tiles import cpu_tile
from jaxdp.theory import dueling as theory

UTILITIES = (2.0, 1.0, 0.0)
FAILURE_PROB = 0.05
TILE_SIZE = 16


# ---- finitely many arms ----------------------------------------------------------------------------------------------
@functools.cache
def elimination(size: Size) -> xr.Dataset:
    """Measures regret of DP-EBS on three arms."""
    horizon = 500 if size.name == "small" else 200_000
    run = simulator(
        dueling.ebs_elimination(num_arms=len(UTILITIES), horizon=horizon),
        dueling.utility_duels(UTILITIES),
        horizon,
        checkpoints=[horizon // 10, horizon],
        record={"kept": lambda snapshot: snapshot.public.active[0]},
    )
    return sweep(
        run,
        axes={"epsilon": [0.3, 1.0, math.inf]},
        num_seeds=size.repeats(192),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )


def upper_bound(size: Size) -> Measures:
    """Measures regret over Theorem 1 with the constants as printed, the largest over epsilon and rounds."""
    results = elimination(size)
    gaps = np.delete(preference_gaps(utility_matrix(UTILITIES)), 0)
    bound = theory.regret_upper(results.epsilon.values[:, None], results["round"].values, gaps)
    regret = results.pseudo_regret
    ratio = regret / xr.DataArray(bound, dims=("epsilon", "round"), coords={"round": results["round"]})
    return {"mean regret / bound, largest": worst_over(ratio)}


def best_arm(size: Size) -> Measures:
    """Measures how often the best arm is kept, with intervals that can be proved."""
    kept = elimination(size).kept.isel(round=-1)
    return {"share of runs that keep it": smallest(share(kept.sel(epsilon=e)) for e in kept.epsilon.values)}


def tree_error(size: Size) -> Measures:
    """Computes the bound by the exact distribution of a binary tree's noise, over the printed one."""
    del size
    found = {}
    for horizon in (2**10, 2**20):
        about: dict[str, Any] = {
            "horizon": horizon,
            "epsilon": 1.0,
            "failure_prob": FAILURE_PROB,
            "arity": 2,
            "combine": False,
        }
        tight = tree_radius(horizon - 1, **about)
        found[f"error / printed, T = {horizon:,}"] = Interval.exact(
            float(tight) / float(tree_radius(horizon - 1, **about, constants="paper"))
        )
    return found


def printed_width(size: Size) -> Measures:
    """Computes the printed noise term of intervals over the necessary one at the printed failure probability."""
    del size
    num_arms, horizon, failure_prob, found = 2, 1000, 0.5, {}
    needed = float(
        tree_radius(
            2**9 - 1,  # the time with the most noise
            horizon=horizon,
            epsilon=0.25,  # of a counter, at epsilon = 1
            failure_prob=failure_prob / (num_arms * horizon),
            arity=2,
            combine=False,
        )
    )
    logs = math.log(horizon) ** 2.5
    for name, factor in (
        ("log(log(K/δ))", math.log(math.log(num_arms / failure_prob))),
        ("log(KT/δ)", math.log(num_arms * horizon / failure_prob)),
    ):
        found[f"width with {name} / needed"] = Interval.exact(16 * factor * logs / needed)
    return found


def removal(size: Size) -> Measures:
    """Measures the best of three arms' expected score after the worst is dropped, over 3,000 duels as left arm."""
    del size
    preferences = utility_matrix((2.0, 0.0, -1.0))
    duels, everyone = 3000, np.ones(3, bool)
    wins = duels * effective_borda_scores(preferences, everyone)[0]
    left = duels * 2 / 3
    right = effective_borda_scores(preferences, np.array([True, True, False]))[0]
    return {
        "score - effective Borda score, -1 added": Interval.exact(round((wins - 1) / left - right, 9)),
        "score - effective Borda score, wins removed": Interval.exact(
            round((wins - duels / 3 * preferences[0, 2]) / left - right, 9)
        ),
    }


def fed_upon_wins(size: Size) -> Measures:
    """Audits counters that are fed if the left arm wins (black box), and in every duel (grey box)."""
    right = dueling.ebs_elimination(num_arms=2, horizon=4)

    def update(key, params, state, report):
        after = right.update(key, params, state, report)
        public = after.public._replace(digits=state.public.digits, estimates=state.public.estimates)
        idle = after._replace(private=state.private, public=public)
        return jax.tree.map(lambda new, old: jnp.where(report[1] > 0, new, old), after, idle)

    always = np.ones((4, 2, 2), np.int32)
    later = always.copy()
    later[0] = 0
    attack = learner_attack(
        right._replace(update=update), {"epsilon": 1.0}, (UserData(always), UserData(later)), answer=feedback_of_pair
    )
    found = audit(size.key, attack, trials=size.repeats(2000, small=1000))
    return {
        "lower bound on ε / claimed, fed upon wins": lower_bound(found.lower_bound),
        "ε spent / claimed, always fed": Interval.exact(round(_spent(size, right), 4)),
    }


def _spent(size: Size, learner: Learner) -> float:
    return grey_box(
        size.key,
        learner,
        {"epsilon": 1.0},
        registry.LEARNERS["ebs_elimination"].sized(num_arms=2).make_user,
        rounds=4,
        answer=feedback_of_pair,
        num_bases=2,
        num_neighbours=32,
    ).spent


def borda_properties(size: Size) -> Measures:
    """Measures effective Borda scores of arms of one instance, over the gap of the best and the worst."""
    del size
    preferences = utility_matrix((2.0, 1.99, *[1.0] * 20, 0.0))
    scores = effective_borda_scores(preferences, np.ones(len(preferences), bool))
    gap = preferences[0, -1] - 0.5
    return {
        "(B(best) - B(worst)) / Δ": Interval.exact((scores[0] - scores[-1]) / gap),
        "(B(second) - B(worst)) / Δ": Interval.exact((scores[1] - scores[-1]) / gap),
    }


def utility_gaps(size: Size) -> Measures:
    """Computes R / (2 Δ) for utilities r apart, the largest and smallest for r up to 2."""
    del size
    apart = np.linspace(0.01, 2.0, 200)
    gaps = np.array([utility_matrix((each, 0.0))[0, 1] - 0.5 for each in apart])
    most = apart[-1] / gaps[-1]
    return {
        "r / (2 Δ), largest": Interval.exact(float((apart / (2 * gaps)).max())),
        "r / (r_max/(σ(r_max) - 1/2) Δ), largest": Interval.exact(round(float((apart / (most * gaps)).max()), 9)),
    }


@functools.cache
def hard_instance(size: Size) -> xr.DataArray:
    """Measures regret in preference gaps of phased elimination on the lower bound's instance."""
    horizon = 10**6 if size.name == "small" else 10**9
    run = simulator(
        dueling.ebs_phased(num_arms=5),
        dueling.matrix_duels(lower_bound_matrix(5)),
        horizon,
        checkpoints=[horizon],
        engine="counts",
    )
    return sweep(
        run,
        axes={"epsilon": [1e-4, 1e-3, 0.1, 1.0]},
        num_seeds=size.repeats(64),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    ).pseudo_regret.isel(round=0)


def lower_bound_order(size: Size) -> Measures:
    """Measures the growth of regret as epsilon falls, and how often each losing arm is played, times epsilon."""
    regret = hard_instance(size)
    small = regret.sel(epsilon=[1e-4, 1e-3])
    # A play of a losing arm, left or right, costs 1/4; there are four losing arms.
    plays = [mean(regret.sel(epsilon=each) * each) for each in (0.1, 1.0)]
    return {
        "exponent of 1/ε": exponent(small.assign_coords(epsilon=1 / small.epsilon), "epsilon"),
        "ε × plays of a losing arm, least": smallest(plays),
    }


def trust(size: Size) -> Measures:
    """Measures regret of the local form over the regret of the central and of the shuffled ones, epsilon = 1."""
    utilities, horizon = np.linspace(1.5, -1.5, 4), (2000 if size.name == "small" else 40_000)
    made = {
        "local": dueling.ebs_local(num_arms=4, horizon=horizon),
        "central": dueling.ebs_phased(num_arms=4),
        "shuffle": dueling.ebs_shuffle(num_arms=4),
    }
    regret = {}
    for name, learner in made.items():
        run = simulator(learner, dueling.utility_duels(utilities), horizon, checkpoints=[horizon])
        values = {"delta": [1e-6]} if name == "shuffle" else {}
        results = sweep(
            run,
            axes={"epsilon": [1.0], **values},
            num_seeds=size.repeats(16),
            key=size.key,
            tile_size=cpu_tile(TILE_SIZE),
        )
        regret[name] = results.pseudo_regret.squeeze(drop=True)
    return {f"regret local / {name}": mean_ratio(regret["local"], regret[name]) for name in ("central", "shuffle")}


# ---- arms with features ----------------------------------------------------------------------------------------------
@functools.cache
def linear(size: Size) -> xr.Dataset:
    """Runs the study of arms with features, in two dimensions."""
    return dueling_linear(
        epsilon=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, math.inf),
        dim=(2,),
        num_seeds=size.repeats(128),
        num_arms=20,
        horizon=10_000 if size.name == "small" else 10**8,
        key=size.key,
    ).isel(dim=0)


def small_gaps(size: Size) -> xr.DataArray:
    """Returns regret without privacy where the best of 20 arms on the circle leads by 40 / sqrt(T), for two T."""
    horizons = (1000, 10_000) if size.name == "small" else (10**6, 10**8)
    regret = []
    for horizon in horizons:
        nearest = math.acos(1 - 40 / math.sqrt(horizon))
        angles = np.concatenate([[0.0], np.linspace(nearest, 2 * math.pi - nearest, 19)])
        features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        run = simulator(
            dueling.g_optimal_elimination(features=features),
            dueling.linear_duels(features, np.array([1.0, 0.0])),
            horizon,
            checkpoints=[horizon],
            engine="counts",
        )
        results = sweep(
            run, axes={"epsilon": [math.inf]}, num_seeds=size.repeats(64), key=size.key, tile_size=cpu_tile(TILE_SIZE)
        )
        regret.append(results.pseudo_regret.squeeze(["epsilon", "round"], drop=True))
    joined = xr.concat(regret, xr.IndexVariable("horizon", list(horizons)))
    assert isinstance(joined, xr.DataArray)
    return joined


def linear_order(size: Size) -> Measures:
    """Measures exponents of regret: in T without privacy, at falling gaps and at a fixed one, and in 1/epsilon."""
    regret = linear(size).pseudo_regret
    small = regret.isel(round=-1).sel(epsilon=[0.001, 0.01])
    return {
        "exponent of T, no privacy": exponent(small_gaps(size), "horizon"),
        "exponent of 1/ε": exponent(small.assign_coords(epsilon=1 / small.epsilon), "epsilon"),
        "exponent of T at a fixed gap": exponent(regret.sel(epsilon=math.inf), "round"),
    }


def best_of_linear(size: Size) -> Measures:
    """Measures how often the best arm is there in the end, epsilon = 1."""
    return {"share of runs with the best arm": share(linear(size).correct.isel(round=-1).sel(epsilon=1.0))}


def free_privacy(size: Size) -> Measures:
    """Measures the ε at which privacy doubles the regret, over the order, and the regret it adds at several epsilon."""
    regret = linear(size).pseudo_regret.isel(round=-1)
    free, private = regret.sel(epsilon=math.inf, drop=True), regret.sel(epsilon=np.isfinite(regret.epsilon))
    found = crossover(private - free, free.broadcast_like(private))
    order = 2**5 / math.sqrt(float(regret["round"]))
    shown = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    return {
        "crossing ε / (d^5/sqrt(T))": Interval(*(float(found[name]) / order for name in ("estimate", "low", "high"))),
        "crossing ε": Interval(*(float(found[name]) for name in ("estimate", "low", "high"))),
        **{f"cost of ε = {each} / regret without privacy": relative(regret.sel(epsilon=each), free) for each in shown},
    }


def optimal_designs(size: Size) -> Measures:
    """Computes the certificate of the library's designs on normal points, over the dimension, and their support."""
    del size
    points = np.random.default_rng(0).normal(size=(200, 6))
    design = g_optimal(points)
    return {
        "max |z|² / d": Interval.exact(design.value / design.rank),
        "support / (d (d + 1) / 2)": Interval.exact(len(design.support) / (design.rank * (design.rank + 1) / 2)),
    }


def net_size(size: Size) -> Measures:
    """Points of a net of the unit ball over the remark's bound (3 / radius)^d + d."""
    del size
    found = {d: len(ball_net(d, 0.25)) / (12.0**d + d) for d in (2, 3)}
    return {f"points / bound, d = {d}": Interval.exact(each) for d, each in found.items()}


def bound_on_arms(size: Size) -> Measures:
    """Computes |x|² of arms far from 0, and of differences, in the inverse of a design of differences, over d."""
    del size
    angles = np.linspace(-0.2, 0.2, 7)
    arms = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    design = g_optimal_differences(arms)
    z = arms[design.pairs[:, 0]] - arms[design.pairs[:, 1]]
    inverse = np.linalg.inv((design.weights[:, None] * z).T @ z)
    lengths = np.einsum("ni,ij,nj->n", arms, inverse, arms)
    return {
        "max |x|² / d over arms": Interval.exact(float(lengths.max()) / design.rank),
        "max |x - y|² / d over differences": Interval.exact(design.value / design.rank),
    }
