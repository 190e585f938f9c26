"""Intervals of replay cover a learner's true mean reward, though the logging policy saw what drives rewards."""

import functools
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.bandits import contextual
from jaxdp.bandits._replay import LoggedParams
from jaxdp.bandits.contextual._context_sequence import SequenceParams
from jaxdp.stats import replay_interval

HORIZON, NUM_SEEDS, AT_A_TIME = 60_000, 8, 20
PROPENSITIES = np.array([[0.7, 0.3], [0.2, 0.8]])  # P(arm | trait) of the logging policy
LEARNER = contextual.linear_ucb(num_arms=2, dim=2, horizon=HORIZON, report="l2_ball")
VALUES = {"epsilon": 4.0}


def draw_world(seed, rounds):
    """Draws a trait that no learner sees, contexts, and the rewards of both arms, which depend on both."""
    rng = np.random.default_rng(seed)
    traits = rng.integers(2, size=rounds)
    contexts = 0.6 * np.eye(2) + rng.uniform(-0.2, 0.2, (rounds, 2, 2))
    means = 0.1 + 0.5 * traits[:, None] + 0.4 * contexts[..., 1]
    return traits, contexts.astype(np.float32), (rng.random((rounds, 1)) < means).astype(np.float32)


def draw_log(seed, has_coin):
    traits, contexts, rewards = draw_world(seed, HORIZON)
    rounds, propensities = np.arange(HORIZON), PROPENSITIES[traits]
    actions = (np.random.default_rng([seed, 1]).random(HORIZON) < propensities[:, 1]).astype(np.uint8)
    coins = PROPENSITIES.min() / propensities[rounds, actions] if has_coin else np.ones(HORIZON)
    logged_rewards, coins = rewards[rounds, actions], coins.astype(np.float32)
    return LoggedParams(contexts=contexts, actions=actions, rewards=logged_rewards, coins=coins)


def draw_sequence(seed, rounds):
    _, contexts, rewards = draw_world(seed, rounds)
    return SequenceParams(contexts=contexts, rewards=rewards)


def stack(worlds) -> Any:
    worlds = list(worlds)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *worlds)


@functools.cache
def replay_all():
    """Returns a function of keys [logs, seeds] and stacked logs, compiled once."""
    traits, contexts, rewards = draw_world(0, HORIZON)
    actions = draw_log(0, True).actions
    environment = contextual.logged_contexts(
        contexts, actions, rewards[np.arange(HORIZON), actions], propensities=PROPENSITIES[traits]
    )
    run = jaxdp.simulator(contextual.on_logged(LEARNER), environment, HORIZON)
    params = run.params(**VALUES)

    def one(key, log):
        return run(key, {**params, "environment": log})

    return jax.jit(jax.vmap(jax.vmap(one, (0, None))))


def intervals(redraws, has_coin):
    parts = []
    for start in range(0, redraws, AT_A_TIME):
        logs = stack(draw_log(1000 + index, has_coin) for index in range(start, start + AT_A_TIME))
        keys = jax.random.split(jax.random.key(start), (AT_A_TIME, NUM_SEEDS))
        parts.append(jax.device_get(replay_all()(keys, logs)))
    totals = {name: np.concatenate([part[name][..., -1] for part in parts]) for name in parts[0]}
    results = xr.Dataset({name: (("log", "seed"), values) for name, values in totals.items()})
    return replay_interval(results), int(results.matched.mean())


@functools.cache
def true_mean(rounds, lanes=320):
    """Returns the mean reward of the learner in as many rounds of its own, in new worlds."""
    environment = contextual.context_sequence(*draw_world(0, rounds)[1:])
    run = jaxdp.simulator(LEARNER._replace(horizon=None), environment, rounds, engine="rounds")
    params = run.params(**VALUES)
    play = jax.jit(jax.vmap(lambda key, world: run(key, {**params, "environment": world})["reward"][-1] / rounds))
    rewards = []
    for start in range(0, lanes, 32):
        worlds = stack(draw_sequence(10**6 + index, rounds) for index in range(start, start + 32))
        rewards.extend(np.asarray(play(jax.random.split(jax.random.key(start), 32), worlds), float))
    return float(np.mean(rewards))


@pytest.mark.optimised
def test_intervals_cover_the_true_mean_reward_and_without_the_coin_they_do_not():
    interval, rounds = intervals(200, has_coin=True)
    truth = true_mean(rounds)
    covers = (interval.low < truth) & (truth < interval.high)
    assert 0.92 <= float(covers.mean()) <= 0.98
    planted, _ = intervals(AT_A_TIME, has_coin=False)
    assert float(((planted.low < truth) & (truth < planted.high)).mean()) < 0.5
