"""Learners, losses and bounds of the problems in the study of LDP-Bandits (Zheng et al., 2020)."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxdp import bandits
from jaxdp.bandits import convex
from jaxdp.core import Environment, Learner
from jaxdp.mechanisms import scalar_randomizer
from jaxdp.theory import ldp_bandits as theory

NUM_ARMS = 5
SLOPE, GAP = 0.5, 0.5
RADIUS = 1.0
# Huber losses with the best point inside the ball.
BEND = {"slope": SLOPE, "width": 0.5, "target": 0.75}
# Quadratic losses with the best point on the boundary, and their Lipschitz constant.
BOWL = {"curvature": 0.5, "target": 1.0}
STEEP = BOWL["curvature"] * (RADIUS + BOWL["target"])
BOUND = BOWL["curvature"] * (RADIUS**2 / 2 + BOWL["target"] * RADIUS)  # bound on |loss|


class Problem(NamedTuple):
    """A problem of the study: a row of Table 1, or the bandit with finitely many arms, which Table 1 lacks.

    Attributes:
        learner: the learner's name.
        world: description of the losses or arms.
        make: function(horizon, dim) that returns (learner, environment).
        values: parameter values of learner and environment, except epsilon.
        upper: function(epsilon, horizon, dim) that returns an upper bound on the expected regret, with its constant
            factors.
        trivial: regret per round without learning, that is, at the centre of the ball or with uniformly drawn arms.
    """

    learner: str
    world: str
    make: Callable[[int, int], tuple[Learner, Environment]]
    values: Mapping[str, float]
    upper: Callable[[float, int, int], np.ndarray]
    trivial: float


def moment(bound: float, epsilon: float) -> float:
    """Returns the second moment of a randomized response for a number in [-bound, bound]."""
    return scalar_randomizer("rr").second_moment(epsilon=epsilon, low=-bound, high=bound)


def _ball(
    factory: Callable[..., Learner], losses: Callable[..., Environment], **form: str
) -> Callable[[int, int], tuple[Learner, Environment]]:
    """Returns a function that makes a learner and losses on the ball; `form` are further keywords of `losses`."""
    return lambda horizon, dim: (
        factory(dim=dim, horizon=horizon, radius=RADIUS),
        losses(dim=dim, radius=RADIUS, **form),
    )


def _arms(horizon: int, dim: int) -> tuple[Learner, Environment]:
    del horizon, dim
    return bandits.tsallis_inf(num_arms=NUM_ARMS), bandits.bernoulli_bandit([0.5] + [0.5 - GAP / 2] * (NUM_ARMS - 1))


_LINES, _CURVES = {"slope": SLOPE, "lipschitz": SLOPE}, {**BOWL, "lipschitz": STEEP}
_STRONG = {**_CURVES, "strong_convexity": BOWL["curvature"]}
_ALONG, _DOWN = "linear, best on the boundary", "quadratic, best on the boundary"
_BENT = "Huber, best inside the ball"

PROBLEMS = {
    "convex": Problem(
        "fkm",
        _ALONG,
        _ball(convex.fkm, convex.linear_losses, feedback="point"),
        {**_LINES, "loss_bound": SLOPE * RADIUS},
        lambda epsilon, horizon, dim: theory.fkm_upper(moment(SLOPE * RADIUS, epsilon), horizon, dim, SLOPE, RADIUS),
        SLOPE * RADIUS,
    ),
    "smooth": Problem(
        "barrier_smooth",
        _BENT,
        _ball(convex.barrier_smooth, convex.huber_losses),
        {**BEND, "smoothness": BEND["slope"] / BEND["width"], "loss_bound": SLOPE * RADIUS},
        lambda epsilon, horizon, dim: theory.barrier_smooth_upper(
            moment(SLOPE * RADIUS, epsilon), horizon, dim, BEND["slope"] / BEND["width"], SLOPE * RADIUS, RADIUS
        ),
        BEND["slope"] * (BEND["target"] - BEND["width"] / 2),
    ),
    "strongly_convex": Problem(
        "strongly_convex_one_point",
        _DOWN,
        _ball(convex.strongly_convex_one_point, convex.quadratic_losses, feedback="point"),
        {**_STRONG, "loss_bound": BOUND},
        lambda epsilon, horizon, dim: theory.strongly_convex_one_point_upper(
            moment(BOUND, epsilon), horizon, dim, BOWL["curvature"], STEEP, RADIUS
        ),
        BOWL["curvature"] / 2,
    ),
    "strongly_convex_smooth": Problem(
        "barrier_strongly_convex",
        _DOWN,
        _ball(convex.barrier_strongly_convex, convex.quadratic_losses, feedback="point"),
        {**BOWL, "strong_convexity": BOWL["curvature"], "smoothness": BOWL["curvature"], "loss_bound": BOUND},
        lambda epsilon, horizon, dim: theory.barrier_strongly_convex_upper(
            math.sqrt(moment(BOUND, epsilon)), horizon, dim, BOWL["curvature"], BOWL["curvature"], RADIUS
        ),
        BOWL["curvature"] / 2,
    ),
    "two_point": Problem(
        "two_point",
        _ALONG,
        _ball(convex.two_point, convex.linear_losses, feedback="difference"),
        _LINES,
        lambda epsilon, horizon, dim: theory.two_point_upper(moment(SLOPE, epsilon), horizon, dim, SLOPE, RADIUS),
        SLOPE * RADIUS,
    ),
    "two_point_strongly_convex": Problem(
        "two_point",
        _DOWN,
        _ball(partial(convex.two_point, losses="strongly_convex"), convex.quadratic_losses, feedback="difference"),
        _STRONG,
        lambda epsilon, horizon, dim: theory.two_point_strongly_convex_upper(
            moment(STEEP, epsilon), horizon, dim, BOWL["curvature"], STEEP, RADIUS
        ),
        BOWL["curvature"] / 2,
    ),
    "multi_armed_stochastic": Problem(
        "tsallis_inf",
        f"{NUM_ARMS} arms, gap {GAP / 2:g}",
        _arms,
        {},
        lambda epsilon, horizon, dim: theory.tsallis_inf_upper(epsilon, horizon, NUM_ARMS),
        GAP / 2 * (1 - 1 / NUM_ARMS),
    ),
}
