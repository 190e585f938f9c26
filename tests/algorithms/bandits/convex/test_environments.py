"""Convex losses: values, differences without cancellation, best points, hindsight, and bad input."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import convex
from jaxdp.bandits.convex._ball_kernels import project, unit_vector
from jaxdp.core import Guarantee, Learner, State, default_float

FAMILIES = {
    "linear": convex.linear_losses,
    "quadratic": convex.quadratic_losses,
    "huber": convex.huber_losses,
    "logistic": convex.logistic_losses,
}
DIM, RADIUS = 3, 2.0
DRIFT = {"drift": 0.3, "period": 4}


def mean_loss(family, shape, x):
    """Returns the mean loss as the docstrings write it, in float64."""
    towards = np.ones(len(x)) / math.sqrt(len(x))
    if family == "linear":
        return shape["slope"] * towards @ x
    if family == "logistic":
        margins, chance = shape["steepness"] * x, shape["label_prob"]
        return np.mean(chance * np.logaddexp(0, -margins) + (1 - chance) * np.logaddexp(0, margins)) - math.log(2)
    middle = shape["target"] * towards
    if family == "quadratic":
        return shape["curvature"] / 2 * ((x - middle) @ (x - middle) - middle @ middle)

    def huber(r):
        return r * r / (2 * shape["width"]) if r <= shape["width"] else r - shape["width"] / 2

    return shape["slope"] * (huber(np.linalg.norm(x - middle)) - huber(shape["target"]))


def made(family, feedback, **values):
    environment = FAMILIES[family](dim=DIM, radius=RADIUS, feedback=feedback)
    params = jax.tree.map(jnp.asarray, environment.params(**values))
    shape = {name: float(value) for name, value in params.shape.items()}
    return environment, params, shape, environment.init(jax.random.key(0), params)


def points(count):
    rng = np.random.default_rng(3)
    found = rng.normal(size=(count, DIM))
    found *= RADIUS * rng.random((count, 1)) / np.linalg.norm(found, axis=1, keepdims=True)
    return found.astype(np.float32)


def answers(environment, params, world, actions):
    keys = jax.random.split(jax.random.key(1), len(jax.tree.leaves(actions)[0]))
    run = jax.vmap(lambda key, action: environment.feedback(key, params, world, action)[1:])
    return jax.device_get(jax.jit(run)(keys, jax.tree.map(lambda x: jnp.asarray(x, default_float()), actions)))


@pytest.mark.parametrize("family", FAMILIES)
def test_values_and_regret(family):
    environment, params, shape, world = made(family, "point")
    where = points(4000 if family == "logistic" else 40)
    shown, outcome = answers(environment, params, world, where)
    expected = np.array([mean_loss(family, shape, x) for x in where.astype(float)])
    if family == "logistic":  # labels are random
        spread = np.std(shown - expected) / math.sqrt(len(where))
        assert abs(np.mean(shown - expected)) < 5 * spread
        slope = shown @ expected / (expected @ expected)  # of 1, which a loss half as large has not
        assert abs(slope - 1) < 5 * np.std(shown - expected) / np.linalg.norm(expected) < 0.5
    else:
        np.testing.assert_allclose(shown, expected, atol=3e-6)
    np.testing.assert_allclose(outcome["loss"], shown, atol=1e-6)
    lost = expected - mean_loss(family, shape, np.asarray(params.best, float))
    np.testing.assert_allclose(outcome["pseudo_regret"], lost, atol=3e-6)
    assert (outcome["pseudo_regret"] > -1e-6).all()


@pytest.mark.parametrize("family", ["linear", "quadratic", "huber"])
@pytest.mark.parametrize("size", [0.05, 1e-8])
def test_differences_do_not_cancel(family, size):
    environment, params, shape, world = made(family, "difference", noise=0.5)
    where = points(60) * np.float32(0.9)
    offsets = (points(61)[1:] * size).astype(np.float32)
    shown, _ = answers(environment, params, world, convex.Probe(where, offsets))
    # the derivative with respect to a far larger offset: even float64 has too few digits for the small one
    factor = max(1.0, 1e-5 / size)
    expected = np.array(
        [
            (mean_loss(family, shape, x + o) - mean_loss(family, shape, x - o)) / factor
            for x, o in zip(where.astype(float), offsets.astype(float) * factor, strict=True)
        ]
    )
    np.testing.assert_allclose(shown, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    if size < 1e-3:  # planted: the points themselves, in float32
        ends = [
            np.array([mean_loss(family, shape, (x + s * o).astype(float)) for x, o in zip(where, offsets, strict=True)])
            for s in (1, -1)
        ]
        assert not np.allclose(ends[0] - ends[1], expected, rtol=0.1, atol=0.1 * np.abs(expected).max())


def test_logistic_differences():
    environment, params, _, world = made("logistic", "difference", steepness=3.0)
    x, o = np.full(3, 0.9), np.full(3, 1e-7)
    shown, _ = answers(environment, params, world, convex.Probe(np.tile(x, (200, 1)), np.tile(o, (200, 1))))
    margin = 3.0 * 0.9
    slopes = {-2 * 3e-7 / (1 + math.exp(margin)), 2 * 3e-7 / (1 + math.exp(-margin))}
    for value in np.unique(shown.round(12)):
        assert min(abs(value / slope - 1) for slope in slopes) < 1e-4


def test_tilts_and_drift():
    """Checks signs of length `tilt` and mean 0, the same at both points of a probe; the drift ends after a period."""
    environment, params, _, world = made("linear", "difference", slope=1e-6, tilt=0.5, noise=9.0)
    e = np.eye(DIM)[0] * 0.25
    shown, _ = answers(environment, params, world, convex.Probe(np.zeros((2000, DIM)), np.tile(e, (2000, 1))))
    assert abs(np.mean(shown)) < 5 * np.std(shown) / math.sqrt(2000)
    np.testing.assert_allclose(np.abs(shown), 0.5 * 0.5 / math.sqrt(DIM), rtol=1e-3)

    environment, params, _, world = made("linear", "point", slope=1e-6, **DRIFT)
    seen = []
    for _ in range(4):
        world, shown, _ = environment.feedback(jax.random.key(0), params, world, jnp.asarray(4 * e, default_float()))
        seen.append(float(shown))
    assert max(map(abs, seen)) > 0.1
    assert abs(sum(seen)) < 1e-5


def test_an_adversary_who_looks():
    """Checks that the loss grows near the learner's plays: push m / radius, for their mean m."""
    environment = convex.linear_losses(dim=2, adaptive=True)
    params = jax.tree.map(jnp.asarray, environment.params(slope=1e-6, push=0.4))
    world, seen = environment.init(jax.random.key(0), params), []
    for point in ([0.5, 0.0], [0.0, 0.5], [0.5, 0.5]):
        world, shown, _ = environment.feedback(jax.random.key(0), params, world, jnp.asarray(point, default_float()))
        seen.append(float(shown))
    np.testing.assert_allclose(seen, [0, 0, 0.4 * 0.25], atol=1e-5)
    with pytest.raises(TypeError, match="push"):
        convex.linear_losses(dim=2).params(push=0.1)


def test_outside_is_not_clamped():
    environment, params, _, world = made("quadratic", "point")
    edge = np.zeros((3, DIM))
    edge[:, 0] = RADIUS, RADIUS * (1 + float(jnp.finfo(default_float()).eps)), RADIUS * 1.001
    _, outcome = answers(environment, params, world, edge)
    assert np.isnan(outcome["pseudo_regret"]).tolist() == [False, False, True]
    environment, params, _, world = made("quadratic", "difference")
    _, outcome = answers(environment, params, world, convex.Probe(edge * 0.9, edge * 0.2))
    assert np.isnan(outcome["pseudo_regret"]).all()


def fixed_points(where):
    """Builds a learner that plays one point, and another one every third round."""

    def act(key, params, public, context):
        del key, params, context
        return jnp.asarray(where, default_float())[public % len(where)]

    return Learner(
        params=lambda: (),
        guarantee=Guarantee.none,
        init=lambda key, params: State((), jnp.zeros((), jnp.result_type(int))),
        act=act,
        privatize=lambda key, params, public, context, action, feedback: (),
        update=lambda key, params, state, report: State((), state.public + 1),
        interface=convex.linear_losses(dim=2).interface,
    )


@pytest.mark.parametrize("family", ["linear", "quadratic"])
def test_hindsight(family):
    """Compares with the sum of the losses on a grid of the disc."""
    where, rounds, radius = np.array([[0.3, -0.5], [0.0, 0.2], [-0.9, 0.1]]), 50, 1.0
    environment = FAMILIES[family](dim=2, radius=radius, hindsight=True, adaptive=True)
    values = {"tilt": 0.4, "drift": 0.3, "period": 300, "push": 0.3}
    values |= {"slope": 0.1} if family == "linear" else {}
    run = jaxdp.simulator(fixed_points(where), environment, rounds)
    regret = float(jax.jit(run)(jax.random.key(5), run.params(**values))["regret"][-1])

    # The same losses, one by one: at each of three points, from which the linear part follows.
    params = jax.tree.map(jnp.asarray, environment.params(**values))
    shape = {name: float(value) for name, value in params.shape.items()}
    captured = jaxdp.simulator(
        fixed_points(where),
        environment,
        rounds,
        checkpoints=range(1, rounds + 1),
        record={"world": lambda snapshot: snapshot.world.linear_sum.total},
    )
    sums = np.asarray(jax.jit(captured)(jax.random.key(5), captured.params(**values))["world"], float)
    tilts = np.diff(sums, axis=0, prepend=0)
    assert np.abs(tilts).max() > 0.2
    played = sum(mean_loss(family, shape, where[t % 3]) + tilts[t] @ where[t % 3] for t in range(rounds))
    angles, radii = np.linspace(0, 2 * np.pi, 401), np.linspace(0, radius, 101)
    grid = (radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(-1, 2)
    best = min(rounds * mean_loss(family, shape, x) + sums[-1] @ x for x in grid)
    assert regret == pytest.approx(played - best, abs=5e-3)
    assert regret > 0.1


@pytest.mark.precision
def test_ball():
    keys = jax.random.split(jax.random.key(8), 4000)
    for dim in (1, 2, 5):
        found = np.asarray(jax.vmap(lambda key, dim=dim: unit_vector(key, dim))(keys))
        np.testing.assert_allclose(np.sum(found * found, axis=1), 1, atol=1e-6)
        assert np.abs(found.mean(0)).max() < 5 / math.sqrt(dim * len(keys))
        np.testing.assert_allclose(found.T @ found / len(keys), np.eye(dim) / dim, atol=5 / math.sqrt(len(keys)) / dim)
    for x in ([0.0, 0.0], [0.3, 0.4], [30.0, 40.0]):
        got = np.asarray(project(jnp.asarray(x, default_float()), jnp.asarray(0.6, default_float())))
        np.testing.assert_allclose(got, np.array(x) * min(1.0, 0.6 / max(math.hypot(*x), 1e-9)), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "values", "said"),
    [
        ({"dim": 0}, {}, "dim must be"),
        ({"dim": 2, "radius": 0.0}, {}, "radius must be"),
        ({"dim": 2, "radius": math.nan}, {}, "radius must be"),
        ({"dim": 2, "feedback": "both"}, {}, "feedback must be one of"),
        ({"dim": 2}, {"noise": -1.0}, "noise must be >= 0"),
        ({"dim": 2}, {"tilt": math.inf}, "tilt must be finite"),
        ({"dim": 2}, {"drift": math.nan}, "drift must be >= 0"),
        ({"dim": 2}, {"period": 1}, "period must be"),
        ({"dim": 2}, {"target": math.inf}, "target must be finite"),
        ({"dim": 2}, {"curvature": 0.0}, "curvature must be > 0"),
    ],
)
def test_bad_input(arguments, values, said):
    with pytest.raises(ValueError, match=said):
        convex.quadratic_losses(**arguments).params(**values)
    with pytest.raises(ValueError, match="label_prob must be in"):
        convex.logistic_losses(dim=2).params(label_prob=1.0)
    with pytest.raises(TypeError, match="slope"):
        convex.quadratic_losses(dim=2).params(slope=1.0)


def test_regret_in_hindsight_at_a_tiny_curvature_and_a_far_target():
    environment, x = convex.quadratic_losses(dim=2, hindsight=True), jnp.zeros(2, default_float())
    play = jax.jit(environment.feedback)

    def regret(**values):
        params = jax.tree.map(jnp.asarray, environment.params(**values))
        world, *_ = play(jax.random.key(1), params, environment.init(jax.random.key(0), params), x)
        assert environment.hindsight is not None
        return float(environment.hindsight(params, world)["regret"])

    huge = float(jnp.finfo(default_float()).max) ** 0.6  # its square overflows
    assert regret(curvature=1 / huge, tilt=1.0) == pytest.approx(1, rel=1e-5)  # the best point is at the distance 1
    assert regret(curvature=0.5, target=huge) == pytest.approx(huge / 2, rel=1e-5)
