"""Newton's method with conjugate gradients for the logistic loss, with features in blocks of rows, on the host."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit

from jaxdp.core import default_float
from jaxdp.estimation.doubts import FEWEST_NATS, SATURATED
from jaxdp.estimation.large import Moments, blocks
from jaxdp.estimation.newton import FARTHEST
from jaxdp.estimation.solver import Estimate

MAX_STEPS, MAX_INNER = 40, 40  # gradient evaluations, and conjugate gradient steps after each of them
MOST_HALVINGS, MOST_DOUBLINGS = 30, 60  # halvings of a step, doublings of a bound on the multiplier
JITTER = 1e-8  # added to the diagonal of the preconditioner, for columns of norm 1
SMALL_JITTER = 1e-10  # added to the small Hessian, as a fraction of its diagonal
STRICTNESS = 10  # maximum preconditioned norm of the gradient, divided by the tolerance


class _Point(NamedTuple):
    theta: np.ndarray
    margins: np.ndarray


class _Problem:
    """The mean loss (1/n) sum_i w_i log(1 + exp(m_i)) - linear^T theta + (ridge / 2) |theta|^2.

    The margins are m_i = offset_i + x_i^T theta.

    `multiplier` is the Lagrange multiplier of |theta| <= radius: the Lagrangian has the ridge `ridge` + multiplier.
    """

    def __init__(
        self,
        features: np.ndarray,
        moments: Moments,
        linear: np.ndarray,
        weights: Any,
        ridge: float,
        radius: float,
        offset: Any,
    ):
        self.features, self.moments, self.linear, self.ridge, self.radius = features, moments, linear, ridge, radius
        self.offset = 0.0 if offset is None else offset
        self.weights = np.ones(len(features)) if weights is None else weights
        self._shift = np.nan

    def precondition(self, vector: np.ndarray, multiplier: float) -> np.ndarray:
        """Returns A^-1 vector, approximately, for A = Sigma / 4 + (ridge + multiplier) I and the second moment Sigma.

        If all weights are 1, A is an upper bound on the Lagrangian's Hessian.
        """
        shift = self.ridge + multiplier
        if not self._shift / 2 <= shift <= 2 * self._shift:
            self._factor = None  # frees its memory
            second = self.moments.second
            sizes = np.sqrt(np.diagonal(second) / 4 + shift)
            self._sizes = np.where(sizes > 0, sizes, 1)
            model = second / (4 * self._sizes)
            model /= self._sizes[:, None]
            model[np.diag_indices_from(model)] += shift / self._sizes**2 + JITTER
            self._factor, self._shift = cho_factor(model, overwrite_a=True, check_finite=False), shift
        return cho_solve(self._factor, vector / self._sizes, check_finite=False) / self._sizes

    def value(self, point: _Point) -> float:
        loss = float(np.mean(self.weights * np.logaddexp(0, point.margins)))
        return float(loss - self.linear @ point.theta + self.ridge / 2 * (point.theta @ point.theta))

    def gradient(self, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """Returns the gradient of the loss at the point, and the product of its Hessian with theta.

        Each result is [dim].
        """
        chances = expit(point.margins)
        curved = chances * (1 - chances) * (point.margins - self.offset)
        slopes = (self.weights * np.stack([chances, curved])).astype(default_float())
        total = np.zeros((2, len(self.linear)))
        for samples, rows in blocks(self.features):
            total += slopes[:, samples] @ rows
        gradient, product = total / len(chances) + self.ridge * point.theta
        return gradient - self.linear, product

    def multiplier(self, theta: np.ndarray, gradient: np.ndarray) -> float:
        """Returns the multiplier >= 0 that minimises the norm of the Lagrangian's gradient; 0 inside the ball."""
        if not np.linalg.norm(theta) >= self.radius * (1 - 1e-6):
            return 0.0
        return max(0.0, -float(gradient @ theta) / float(theta @ theta))

    def curve(self, vector: np.ndarray, curvatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns x_i^T vector for every sample ([num_samples]) and the product of the Hessian with the vector ([dim]).

        `curvatures`, [num_samples], are the weighted second derivatives of the losses in the margins.
        """
        direction, margins = vector.astype(default_float()), np.empty(len(curvatures))
        total = np.zeros(len(vector))
        for samples, rows in blocks(self.features):
            margins[samples] = rows @ direction
            total += (curvatures[samples] * margins[samples]).astype(rows.dtype) @ rows
        return margins, total / len(curvatures) + self.ridge * vector

    def newton_step(
        self, point: _Point, gradient: np.ndarray, product: np.ndarray, towards: np.ndarray, target: float
    ) -> _Point:
        """Returns the step that minimises the quadratic model over the ball, as changes of theta and of the margins.

        The step is in the span of preconditioned residuals and, if the radius is finite, theta.

        Args:
            point: the current point.
            gradient: [dim], the gradient of the loss at the point.
            product: [dim], the product of the Hessian with theta at the point.
            towards: [dim], the first direction.
            target: the squared preconditioned norm of the Lagrangian's gradient at which the iteration stops.
        """
        chances = expit(point.margins)
        curvatures = self.weights * chances * (1 - chances)
        step = _Point(np.zeros_like(gradient), np.zeros_like(point.margins))
        directions, margins, products = (np.zeros((0, size)) for size in (len(gradient), len(chances), len(gradient)))
        if np.isfinite(self.radius) and 0 < point.theta @ product < np.inf:
            columns = point.theta, point.margins - self.offset, product
            directions, margins, products = (column[None] / np.linalg.norm(point.theta) for column in columns)
        for _ in range(MAX_INNER):
            direction = towards / np.linalg.norm(towards)
            margin, product = self.curve(direction, curvatures)
            if not 0 < direction @ product < np.inf:
                break
            directions, products = np.vstack([directions, direction]), np.vstack([products, product])
            margins = np.vstack([margins, margin])
            hessian = (margins * curvatures) @ margins.T / len(chances) + self.ridge * directions @ directions.T
            coefficients, multiplier = _minimize_in_ball(hessian, directions, gradient, point.theta, self.radius)
            step = _Point(coefficients @ directions, coefficients @ margins)
            residual = -gradient - coefficients @ products - multiplier * (point.theta + step.theta)
            towards = self.precondition(residual, multiplier)
            if not residual @ towards > target:
                break
        return step


def _minimize_in_ball(
    hessian: np.ndarray, directions: np.ndarray, gradient: np.ndarray, theta: np.ndarray, radius: float
) -> tuple[np.ndarray, float]:
    """Minimises gradient^T p + p^T H p / 2 over |theta + p| <= radius, where p = coefficients @ directions.

    Returns (coefficients, multiplier).

    Args:
        hessian: [rank, rank] float64, directions @ H @ directions.T.
        directions: [rank, dim] float64, of unit norm.
        gradient: [dim] float64.
        theta: [dim] float64; if the radius is finite, a multiple of the first direction, or 0.
        radius: radius of the ball.
    """
    hessian = hessian + np.diag(SMALL_JITTER * np.diagonal(hessian))
    lengths, basis = eigh(directions @ directions.T, hessian)  # basis.T @ hessian @ basis is the identity
    slope, along_theta = basis.T @ (directions @ gradient), basis.T @ (directions @ theta)

    def coefficients(multiplier: float) -> np.ndarray:
        return -(slope + multiplier * along_theta) / (1 + multiplier * lengths)

    def norm(multiplier: float) -> float:
        step = coefficients(multiplier)
        return float(np.sqrt(max(theta @ theta + 2 * along_theta @ step + lengths @ step**2, 0)))

    multiplier = 0.0
    if norm(0.0) > radius:
        from scipy.optimize import root_scalar  # imported here because SciPy is slow to import

        highest = float(np.linalg.norm(gradient)) / radius
        for _ in range(MOST_DOUBLINGS):
            highest *= 1 if norm(highest) <= radius else 2

        def excess(multiplier: float) -> float:  # increases, and is nearly linear
            return radius / max(norm(multiplier), 1e-9 * radius) - 1

        # If no direction leads to 0, rounding may keep the norm above the radius.
        is_bracket = norm(highest) <= radius
        multiplier = root_scalar(excess, bracket=(0.0, highest), xtol=1e-12 * highest).root if is_bracket else highest
    return basis @ coefficients(multiplier), multiplier


def _minimize(
    problem: _Problem, start: _Point, tolerance: float, unit: float, farthest: float
) -> tuple[_Point, float, int, bool]:
    """Minimises the loss over the ball, from `start`; returns (point, scaled gradient norm, steps, whether converged).

    The gradient is the gradient of the Lagrangian; its norm is divided by `unit`, the size of the features. The search
    stops without convergence at a point with a norm above `farthest`.
    """
    point, certificate, steps = start, np.inf, 0
    for steps in range(1, MAX_STEPS + 1):
        gradient, product = problem.gradient(point)
        multiplier = problem.multiplier(point.theta, gradient)
        slope = gradient + multiplier * point.theta
        certificate = float(np.linalg.norm(slope)) / unit
        towards = problem.precondition(slope, multiplier)
        squared = max(float(slope @ towards), 0.0)
        if not np.isfinite(certificate):
            return _Point(np.full_like(point.theta, np.nan), point.margins), np.nan, steps, False
        is_far = np.linalg.norm(point.theta) > farthest
        if not is_far and certificate <= tolerance and squared <= (STRICTNESS * tolerance) ** 2:
            return point, certificate, steps, True
        if is_far or steps == MAX_STEPS:
            break
        if steps == 1 and np.linalg.norm(towards) > problem.radius:
            towards = problem.precondition(slope, float(np.linalg.norm(slope)) / problem.radius)
        step = problem.newton_step(point, gradient, product, towards, squared * min(0.01, squared))
        length, value, moved = 1.0, problem.value(point), point
        slack = 4 * np.finfo(default_float()).eps * (1 + abs(value))  # a smaller increase may be a rounding error
        for _ in range(MOST_HALVINGS):
            moved = _Point(point.theta + length * step.theta, point.margins + length * step.margins)
            if problem.value(moved) <= value + slack:
                break
            length /= 2
        point = moved
    return point, certificate, steps, False


@np.errstate(over="ignore", invalid="ignore")  # a loss without a minimum overflows, and does not converge
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
        moments: moments of the features.
        statistic: [dim] float64, the statistic or an unbiased estimate of it, divided by the mean weight.
        regularization: beta / mean weight, >= 0.
        weights: [num_samples] float64 of mean 1; None means that all are 1.
        radius: radius of the ball; infinity means no bound. A radius above `FARTHEST`, for features scaled to a root
            mean square of 1 to 2, counts as infinite.
        tolerance: bound on the norm of the projected gradient, for features of root mean square 1 to 2.
        offset: [num_samples] float64, public parts of the margins; None means 0.

    Returns:
        The estimate. For `converged`, the gradient g must also satisfy sqrt(g^T A^-1 g) <= 10 * tolerance, with A =
        Sigma / 4 + (regularization / n) I, where Sigma is the second moment of the features. At the radius, g is the
        Lagrangian's gradient, and the Lagrange multiplier is added to regularization / n. If the certificate is NaN,
        theta is NaN too.
    """
    count, dim = features.shape
    size = np.sqrt(np.trace(moments.second) / dim)
    unit = 2.0 ** np.floor(np.log2(size)) if size > 0 else 1.0
    start = _Point(np.zeros(dim), np.zeros(count) if offset is None else offset)
    radius = radius if radius * unit <= FARTHEST else np.inf
    problem = _Problem(features, moments, statistic / count, weights, regularization / count, radius, offset)
    point, certificate, steps, converged = _minimize(problem, start, tolerance, unit, FARTHEST / unit)
    if (norm := np.linalg.norm(point.theta)) > radius:
        point = point._replace(theta=point.theta * (radius / norm))
    dtype = default_float()
    return Estimate(
        jnp.asarray(point.theta, dtype), jnp.asarray(certificate, dtype), jnp.int32(steps), jnp.asarray(converged)
    )


def is_saturated(features: np.ndarray, theta: np.ndarray, offset: np.ndarray | float = 0.0) -> bool:
    """Returns whether theta makes answers so certain that they do not determine theta's size; see `warn_no_minimum`."""
    margins = np.concatenate([rows @ theta.astype(rows.dtype) for _, rows in blocks(features)]).astype(np.float64)
    chances = expit(margins + offset)
    nats, at_zero = np.sum(chances * (1 - chances) * margins**2), np.sum(margins**2) / 4
    return bool(nats < SATURATED * at_zero and nats < FEWEST_NATS)
