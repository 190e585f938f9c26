"""Plackett-Luce samplers against enumeration, and K-wise data."""

import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.preferences import gaussian_choices, sample_choices, sample_rankings

UTILITIES = np.array([0.3, -1.0, 1.2, 0.0])
NUM_DRAWS = 40_000


def ranking_distribution(utilities):
    """Returns every permutation's probability, place by place."""
    distribution = {}
    for ranking in itertools.permutations(range(len(utilities))):
        weights = np.exp(np.asarray(utilities))[list(ranking)]
        distribution[ranking] = math.prod(weights[place] / weights[place:].sum() for place in range(len(weights)))
    return distribution


def draws(sampler, utilities):
    batch = jnp.broadcast_to(jnp.asarray(utilities, float), (NUM_DRAWS, len(utilities)))
    return np.asarray(jax.jit(sampler)(jax.random.key(3), batch))


def check_frequencies(outcomes, distribution):
    """Checks every frequency within 5 standard errors."""
    for outcome, probability in distribution.items():
        frequency = np.mean(np.all(outcomes == np.asarray(outcome), axis=-1))
        assert abs(frequency - probability) <= 5 * math.sqrt(probability * (1 - probability) / NUM_DRAWS), outcome


def test_choices():
    distribution = {(k,): p for k, p in enumerate(np.exp(UTILITIES) / np.exp(UTILITIES).sum())}
    check_frequencies(draws(sample_choices, UTILITIES)[:, None], distribution)
    with pytest.raises(AssertionError):  # planted: utilities 5% too large
        check_frequencies(draws(sample_choices, 1.05 * UTILITIES)[:, None], distribution)


def test_rankings():
    distribution = ranking_distribution(UTILITIES)
    assert sum(distribution.values()) == pytest.approx(1)
    check_frequencies(draws(sample_rankings, UTILITIES), distribution)
    with pytest.raises(AssertionError):  # planted: worst first
        check_frequencies(draws(sample_rankings, UTILITIES)[:, ::-1], distribution)


def test_a_choice_is_the_first_of_a_ranking():
    utilities = jax.random.normal(jax.random.key(0), (5, 7, 4))
    rankings = sample_rankings(jax.random.key(1), utilities)
    np.testing.assert_array_equal(sample_choices(jax.random.key(1), utilities), rankings[..., 0])
    np.testing.assert_array_equal(np.sort(rankings, axis=-1), np.broadcast_to(np.arange(4), (5, 7, 4)))
    assert rankings.dtype == np.int32


def test_minus_infinity_is_last():
    rankings = draws(sample_rankings, [0.0, -np.inf, 5.0])
    assert np.all(rankings[:, 2] == 1)


@pytest.mark.parametrize("rankings", [False, True])
def test_data(rankings):
    bounds = {"feature_norm": 0.7, "parameter_norm": 0.4, "zero_sum": True}
    data = gaussian_choices(jax.random.key(0), num_samples=30, num_actions=4, dim=3, rankings=rankings, **bounds)
    assert data.features.shape == (30, 4, 3)
    assert data.labels.shape == ((30, 4) if rankings else (30,))
    assert data.labels.dtype == np.int32
    assert np.linalg.norm(data.features, axis=-1).max() <= 0.7 * (1 + 1e-6)
    assert np.linalg.norm(data.parameter) <= 0.4 * (1 + 1e-6)
    assert abs(float(data.parameter.sum())) < 1e-6
    assert float(data.feature_norm) == pytest.approx(0.7)
    free = gaussian_choices(jax.random.key(0), num_samples=30, num_actions=4, dim=3)
    assert np.linalg.norm(free.features, axis=-1).max() == pytest.approx(float(free.feature_norm), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_samples", 0), ("num_actions", 1), ("dim", 0), ("feature_norm", -1.0), ("parameter_norm", math.nan)],
)
def test_a_wrong_value(name, value):
    values = {"num_samples": 3, "num_actions": 3, "dim": 2, name: value}
    with pytest.raises(ValueError, match=rf"{name}.*{re.escape(str(value))}"):
        gaussian_choices(jax.random.key(0), **values)
