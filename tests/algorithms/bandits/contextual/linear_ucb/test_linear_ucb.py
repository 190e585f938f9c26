"""LinUCB on private moments: the ellipsoid, OFUL at infinity, when the model is solved for, bad input."""

import dataclasses
import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import _contexts, linear_contexts, linear_ucb
from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.bandits.contextual._model import Model, model_updater
from jaxdp.mechanisms import Moments, analytic_gaussian
from jaxdp.mechanisms.local_randomizers import _float_noise
from jaxdp.random import fast_key, ties

KEY = partial(jax.random.key, 8)
DTYPE = jnp.result_type(float)
THETA = [0.5, 0.0]
PRIVATE = {"epsilon": 1.0, "delta": 1e-3}


def world(num_arms=4, theta=THETA):
    return linear_contexts(num_arms=num_arms, dim=len(theta), theta=theta)


# ---- OFUL at epsilon = inf -------------------------------------------------------------------------------------------
ARMS, DIM, ROUNDS = 5, 3, 60


def problem():
    drawn = np.random.default_rng(0)
    contexts = drawn.normal(size=(ROUNDS, ARMS, DIM))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True) + drawn.uniform(size=(ROUNDS, ARMS, 1))  # no ties
    return contexts.astype(DTYPE), drawn.uniform(-0.5, 0.5, ROUNDS).astype(DTYPE), np.array([0.3, -0.4, 0.1], DTYPE)


def oful(np_, contexts, noise, theta, *, horizon, failure_prob, regulariser=2.0, factor=None):
    """Plays Abbasi-Yadkori, Pal & Szepesvari (2011), Figure 1, with the confidence width of SPEC at Upsilon = 1."""
    gram, cross, played = regulariser * np_.eye(DIM), np_.zeros(DIM), []
    log_term = math.log(6 * horizon / failure_prob)
    for t in range(ROUNDS):
        inverse = np_.linalg.inv(gram)
        centre = inverse @ cross
        width = math.sqrt(3) + math.sqrt(2 * log_term + DIM * math.log(1 + t / DIM))
        x = contexts[t]
        arm = int(np_.argmax(x @ centre + width * np_.sqrt(np_.sum((x @ inverse) * x, axis=1))))
        played.append(arm)
        gram = gram + x[arm][:, None] * x[arm][None, :]
        cross = cross + (x[arm] @ theta + noise[t]) * x[arm]
    return played, np_.linalg.inv(gram) @ cross, gram


def played_by(learner, values, contexts, noise, theta):
    params = learner.params(**values)

    def step(state, round_):
        x, z, key = round_
        keys = jax.random.split(key, 3)
        arm = learner.act(keys[0], params, state.public, x)
        report = learner.privatize(keys[1], params, state.public, x, arm, x[arm] @ theta + z)
        return learner.update(keys[2], params, state, report), arm

    keys = jax.random.split(KEY(), ROUNDS)
    return jax.jit(lambda: jax.lax.scan(step, learner.init(KEY(), params), (contexts, noise, keys)))()


@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_without_privacy_it_is_oful(report):
    given = problem()
    delta = {"delta": 1e-3} if report == "gaussian" else {}
    learner = linear_ucb(num_arms=ARMS, dim=DIM, horizon=ROUNDS, report=report, update_every=1)
    state, found = played_by(learner, {"epsilon": math.inf, **delta}, *given)
    for np_ in (np, jnp):
        played, centre, gram = oful(np_, *given, horizon=ROUNDS, failure_prob=0.05)
        assert found.tolist() == played
        lower = state.public.model.lower
        np.testing.assert_allclose(lower @ lower.T, gram, rtol=0, atol=1e-4)
        np.testing.assert_allclose(state.public.model.theta, centre, rtol=0, atol=1e-4)
    planted = oful(np, *given, horizon=ROUNDS, failure_prob=0.05, regulariser=1.0)[0]
    assert found.tolist() != planted


# ---- the ellipsoid ---------------------------------------------------------------------------------------------------
def test_radii_are_those_of_the_specification():
    """Checks radii for contexts of 5 dimensions, 5000 rounds, and rewards in [-2, 2] with 1-sub-Gaussian noise."""
    dim, rounds, share, y = 5, 5000, 0.05, 2.0
    log = math.log(6 * rounds / share)
    values = {"epsilon": 1.0, "reward_bound": y, "failure_prob": share}
    sizes = {"num_arms": 2, "dim": dim, "horizon": rounds}

    def found(t, **options):
        extra = {} if options.get("report") == "l2_ball" else {"delta": 1e-5}
        extra |= {} if "constants" in options else {"noise_proxy": 1.0}
        radii = linear_ucb(**sizes, **options).params(**values, **extra).radii
        noise = jnp.sqrt(jnp.asarray(t, DTYPE))
        bound = ellipsoid.eigenvalue_bound(radii, noise)
        if "constants" in options:
            return float(bound), float(ellipsoid.published_width(radii, bound, noise, dim))
        width = ellipsoid.noise_width(radii, bound, noise) + ellipsoid.reward_width(radii, bound, noise**2, dim)
        return float(bound), float(width)

    def width(bound, vector, t):
        last = math.sqrt(2 * log + dim * math.log(1 + t / (dim * bound)))
        return math.sqrt(3 * bound) + vector / math.sqrt(bound) + last

    stddev = analytic_gaussian(1.0, 1e-5, math.sqrt(4.5))
    for t in (0, 100, rounds):
        bound = max(1, stddev * math.sqrt(t) * (math.sqrt(2 * dim) + math.sqrt(2 * log)))
        vector = y * stddev * math.sqrt(t) * (math.sqrt(dim) + math.sqrt(2 * log))
        np.testing.assert_allclose(found(t), (bound, width(bound, vector, t)), rtol=1e-4)

        log_dim, radius, entries = math.log(6 * dim * rounds / share), 16.932, 20
        tau = radius / math.sqrt(entries)
        bound = max(1, tau * math.sqrt(t * (dim + 1) * log_dim) + 2 / 3 * (radius + 1) * log_dim)
        vector = y * tau * math.sqrt(1.0127 * t) * (math.sqrt(dim) + math.sqrt(2 * log))
        np.testing.assert_allclose(found(t, report="l2_ball"), (bound, width(bound, vector, t)), rtol=1e-3)
    assert found(rounds, constants="paper")[1] == pytest.approx(20742, rel=1e-2)


@functools.cache
def covering(report, rounds, dim, every):
    """Builds a run that records |theta~ - theta|_V / beta, and the run of many lanes, compiled once."""
    learner = linear_ucb(num_arms=4, dim=dim, horizon=rounds, report=report, update_every=every)

    def distance(snapshot):
        model = snapshot.public.model
        apart = model.lower.T @ (model.theta - snapshot.world.theta)
        return jnp.sqrt(jnp.sum(apart**2)) / model.width

    run = jaxdp.simulator(
        learner, linear_contexts(num_arms=4, dim=dim), rounds, checkpoints=10, record={"distance": distance}
    )
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def distances(report, lanes, rounds, dim, every, confidence=1.0):
    """Returns |theta~ - theta|_V / beta after some rounds: [lanes, checkpoints]."""
    run, go = covering(report, rounds, dim, every)
    values = {"epsilon": 1.0, "confidence_multiplier": confidence, **({"delta": 1e-3} if report == "gaussian" else {})}
    return np.asarray(go(jax.random.split(KEY(), lanes), run.params(**values))["distance"])


@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_the_ellipsoid_covers_theta(report):
    found = distances(report, 50, 100, 2, 10)
    assert (found < 1).all()
    assert (distances(report, 50, 100, 2, 10, 0.1) > 1).any(axis=1).mean() > 0.05, "planted: a tenth of the radius"


@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_the_ellipsoid_covers_theta_in_a_thousand_runs(report):
    found = distances(report, 1000, 20_000, 5, 0.01)
    assert (found > 1).any(axis=1).mean() <= 0.05
    assert found.max() > 0.2  # the ellipsoid is not much more than a few times too wide


# ---- long runs in float32 --------------------------------------------------------------------------------------------
@pytest.fixture
def same_variates(monkeypatch):
    """Replaces uniform and normal variates of either precision by float32 variates."""
    for name in ("uniform", "normal"):
        own = getattr(jax.random, name)

        def narrow(key, shape=(), dtype=float, own=own, **range_):
            wanted = jax.dtypes.canonicalize_dtype(dtype)
            return own(key, shape, jnp.float32, **range_).astype(wanted)

        monkeypatch.setattr(jax.random, name, narrow)
    for module, name in ((_contexts, "world_uniforms"), (_contexts, "world_normals"), (_float_noise, "normal")):
        own = getattr(module, name)

        def cast_up(key, shape, dtype, *, own=own, **how):
            return own(key, shape, jnp.float32, **how).astype(dtype)

        monkeypatch.setattr(module, name, cast_up)
    jax.clear_caches()
    yield
    jax.clear_caches()


def long_run(horizon, lanes, report):
    """Returns regret, and whether V is positive definite at every checkpoint: [lanes] each."""
    learner = linear_ucb(num_arms=4, dim=2, horizon=horizon, report=report)

    def is_solved(snapshot):
        return snapshot.public.model.solved * 10 > snapshot.round * 9

    run = jaxdp.simulator(learner, world(), horizon, checkpoints=10, record={"solved": is_solved})
    values = {"epsilon": 4.0, **({"delta": 1e-5} if report == "gaussian" else {})}
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(fast_key(jax.random.split(KEY(), lanes)), run.params(**values))
    return np.asarray(found["pseudo_regret"])[:, -1].astype(float), np.asarray(found["solved"])


def check_precisions(horizon, lanes, report):
    narrow, is_solved = long_run(horizon, lanes, report)
    with jax.enable_x64(True):
        wide, _ = long_run(horizon, lanes, report)
    apart, error = np.mean(narrow - wide), np.std(narrow - wide) / math.sqrt(lanes)
    assert abs(apart) + 2 * error < 0.01 * wide.mean(), (apart, error, wide.mean())
    assert is_solved.all()


@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_both_precisions_agree(same_variates, report):
    check_precisions(500, 400 if report == "gaussian" else 30_000, report)


@pytest.mark.optimised
@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_both_precisions_agree_in_long_runs(same_variates, report):
    check_precisions(10**6, 100 if report == "gaussian" else 400, report)  # with coins that make paths part more often


# ---- when the model is solved for ------------------------------------------------------------------------------------
def solve_times(update_every, rounds=40, growth=0.5):
    """Computes when a model of one dimension is solved for, where V is 1 + growth t."""
    keep = model_updater(update_every)

    def step(model, round_):
        def solve():
            return Model(model.theta, jnp.sqrt(1 + growth * round_.astype(DTYPE))[None], model.width, round_)

        return (new := keep(model, round_, solve)), new.solved

    none = jnp.zeros((), jnp.result_type(int))
    start = Model(jnp.zeros(1, DTYPE), jnp.ones(1, DTYPE), jnp.ones((), DTYPE), none)
    return sorted(set(jax.lax.scan(step, start, jnp.arange(1, rounds + 1, dtype=none.dtype))[1].tolist()) - {0})


def test_when_the_model_is_solved_for():
    assert solve_times(1) == list(range(1, 41))
    assert solve_times(7) == [7, 14, 21, 28, 35]
    assert solve_times(0.25) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33]
    assert solve_times(0.3) == solve_times(0.25)  # one round of four: a share at most
    assert solve_times("doubling") == [1, 4, 10, 22]  # 1.5, 3, 6, 12


def test_a_matrix_without_a_factor_leaves_the_model():
    learner = linear_ucb(num_arms=2, dim=2, horizon=9, update_every=1)
    params = learner.params(**PRIVATE)
    state = learner.init(KEY(), params)
    bad = Moments(-1e6 * jnp.asarray([1, 0, 1], DTYPE), jnp.ones(2, DTYPE))
    update = jax.jit(learner.update)
    kept = update(KEY(), params, state, bad).public
    assert int(kept.round) == 1
    for new, old in zip(kept.model, state.public.model, strict=True):
        np.testing.assert_array_equal(new, old)
    good = update(KEY(), params, state, Moments(jnp.asarray([1, 0, 1], DTYPE), jnp.ones(2, DTYPE))).public
    assert int(good.model.solved) == 1


# ---- what leaves the device ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("report", ["gaussian", "l2_ball"])
def test_a_report_tells_of_the_action_nothing_but_its_context(report):
    learner = linear_ucb(num_arms=3, dim=2, horizon=9, report=report)
    params = learner.params(**{name: PRIVATE[name] for name in ("epsilon", "delta")[: 1 if report == "l2_ball" else 2]})
    public = learner.init(KEY(), params).public
    same = jnp.asarray([[0.6, 0.8], [0.6, 0.8], [1, 0]], DTYPE)
    tell = jax.jit(jax.vmap(lambda key, arm: learner.privatize(key, params, public, same, arm, jnp.ones((), DTYPE))))
    keys = jax.random.split(KEY(), 20)
    first, second, other = (tell(keys, jnp.full(20, arm)) for arm in range(3))
    for one, two, three in zip(first, second, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert (np.asarray(one) != np.asarray(three)).any()


@pytest.mark.parametrize("name", ["gaussian", "l2_ball"])
def test_what_is_beyond_the_bounds_is_clipped(name):
    learner = linear_ucb(num_arms=2, dim=2, horizon=9, report=name)
    extra = {"delta": 1e-3} if name == "gaussian" else {}
    params = learner.params(epsilon=math.inf, reward_bound=2.0, **extra)
    public = learner.init(KEY(), params).public
    context = jnp.asarray([[30.0, 40.0], [np.nan, 0.5]], DTYPE)

    told = jax.jit(lambda arm, y: learner.privatize(KEY(), params, public, context, arm, jnp.asarray(y, DTYPE)))

    x = np.array([0.6, 0.8])
    for y, clipped in ((7.0, 2.0), (-math.inf, -2.0), (math.nan, 0.0)):
        np.testing.assert_allclose(told(0, y)[0], np.outer(x, x)[np.triu_indices(2)], atol=1e-6)
        np.testing.assert_allclose(told(0, y)[1], clipped * x, atol=1e-6)
    np.testing.assert_allclose(told(1, 1.0)[1], [0, 0.5], atol=1e-6)


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_arms": 1}, "num_arms must be"),
        ({"dim": 0}, "dim must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"report": "rr"}, "report must be one of gaussian, l2_ball, got 'rr'"),
        ({"constants": "loose"}, "constants must be one of tight, paper"),
        ({"constants": "paper", "report": "l2_ball"}, "constants must be"),
        ({"update_every": 0}, "update_every must be an integer number of rounds >= 1, a share in"),
        ({"update_every": 1.5}, "update_every must be"),
        ({"update_every": math.nan}, "update_every must be"),
        ({"update_every": "det"}, "update_every must be"),
        ({"update_every": None}, "update_every must be"),
        ({"update_every": 2**70}, "update_every must be at most"),
        ({"update_every": 1e-25}, "update_every must be at most"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        linear_ucb(**{"num_arms": 2, "dim": 2, "horizon": 10, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"delta": 0.0}, "delta must be in"),
        ({"reward_bound": -1.0}, "reward_bound must be"),
        ({"failure_prob": 1.0}, "failure_prob must be in"),
        ({"noise_proxy": 0.0}, "noise_proxy must be"),
        ({"confidence_multiplier": math.inf}, "confidence_multiplier must be"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        linear_ucb(num_arms=2, dim=2, horizon=10).params(**{**PRIVATE, **values})


def test_contexts_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="context must be the same"):
        jaxdp.simulator(linear_ucb(num_arms=4, dim=3, horizon=10), world(), 10)


def test_values_are_leaves():
    made = linear_ucb(num_arms=2, dim=2, horizon=10).params(**PRIVATE)
    assert all(dataclasses.is_dataclass(part) for part in (made, made.radii, made.randomizer))
    assert {leaf.dtype for leaf in jax.tree.leaves(made)} == {DTYPE}


# ---- ties ------------------------------------------------------------------------------------------------------------
def apart_if_reversed(lanes=2000, rounds=6):
    """Returns the largest difference of mean regret, in standard errors, after reversing arms with one-hot contexts."""
    theta, found = np.array([0.6, 0.3, 0.0]), []
    learner = linear_ucb(num_arms=3, dim=3, horizon=rounds, update_every=2)
    worlds = [linear_contexts(np.eye(3), theta=each) for each in (theta, theta[::-1])]
    run = jaxdp.simulator(learner, worlds[0], rounds, checkpoints=range(1, rounds + 1))
    go, params = jax.jit(jax.vmap(run, (0, None))), run.params(epsilon=math.inf, delta=1e-3)
    for world in worlds:
        keys = jax.random.split(jax.random.fold_in(KEY(), len(found)), lanes)
        found.append(np.asarray(go(keys, {**params, "environment": world.params()})["pseudo_regret"], float))
    error = np.sqrt((found[0].var(0) + found[1].var(0)) / lanes)
    return np.max(np.abs(found[0].mean(0) - found[1].mean(0)) / np.maximum(error, 1e-9))


def test_equal_bounds_do_not_favour_the_first_arm(monkeypatch):
    assert apart_if_reversed() < 5
    monkeypatch.setattr(ties, "rank", lambda word, index: jnp.zeros_like(word, jnp.int32))
    assert apart_if_reversed() > 5  # planted
