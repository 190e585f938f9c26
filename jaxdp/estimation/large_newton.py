"""Newton's method with conjugate gradients for the logistic loss of features in blocks of rows, on the host."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import root_scalar
from scipy.special import expit

from jaxdp.core import default_float
from jaxdp.estimation.doubts import FEWEST_NATS, SATURATED
from jaxdp.estimation.large import Moments, blocks
from jaxdp.estimation.newton import FARTHEST
from jaxdp.estimation.solver import Estimate

MAX_STEPS, MAX_INNER = 40, 40
MOST_HALVINGS = 30
JITTER = 1e-8  # of the preconditioner, in columns of norm 1
FAR = 10  # radii from 0 at which a search outside of the ball ends
STRICTNESS = 10  # largest preconditioned norm of the gradient over the tolerance


class _Point(NamedTuple):
    theta: np.ndarray
    margins: np.ndarray


class _Problem:
    """The mean loss (1/n) sum_i w_i log(1 + exp(m_i)) - linear.theta + (ridge / 2) |theta|^2, m_i = x_i.theta."""

    def __init__(self, features: np.ndarray, moments: Moments, linear: np.ndarray, weights: Any, ridge: float):
        self.features, self.linear, self.ridge = features, linear, ridge
        self.weights = np.ones(len(features)) if weights is None else weights
        sizes = np.sqrt(np.diagonal(moments.second) / 4 + ridge)
        self._sizes = np.where(sizes > 0, sizes, 1)
        model = moments.second / 4 / self._sizes / self._sizes[:, None]
        model[np.diag_indices_from(model)] += ridge / self._sizes**2 + JITTER
        self._factor = cho_factor(model, overwrite_a=True, check_finite=False)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        """Solves for the Hessian's upper bound, Sigma / 4 + ridge."""
        return cho_solve(self._factor, vector / self._sizes, check_finite=False) / self._sizes

    def value(self, point: _Point) -> float:
        loss = float(np.mean(self.weights * np.logaddexp(0, point.margins)))
        return float(loss - self.linear @ point.theta + self.ridge / 2 * (point.theta @ point.theta))

    def gradient(self, point: _Point) -> np.ndarray:
        slopes = (self.weights * expit(point.margins)).astype(default_float())
        total = np.zeros(len(self.linear))
        for samples, rows in blocks(self.features):
            total += slopes[samples] @ rows
        return total / len(slopes) - self.linear + self.ridge * point.theta

    def curve(self, vector: np.ndarray, curvatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns margins of a direction, and the product of the Hessian with it."""
        direction, margins = vector.astype(default_float()), np.empty(len(curvatures))
        total = np.zeros(len(vector))
        for samples, rows in blocks(self.features):
            margins[samples] = rows @ direction
            total += (curvatures[samples] * margins[samples]).astype(rows.dtype) @ rows
        return margins, total / len(curvatures) + self.ridge * vector

    def newton_step(self, point: _Point, gradient: np.ndarray, accuracy: float) -> _Point:
        """Solves for Newton's direction by conjugate gradients, up to a relative accuracy."""
        chances = expit(point.margins)
        curvatures = self.weights * chances * (1 - chances)
        step = _Point(np.zeros_like(gradient), np.zeros_like(point.margins))
        residual = -gradient
        solved = self.precondition(residual)
        direction, squared = solved, residual @ solved
        target = accuracy**2 * squared
        for _ in range(MAX_INNER):
            margins, product = self.curve(direction, curvatures)
            curvature = direction @ product
            if not curvature > 0:
                break
            length = squared / curvature
            step = _Point(step.theta + length * direction, step.margins + length * margins)
            residual = residual - length * product
            solved = self.precondition(residual)
            before, squared = squared, residual @ solved
            if not squared > target:
                break
            direction = solved + squared / before * direction
        return step


def _minimize(
    problem: _Problem, start: _Point, tolerance: float, unit: float, farthest: float
) -> tuple[_Point, float, int, bool]:
    """Returns the point, the gradient's norm for features of unit size, the number of steps, and if it converged.

    It stops at a point with a norm above `farthest`.
    """
    point, certificate, steps = start, np.inf, 0
    for steps in range(1, MAX_STEPS + 1):
        gradient = problem.gradient(point)
        certificate = float(np.linalg.norm(gradient)) / unit
        distance = float(np.sqrt(max(gradient @ problem.precondition(gradient), 0.0)))
        if not np.isfinite(certificate):
            return _Point(np.full_like(point.theta, np.nan), point.margins), np.nan, steps, False
        if certificate <= tolerance and distance <= STRICTNESS * tolerance:
            return point, certificate, steps, True
        step = problem.newton_step(point, gradient, min(0.1, distance))
        length, value, moved = 1.0, problem.value(point), point
        slack = 4 * np.finfo(default_float()).eps * (1 + abs(value))  # a rise within rounding does not count
        for _ in range(MOST_HALVINGS):
            moved = _Point(point.theta + length * step.theta, point.margins + length * step.margins)
            if problem.value(moved) <= value + slack:
                break
            length /= 2
        point = moved
        if np.linalg.norm(point.theta) > farthest:
            break
    return point, certificate, steps, False


@np.errstate(over="ignore", invalid="ignore")  # of a loss without a minimum, which does not converge
def fit_blocks(
    features: np.ndarray,
    moments: Moments,
    statistic: np.ndarray,
    *,
    regularization: float,
    weights: np.ndarray | None,
    radius: float,
    tolerance: float,
    offset: np.ndarray | None = None,
) -> Estimate:
    """Minimises the loss of `statistic_objective` over the ball, reading features in blocks of rows.

    Args:
        features: [num_samples, dim] float.
        moments: of the features.
        statistic: [dim] float64, the statistic or an unbiased version of it, divided by the mean weight.
        regularization: beta / mean weight, >= 0.
        weights: [num_samples] float64 of mean 1; None is all 1.
        radius: of the ball; infinity is no bound.
        tolerance: on the norm of the projected gradient, for features of root mean square 1 to 2.
        offset: [num_samples] float64, public parts of the margins; None is 0.

    Returns:
        The estimate; `converged` also needs sqrt(g.(Sigma/4 + beta/n)^-1 g) <= 10 tolerance for the gradient g.
    """
    count, dim = features.shape
    linear, ridge = statistic / count, regularization / count
    size = np.sqrt(np.trace(moments.second) / dim)
    unit = 2.0 ** np.floor(np.log2(size)) if size > 0 else 1.0
    start = _Point(np.zeros(dim), np.zeros(count) if offset is None else offset)
    steps, bounded = 0, bool(np.isfinite(radius) and radius * unit <= FARTHEST)
    farthest = min(FARTHEST / unit, FAR * radius) if bounded else FARTHEST / unit

    def solve(multiplier: float, point: _Point) -> tuple[_Point, float, bool]:
        nonlocal steps
        problem = _Problem(features, moments, linear, weights, ridge + multiplier)
        point, certificate, more, converged = _minimize(problem, point, tolerance, unit, farthest)
        steps += more
        return point, certificate, converged

    point, certificate, converged = solve(0.0, start)
    if bounded and not np.linalg.norm(point.theta) <= radius:
        first = float(np.linalg.norm(_Problem(features, moments, linear, weights, ridge).gradient(start)))
        solutions = {0.0: (point, certificate, converged)}

        def excess(multiplier: float) -> float:  # increases, and is nearly linear
            if multiplier not in solutions:
                nearest = solutions[min(solutions, key=lambda other: abs(other - multiplier))]
                solutions[multiplier] = solve(multiplier, nearest[0] if nearest[2] else start)
            size = float(np.linalg.norm(solutions[multiplier][0].theta))
            return radius / max(size, 1e-9 * radius) - 1  # a large tolerance may accept 0

        # |theta| <= first / multiplier at any multiplier, as the loss is convex
        highest = first / radius * 1.01
        root = root_scalar(excess, bracket=(0.0, highest), xtol=1e-9 * highest, rtol=1e-6).root
        excess(root)
        point, certificate, converged = solutions[root]
        point = point._replace(theta=point.theta * min(1.0, radius / float(np.linalg.norm(point.theta))))
    dtype = default_float()
    return Estimate(
        jnp.asarray(point.theta, dtype), jnp.asarray(certificate, dtype), jnp.int32(steps), jnp.asarray(converged)
    )


def is_saturated(features: np.ndarray, theta: np.ndarray, offset: np.ndarray | float = 0.0) -> bool:
    """Returns whether theta makes answers so certain that they do not determine its size; see `warn_no_minimum`."""
    margins = np.concatenate([rows @ theta.astype(rows.dtype) for _, rows in blocks(features)]).astype(np.float64)
    chances = expit(margins + offset)
    nats, at_zero = np.sum(chances * (1 - chances) * margins**2), np.sum(margins**2) / 4
    return bool(nats < SATURATED * at_zero and nats < FEWEST_NATS)
