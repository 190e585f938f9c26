"""What recorded releases cost together, for each of many neighbours at once."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from jaxdp.mechanisms import gaussian_epsilon, tape, zcdp_epsilon
from jaxdp.numerics import fixed_point


class Change(NamedTuple):
    """How far neighbours move one release from the base's value (neighbour 0).

    Attributes:
        largest: [neighbours] largest change of a vector (of an entry, if entries are randomized one by one).
        total: [neighbours] the same, added up over vectors (over entries).
        squares: [neighbours] its square, added up over vectors (over entries).
        entries: [neighbours] how many entries differ.
    """

    largest: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    entries: np.ndarray


class Cost(NamedTuple):
    """What releases cost, for each neighbour.

    Attributes:
        epsilon: [neighbours] float, at the delta asked for.
        rho: [neighbours] float, zero-concentrated.
        mu: [neighbours] float, as Gaussian DP; what is paid for pure noise counts as the least mu that it implies.
        is_gaussian: [neighbours] bool, whether nothing but Gaussian noise was paid for, and so mu is exact.
    """

    epsilon: np.ndarray
    rho: np.ndarray
    mu: np.ndarray
    is_gaussian: np.ndarray


def change(entry: tape.Entry) -> Change:
    """Measures a release.

    Args:
        entry: whose value has a leading axis of neighbours.

    Returns:
        Its changes in its norm. What becomes NaN or infinite, or stops being so, has changed by infinity.
    """
    value = exact(entry.value)
    count = len(value)
    same = (value == value[:1]) | (np.isnan(value) & np.isnan(value[:1]))
    with np.errstate(invalid="ignore"):
        moved = np.where(same, 0.0, value - value[:1])
    moved = np.where(np.isnan(moved), np.inf, moved)
    rows = moved.reshape(count, -1, *value.shape[-1:]) if value.ndim > 1 else moved.reshape(count, 1, 1)
    if entry.each:
        rows = rows.reshape(count, -1, 1)
    elif entry.norm != "spread":
        rows = rows.reshape(count, 1, -1)
    size = np.abs(rows)
    if entry.norm == "l1":
        each = size.sum(axis=2)
    elif entry.norm == "l2":
        each = np.sqrt(np.square(size).sum(axis=2))
    elif entry.norm == "max":
        each = size.max(axis=2)
    elif entry.norm == "spread":
        infinite = np.isinf(rows).any(axis=2)
        finite = np.where(np.isinf(rows), 0.0, rows)
        each = np.where(infinite, np.inf, (finite.max(axis=2) - finite.min(axis=2)) / 2)
    elif entry.norm == "any":
        each = (size > 0).any(axis=2).astype(float)
    else:
        each = (size > 0).sum(axis=2).astype(float)
    return Change(
        each.max(axis=1), each.sum(axis=1), np.square(each).sum(axis=1), (~same).reshape(count, -1).sum(axis=1)
    )


def exact(value: Any) -> np.ndarray:
    """A recorded value as float64: integers and sums in fixed point are exact up to 2^53 units."""
    if isinstance(value, fixed_point.Sum):
        whole, part = (np.asarray(word).astype(np.float64) for word in value)
        return whole + part / fixed_point.UNITS
    return np.asarray(value).astype(np.float64)


def scalar(value: Any) -> float:
    """A number of the base's run."""
    return float(np.asarray(value).ravel()[0])


def noise_scale(entry: tape.Entry) -> float:
    """What an entry's noise is multiplied by before it is added."""
    if entry.noise_stddev is not None:
        return scalar(entry.noise_stddev)
    return (1.0 if entry.sensitivity is None else scalar(entry.sensitivity)) / scalar(entry.epsilon)


def loss(entry: tape.Entry) -> np.ndarray:
    """The privacy loss of what is released: log of its density under the base's value over that under a neighbour's.

    Args:
        entry: whose value has a leading axis of neighbours, and whose noise is the base's.

    Returns:
        [neighbours] float; NaN where the value changes and the release is not known to be a sum of it and noise.
    """
    value = exact(entry.value)
    count = len(value)
    same = (value == value[:1]) | (np.isnan(value) & np.isnan(value[:1]))
    if entry.noise is None or (entry.law, entry.norm) not in (("laplace", "l1"), ("normal", "l2")):
        return np.where(same.reshape(count, -1).all(axis=1), 0.0, np.nan)
    noise = np.asarray(entry.noise)[:1].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = noise + np.where(same, 0.0, (value[:1] - value) / noise_scale(entry))
        each = np.abs(moved) - np.abs(noise) if entry.law == "laplace" else (np.square(moved) - np.square(noise)) / 2
    return np.where(same, 0.0, each).reshape(count, -1).sum(axis=1)


def cost(releases: list[tuple[tape.Entry, Change]], neighbours: int, delta: float) -> Cost:
    """What releases cost together, by what neighbours change.

    Costs of pure mechanisms add; Gaussian ones add in squares; entries of one run of AboveThreshold cost as much as the
    dearest of them, from one report to the next. At delta > 0 the epsilon is the least of that sum and of what follows
    from zero-concentrated DP. Mus add in squares, those of pure mechanisms too.

    Args:
        releases: in order, with their changes [neighbours].
        neighbours: how many.
        delta: in [0, 1).

    Returns:
        The cost for each neighbour.

    Source:
        Dwork & Roth (2014), Theorem 3.16 and, for AboveThreshold, 3.23; Bun & Steinke (2016), Lemma 1.7 and
        Propositions 1.3 and 1.4; Balle & Wang (2018), Theorem 8; Dong, Roth & Su (2022), Corollary 3.3.
    """
    pure, rho, squares, pure_squares = (np.zeros(neighbours) for _ in range(4))
    runs: dict[tuple[float, int], np.ndarray] = {}
    reports: dict[float, int] = {}
    for entry, moved in releases:
        if entry.noise_stddev is not None:
            squares += np.square(ratio(moved.total, scalar(entry.noise_stddev)))
            continue
        epsilon = scalar(entry.epsilon)
        if entry.each:
            own, own_rho = _times(moved.entries, epsilon), _times(moved.entries, epsilon**2 / 2)
        else:
            unit = 1.0 if entry.sensitivity is None else scalar(entry.sensitivity)
            each_rho = epsilon**2 / 2 if entry.rho is None else scalar(entry.rho)
            own, own_rho = _times(moved.total, epsilon / unit), _times(moved.squares, each_rho / unit**2)
        if entry.run is None:
            pure, rho, pure_squares = pure + own, rho + own_rho, pure_squares + np.square(_mu(own))
            continue
        run = scalar(entry.run)
        if entry.halted is not None and bool(scalar(entry.halted)):
            continue
        group = (run, reports.get(run, 0))
        runs[group] = np.maximum(runs.get(group, 0.0), own)
        reports[run] = reports.get(run, 0) + int(entry.reported is not None and bool(scalar(entry.reported)))
    for own in runs.values():
        pure, rho, pure_squares = pure + own, rho + own**2 / 2, pure_squares + np.square(_mu(own))
    rho = rho + squares / 2
    epsilon = np.asarray([_epsilon(*one, delta) for one in zip(pure, rho, squares, strict=True)])
    return Cost(epsilon, rho, np.sqrt(squares + np.minimum(pure_squares, np.square(_mu(pure)))), pure == 0)


def _mu(epsilon: np.ndarray) -> np.ndarray:
    """The least mu that follows from pure epsilon: the curve of mu is convex, and meets the two lines of epsilon's."""
    return -2 * ndtri(expit(-epsilon))


def ratio(moved: np.ndarray, unit: float) -> np.ndarray:
    """Change over unit; no change is free even where there is no noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(moved > 0, moved / unit, 0.0)


def _times(moved: np.ndarray, price: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(moved > 0, moved * price, 0.0)


def _epsilon(pure: float, rho: float, squares: float, delta: float) -> float:
    if delta == 0:
        return np.inf if squares > 0 else float(pure)
    gaussian = gaussian_epsilon(delta, 1.0, float(np.sqrt(squares))) if 0 < squares < np.inf else squares
    concentrated = zcdp_epsilon(float(rho), delta) if 0 < rho < np.inf else rho
    return float(min(pure + gaussian, concentrated))
