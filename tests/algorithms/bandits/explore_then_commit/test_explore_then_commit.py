"""Explore-then-commit: its noise, its commitment, clipping, errors, and an independent NumPy version."""

import functools
import json
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit, gaussian_bandit
from jaxdp.bandits._bulk import total_per_arm, total_turns
from jaxdp.core import State
from jaxdp.numerics import compensated, fixed_point
from jaxdp.random import ties
from tests.algorithms.make_bandit_reference import COMMIT, EPSILONS, LANES, PATH, make

KEY = partial(jax.random.key, 21)
DRAWS = 20_000
REFERENCE = json.loads(PATH.read_text())


# ---- the release -----------------------------------------------------------------------------------------------------
def second_arm_share(learner, totals, **values):
    """Returns how often the second arm is committed to, from these totals and a last reward of 0 or low."""
    params = jax.tree.map(jnp.asarray, learner.params(**values))
    state = learner.init(KEY(), params)
    state = State(
        state.private._replace(totals=totals), state.public._replace(round=jnp.zeros_like(state.public.round) + 9)
    )
    reward = jnp.int32(0) if totals_are_integers(totals) else params.low
    commit = jax.vmap(lambda key: learner.update(key, params, state, (jnp.int32(1), reward)).public.best_arm)
    return float(jnp.mean(commit(jax.random.split(KEY(), DRAWS)) == 1, dtype=jnp.float32))


def totals_are_integers(totals):
    return isinstance(totals, jax.Array)


def in_ranges(whole, part=(0, 0)):
    return fixed_point.Sum(*(jnp.asarray(word, jnp.result_type(int)) for word in (whole, part)))


def check_release(learner, totals, scale, lead, **values):
    """Checks P(noise of the second arm exceeds the first's by more than the lead), both Laplace of this scale."""
    exact = math.exp(-lead / scale) * (0.5 + lead / (4 * scale))
    error = math.sqrt(exact * (1 - exact) / DRAWS)
    assert abs(second_arm_share(learner, totals, **values) - exact) < 5 * error


@pytest.mark.parametrize("rewards", ["binary", "bounded"])
def test_noise_of_the_release(rewards):
    learner = explore_then_commit(num_arms=2, explore_rounds=10, rewards=rewards)
    if rewards == "binary":
        totals, width, bounds = jnp.asarray([3, 0]), 1.0, {}
    else:
        totals, width, bounds = in_ranges([1, 0]), 3.0, {"reward_low": -1.0, "reward_high": 2.0}
    check_release(learner, totals, width / 0.5, 3.0, epsilon=0.5, **bounds)
    for wrong in (0.8, 1.25):
        with pytest.raises(AssertionError):
            check_release(learner, totals, width / 0.5, 3.0, epsilon=0.5 / wrong, **bounds)


@pytest.mark.parametrize("rewards", ["binary", "bounded"])
def test_without_noise_it_commits_to_the_largest_total(rewards):
    learner = explore_then_commit(num_arms=2, explore_rounds=10, rewards=rewards)
    for pair in ([3, 2], [2, 3]):
        totals = jnp.asarray(pair)
        if rewards == "bounded":
            totals = in_ranges(pair)
        assert second_arm_share(learner, totals, epsilon=math.inf) == float(np.argmax(pair))


ORDERS = [[0.6, 0.5], [0.5, 0.6]]


@functools.cache
def regrets(engine, planted):
    """Returns regret of runs [lanes] for each of ORDERS, by one program.

    Planted: the lower of two tied indices wins.
    """
    learner = explore_then_commit(num_arms=2, explore_rounds=20)
    run = jaxdp.simulator(learner, bernoulli_bandit(ORDERS[0]), 1000, engine=engine)
    go = jax.jit(jax.vmap(run, (0, None)))
    keys, params = jax.random.split(jax.random.key(6), 4000), run.params(epsilon=math.inf)
    with pytest.MonkeyPatch.context() as patch:
        if planted:
            patch.setattr(ties, "ranks", lambda word, size: jnp.zeros(size, jnp.int32))
        found = [go(keys, {**params, "environment": bernoulli_bandit(means).params()}) for means in ORDERS]
    return [np.asarray(each["pseudo_regret"][:, -1], float) for each in found]


@pytest.mark.parametrize("engine", ["rounds", "blocks", "counts"])
@pytest.mark.parametrize("means", ORDERS)
def test_of_equal_totals_it_commits_to_any(means, engine):
    """Plays ten pulls of each arm, then 980 rounds: the regret is 33.16 in either order, not 25.32 and 41.00."""
    chances = [scipy.stats.binom.pmf(np.arange(11), 10, mean) for mean in means]
    joint = np.outer(*chances)
    first = np.tril(joint, -1).sum()  # the first arm has more wins
    gaps = max(means) - np.asarray(means)

    def exact(share_of_ties):
        share = first + share_of_ties * np.trace(joint)
        return 10 * gaps.sum() + 980 * (share * gaps[0] + (1 - share) * gaps[1])

    assert exact(0.5) == pytest.approx(33.1625, abs=1e-4)

    right, wrong = (regrets(engine, planted)[ORDERS.index(means)] for planted in (False, True))
    error, wrong = right.std() / math.sqrt(len(right)), wrong.mean()
    assert abs(right.mean() - exact(0.5)) < 5 * error
    assert abs(wrong - exact(0.5)) > 5 * error
    assert abs(wrong - exact(1.0)) < 5 * error


def test_rewards_beyond_the_bounds_are_clipped():
    """Checks that rewards beyond the bounds count as high or low, so that one round changes at most high - low."""
    learner = explore_then_commit(num_arms=2, explore_rounds=10, rewards="bounded")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, reward_low=-1.0, reward_high=2.0))
    state = learner.init(KEY(), params)
    for reward, counted in ((1e6, 1.0), (-1e6, 0.0), (0.5, 0.5), (math.nan, 0.0), (math.inf, 1.0), (-math.inf, 0.0)):
        after = learner.update(KEY(), params, state, (jnp.int32(0), jnp.asarray(reward)))
        assert fixed_point.to_float(after.private.totals, jnp.float32).tolist() == [counted, 0.0]


def test_rewards_after_exploration_are_not_looked_at():
    learner = explore_then_commit(num_arms=2, explore_rounds=2)
    run = jaxdp.simulator(
        learner,
        bernoulli_bandit([0.5, 0.5]),
        50,
        checkpoints=[2, 50],
        record={"best": lambda snapshot: snapshot.public.best_arm},
    )
    best = np.asarray(jax.vmap(run, in_axes=(0, None))(jax.random.split(KEY(), 50), run.params(epsilon=1.0))["best"])
    assert (best[:, 0] == best[:, 1]).all()
    assert set(best[:, 0].tolist()) == {0, 1}


# ---- an independent version ------------------------------------------------------------------------------------------
@functools.cache
def sweep(factor=1.0):
    run = jaxdp.simulator(
        explore_then_commit(num_arms=3, explore_rounds=COMMIT["explore_rounds"]),
        bernoulli_bandit(COMMIT["means"]),
        COMMIT["horizon"],
    )
    epsilons = [factor * epsilon for epsilon in EPSILONS]
    results = jaxdp.sweep(lambda: run, axes={"epsilon": epsilons}, num_seeds=4000, key=KEY())
    return results.isel(round=-1).rename(best_arm_plays="best_plays")


def check_reference(results):
    for index, epsilon in enumerate(EPSILONS):
        for output, expected in REFERENCE["explore_then_commit"][str(epsilon)].items():
            values = results[output].isel(epsilon=index).values.astype(float)
            error = math.hypot(values.std() / math.sqrt(len(values)), expected["standard_error"])
            assert abs(values.mean() - expected["mean"]) < 5 * error, (epsilon, output)


def test_equals_the_independent_version():
    check_reference(sweep())
    with pytest.raises(AssertionError):
        check_reference(sweep(2.0))  # half the noise


def test_the_reference_can_be_made_again():
    assert json.loads(json.dumps(make())) == REFERENCE
    assert LANES == 20_000


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_arms": 1, "explore_rounds": 2}, "num_arms must be an integer >= 2, got 1"),
        ({"num_arms": 3, "explore_rounds": 4}, "explore_rounds must be a positive multiple of num_arms=3, got 4"),
        ({"num_arms": 3, "explore_rounds": 0}, "explore_rounds must be an integer >= 1, got 0"),
        ({"num_arms": 3, "explore_rounds": 3, "rewards": "real"}, "rewards must be one of binary, bounded, got 'real'"),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        explore_then_commit(**arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        (
            {"epsilon": 1.0, "reward_low": 1.0, "reward_high": 1.0},
            "reward_low must be < reward_high, as float(32|64), got 1.0 and 1.0",
        ),
        ({"epsilon": 1.0, "reward_low": math.nan}, "reward_low must be finite, got nan"),
        ({"epsilon": 1.0, "reward_high": math.inf}, "reward_high must be finite, got inf"),
    ],
)
def test_value_errors(values, message):
    learner = explore_then_commit(num_arms=2, explore_rounds=2, rewards="bounded")
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)


def test_binary_rewards_take_no_bounds():
    run = jaxdp.simulator(explore_then_commit(num_arms=2, explore_rounds=2), bernoulli_bandit([0.1, 0.2]), 4)
    with pytest.raises(ValueError, match="values must be among best_mean, epsilon, gap, got reward_low"):
        run.params(epsilon=1.0, reward_low=0.0)
    with pytest.raises(ValueError, match="feedback must be the same"):
        jaxdp.simulator(explore_then_commit(num_arms=2, explore_rounds=2), gaussian_bandit([0.1, 0.2]), 4)


# ---- what float32 could lose -----------------------------------------------------------------------------------------
def committed(rewards, totals, values, num_keys=20_000):
    """Returns how often each arm is committed to, from these totals, if exploration ends with one reward of arm 1."""
    learner = explore_then_commit(num_arms=2, explore_rounds=2**30, rewards=rewards)
    params = jax.tree.map(jnp.asarray, learner.params(**values))
    start = learner.init(jax.random.key(0), params)
    binary = rewards == "binary"
    dtype = jax.tree.leaves(start.private.totals)[0].dtype
    held = jnp.asarray(totals, dtype) if binary else in_ranges(*totals)
    state = start._replace(
        private=start.private._replace(totals=held),
        public=start.public._replace(round=jnp.asarray(2**30 - 1, start.public.round.dtype)),
    )

    @jax.jit
    def last(keys, state, reward):
        return jax.vmap(lambda key: learner.update(key, params, state, (jnp.int32(1), reward)).public.best_arm)(keys)

    def share(reward):
        keys = jax.random.split(jax.random.key(1), num_keys)
        dtype = jnp.int32 if binary else jnp.result_type(float)
        return float(last(keys, state, jnp.asarray(reward, dtype)).mean())

    return share


def test_one_reward_on_top_of_large_totals():
    """Starts beyond 2^24, where a float32 total moves by 2, 4, ... or not at all."""
    share = committed("binary", [2**28, 2**28 + 16], {"epsilon": 0.1})
    without, with_it = share(0), share(1)
    expected = [1 - (0.5 + 0.25 * d * 0.1) * math.exp(-d * 0.1) for d in (16, 17)]
    for found, value in zip((without, with_it), expected, strict=True):
        assert abs(found - value) < 5 * math.sqrt(value * (1 - value) / 20_000)
    assert committed("binary", [2**28, 2**28], {"epsilon": math.inf})(1) == 1.0
    assert committed("binary", [2**28 + 1, 2**28], {"epsilon": math.inf})(0) == 0.0


def test_a_unit_of_bounded_totals_counts():
    large, values = [2**29] * 2, {"epsilon": math.inf, "reward_low": 0.0, "reward_high": 8.0}
    for part, best in (((0, 1), 1.0), ((1, 0), 0.0)):
        assert committed("bounded", (large, part), values, num_keys=1)(0.0) == best


EXPLORE_ROUNDS, WIDTH = 2**31 - 2, 4096  # rewards fed; by rounds or by blocks


def driven_apart(add, start, rewards):
    """Returns two float sums, one larger by 1, after the rewards that drive them furthest apart."""

    def step(pair, some):
        after = jax.vmap(lambda reward: jax.tree.map(lambda *two: jnp.stack(two), *(add(s, reward) for s in pair)))(
            some
        )
        apart = after.total[:, 0] - after.total[:, 1]
        worst = jnp.argmax(apart)
        pair = tuple(jax.tree.map(lambda leaf, i=i: leaf[worst, i], after) for i in range(2))
        return pair, some[worst]

    first = tuple(add(start, jnp.asarray(reward, start.total.dtype)) for reward in (1.0, 0.0))
    return jax.jit(lambda: jax.lax.scan(step, first, rewards))()


@functools.cache
def adversarial(whole):
    """Returns rewards that drive compensated float32 sums of these whole ranges apart, and their difference."""
    start = compensated.Sum(jnp.float32(whole), jnp.float32(0))
    some = jax.random.uniform(jax.random.key(3), (WIDTH, 16), jnp.float32, 0.5, 1.0)
    (larger, smaller), rewards = driven_apart(compensated.add, start, some)
    return np.asarray(rewards), float(larger.total) - float(smaller.total)


@pytest.mark.parametrize("engine", ["rounds", "blocks"])
@pytest.mark.parametrize(("whole", "part"), [(2**24, 0), (2**26, 2**20 - 1), (2**30 - 1 - WIDTH, 2**20 - 1)])
def test_neighbours_differ_by_the_replaced_reward(whole, part, engine):
    """Checks, at a carry and before one, that totals differ by exactly the units of the replaced reward."""
    rewards, apart = adversarial(whole)
    assert abs(apart - 1) >= 1  # planted: compensated sums of floats are off by more than a reward
    learner = explore_then_commit(num_arms=2, explore_rounds=EXPLORE_ROUNDS, rewards="bounded")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, reward_low=-1.0, reward_high=2.0))
    start = learner.init(KEY(), params)
    state = start._replace(private=start.private._replace(totals=in_ranges([whole] * 2, [part] * 2)))
    dtype = jnp.result_type(float)
    paid = jnp.repeat(jnp.asarray(rewards, dtype) * 3 - 1, 2)  # both arms in turn

    def by_rounds(state, paid):
        def step(state, reward):
            action = learner.act(KEY(), params, state.public, None)
            return learner.update(KEY(), params, state, (action, reward)), None

        return jax.lax.scan(step, state, paid)[0]

    def by_blocks(state, paid):
        (form,) = learner.blocks
        keys = jax.random.split(KEY(), form.length)

        def step(state, rewards):
            plan = form.plan(keys, params, state.public, None, jnp.asarray(form.length, state.public.round.dtype))
            return form.update_block(keys, params, state, plan, (plan.actions, rewards))[0], None

        return jax.lax.scan(step, state, paid.reshape(-1, form.length))[0]

    go = jax.jit(by_rounds if engine == "rounds" else by_blocks)
    words = [go(state, paid.at[0].set(first)).private.totals for first in (2.0, -1.0, 0.1)]
    units = [[int(w) * 2**20 + int(p) for w, p in zip(*total, strict=True)] for total in words]
    true = [whole * 2**20 + part + sum(round(min(float(r) * 2**20, 2**20)) for r in rewards)] * 2
    assert [a - b for a, b in zip(*units[:2], strict=True)] == [2**20, 0]
    assert [a - b for a, b in zip(*units[::2], strict=True)] == [2**20 - round(1.1 / 3 * 2**20), 0]
    assert abs(units[0][1] - true[1]) <= WIDTH  # a reward is off by a unit at most, as it is moved to [-1, 2]


@pytest.mark.parametrize("engine", ["rounds", "blocks", "counts"])
def test_binary_rewards_are_clipped(engine):
    bandit: Any = bernoulli_bandit([0.5, 0.5])

    def feedback(key, params, world, action):
        return world, 1000 * action, {}

    def block(keys, params, world, contexts, actions):
        return world, 1000 * actions, {}

    def feedback_totals(key, params, world, counts):
        return world, 1000 * counts * jnp.arange(2, dtype=counts.dtype), {}

    wild = bandit._replace(
        feedback=feedback, block=block, feedback_totals=feedback_totals, interface=None
    )  # pays arm 1 far too much
    learner = explore_then_commit(num_arms=2, explore_rounds=2)
    run = jaxdp.simulator(learner, wild, 2, engine=engine, record={"arm": lambda snapshot: snapshot.public.best_arm})
    keys = jax.random.split(jax.random.key(0), 4000)
    found = float(jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=0.1))["arm"].mean())
    expected = 1 - (0.5 + 0.25 * 0.1) * math.exp(-0.1)
    assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / 4000)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 1e-40}, "epsilon must be >= 2.91e-11, as larger noise would overflow integers, got 1e-40"),
        ({"epsilon": 1.0, "reward_low": 1e8, "reward_high": 1e8 + 4}, "reward_low must be < reward_high, as float32"),
        (
            {"epsilon": 1.0, "reward_low": -3e38, "reward_high": 3e38},
            "reward_high - reward_low must be within the range of float32",
        ),
        ({"epsilon": 1.0, "reward_low": [0.0, 1.0]}, r"reward_low must be a number, got \[0.0, 1.0\]"),
        ({"epsilon": None}, "epsilon must be a number, got None"),
    ],
)
def test_values_that_float32_cannot_hold(values, message):
    if jax.config.read("jax_enable_x64"):
        pytest.skip("float64 holds them")
    with pytest.raises(ValueError, match=message):
        explore_then_commit(num_arms=2, explore_rounds=2, rewards="bounded").params(**values)


def test_a_range_whose_units_floats_cannot_hold():
    if jax.config.read("jax_enable_x64"):
        pytest.skip("float64 holds them")
    learner = explore_then_commit(num_arms=2, explore_rounds=2, rewards="bounded")
    with pytest.raises(
        ValueError, match=r"reward_high - reward_low must be > 2\^20 divided by the largest float32, got 1.5"
    ):
        learner.params(epsilon=1.0, reward_high=1.5e-38)
    params = learner.params(epsilon=0.1, reward_high=1e-32)
    state = learner.init(KEY(), params)
    after = learner.update(KEY(), params, state, (jnp.int32(0), jnp.asarray(0.25e-32)))
    assert fixed_point.to_float(after.private.totals, jnp.float32).tolist() == [0.25, 0.0]


def test_counts_may_be_whole_floats():
    learner = explore_then_commit(num_arms=2.0, explore_rounds=4.0)  # pyright: ignore[reportArgumentType]
    run = jaxdp.simulator(learner, bernoulli_bandit([0.1, 0.9]), 8)
    assert jax.jit(run)(jax.random.key(0), run.params(epsilon=math.inf))["best_arm_plays"] >= 2


@pytest.mark.parametrize("rounds", [12, 6, 3])
@pytest.mark.parametrize("played", [0, 2, 7])
def test_rewards_of_arms_in_turn_are_added_by_turns(played, rounds):
    rewards = jnp.arange(rounds, dtype=jnp.int32) ** 2
    by_arm = total_per_arm((played + jnp.arange(rounds)) % 4, rewards, 4)
    assert total_turns(rewards, jnp.asarray(played), 4).tolist() == by_arm.tolist()
