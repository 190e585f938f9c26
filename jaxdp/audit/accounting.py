"""Computes the total privacy cost of recorded releases, for many neighbours at once."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from jaxdp.audit.checks import differ
from jaxdp.mechanisms import gaussian_epsilon, tape, zcdp_epsilon
from jaxdp.numerics import fixed_point

SUMS = (("laplace", "l1"), ("geometric", "l1"), ("normal", "l2"))  # distributions with known losses, and their norms


class Change(NamedTuple):
    """The changes of one release's value, for each neighbour, relative to the value of the base (neighbour 0).

    A change is the norm of a difference from the base. A value has one change, except that each vector along the last
    axis has a change if the norm is "spread", and each entry if entries are randomized one by one.

    Attributes:
        largest: [neighbours] largest change.
        total: [neighbours] sum of the changes.
        squares: [neighbours] sum of the squares of the changes.
        entries: [neighbours] number of entries that differ.
    """

    largest: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    entries: np.ndarray


class Cost(NamedTuple):
    """The cost of releases, for each neighbour.

    Attributes:
        epsilon: [neighbours] float, epsilon at the requested delta.
        rho: [neighbours] float, rho of zero-concentrated DP.
        mu: [neighbours] float, mu of Gaussian DP; a pure epsilon counts as the smallest mu that it implies.
        is_gaussian: [neighbours] bool, whether all changed values got Gaussian noise, so that mu is exact.
    """

    epsilon: np.ndarray
    rho: np.ndarray
    mu: np.ndarray
    is_gaussian: np.ndarray


def change(entry: tape.Entry) -> Change:
    """Measures the change of a release's value from the base's value for each neighbour, in the entry's norm.

    The leading axis of the value has the base and all neighbours. The difference of two entries counts as infinite if
    one of them is NaN or infinite and they are not equal (NaN equals NaN).
    """
    value = exact(entry.value)
    count = len(value)
    same = ~differ(value, value[:1])
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
        norms = size.sum(axis=2)
    elif entry.norm == "l2":
        norms = np.sqrt(np.square(size).sum(axis=2))
    elif entry.norm == "max":
        norms = size.max(axis=2)
    elif entry.norm == "spread":
        infinite = np.isinf(rows).any(axis=2)
        finite = np.where(np.isinf(rows), 0.0, rows)
        norms = np.where(infinite, np.inf, (finite.max(axis=2) - finite.min(axis=2)) / 2)
    elif entry.norm == "any":
        norms = (size > 0).any(axis=2).astype(float)
    else:
        norms = (size > 0).sum(axis=2).astype(float)
    return Change(
        norms.max(axis=1), norms.sum(axis=1), np.square(norms).sum(axis=1), (~same).reshape(count, -1).sum(axis=1)
    )


def exact(value: Any) -> np.ndarray:
    """Converts a recorded value to float64, exactly for integers up to 2^53 and fixed-point sums up to 2^53 steps."""
    if isinstance(value, fixed_point.Sum):
        whole, part = (np.asarray(word).astype(np.float64) for word in value)
        return whole + part / fixed_point.UNITS
    return np.asarray(value).astype(np.float64)


def scalar(value: Any) -> float:
    """Returns the first entry of an array, the base's entry, as a float."""
    return float(np.asarray(value).ravel()[0])


def noise_scale(entry: tape.Entry) -> float:
    """Returns the scale of an entry's noise: the recorded standard deviation, else sensitivity (or 1) / epsilon."""
    if entry.noise_stddev is not None:
        return scalar(entry.noise_stddev)
    return (1.0 if entry.sensitivity is None else scalar(entry.sensitivity)) / scalar(entry.epsilon)


def loss(entry: tape.Entry) -> np.ndarray:
    """Returns the privacy loss of a release for each neighbour, [neighbours] float64.

    The loss is log(density under the base / density under the neighbour), evaluated at the output of the base's run.
    The entry records the noise of this run. The loss is NaN if the value changes and the release is not known to be the
    value plus Laplace, geometric or Gaussian noise.
    """
    value = exact(entry.value)
    count = len(value)
    same = ~differ(value, value[:1])
    if entry.noise is None or (entry.distribution, entry.norm) not in SUMS:
        return np.where(same.reshape(count, -1).all(axis=1), 0.0, np.nan)
    noise = np.asarray(entry.noise)[:1].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved_noise = noise + np.where(same, 0.0, (value[:1] - value) / noise_scale(entry))
        losses = (
            np.abs(moved_noise) - np.abs(noise)
            if entry.norm == "l1"
            else (np.square(moved_noise) - np.square(noise)) / 2
        )
    return np.where(same, 0.0, losses).reshape(count, -1).sum(axis=1)


def cost(releases: list[tuple[tape.Entry, Change]], neighbours: int, delta: float) -> Cost:
    """Returns the total cost of releases for each neighbour, from the changes of the released values.

    The epsilons of pure mechanisms add, and the squares of Gaussian mus add. In a run of AboveThreshold, the entries up
    to and including a reported one form a group, which costs as much as its most expensive entry; entries after the end
    of the run cost nothing. At delta > 0 the epsilon is the smaller of two numbers: the sum of the pure epsilon and the
    Gaussian epsilon at delta; and the epsilon that zero-concentrated DP implies. At delta = 0 it is the pure epsilon,
    or infinite if a value with Gaussian noise changes. For mu, the squares of all mus add, including each mu that a
    pure epsilon implies; but all pure epsilons together cost at most the mu that their sum implies.

    Args:
        releases: the releases in order, each with the changes of its value.
        neighbours: number of neighbours.
        delta: in [0, 1).

    Returns:
        The cost for each neighbour.

    Source:
        Dwork & Roth (2014), Theorem 3.16 and, for AboveThreshold, 3.23; Bun & Steinke (2016), Lemma 1.7 and
        Proposition 1.4; Canonne, Kamath & Steinke (2020), Corollary 13; Balle & Wang (2018), Theorem 8; Dong, Roth &
        Su (2022), Corollary 3.3.
    """
    pure, rho, squares, pure_squares = (np.zeros(neighbours) for _ in range(4))
    runs: dict[tuple[float, int], np.ndarray] = {}
    reports: dict[float, int] = {}
    for entry, moves in releases:
        if entry.noise_stddev is not None:
            squares += np.square(ratio(moves.total, scalar(entry.noise_stddev)))
            continue
        epsilon = scalar(entry.epsilon)
        if entry.each:
            pure_cost, rho_cost = _times(moves.entries, epsilon), _times(moves.entries, epsilon**2 / 2)
        else:
            unit = 1.0 if entry.sensitivity is None else scalar(entry.sensitivity)
            unit_rho = epsilon**2 / 2 if entry.rho is None else scalar(entry.rho)
            pure_cost, rho_cost = _times(moves.total, epsilon / unit), _times(moves.squares, unit_rho / unit**2)
        if entry.run is None:
            pure, rho, pure_squares = pure + pure_cost, rho + rho_cost, pure_squares + np.square(_mu(pure_cost))
            continue
        run = scalar(entry.run)
        if entry.halted is not None and bool(scalar(entry.halted)):
            continue
        group = (run, reports.get(run, 0))
        runs[group] = np.maximum(runs.get(group, 0.0), pure_cost)
        reports[run] = reports.get(run, 0) + int(entry.reported is not None and bool(scalar(entry.reported)))
    for pure_cost in runs.values():
        pure, rho, pure_squares = pure + pure_cost, rho + pure_cost**2 / 2, pure_squares + np.square(_mu(pure_cost))
    rho = rho + squares / 2
    epsilon = np.asarray([_epsilon(*totals, delta) for totals in zip(pure, rho, squares, strict=True)])
    return Cost(epsilon, rho, np.sqrt(squares + np.minimum(pure_squares, np.square(_mu(pure)))), pure == 0)


def _mu(epsilon: np.ndarray) -> np.ndarray:
    """Returns the smallest mu for which pure epsilon-DP implies mu-Gaussian DP."""
    return -2 * ndtri(expit(-epsilon))


def ratio(moved: np.ndarray, unit: float) -> np.ndarray:
    """Returns `moved` / `unit`, and 0 where `moved` is 0, even if `unit` is 0."""
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
