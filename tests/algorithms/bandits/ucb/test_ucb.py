"""Tests of `ucb` alone."""

import math

import pytest

from jaxdp.bandits import (
    ucb,
)


def test_proxies_are_the_randomizer_s():
    rr = ucb(num_arms=2, rewards="bounded").params(epsilon=1.0, reward_low=-1.0, reward_high=2.0, exploration_rate=2.0)
    assert float(rr.squared_radius) == pytest.approx(2 * 2 * 9 / 4 / math.tanh(0.5) ** 2, rel=1e-4)
    noisy = ucb(num_arms=2, report="gaussian").params(epsilon=1.0, delta=1e-3)
    assert float(noisy.squared_radius) == pytest.approx(8 * (0.25 + float(noisy.report.noise_stddev) ** 2), rel=1e-4)
    assert float(ucb(num_arms=2).params(epsilon=math.inf).squared_radius) == pytest.approx(2, rel=1e-4)  # UCB1
