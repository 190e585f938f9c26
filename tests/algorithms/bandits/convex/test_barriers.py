"""Barrier methods: the closed forms of the ball, steps that proofs allow, regret below the bounds, refused values."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jaxdp
from jaxdp.bandits import convex
from jaxdp.bandits.convex._barrier import minimize, pull, stretch
from jaxdp.core import default_float
from jaxdp.theory import ldp_bandits as theory

EPS = float(np.finfo(default_float()).eps)


def root(size, curvature):
    """Returns the root p of p + curvature p / (1 + sqrt(1 + p^2)) = size."""
    options: Any = {"xtol": 1e-300, "rtol": 1e-15}
    found: Any = brentq(lambda p: p + curvature * p / (1 + math.hypot(1, p)) - size, 0, size + 1, **options)
    return found


def check_roots(found, sizes, curvatures):
    """Checks roots relative to p if the equation is well-conditioned, otherwise to the effect of rounding the size."""
    for p, size, curvature in zip(found.ravel(), sizes.ravel(), curvatures.ravel(), strict=True):
        exact = root(float(size), float(curvature))
        w = math.hypot(1, exact)
        moved = (float(size) + float(curvature)) / (1 + float(curvature) / (w * (1 + w)))
        assert abs(float(p) - exact) <= 8 * EPS * (exact + moved), (size, curvature)


SIZES, CURVATURES = (
    grid.astype(default_float())
    for grid in np.meshgrid(np.geomspace(1e-6, 1e9, 61), np.append(0, np.geomspace(1e-6, 1e8, 43)))
)


def test_newtons_steps_suffice():
    check_roots(np.asarray(pull(jnp.asarray(SIZES), jnp.asarray(CURVATURES))), SIZES, CURVATURES)


def test_fewer_steps_do_not(monkeypatch):
    monkeypatch.setattr("jaxdp.bandits.convex._barrier.NEWTON_STEPS", 1)
    with pytest.raises(AssertionError):
        check_roots(np.asarray(pull(jnp.asarray(SIZES), jnp.asarray(CURVATURES))), SIZES, CURVATURES)


@pytest.mark.parametrize("curvature", [None, 3.0])
def test_a_place_is_where_the_barrier_says(curvature):
    slope = np.array([0.3, -2.0, 5.0])
    at = jax.tree.map(np.asarray, minimize(jnp.asarray(slope), None if curvature is None else jnp.asarray(curvature)))
    rest = 1 - at.x @ at.x
    gradient = slope + (curvature or 0) * at.x + 2 * at.x / rest
    np.testing.assert_allclose(gradient, 0, atol=100 * EPS)
    hessian = 2 / rest * np.eye(3) + 4 * np.outer(at.x, at.x) / rest**2
    vector = np.array([1.0, 2.0, -1.0])
    found = stretch(jnp.asarray(vector), jnp.asarray(at.axis), jnp.asarray(at.across), jnp.asarray(at.along))
    np.testing.assert_allclose(found, hessian @ vector, rtol=100 * EPS, atol=100 * EPS)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e3, 1e6, 1e12])
def test_all_directions_stay_inside(size):
    slope = jnp.zeros(3).at[1].set(size)
    at = minimize(slope)
    ends = [
        at.x + sign * stretch(direction, at.axis, 1 / jnp.sqrt(at.across), 1 / jnp.sqrt(at.along))
        for direction in jnp.eye(3)
        for sign in (-1.0, 1.0)
    ]
    assert np.isfinite(ends).all()
    assert np.linalg.norm(ends, axis=1).max() <= 1 + 4 * EPS


def test_steps_are_what_proofs_allow():
    """Checks eta d M <= del / 2, also for few rounds and large reports; otherwise the step is the tuned one."""
    for rounds in (2, 50, 10**6):
        for report, extra in (("rr", {}), ("laplace", {}), ("gaussian", {"delta": 1e-6})):
            sizes = {"dim": 3, "horizon": rounds, "report": report}
            randomizer = jaxdp.mechanisms.scalar_randomizer(report)
            told = {"epsilon": 0.5, "low": -1.0, "high": 1.0, **extra}
            largest = randomizer.range_bound(rounds, 0.05, **told)
            smooth = convex.barrier_smooth(**sizes).params(epsilon=0.5, smoothness=0.2, **extra)
            explored = float(smooth.exploration)
            rate = float(smooth.step) * explored**2 / 3
            tuned = explored * math.sqrt(math.log(rounds) / (2 * rounds * 9 * randomizer.second_moment(**told)))
            assert 3 * rate * largest <= explored / 2 * (1 + 1e-5)
            np.testing.assert_allclose(rate, min(tuned, explored / 6 / largest), rtol=1e-5)
            strong = convex.barrier_strongly_convex(**sizes).params(epsilon=0.5, **extra)
            assert float(strong.step) * largest <= 0.5 * (1 + 1e-5)


CURVED = {"curvature": 1.0, "target": 0.9, "loss_bound": 1.5}


def run(learner, environment, horizon, lanes, **values):
    simulated = jaxdp.simulator(learner, environment, horizon, checkpoints=[horizon])
    keys = jaxdp.lane_keys(jax.random.key(2), lanes)
    params = jax.tree.map(jnp.asarray, simulated.params(**values))
    found = jax.jit(jax.vmap(simulated, in_axes=(0, None)))(keys, params)
    return np.asarray(found["pseudo_regret"]).ravel()


def check_below(regret, bound):
    assert regret.mean() + 3 * regret.std(ddof=1) / math.sqrt(len(regret)) <= bound


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_regret_is_below_the_bounds(epsilon):
    """Checks bounds far below the regret of never learning: a curved loss, in few dimensions, far from the centre."""
    rounds, lanes, c = 20_000, 24, float(theory.noise_factor(epsilon))
    values = {"epsilon": epsilon, "smoothness": 1.0, **CURVED}
    bowl = convex.quadratic_losses(dim=1)
    regret = run(convex.barrier_smooth(dim=1, horizon=rounds), bowl, rounds, lanes, **values)
    check_below(regret, theory.barrier_smooth_upper((1.5 * c) ** 2, rounds, 1, 1.0, 1.5))
    strong = run(
        convex.barrier_strongly_convex(dim=1, horizon=rounds), bowl, rounds, lanes, strong_convexity=1.0, **values
    )
    check_below(strong, theory.barrier_strongly_convex_upper(1.5 * c, rounds, 1, 1.0, 1.0))
    centre = 0.9**2 / 2 * rounds
    if epsilon == math.inf:
        line = run(convex.stochastic_1d(horizon=rounds), bowl, rounds, lanes, **{**CURVED, "epsilon": epsilon})
        check_below(line, centre)
        with pytest.raises(AssertionError):
            check_below(np.full(2, centre), theory.barrier_strongly_convex_upper(1.5, rounds, 1, 1.0, 1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convex.barrier_smooth(dim=0, horizon=9), "dim must be an integer >= 1, got 0"),
        (lambda: convex.barrier_smooth(dim=2, horizon=1), "horizon must be an integer >= 2, got 1"),
        (lambda: convex.barrier_smooth(dim=2, horizon=9, radius=0.0), "radius must be > 0, got 0.0"),
        (lambda: convex.barrier_smooth(dim=2, horizon=9, report="none"), "report must be one of rr, laplace, gaussian"),
        (
            lambda: convex.barrier_smooth(dim=2, horizon=9).params(epsilon=1.0, smoothness=math.nan),
            "smoothness must be > 0, got nan",
        ),
        (
            lambda: convex.barrier_smooth(dim=2, horizon=9, report="laplace").params(epsilon=1.0, failure_prob=1.0),
            r"failure_prob must be in \(0, 1\), got 1.0",
        ),
        (lambda: convex.barrier_smooth(dim=2, horizon=9).params(epsilon=-1.0), "epsilon must be > 0, got -1.0"),
        (lambda: convex.stochastic_1d(horizon=9, report="laplace"), "Laplace noise has no finite variance proxy"),
        (lambda: convex.stochastic_1d(horizon=9).params(epsilon=1.0, loss_bound=0.0), "loss_bound must be > 0"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
