"""Nets, which are finite subsets of balls and boxes with a point close to every point of the ball or box.

An algorithm for finitely many arms can play on a ball if its arms are the points of a net. For utilities w^T x with |w|
<= 1, the utility of the best point of a net of radius r is at most r below the utility of the best point of the ball,
so the net increases the regret by at most r per round.
"""

import math

import numpy as np

from jaxdp.validation import INT64_MAX, check_count, check_finite, check_positive

MOST = 1_000_000  # default maximum number of points


def ball_net(dim: int, radius: float, *, most: int = MOST) -> np.ndarray:
    """Returns points of the unit ball such that every point of the ball is within `radius` of one of the points.

    The net is built from a cubic lattice with spacing 2 radius / sqrt(dim). Each lattice point is the centre of a cell.
    The net consists of the centres of the cells that intersect the ball. Centres outside the ball are moved to the
    sphere, which brings them closer to every point of the ball.

    Args:
        dim: dimension of the ball, >= 1.
        radius: radius of the net, > 0. If it is >= 1, the net has only the ball's centre. For utilities w^T x with |w|
            <= 1, the regret of an algorithm against the ball's best point exceeds its regret against the net's best
            point by at most `radius` per round.
        most: maximum number of points.

    Returns:
        [num_points, dim] float64, including the ball's centre. The number of points grows as (1 / radius)^dim.

    Raises:
        ValueError: if dim or most is not an integer >= 1, radius is not finite and > 0, or the net has more than `most`
            points.

    Source:
        Textbook.

    Deviations:
        None.

    Examples:
        >>> ball_net(1, 0.25).ravel().tolist()
        [-1.0, -0.5, 0.0, 0.5, 1.0]
        >>> len(ball_net(2, 0.25)), len(ball_net(3, 0.25))
        (37, 275)
        >>> ball_net(10, 0.25)
        Traceback (most recent call last):
        ...
        ValueError: a net of radius 0.25 must have at most 1000000 points, got at least 261136798 in 10 dimensions
    """
    dim, radius, most = (
        check_count("dim", dim),
        check_positive("radius", radius),
        check_count("most", most, maximum=INT64_MAX),
    )
    if radius >= 1:
        return np.zeros((1, dim))
    # Cell k intersects the ball if its point nearest to the ball's centre has norm <= 1. The magnitudes of this point's
    # entries are max(|k_i| - 1 / 2, 0) spacing. In integers, the condition is sum_i max(2 |k_i| - 1, 0)^2 <= limit.
    spacing = 2 * radius / math.sqrt(dim)
    _check_size(_volume_bound(dim, radius), dim, radius, most, "at least ")
    limit = math.floor(dim / radius**2 + 1e-9)
    _check_size(_lattice_points(dim, limit), dim, radius, most)
    lattice = np.zeros((1, 0), int)
    largest = (1 + math.isqrt(limit)) // 2
    entries = np.arange(-largest, largest + 1)
    for _ in range(dim):
        columns = np.repeat(lattice, len(entries), axis=0), np.tile(entries, len(lattice))[:, None]
        longer = np.concatenate(columns, axis=1)
        lattice = longer[(np.maximum(2 * np.abs(longer) - 1, 0) ** 2).sum(axis=1) <= limit]
    points = lattice * spacing
    lengths = np.linalg.norm(points, axis=1)
    outside = lengths > 1
    # No two centres outside have the same direction: the cell of the farther one would not intersect the ball.
    return np.concatenate([points[~outside], points[outside] / lengths[outside][:, None]])


def box_net(low: object, high: object, radius: float, *, most: int = MOST) -> np.ndarray:
    """Returns points of a box such that every point of the box is within `radius` of one of the points.

    The points are the centres of equal cells with sides of at most 2 radius / sqrt(m), where m is the number of sides
    of the box that are > 0.

    Args:
        low: [dim] numbers, the lower bounds of the coordinates.
        high: [dim] numbers >= low, the upper bounds of the coordinates.
        radius: radius of the net, > 0. For utilities w^T x with |w| <= 1, the regret of an algorithm against the box's
            best point exceeds its regret against the net's best point by at most `radius` per round.
        most: maximum number of points.

    Returns:
        [num_points, dim] float64.

    Raises:
        ValueError: if low and high are not finite numbers of the same shape [dim] with low <= high, radius is not
            finite and > 0, most is not an integer >= 1, or the net has more than `most` points.

    Source:
        Textbook.

    Deviations:
        None.

    Examples:
        >>> box_net([0.0, 2.0], [1.0, 2.0], 0.25).tolist()
        [[0.25, 2.0], [0.75, 2.0]]
    """
    bottom, top = check_finite("low", low).astype(float), check_finite("high", high).astype(float)
    radius, most = check_positive("radius", radius), check_count("most", most, maximum=INT64_MAX)
    if bottom.shape != top.shape or bottom.ndim != 1 or not bottom.size or not (bottom <= top).all():
        raise ValueError(f"low and high must be [dim] with low <= high, got {low!r} and {high!r}")
    with np.errstate(over="ignore", invalid="ignore"):  # of sides or numbers of cells beyond the largest float
        sides = top - bottom
        dim = max(1, int((sides > 0).sum()))
        cells_per_side = np.maximum(1, np.ceil(sides * math.sqrt(dim) / (2 * radius) - 1e-9))
    _check_size(float(cells_per_side.prod()), len(sides), radius, most)
    cells = cells_per_side.astype(int)
    repeats = np.cumprod(cells[::-1])[::-1] // cells  # numpy.meshgrid takes at most 64 axes
    index = np.arange(cells.prod())[:, None] // repeats % cells
    return bottom + sides * (index + 0.5) / cells


def _check_size(size: float, dim: int, radius: float, most: int, prefix: str = "") -> None:
    if not size <= most:
        count = f"{size:.0f}" if size < 1e15 else f"{size:.1e}"
        raise ValueError(
            f"a net of radius {radius:g} must have at most {most} points, got {prefix}{count} in {dim} dimensions"
        )


def _volume_bound(dim: int, radius: float) -> float:
    """Returns the ball's volume divided by a cell's, a lower bound on the number of cells that intersect the ball."""
    log_volume = dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)
    log_spacing = math.log(2 * radius) - math.log(dim) / 2
    return math.exp(min(700.0, log_volume - dim * log_spacing))


def _lattice_points(dim: int, limit: int) -> float:
    """Counts the k in Z^dim with sum_i max(2 |k_i| - 1, 0)^2 <= limit."""
    squares = [odd * odd for odd in range(1, math.isqrt(limit) + 1, 2)]
    if dim == 1:
        return 1 + 2 * len(squares)
    ways = np.zeros(limit + 1)  # ways[s] is the number of vectors with sum s
    ways[0] = 1
    for _ in range(dim):
        longer = ways.copy()
        for square in squares:
            longer[square:] += 2 * ways[: limit + 1 - square]
        ways = longer
    return float(ways.sum())
