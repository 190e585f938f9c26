"""The model of utilities in a ball: the least sum, models of near certainty, and their last digits in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.dueling._g_optimal_elimination import utility_fit as _utility_fit
from jaxdp.dueling._g_optimal_elimination.utility_fit import fit_in_ball

INTEGER, FLOAT = jnp.result_type(int), jnp.result_type(float)


def gap_of_model(weights, points, plays, wins, radius):
    """Returns the error in the conditions of a minimum in the ball, relative to the slope at 0, in float64."""
    points, plays, wins, weights = (np.asarray(each, np.float64) for each in (points, plays, wins, weights))
    wins = np.where(plays > 0, wins, 0)
    slope = (plays / (1 + np.exp(-points @ weights)) - wins) @ points
    norm = np.linalg.norm(weights)
    assert norm <= radius * (1 + 1e-5)
    outwards = max(0.0, -slope @ weights / norm**2) if norm > radius * (1 - 1e-4) else 0.0
    return np.linalg.norm(slope + outwards * weights) / np.linalg.norm((plays / 2 - wins) @ points)


def models(seed, dim, rank, count=40):
    """Pairs with noisy wins, half of them far from what users of any model would say; (points, plays, wins)."""
    generator = np.random.default_rng(seed)
    num = dim * (dim + 1) // 2 + dim
    basis = np.linalg.qr(generator.normal(size=(dim, dim)))[0][:rank] * 10.0 ** -generator.uniform(0, 1.5, (rank, 1))
    points = generator.uniform(-1, 1, (count, num, rank)) @ basis
    plays = np.where(np.arange(num) < rank + 2, generator.integers(1, 10_000, (count, num)), 0)
    model = generator.normal(size=(count, dim, 1))
    chances = 1 / (1 + np.exp(-(points @ model)[..., 0]))
    wins = (
        generator.binomial(plays, chances)
        + generator.laplace(0, 1, (count, num)) * 10.0 ** np.arange(-2, 2).repeat(count // 4)[:, None]
    )
    return points.astype(FLOAT), plays.astype(INTEGER), np.where(plays > 0, wins, np.nan).astype(FLOAT)


@pytest.mark.parametrize(("dim", "rank", "radius"), [(1, 1, 1.0), (3, 3, 1.0), (3, 2, 0.3), (3, 3, 4.0)])
def test_the_model_is_the_least_in_the_ball(dim, rank, radius):
    points, plays, wins = models(dim, dim, rank)
    fit = jax.jit(jax.vmap(lambda z, n, o: fit_in_ball(z, n, o, jnp.int32(rank), jnp.asarray(radius, FLOAT))))
    found = np.asarray(fit(points, plays, wins))
    gaps = [gap_of_model(*each, radius) for each in zip(found, points, plays, wins, strict=True)]
    assert max(gaps) < (1e-3 if np.float32 == FLOAT else 1e-8)
    at_edge = np.linalg.norm(found, axis=1) > radius * (1 - 1e-4)
    assert 0 < at_edge.sum() < len(found) or radius != 1.0
    wrong = found * 0.98
    assert max(gap_of_model(*each, radius) for each in zip(wrong, points, plays, wins, strict=True)) > 3e-3


@pytest.mark.always  # no other test notices a loop that does not count its steps
def test_steps_are_counted(monkeypatch):
    """Checks that a search of one step ends with Newton's first one, far from the minimum at ln 9."""
    monkeypatch.setattr(_utility_fit, "MOST_STEPS", 1)
    points, plays = jnp.ones((1, 1), FLOAT), jnp.asarray([4], INTEGER)
    fit = jax.jit(lambda wins: fit_in_ball(points, plays, wins, jnp.int32(1), jnp.asarray(9.0, FLOAT)))
    assert float(fit(jnp.full(1, 3.6, FLOAT))[0]) == pytest.approx((0.9 - 0.5) / 0.25, rel=1e-5)


@pytest.mark.parametrize("radius", [5.0, 20.0, 40.0])
def test_models_whose_chances_are_nearly_certain_are_finite(radius):
    """Checks chances that floats round to 1, with a curvature far below rounding errors; also with noise."""
    points = jnp.asarray([[2.0, 0.0], [1.0, -1.0], [0.0, 0.0]], FLOAT)
    plays = jnp.asarray([100, 50, 0], INTEGER)
    shares = jnp.asarray([[1, 1, 0], [0, 0, 0], [1.5, 1.5, 0], [-0.5, 1.5, 0]], FLOAT)
    wins = shares * plays.astype(FLOAT)[None]
    fit = jax.jit(jax.vmap(lambda wins: fit_in_ball(points, plays, wins, jnp.int32(2), jnp.asarray(radius, FLOAT))))
    found = np.asarray(fit(wins))
    assert np.isfinite(found).all()
    assert max(gap_of_model(w, points, plays, won, radius) for w, won in zip(found, wins, strict=True)) < 1e-3


def rounded_fits(radius, plays, lanes=500):
    """Returns the largest difference over lanes between float32 and float64 models of three pairs with noisy wins."""
    generator = np.random.default_rng(0)
    points = np.asarray([[1.0, 0.0], [0.5, -0.8], [0.5, 0.8]])
    wins = generator.laplace(size=(lanes, 3)) + generator.integers(0, plays + 1, (lanes, 3))

    def fits(dtype):
        z, played, most = points.astype(dtype), jnp.full(3, plays, jnp.int32), jnp.asarray(radius, dtype)
        fit = jax.jit(jax.vmap(lambda won: fit_in_ball(jnp.asarray(z), played, won, jnp.int32(2), most)))
        return np.asarray(fit(jnp.asarray(wins, dtype)))

    narrow = fits(np.float32)
    with jax.enable_x64(True):
        return np.abs(narrow - fits(np.float64)).max() / radius


def test_models_on_the_boundary_are_found_to_the_last_digits(monkeypatch):
    """Checks sums that hardly fall along a step, so that rounding errors hide the fall."""
    assert rounded_fits(3.0, plays=1) < 3e-6
    monkeypatch.setattr(_utility_fit, "SHORT", 0.0)  # planted: every step has to be seen to fall
    assert rounded_fits(3.0, plays=1) > 1e-4
