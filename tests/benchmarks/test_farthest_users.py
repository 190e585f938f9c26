"""Papers reproduced: the farthest users of the releases of LDP-Bandits."""

import math

import numpy as np
import pytest

from benchmarks.papers.ldp_bandits_measures import farthest_users


def releases(users, link, noise_of_gradients):
    """Computes Algorithm 3's releases of users, over their noise's standard deviation in units of σ."""
    x, noise, (online, theta) = users
    model = link(x @ online)
    rewards = link(x @ theta) + noise
    gradients = (model - rewards)[:, None] * x
    upper = np.einsum("ni,nj->nij", x, x)[:, *np.triu_indices(x.shape[1])]
    return np.concatenate([upper, (x @ online)[:, None] * x, gradients / noise_of_gradients], axis=1)


@pytest.mark.parametrize("top", [0.4, 1.0])
def test_no_drawn_users_are_farther_apart_than_the_optimum_and_a_steep_link_comes_near(top):
    def link(margin):
        return top * np.tanh(200 * margin)

    def spread(users):
        out = releases(users, link, top)
        return np.sqrt(((out[:, None] - out[None]) ** 2).sum(-1)).max()

    rng = np.random.default_rng(0)
    optimum = farthest_users(1.0, (2 * top + 1) / top)
    assert optimum == pytest.approx(2 * (2 * top + 1) / top, rel=1e-6)
    for _ in range(30):
        x, (online, theta) = (rng.normal(size=(count, 3)) for count in (200, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        models = (each / np.linalg.norm(each) for each in (online, theta))
        assert spread((x, rng.choice([-1.0, 1.0], 200), tuple(models))) < optimum
    near = np.array([[1.0, 0.05, 0.0], [-1.0, 0.05, 0.0]]) / math.hypot(1, 0.05)
    up = np.array([0.0, 1.0, 0.0])
    assert spread((near, np.array([-1.0, -1.0]), (up, -up))) > 0.99 * optimum


def test_drawn_pairs_come_near_the_optimum_and_never_above():
    """Compares by brute force with drawn pairs from the optimum's domain."""
    rng = np.random.default_rng(1)
    angles = rng.uniform(-math.pi, math.pi, size=(3, 200_000))
    x, other, theta = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    numbers = rng.choice([-1.0, 1.0], size=(2, len(x), 1))
    matrix = x[:, :, None] * x[:, None] - other[:, :, None] * other[:, None]
    upper = (matrix[:, *np.triu_indices(2)] ** 2).sum(1)
    model = (np.einsum("nij,nj->ni", matrix, theta) ** 2).sum(1)
    vector = ((numbers[0] * x - numbers[1] * other) ** 2).sum(1)
    for weights in ((0.0, 2.0), (1.0, 1.0), (1.0, 4.0), (0.0, 0.5)):
        found = np.sqrt((upper + weights[0] ** 2 * model + weights[1] ** 2 * vector).max())
        assert 0.99 * farthest_users(*weights) < found < farthest_users(*weights) + 1e-6
    assert farthest_users(0.0, 1.0) ** 2 == pytest.approx(4.5)  # x x^T and y x, |y| <= 1
