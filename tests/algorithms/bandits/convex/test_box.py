"""Convex bandits on a box: geometry, barrier, constants, best points, and refusals."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import jaxdp
from jaxdp.bandits import convex
from jaxdp.bandits.convex import _box
from jaxdp.bandits.convex._domain import checked_domain
from jaxdp.core import default_float
from jaxdp.numerics.compensated import Sum
from jaxdp.theory import ldp_bandits as bounds
from tests.algorithms.bandits.convex.test_environments import fixed_points

EPS = float(np.finfo(default_float()).eps)
LN_3 = math.log(3)  # c = 2
DIM, RADIUS = 2, 0.5
BOX: Any = {"dim": DIM, "radius": RADIUS, "domain": "box"}


# ---- the box itself --------------------------------------------------------------------------------------------------
def test_steps_end_at_the_nearest_point():
    """Checks the nearest point by coordinate; the carried rounding error is kept where nothing was cut off."""
    start = Sum(jnp.array([0.5, 0.5, -0.5], jnp.float32), jnp.zeros(3, jnp.float32))
    moved = _box.descend(start, jnp.array([1e-10, 2.0, -2.0], jnp.float32), jnp.float32(0.75))
    np.testing.assert_array_equal(moved.total, np.array([0.5, 0.75, -0.75], np.float32))
    assert moved.excess[0] != 0
    assert not np.asarray(moved.excess[1:]).any()
    grid = np.array(list(itertools.product(np.linspace(-0.75, 0.75, 31), repeat=2)))
    for x in np.array([[2.0, 0.1], [-1.0, 3.0], [0.2, -0.3]]):
        nearest = grid[np.linalg.norm(grid - x, axis=1).argmin()]
        np.testing.assert_allclose(_box.project(jnp.asarray(x), jnp.asarray(0.75)), nearest, atol=0.03)


def barrier(z):
    return -math.log1p(-z * z)


@pytest.mark.parametrize("curvature", [None, 3.0])
def test_a_place_is_where_the_barrier_says(curvature):
    slope = np.array([0.3, -2.0, 0.0, 5.0])
    at = _box.minimize(jnp.asarray(slope), None if curvature is None else jnp.asarray(curvature))
    for a, x, hessian in zip(slope, np.asarray(at.x, float), np.asarray(at.hessian, float), strict=True):

        def value(z, a=a):
            return a * z + (curvature or 0) * z * z / 2 + barrier(z)

        found: Any = minimize_scalar(value, bounds=(-1, 1), method="bounded", options={"xatol": 1e-9})
        assert x == pytest.approx(found.x, abs=1e-6)
        h = 1e-4
        assert hessian == pytest.approx((barrier(x + h) - 2 * barrier(x) + barrier(x - h)) / h**2, rel=1e-4)
    vector = jnp.array([1.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(
        at.apply_inverse_root(at.apply_inverse_root(at.apply_hessian(vector))), vector, rtol=1e-5
    )
    np.testing.assert_allclose(at.add_curvature(jnp.asarray(2.0)).hessian, at.hessian + 2, rtol=1e-6)


def test_the_parameter_of_the_barrier():
    """Checks that <gradient, Hessian^-1 gradient> is near the parameter in corners and never above it; Hessian >= 2."""
    x = np.random.default_rng(1).uniform(-1, 1, (2000, 3))
    x[:8] = 0.9999 * np.array(list(itertools.product([-1, 1], repeat=3)))
    gradient, hessian = 2 * x / (1 - x * x), 2 * (1 + x * x) / (1 - x * x) ** 2
    found, stated = np.sum(gradient**2 / hessian, axis=1), checked_domain("box", 3, 1.0).barrier_parameter
    assert found.max() <= stated
    assert found.max() > 0.999 * stated
    assert hessian.min() >= 2


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e6, 1e12])
def test_all_directions_stay_inside(size):
    for slope in ([size, 0.0, 1.0], [size, size, -size]):
        at = _box.minimize(jnp.asarray(slope, default_float()))
        ends = [
            at.x + sign * at.apply_inverse_root(jnp.asarray(u, default_float()))
            for u in np.eye(3)
            for sign in (-1.0, 1.0)
        ]
        assert np.isfinite(ends).all()
        assert np.abs(ends).max() <= 1 + 4 * EPS


# ---- constants -------------------------------------------------------------------------------------------------------
def test_tuning_by_hand():
    """Checks constants by hand: M2 = 16 with c = 2; d = 4, so that D = 2 R, s = 5 and theta = 4."""
    body: Any = {"dim": 4, "domain": "box"}
    fkm = convex.fkm(**body, horizon=160_000).params(epsilon=LN_3, loss_bound=2.0, lipschitz=1.6)
    assert float(fkm.exploration) == pytest.approx(0.1, rel=1e-4)  # sqrt(2 * 4 * 4 / (5 * 1.6)) / 20
    assert float(fkm.step) == pytest.approx(2 / (4 * 400), rel=1e-4)  # D / sqrt(M2 T)

    told = {"loss_bound": 2.0, "lipschitz": 64.0, "strong_convexity": 0.25}
    strong = convex.strongly_convex_one_point(**body, horizon=1000).params(epsilon=LN_3, **told)
    explored = (16 * 16 * (1 + math.log(1000)) / (5 * 0.25 * 64 * 1000)) ** (1 / 3)
    assert float(strong.exploration) == pytest.approx(explored, rel=1e-4)
    assert float(strong.step) == pytest.approx(4 / (0.25 * explored), rel=1e-4)

    pair = convex.two_point(**body, horizon=100, radius=2.0).params(epsilon=LN_3, lipschitz=1.5)
    assert float(pair.exploration) == pytest.approx(2 / 100)
    assert float(pair.step) == pytest.approx(4 / (3.0 * 10), rel=1e-4)

    rounds = 10**6
    smooth = convex.barrier_smooth(**body, horizon=rounds).params(epsilon=LN_3, loss_bound=2.0, smoothness=3.0)
    explored = (2 * math.sqrt(2) * 4 * math.sqrt(4 * 16 * math.log(rounds) / rounds) / 3) ** (1 / 3)
    rate = explored * math.sqrt(4 * math.log(rounds) / (2 * rounds * 16 * 16))
    assert float(smooth.exploration) == pytest.approx(explored, rel=1e-4)
    assert float(smooth.step) == pytest.approx(rate * 4 / explored**2, rel=1e-4)

    curved = convex.barrier_strongly_convex(**body, horizon=rounds)
    params = curved.params(epsilon=LN_3, loss_bound=2.0, smoothness=3.0, strong_convexity=1.5)
    rate = math.sqrt((4 + 2 * 2) * math.log(rounds) / (2 * 16 * 16 * rounds))
    assert float(params.step) == pytest.approx(rate * 4, rel=1e-4)
    assert float(params.curvature) == pytest.approx(rate * 1.5, rel=1e-4)


def test_in_one_dimension_a_box_is_a_ball():
    for factory in (convex.fkm, convex.strongly_convex_one_point, convex.two_point, convex.barrier_smooth):
        both = [factory(dim=1, horizon=50, radius=1.5, domain=domain).params(epsilon=1.0) for domain in ("ball", "box")]
        assert jax.tree.all(jax.tree.map(lambda one, other: one == other, *both))


CURVED = {"curvature": 0.5, "target": 0.6}
MOST = 0.5 * (0.5 + 0.6 * math.sqrt(0.5))  # of |loss|, with D^2 = 1/2: curvature (D^2 / 2 + target D), and more
STEEP = 0.5 * (math.sqrt(0.5) + 0.6)
PROBLEMS = {  # learner, losses, feedback, values, (c, T) -> bound
    "fkm": (
        convex.fkm,
        convex.linear_losses,
        "point",
        {"slope": 0.5, "lipschitz": 0.5, "loss_bound": 0.4},
        lambda c, rounds: bounds.fkm_upper((0.4 * c) ** 2, rounds, DIM, 0.5, RADIUS, "box"),
    ),
    "strongly_convex_one_point": (
        convex.strongly_convex_one_point,
        convex.quadratic_losses,
        "point",
        {**CURVED, "lipschitz": STEEP, "loss_bound": MOST, "strong_convexity": 0.5},
        lambda c, rounds: bounds.strongly_convex_one_point_upper(
            (MOST * c) ** 2, rounds, DIM, 0.5, STEEP, RADIUS, "box"
        ),
    ),
    "two_point": (
        convex.two_point,
        convex.linear_losses,
        "difference",
        {"slope": 0.5, "lipschitz": 0.5},
        lambda c, rounds: bounds.two_point_upper((0.5 * c) ** 2, rounds, DIM, 0.5, RADIUS, "box"),
    ),
    "barrier_smooth": (
        convex.barrier_smooth,
        convex.quadratic_losses,
        "point",
        {**CURVED, "loss_bound": MOST, "smoothness": 0.5},
        lambda c, rounds: bounds.barrier_smooth_upper((MOST * c) ** 2, rounds, DIM, 0.5, MOST, RADIUS, "box"),
    ),
    "barrier_strongly_convex": (
        convex.barrier_strongly_convex,
        convex.quadratic_losses,
        "point",
        {**CURVED, "loss_bound": MOST, "smoothness": 0.5, "strong_convexity": 0.5},
        lambda c, rounds: bounds.barrier_strongly_convex_upper(MOST * c, rounds, DIM, 0.5, 0.5, RADIUS, "box"),
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_regret_is_below_the_bound_and_no_play_is_outside(name):
    """Starts so far away that the bound is below the regret of staying at the centre, where two points are queried."""
    factory, family, feedback, values, bound = PROBLEMS[name]
    rounds, lanes = 2000, 24
    run = jaxdp.simulator(factory(**BOX, horizon=rounds), family(**BOX, feedback=feedback), rounds)
    params = jax.tree.map(jnp.asarray, run.params(epsilon=4.0, **values))
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jaxdp.lane_keys(jax.random.key(5), lanes), params)
    regret = np.asarray(found["pseudo_regret"])[:, -1].astype(float)
    assert np.isfinite(regret).all()
    allowed = float(bound(float(bounds.noise_factor(4.0)), rounds))
    assert regret.mean() + 3 * regret.std(ddof=1) / math.sqrt(lanes) <= allowed
    if name == "two_point":
        assert allowed < 0.5 * math.sqrt(0.5) * rounds  # of who stays at the centre


# ---- best points -----------------------------------------------------------------------------------------------------
FAMILIES = {
    "linear": (convex.linear_losses, {}, [-RADIUS, -RADIUS]),
    "quadratic": (convex.quadratic_losses, {"target": 5.0}, [RADIUS, RADIUS]),
    "inside": (convex.quadratic_losses, {"target": 0.6}, [0.6 / math.sqrt(2)] * 2),  # beyond the ball, in the box
    "huber": (convex.huber_losses, {"target": 0.6}, [0.6 / math.sqrt(2)] * 2),
    "logistic": (convex.logistic_losses, {"label_prob": 0.99}, [RADIUS, RADIUS]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_best_points(name):
    """Checks that no point of a grid of the box has less regret than 0, and that the best one has 0."""
    family, values, best = FAMILIES[name]
    environment = family(**BOX)
    params = jax.tree.map(jnp.asarray, environment.params(**values))
    np.testing.assert_allclose(params.best, best, rtol=1e-6)
    grid = np.array([*itertools.product(np.linspace(-RADIUS, RADIUS, 21), repeat=2), best])
    world, key = environment.init(jax.random.key(0), params), jax.random.key(1)
    found = jax.vmap(lambda x: environment.feedback(key, params, world, x)[2]["pseudo_regret"])(
        jnp.asarray(grid, default_float())
    )
    assert np.asarray(found).min() > -1e-6
    assert float(found[-1]) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("family", [convex.linear_losses, convex.quadratic_losses])
def test_hindsight(family):
    """Compares with a grid of the box, for the sum of the losses."""
    where, rounds = np.array([[0.3, -0.5], [0.0, 0.2], [-0.5, 0.1]]), 50
    environment = family(**BOX, hindsight=True)
    learner = fixed_points(where)._replace(interface=environment.interface)
    values = {"tilt": 0.4, "drift": 0.3, "period": 300}
    values |= {"slope": 0.05} if family is convex.linear_losses else {"curvature": 0.1, "target": 0.6}
    record = {"tilts": lambda snapshot: snapshot.world.linear_sum.total}
    run = jaxdp.simulator(learner, environment, rounds, checkpoints=range(1, rounds + 1), record=record)
    found = jax.jit(run)(jax.random.key(5), run.params(**values))
    sums = np.asarray(found["tilts"], float)
    tilts, e = np.diff(sums, axis=0, prepend=0), np.ones(2) / math.sqrt(2)

    def mean(x):
        if family is convex.linear_losses:
            return 0.05 * x @ e
        return 0.05 * (np.sum((x - 0.6 * e) ** 2, axis=-1) - 0.36)

    played = sum(mean(where[t % 3]) + tilts[t] @ where[t % 3] for t in range(rounds))
    grid = np.array(list(itertools.product(np.linspace(-RADIUS, RADIUS, 201), repeat=2)))
    totals = rounds * mean(grid) + grid @ sums[-1]
    assert float(found["regret"][-1]) == pytest.approx(played - totals.min(), abs=2e-3)
    in_ball = totals[np.linalg.norm(grid, axis=1) <= RADIUS].min()
    assert abs(totals.min() - in_ball) > 0.05  # the best point of the ball inside is another one


# ---- refused ---------------------------------------------------------------------------------------------------------
EPS = float(jnp.finfo(default_float()).eps)


def test_outside_is_not_clamped():
    points = np.array([[RADIUS, RADIUS], [RADIUS * (1 + EPS), 0], [RADIUS * 1.001, 0], [np.nan, 0], [0, -np.inf]])
    environment = convex.linear_losses(**BOX)
    params = jax.tree.map(jnp.asarray, environment.params())
    world, key = environment.init(jax.random.key(0), params), jax.random.key(1)
    found = jax.vmap(lambda x: environment.feedback(key, params, world, x)[2])(jnp.asarray(points, default_float()))
    assert np.isnan(found["pseudo_regret"]).tolist() == [False, False, True, True, True]
    assert np.isnan(found["loss"]).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: convex.fkm(dim=2, horizon=9, domain="simplex"), "domain must be one of ball, box, got 'simplex'"),
        (lambda: convex.linear_losses(dim=2, domain="cube"), "domain must be one of ball, box"),
        (lambda: convex.barrier_smooth(dim=0, horizon=9, domain="box"), "dim must be an integer >= 1"),
        (lambda: convex.two_point(dim=2, horizon=9, radius=math.nan, domain="box"), "radius must be > 0"),
        (lambda: convex.huber_losses(dim=10**8, radius=1e18 if EPS > 1e-9 else 1e200, domain="box"), "radius"),
        (lambda: bounds.fkm_upper(1.0, 10, 2, domain="cube"), "domain must be one of ball, box"),
        (
            lambda: jaxdp.simulator(convex.fkm(dim=2, horizon=9, domain="box"), convex.linear_losses(dim=2), 9),
            "action must be the same for learner and environment",
        ),
        (
            lambda: jaxdp.simulator(
                convex.two_point(dim=2, horizon=9), convex.linear_losses(dim=2, feedback="difference", domain="box"), 9
            ),
            "action must be the same for learner and environment",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
