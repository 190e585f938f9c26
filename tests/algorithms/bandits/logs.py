"""Logs of a policy that saw a trait which drives rewards, for tests of replay and of fixed policies."""

from typing import NamedTuple

import numpy as np

# P(arm | trait) of the logging policy, [trait, arm]
PROPENSITIES = np.array([[0.28, 0.72], [0.532, 0.468]])


class Log(NamedTuple):
    """A log.

    Attributes:
        traits: [horizon] in {0, 1}, fair coins that learners do not see.
        actions: [horizon] in {0, 1}.
        rewards: [horizon] in {0, 1}.
        propensities: [horizon, 2].
    """

    traits: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray


def draw_log(seed: int, horizon: int, means: np.ndarray) -> Log:
    """Draws a log.

    Args:
        seed: of the log.
        horizon: number of rounds.
        means: [trait, arm] in [0, 1], of rewards.
    """
    rng = np.random.default_rng(seed)
    traits = rng.integers(2, size=horizon)
    propensities = PROPENSITIES[traits]
    actions = (rng.random(horizon) < propensities[:, 1]).astype(int)
    rewards = (rng.random(horizon) < means[traits, actions]).astype(np.int32)
    return Log(traits, actions, rewards, propensities)
