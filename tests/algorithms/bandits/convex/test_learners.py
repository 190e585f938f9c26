"""Convex bandits: tuning by hand, regret below the bounds, no noise at epsilon = inf, long runs, and bad input."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import convex
from jaxdp.bandits.convex._ball_kernels import descend
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.numerics import compensated
from jaxdp.theory import ldp_bandits as bounds

KEY = partial(jax.random.key, 77)
SIZES: Any = {"dim": 2, "horizon": 400}
LN_3 = math.log(3)  # c = 2


def test_tuning_by_hand():
    """Checks constants by hand: M2 = 16 with c = 2, or 4 + s^2."""
    fkm = convex.fkm(dim=2, horizon=160_000).params(epsilon=LN_3, loss_bound=2.0, lipschitz=0.5)
    assert float(fkm.exploration) == pytest.approx(0.1, rel=1e-4)
    assert float(fkm.step) == pytest.approx(1 / (4 * 400), rel=1e-4)  # R / sqrt(M2 T) = eta d / del
    wide = convex.fkm(dim=2, horizon=1, radius=0.5).params(epsilon=LN_3, loss_bound=2.0)
    assert float(wide.exploration) == pytest.approx(0.5)

    told = {"loss_bound": 2.0, "lipschitz": 64.0, "strong_convexity": 0.25}
    strong = convex.strongly_convex_one_point(dim=2, horizon=1000).params(epsilon=LN_3, **told)
    explored = (4 * 16 * (1 + math.log(1000)) / (4 * 0.25 * 64 * 1000)) ** (1 / 3)
    assert float(strong.exploration) == pytest.approx(explored, rel=1e-4)
    assert float(strong.step) == pytest.approx(2 / (0.25 * explored), rel=1e-4)

    stddev = analytic_gaussian(1.0, 1e-3, 3.0)
    noisy = convex.two_point(dim=3, horizon=100, radius=2.0, report="gaussian")
    params = noisy.params(epsilon=1.0, delta=1e-3, lipschitz=1.5)
    assert float(params.randomizer.noise_stddev) == pytest.approx(stddev, rel=1e-4)
    assert float(params.exploration) == pytest.approx(2 / 100)
    assert float(params.step) == pytest.approx(2 / math.sqrt((1.5**2 + stddev**2) * 100), rel=1e-4)
    paper = convex.two_point(dim=3, horizon=100, constants="paper").params(epsilon=1.0)
    assert float(paper.exploration) == pytest.approx(math.log(100) / 100)
    assert float(paper.step) == pytest.approx(3 / 10)
    for constants in ("tuned", "paper"):
        strong = convex.two_point(dim=3, horizon=100, losses="strongly_convex", constants=constants)
        assert float(strong.params(epsilon=1.0, strong_convexity=0.5).step) == pytest.approx(6)


PROBLEMS = {
    "fkm": (convex.fkm, convex.linear_losses, "point", {"slope": 0.5, "lipschitz": 0.5, "loss_bound": 0.5}),
    "strongly_convex_one_point": (
        convex.strongly_convex_one_point,
        convex.quadratic_losses,
        "point",
        {"curvature": 0.5, "target": 0.5, "strong_convexity": 0.5, "lipschitz": 0.75, "loss_bound": 0.5},
    ),
    "two_point": (convex.two_point, convex.linear_losses, "difference", {"slope": 0.5, "lipschitz": 0.5}),
    "two_point_strongly_convex": (
        lambda **sizes: convex.two_point(**sizes, losses="strongly_convex"),
        convex.quadratic_losses,
        "difference",
        {"curvature": 0.5, "target": 0.5, "strong_convexity": 0.5, "lipschitz": 0.75},
    ),
}


def upper_bound(name, values, epsilon, sizes):
    """Returns the upper bound for randomized response."""
    size = float(bounds.noise_factor(epsilon))
    steep = values["lipschitz"]
    if name.startswith("two_point"):
        moment = (steep * size) ** 2
        if name == "two_point":
            return bounds.two_point_upper(moment, sizes["horizon"], sizes["dim"], steep)
        return bounds.two_point_strongly_convex_upper(moment, sizes["horizon"], sizes["dim"], 0.5, steep)
    moment = (values["loss_bound"] * size) ** 2
    if name == "fkm":
        return bounds.fkm_upper(moment, sizes["horizon"], sizes["dim"], steep)
    return bounds.strongly_convex_one_point_upper(moment, sizes["horizon"], sizes["dim"], 0.5, steep)


def made(name, **sizes):
    factory, family, feedback, values = PROBLEMS[name]
    return factory(**sizes), family(dim=sizes["dim"], feedback=feedback), values


def regrets(name, sizes, epsilons, lanes):
    learner, environment, values = made(name, **sizes)
    run = jaxdp.simulator(learner, environment, sizes["horizon"])
    points = [run.params(epsilon=epsilon, **values) for epsilon in epsilons]
    params = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *points)
    keys = jax.random.split(KEY(), lanes)
    both = jax.jit(jax.vmap(jax.vmap(run, in_axes=(0, None)), in_axes=(None, 0)))
    return np.asarray(both(keys, params)["pseudo_regret"])[:, :, -1].astype(float)


@pytest.mark.parametrize("name", PROBLEMS)
def test_regret_is_below_the_bound(name):
    epsilons = [0.5, 2.0, math.inf]
    found = regrets(name, SIZES, epsilons, 100)
    assert np.isfinite(found).all()  # no play was outside
    above = found.mean(1) + 3 * found.std(1, ddof=1) / 10
    allowed = [upper_bound(name, PROBLEMS[name][3], epsilon, SIZES) for epsilon in epsilons]
    assert (above <= allowed).all(), (above, allowed)
    assert found.mean(1)[0] > found.mean(1)[2]


@pytest.mark.parametrize("name", PROBLEMS)
def test_without_privacy_it_is_the_plain_algorithm(name):
    """Step by step: the iterate moves by the loss, or the slope, itself."""
    sizes = {"dim": 2, "horizon": 30}
    learner, environment, values = made(name, **sizes)
    own = {key: value for key, value in values.items() if key in ("lipschitz", "loss_bound", "strong_convexity")}
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf, **own))
    world_params = environment.params(**{key: value for key, value in values.items() if key not in own})
    world_params = jax.tree.map(jnp.asarray, world_params)
    state, world = learner.init(KEY(), params), environment.init(KEY(), world_params)
    x, explored = np.zeros(2), float(params.exploration)
    step = jax.jit(lambda key, state, world: one_round(learner, environment, key, params, world_params, state, world))
    for t in range(1, 31):
        state, world, action, feedback = step(jax.random.fold_in(KEY(), t), state, world)
        if isinstance(action, convex.Probe):
            u, seen = np.asarray(action.offset, float) / explored, float(feedback) / (2 * explored)
        else:
            u, seen = (np.asarray(action, float) - x) / explored, float(feedback)
        assert np.linalg.norm(u) == pytest.approx(1, abs=1e-4)
        rate = float(params.step) / (t if "strong" in name else 1)
        x = x - rate * seen * u
        x *= min(1.0, (1 - explored) / np.linalg.norm(x))
        np.testing.assert_allclose(np.asarray(state.public.x.total), x, atol=2e-5)


def one_round(learner, environment, key, params, world_params, state, world):
    keys = jax.random.split(key, 4)
    action = learner.act(keys[0], params, state.public, None)
    world, feedback, _ = environment.feedback(keys[1], world_params, world, action)
    report = learner.privatize(keys[2], params, state.public, None, action, feedback)
    return learner.update(keys[3], params, state, report), world, action, feedback


def test_steps_below_the_resolution_of_floats():
    """Checks that 10^6 steps of 1e-10 from 0.5 add up to 1e-4; plain float32 addition does not move at all."""
    step = jnp.array([1e-10, 0.0], jnp.float32)
    start = compensated.Sum(jnp.array([0.5, 0.0], jnp.float32), jnp.zeros(2, jnp.float32))
    one = jnp.float32(1.0)
    moved = jax.jit(lambda x: jax.lax.fori_loop(0, 10**6, lambda _, x: descend(x, step, one), x))(start)
    assert float(moved.total[0]) == pytest.approx(0.5 + 1e-4, abs=1e-7)
    assert float(jnp.float32(0.5) + jnp.float32(1e-10)) == 0.5
    out = descend(start, jnp.array([2.0, 0.0], jnp.float32), one)
    np.testing.assert_allclose(np.asarray(out.total), [1, 0], atol=1e-6)
    assert not np.asarray(out.excess).any()


@pytest.mark.parametrize(
    ("factory", "arguments", "values", "said"),
    [
        (convex.fkm, {"dim": 0}, {}, "dim must be"),
        (convex.fkm, {"horizon": 0}, {}, "horizon must be"),
        (convex.fkm, {"radius": -1.0}, {}, "radius must be"),
        (convex.fkm, {"report": "krr"}, {}, "report must be one of"),
        (convex.fkm, {}, {"epsilon": 0.0}, "epsilon must be > 0"),
        (convex.fkm, {}, {"loss_bound": math.inf}, "loss_bound must be finite"),
        (convex.fkm, {}, {"lipschitz": math.nan}, "lipschitz must be > 0"),
        (convex.fkm, {"report": "gaussian"}, {"delta": 1.0}, "delta must be"),
        (convex.strongly_convex_one_point, {}, {"strong_convexity": 0.0}, "strong_convexity must be > 0"),
        (convex.two_point, {"horizon": 1}, {}, "horizon must be"),
        (convex.two_point, {"losses": "linear"}, {}, "losses must be one of"),
        (convex.two_point, {"constants": "best"}, {}, "constants must be one of"),
        (convex.two_point, {"losses": "strongly_convex"}, {"strong_convexity": -1.0}, "strong_convexity must be > 0"),
    ],
)
def test_bad_input(factory, arguments, values, said):
    with pytest.raises(ValueError, match=said):
        factory(**{**SIZES, **arguments}).params(**{"epsilon": 1.0, **values})


def test_values_that_do_not_belong():
    with pytest.raises(TypeError, match="strong_convexity"):
        convex.two_point(**SIZES).params(epsilon=1.0, strong_convexity=1.0)
    with pytest.raises(TypeError, match="delta"):
        convex.fkm(**SIZES).params(epsilon=1.0, delta=1e-3)
    with pytest.raises(TypeError, match="delta"):
        convex.fkm(**SIZES, report="gaussian").params(epsilon=1.0)
    with pytest.raises(ValueError, match="action must be the same"):
        jaxdp.simulator(convex.fkm(**SIZES), convex.linear_losses(dim=2, radius=2.0), 400)
    with pytest.raises(ValueError, match="action must be the same"):
        jaxdp.simulator(convex.fkm(**SIZES), convex.linear_losses(dim=2, feedback="difference"), 400)
