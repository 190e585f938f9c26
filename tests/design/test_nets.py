"""Nets: every point of the ball or box is close to one of theirs."""

import numpy as np
import pytest

from jaxdp.design import ball_net, box_net


def farthest(points: np.ndarray, net: np.ndarray) -> float:
    """Returns the largest distance from a point to the net."""
    nearest = [
        np.sqrt(((part[:, None] - net[None]) ** 2).sum(axis=2)).min(axis=1) for part in np.array_split(points, 40)
    ]
    return float(np.concatenate(nearest).max())


def in_ball(dim: int) -> np.ndarray:
    """Draws points; a third of them are on the sphere."""
    random = np.random.default_rng(dim)
    points = random.normal(size=(3000, dim))
    points /= np.linalg.norm(points, axis=1)[:, None]
    points[1000:] *= random.random((2000, 1)) ** (1 / dim)
    return points


@pytest.mark.parametrize(("dim", "radius"), [(1, 0.1), (1, 0.3), (2, 0.1), (2, 0.7), (3, 0.25), (4, 0.5), (3, 1.0)])
def test_ball(dim, radius):
    net, points = ball_net(dim, radius), in_ball(dim)
    assert np.linalg.norm(net, axis=1).max() <= 1 + 1e-12
    assert len(np.unique(net.round(9), axis=0)) == len(net)
    assert farthest(points, net) <= radius + 1e-9
    assert farthest(points, net[np.linalg.norm(net, axis=1) < 1 - radius]) > radius if radius < 0.7 else True


@pytest.mark.parametrize(
    ("low", "high"), [([-1.0], [2.0]), ([0.0, 0.0], [1.0, 0.3]), ([0.0, 5.0, -1.0], [1.0, 5.0, 1.0])]
)
def test_box(low, high):
    net = box_net(low, high, 0.2)
    points = np.random.default_rng(0).uniform(low, high, size=(2000, len(low)))
    corners = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, len(low))
    assert np.all((net >= low) & (net <= high))
    assert farthest(np.concatenate([points, corners]), net) <= 0.2 + 1e-9
    assert farthest(corners, net[1:]) > 0.2


def test_a_box_may_have_many_dimensions():
    low, high = np.zeros(70), (np.arange(70) % 35 == 0).astype(float)
    np.testing.assert_array_equal(
        box_net(low, high, 0.36)[:, [0, 35]], [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]]
    )


def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="must have at most 36 points, got 37 in 2 dimensions"):
        ball_net(2, 0.25, most=36)
    assert len(ball_net(2, 0.25, most=37)) == 37
    with pytest.raises(ValueError, match=r"at most 1000000 points, got at least \d\.\de\+\d+ in 300 dimensions"):
        ball_net(300, 0.01)
    with pytest.raises(ValueError, match="at most 1000000 points, got 2000000 in 1 dimensions"):
        box_net([0.0], [1.0], 0.25e-6)
    with pytest.raises(ValueError, match="at most 1000000 points"):
        ball_net(1, 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ball_net(0, 0.5), "dim must be an integer >= 1, got 0"),
        (lambda: ball_net(2, 0.0), "radius must be > 0, got 0.0"),
        (lambda: ball_net(2, float("nan")), "radius must be > 0, got nan"),
        (lambda: box_net([0.0], [1.0, 2.0], 0.5), r"low and high must be \[dim\] with low <= high"),
        (lambda: box_net([2.0], [1.0], 0.5), r"low and high must be \[dim\] with low <= high"),
        (lambda: box_net([np.nan], [1.0], 0.5), "low must be finite"),
        (lambda: box_net([0.0], [1e308], 1e-10), "at most 1000000 points, got inf in 1 dimensions"),
        (lambda: box_net([-1e308], [1e308], 1.0), "at most 1000000 points, got inf in 1 dimensions"),
        (lambda: ball_net(100, 5e-324), "at most 1000000 points"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
