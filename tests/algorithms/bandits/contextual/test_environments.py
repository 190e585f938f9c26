"""Contextual worlds: where contexts lie, rewards, regret, a user's own data, logged data by replay, bad input."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import contextual
from jaxdp.core import Interface, Learner, Space, State, arms, default_float
from jaxdp.core.guarantee import Guarantee
from jaxdp.preferences import probit

KEY = partial(jax.random.key, 3)
K, D = 4, 3
OWN = np.random.default_rng(0).uniform(-1, 1, (6, K, D)) / math.sqrt(D)
PAID = np.random.default_rng(1).normal(size=(6, K))


def draws(environment: Any, values, rounds):
    """Returns contexts and theta of many rounds of a lane, as NumPy arrays."""
    params = environment.params(**values)
    world = environment.init(KEY(), params)
    keys = jax.random.split(KEY(), rounds)
    return np.asarray(jax.jit(environment.contexts)(keys, params, world), float), np.asarray(world.theta, float)


def replies(environment: Any, values, rounds, action):
    """Returns contexts, theta, rewards and outcomes of rounds with that action."""
    params = environment.params(**values)

    def step(world, key):
        shown = environment.context(key, params, world)
        after, reward, outcome = environment.feedback(key, params, world, jnp.asarray(action, jnp.int32))
        return after, (shown, reward, outcome)

    world = environment.init(KEY(), params)
    _, found = jax.jit(lambda: jax.lax.scan(step, world, jax.random.split(KEY(), rounds)))()
    return world, jax.tree.map(np.asarray, found)


# ---- contexts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("distribution", ["sphere", "ball", "cube"])
def test_where_contexts_lie(distribution):
    """Checks the distribution of norms, and that means are 0 and second moments I times the mean square norm /
    dimensions.
    """
    found, _ = draws(contextual.linear_contexts(distribution, num_arms=K, dim=D), {}, 3000)
    points = found.reshape(-1, D)
    norms = np.linalg.norm(points, axis=1)
    assert norms.max() <= 1 + 1e-6
    square = {"sphere": 1.0, "ball": D / (D + 2), "cube": 1 / 3}[distribution]
    error = 1 / math.sqrt(len(points))
    if distribution == "sphere":
        np.testing.assert_allclose(norms, 1, atol=1e-6)
    np.testing.assert_allclose(points.mean(0), 0, atol=5 * error)
    np.testing.assert_allclose(points.T @ points / len(points), square / D * np.eye(D), atol=5 * error)
    if distribution == "ball":
        assert abs(np.mean(norms < 0.5) - 0.5**D) < 5 * error
        assert abs(np.mean(norms**2) - 1 / 2) > 5 * error, "planted: lengths that are uniform in area"
        lengths = np.linalg.norm(found, axis=2, keepdims=True)
        related = [
            np.corrcoef(lengths[:, arm, 0] ** D, np.abs(found / lengths)[:, arm], rowvar=False)[0, 1:]
            for arm in range(K)
        ]
        assert np.abs(related).max() < 5 / math.sqrt(len(found)), "a length does not depend on its arm's direction"


def test_arms_that_stay():
    environment = contextual.linear_contexts(OWN[0], theta=[0.6, 0, 0.8])
    found, theta = draws(environment, {"theta_norm": 0.5}, 3)
    np.testing.assert_allclose(found, np.broadcast_to(OWN[0], (3, K, D)), atol=1e-6)
    np.testing.assert_allclose(theta, [0.3, 0, 0.4], atol=1e-6)
    assert environment.interface is not None
    assert environment.interface.action == arms(K)


@pytest.mark.parametrize("distribution", ["sphere", "ball", OWN[0]])
def test_the_best_arm_leads_by_the_gap(distribution):
    sizes: Any = {} if isinstance(distribution, np.ndarray) else {"num_arms": K, "dim": D}
    environment = contextual.linear_contexts(distribution, **sizes, gap=0.2)
    for gap, norm in ((0.2, 0.5), (1.0, 0.5), (0.3, 1.0)):
        found, theta = draws(environment, {"gap": gap, "theta_norm": norm}, 500)
        heights = np.sort(found @ theta, axis=1)
        assert (heights[:, -1] - heights[:, -2]).min() >= gap - 1e-5
        assert np.linalg.norm(found, axis=2).max() <= 1 + 1e-6
    plain, theta = draws(contextual.linear_contexts(distribution, **sizes), {}, 500)
    heights = np.sort(plain @ theta, axis=1)
    assert (heights[:, -1] - heights[:, -2]).min() < 0.3, "planted: no gap"


def test_lanes_have_models_of_their_own_and_rounds_contexts_of_their_own():
    environment = contextual.linear_contexts(num_arms=K, dim=D)
    params = environment.params(theta_norm=0.7)
    worlds = jax.vmap(lambda key: environment.init(key, params))(jax.random.split(KEY(), 50))
    np.testing.assert_allclose(np.linalg.norm(worlds.theta, axis=1), 0.7, atol=1e-5)
    assert abs(np.mean(worlds.theta)) < 5 * 0.7 / math.sqrt(150)
    found, _ = draws(environment, {}, 4)
    assert len(np.unique(found)) == found.size


# ---- rewards and regret ----------------------------------------------------------------------------------------------
def test_a_binary_reward_with_a_mean_at_an_end_is_that_end(monkeypatch):
    """Checks both extreme values of a uniform variate."""
    environment = contextual.linear_contexts([[1.0, 0.0], [-1.0, 0.0]], theta=[1.0, 0.0], rewards="binary")
    params = environment.params(theta_norm=1.0)
    world = environment.init(KEY(), params)
    drawn = jnp.asarray([0, 1 - jnp.finfo(default_float()).epsneg], default_float())
    monkeypatch.setattr(jax.random, "uniform", lambda key, **options: drawn[key])  # the variate's place for a key
    rewards = jax.jit(jax.vmap(jax.vmap(environment.feedback, (None, None, None, 0)), (0, None, None, None)))(
        jnp.arange(2), params, world, jnp.arange(2, dtype=jnp.int32)
    )[1]
    assert rewards.tolist() == [[1, -1], [1, -1]]


@pytest.mark.parametrize(
    ("link", "rewards", "values"),
    [
        (None, "uniform", {"noise": 0.5, "theta_norm": 1.0}),
        (None, "gaussian", {"noise": 0.3}),
        (None, "binary", {"theta_norm": 1.0}),
        ("logistic", "binary", {}),
        (probit, "uniform", {"noise": 1.0}),
    ],
)
def test_rewards(link, rewards, values):
    """Checks the mean and the spread of rewards, and regret against the best mean of the round."""
    sizes: Any = {"num_arms": K, "dim": D, "rewards": rewards}
    rounds = 4000
    if link is None:
        environment = contextual.linear_contexts(**sizes)
    else:
        environment = contextual.generalized_linear_contexts(**sizes, link=link)
    world, (shown, paid, outcome) = replies(environment, values, rounds, 1)
    margins = shown.astype(float) @ np.asarray(world.theta, float)
    if link is None:
        means = margins
    else:
        means = np.asarray(jaxdp.preferences.logistic.cdf(margins) if link == "logistic" else probit.cdf(margins))
    noise = paid - means[:, 1]
    low = 0 if link is not None else -1
    variance = {
        "uniform": values.get("noise", 0) ** 2 / 3,
        "gaussian": values.get("noise", 0) ** 2,
        "binary": np.mean((1 - means[:, 1]) * (means[:, 1] - low)),
    }[rewards]
    error = math.sqrt(variance / rounds)
    assert abs(noise.mean()) < 5 * error
    assert abs(np.mean(noise**2) - variance) < 10 * variance / math.sqrt(rounds)
    assert abs(np.mean(paid * margins[:, 1]) - np.mean(means[:, 1] * margins[:, 1])) < 5 * error
    assert abs(np.mean(paid - means[:, 0])) + abs(np.mean((paid - means[:, 0]) * margins[:, 0])) > 0.01
    if rewards == "binary":
        assert set(np.unique(paid)) == {low, 1}
    np.testing.assert_allclose(outcome["pseudo_regret"], means.max(1) - means[:, 1], atol=1e-5)
    np.testing.assert_array_equal(outcome["best_arm_plays"], means.argmax(1) == 1)


WORLDS = {
    "linear": lambda: contextual.linear_contexts(num_arms=K, dim=D),
    "binary": lambda: contextual.generalized_linear_contexts(num_arms=K, dim=D),
    "sequence": lambda: contextual.context_sequence(OWN, PAID),
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("action", [-1, K])
def test_an_arm_outside(name, action):
    _, (_, paid, outcome) = replies(WORLDS[name](), {}, 2, action)
    assert np.isnan(paid).all()
    assert np.isnan(outcome["pseudo_regret"]).all()
    assert not outcome["best_arm_plays"].any()


@pytest.mark.parametrize("name", WORLDS)
def test_blocks_are_rounds_but_for_rounding(name):
    environment: Any = WORLDS[name]()
    params = environment.params()
    world = environment.init(KEY(), params)
    world, *_ = environment.feedback(KEY(), params, world, jnp.int32(0))
    keys, actions = jax.random.split(KEY(), 4), jnp.asarray([0, 3, 1, 3], jnp.int32)

    def step(world, now):
        key, action = now
        shown = environment.context(key, params, world)
        after, reward, outcome = environment.feedback(key, params, world, action)
        return after, (after, reward, outcome, shown)

    single = jax.jit(lambda: jax.lax.scan(step, world, (keys, actions))[1])()
    contexts = environment.contexts(keys, params, world)
    many = (*jax.jit(environment.block)(keys, params, world, contexts, actions), contexts)
    single, many = (jax.tree.map(raw, each) for each in (single, many))
    for one, other in zip(jax.tree.leaves(single), jax.tree.leaves(many), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # rounding depends on the program


def raw(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def test_a_recommendation_is_evaluated_by_its_distance():
    environment = WORLDS["linear"]()
    params = environment.params()
    world = environment.init(KEY(), params)
    assert environment.evaluate is not None
    found = environment.evaluate(params, world, world.theta + jnp.asarray([0.3, 0.4, 0.0], default_float()))
    np.testing.assert_allclose(found["theta_error"], 0.5, atol=1e-6)


# ---- a user's own data -----------------------------------------------------------------------------------------------
def test_own_contexts_and_rewards():
    _, (shown, paid, outcome) = replies(WORLDS["sequence"](), {}, 7, 2)
    np.testing.assert_allclose(shown[:6], OWN, atol=1e-6)
    np.testing.assert_allclose(paid[:6], PAID[:, 2], atol=1e-6)
    np.testing.assert_allclose(outcome["pseudo_regret"][:6], PAID.max(1) - PAID[:, 2], atol=1e-6)
    assert np.isnan(shown[6]).all()
    assert np.isnan(paid[6])


@pytest.mark.parametrize("dtype", ["float16", "bool"])
def test_own_data_is_kept_as_it_is(dtype, tmp_path):
    given = np.zeros((5, 2, 3), dtype)
    given[:, :, 0] = 1
    np.save(tmp_path / "contexts.npy", given)
    mapped = np.load(tmp_path / "contexts.npy", mmap_mode="r")
    environment = contextual.context_sequence(mapped, np.ones((5, 2), bool))
    params = environment.params()
    assert params is environment.params(), "one object, which lanes share"
    assert params.contexts.dtype == ("uint8" if dtype == "bool" else dtype)
    assert np.shares_memory(params.contexts, mapped) or dtype == "bool"
    assert environment.context is not None
    shown = environment.context(KEY(), params, environment.init(KEY(), params))
    assert shown.dtype == default_float()
    np.testing.assert_array_equal(shown, given[0])
    run = jaxdp.simulator(at_random(2, 3), environment, 5)
    lanes = str(jax.make_jaxpr(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 7), run.params()))
    assert "[5,2,3]" in lanes
    assert "[7,5,2,3]" not in lanes, "a copy for each lane"


# ---- logged data -----------------------------------------------------------------------------------------------------
def at_random(num_arms, dim, plays=None):
    """Plays arms uniformly, counts the rounds that it learns from, and sums rewards."""

    def act(key, params, public, context):
        return jax.random.randint(key, (), 0, num_arms, jnp.int32) if plays is None else jnp.int32(plays)

    return Learner(
        params=lambda: np.zeros((), default_float()),
        guarantee=lambda: Guarantee.pure(1.0, trust_model="local", privacy_unit="a user", argument="a test"),
        init=lambda key, params: State((), (jnp.zeros((), jnp.int32), jnp.zeros((), default_float()))),
        act=act,
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=lambda key, params, state, report: State((), (state.public[0] + 1, state.public[1] + report)),
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim))),
    )


NO_LINK: Any = 3
LOGGED = [0, 1, 2, 3, 1, 1]


def test_replay_counts_what_matches():
    environment = contextual.logged_contexts(OWN, LOGGED, PAID[:, 0])
    learner = contextual.on_logged(at_random(K, D, plays=1))
    record = {"counts": lambda snapshot: snapshot.public[0], "sums": lambda snapshot: snapshot.public[1]}
    run = jaxdp.simulator(learner, environment, 6, checkpoints=[1, 2, 4, 6], record=record)
    found = run(KEY(), run.params())
    assert found["matched"].tolist() == [0, 1, 1, 3]
    np.testing.assert_allclose(
        found["reward"], np.cumsum(PAID[:, 0] * (np.array(LOGGED) == 1))[[0, 1, 3, 5]], rtol=1e-5
    )
    assert found["counts"].tolist() == [0, 1, 1, 3], "a round that does not match leaves the learner as it is"
    np.testing.assert_allclose(found["sums"], found["reward"], rtol=1e-6)
    assert not learner.guarantee().is_private
    assert "depends on the action" in learner.guarantee().argument


def test_replay_estimates_the_mean_reward_without_bias():
    """Logs uniform actions, so that the mean over matching rounds is the policy's mean: here it always plays arm 1."""
    rng = np.random.default_rng(7)
    rounds = 2000
    contexts = np.broadcast_to(OWN[0], (rounds, K, D))
    logged = rng.integers(K, size=rounds)
    paid = np.array([0.1, 0.7, 0.4, 0.2])[logged] > rng.random(rounds)
    environment = contextual.logged_contexts(contexts, logged, paid)
    run = jaxdp.simulator(contextual.on_logged(at_random(K, D, plays=1)), environment, rounds, checkpoints=1)
    found = run(KEY(), run.params())
    mean = float(found["reward"][-1]) / float(found["matched"][-1])
    error = math.sqrt(0.21 / float(found["matched"][-1]))
    assert abs(mean - 0.7) < 5 * error
    assert abs(mean - 0.35) > 5 * error, "planted: the mean over all logged rounds"


def test_an_arm_outside_matches_nothing():
    _, (_, reply, outcome) = replies(contextual.logged_contexts(OWN, LOGGED, PAID[:, 0]), {}, 6, K)
    assert not reply.matched.any()
    assert not outcome["matched"].any()
    assert np.isnan(outcome["reward"]).all()


def test_on_logged_takes_any_contextual_learner():
    learner = contextual.on_logged(contextual.linear_ucb(num_arms=K, dim=D, horizon=6))
    run = jaxdp.simulator(learner, contextual.logged_contexts(OWN, LOGGED, PAID[:, 0]), 6)
    found = jax.jit(run)(KEY(), run.params(epsilon=1.0, delta=1e-3))
    assert 0 <= int(found["matched"][-1]) <= 6
    assert repr(learner).startswith("on_logged(")
    with pytest.raises(ValueError, match="learner must declare an interface, got None"):
        contextual.on_logged(learner._replace(interface=None))
    with pytest.raises(ValueError, match="learner must be a Learner, got int"):
        contextual.on_logged(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="learner must not be for logged data already"):
        contextual.on_logged(learner)


# ---- errors ----------------------------------------------------------------------------------------------------------
def bad_entry(value, at=(4, 1, 2)):
    wrong = OWN.copy()
    wrong[at] = value
    return wrong


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: contextual.linear_contexts("circle", num_arms=2, dim=2), "contexts must be one of"),
        (lambda: contextual.linear_contexts(num_arms=2), "num_arms and dim must be given"),
        (lambda: contextual.linear_contexts(num_arms=1, dim=2), "num_arms must be"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=0), "dim must be"),
        (lambda: contextual.linear_contexts(OWN[0], dim=3), "num_arms and dim must be None"),
        (lambda: contextual.linear_contexts(OWN[0, :1]), "with at least two arms"),
        (lambda: contextual.linear_contexts(OWN), r"contexts must be \[num_arms, dim\]"),
        (lambda: contextual.linear_contexts(3 * OWN[0]), "norms of at most 1, got .* at index"),
        (lambda: contextual.linear_contexts([[np.nan], [0.0]]), "contexts must be finite"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=2, theta=[1.0]), r"theta must be \[2\]"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=2, theta=[1.0, 1.0]), "of norm at most 1"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=1, theta=[0.0]), "not zero"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=1, rewards="t"), "rewards must be one of"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=1, gap=0.0), "gap must be > 0"),
        (lambda: contextual.linear_contexts(num_arms=2, dim=1, gap=3.0), "gap must be at most 2 theta_norm"),
        (lambda: contextual.generalized_linear_contexts(num_arms=2, dim=1, link="cloglog"), "link must be one of"),
        (lambda: contextual.generalized_linear_contexts(num_arms=2, dim=1, link=NO_LINK), "link must be a Link"),
        (
            lambda: contextual.context_sequence(bad_entry(np.nan), PAID),
            r"contexts must be finite, got 1 of 72 that are not$",
        ),
        (lambda: contextual.context_sequence(bad_entry(1.1), PAID), "norms of at most 1, got longer contexts$"),
        (lambda: contextual.context_sequence(OWN[0], PAID), r"contexts must be \[horizon, num_arms, dim\]"),
        (lambda: contextual.context_sequence(OWN[:, :1], PAID), "at least two arms"),
        (lambda: contextual.context_sequence(OWN, PAID[:5]), r"rewards must be \[6, 4\], as contexts"),
        (lambda: contextual.context_sequence(OWN, np.where(PAID > 1, np.inf, PAID)), "rewards must be finite"),
        (lambda: contextual.context_sequence(OWN.astype(str), PAID), "contexts must be numbers"),
        (lambda: contextual.logged_contexts(OWN, LOGGED[:5], PAID[:, 0]), r"actions must be \[6\] integers"),
        (lambda: contextual.logged_contexts(OWN, [0.5] * 6, PAID[:, 0]), r"actions must be \[6\] integers"),
        (
            lambda: contextual.logged_contexts(OWN, [0, 1, 4, 0, 0, 0], PAID[:, 0]),
            r"actions must be in \[0, 4\), got 1 of 6 that are not$",
        ),
        (lambda: contextual.logged_contexts(OWN, LOGGED, PAID), r"rewards must be \[horizon\]"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"theta_norm": 1.5}, "theta_norm must be in"),
        ({"theta_norm": 0.0}, "theta_norm must be > 0"),
        ({"noise": -1.0}, "noise must be"),
        ({"noise": math.nan}, "noise must be finite"),
        ({"gap": 1.5}, "gap must be at most"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        contextual.linear_contexts(num_arms=2, dim=2, gap=0.1).params(**values)


def test_rounding_of_a_coarse_type_is_no_error():
    unit = OWN / np.linalg.norm(OWN, axis=2, keepdims=True)
    half = unit.astype(np.float16)
    assert np.linalg.norm(half.astype(float), axis=2).max() > 1 + 1e-5
    contextual.context_sequence(half, PAID)
    with pytest.raises(ValueError, match="norms of at most 1"):
        contextual.context_sequence(half.astype(np.float32), PAID)


def test_too_large_data_says_its_size():
    huge = np.broadcast_to(np.float16(0), (10**7, 1000, 100))
    with pytest.raises(ValueError, match=r"10000000 by 1000 by 100 float16 contexts, which take .* GiB"):
        contextual.context_sequence(huge, np.zeros((1, 1)))
