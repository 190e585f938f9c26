"""Full-batch objectives: mean negative log likelihoods. One pass over the data gives value, gradient and curvature.

The likelihood parts depend on the parameter only through the margins `features @ theta`. Values are means over samples.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.numerics.products import product
from jaxdp.preferences import Link

PART = 256  # samples in a part of a sum
MANY = 2**16  # sums of more samples are computed in parts


class Evaluation(NamedTuple):
    """The value and the derivatives of an objective at a point.

    Attributes:
        value: [] float.
        magnitude: [] float, mean absolute value of the terms of `value`; the rounding error of `value` is proportional
            to this magnitude.
        gradient: [dim] float.
        hessian: [dim, dim] float; may be indefinite if the loss is not convex.
        ridge: [] or [dim] float >= 0, the part of the Hessian's diagonal that a quadratic penalty adds.
    """

    value: jax.Array
    magnitude: jax.Array
    gradient: jax.Array
    hessian: jax.Array
    ridge: jax.Array


Objective = Callable[[jax.Array], Evaluation]


class Loss(NamedTuple):
    """One sample's negative log likelihood as a function of its margin and its target, elementwise.

    Attributes:
        value: (margins, targets) -> losses.
        slope: (margins, targets) -> derivative with respect to the margin.
        curvature: (margins, targets) -> second derivative with respect to the margin.
    """

    value: Callable[[jax.Array, jax.Array], jax.Array]
    slope: Callable[[jax.Array, jax.Array], jax.Array]
    curvature: Callable[[jax.Array, jax.Array], jax.Array]


def label_loss(link: Link) -> Loss:
    """Builds the loss -[y log F(z) + (1 - y) log F(-z)], which is linear in the target y.

    y is a label, or a de-biased report outside [0, 1].

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (8) for labels; eq. (4)-(5) divided by 2 sigma(epsilon) - 1
        for de-biased reports.
    """
    if link.name == "logistic":  # equal, with fewer operations, since log F(z) - log F(-z) = z
        return Loss(
            value=lambda z, y: -link.log_cdf(-z) - y * z,
            slope=lambda z, y: link.cdf(z) - y,
            curvature=lambda z, y: link.curvature(z),
        )
    return Loss(
        value=lambda z, y: -(y * link.log_cdf(z) + (1 - y) * link.log_cdf(-z)),
        slope=lambda z, y: -(y * link.slope(z) - (1 - y) * link.slope(-z)),
        curvature=lambda z, y: y * link.curvature(z) + (1 - y) * link.curvature(-z),
    )


def randomized_label_loss(link: Link, epsilon: jax.Array) -> Loss:
    """Builds the loss of a randomized label: -log[2 P(z)] / (2p - 1)^2 if y = 1, and the same function of -z if y = 0.

    P(z) = p F(z) + (1 - p) F(-z) = [1 + (2p - 1) (F(z) - F(-z))] / 2 is the probability of the report 1, and p =
    sigmoid(epsilon). The loss is the negative log likelihood plus a constant, times a factor. Constant and factor keep
    the expected value, slope and curvature at the scale of the label loss for every epsilon, so that float32 resolves
    them.

    Args:
        link: the preference model F.
        epsilon: [] float > 0, budget of the randomized response.

    Returns:
        The loss. It is not convex in general.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (3).
    """
    log_truth, log_lie = jax.nn.log_sigmoid(epsilon), jax.nn.log_sigmoid(-epsilon)
    gain = jnp.tanh(epsilon / 2)  # 2p - 1

    def log_report(z):  # log 2 P(z): precise near 0 by log1p, and in the left tail by logaddexp
        excess = gain * (link.cdf(z) - link.cdf(-z))
        tail = jnp.logaddexp(link.log_cdf(z) + log_truth, link.log_cdf(-z) + log_lie) + jnp.log(2.0).astype(z.dtype)
        return jnp.where(excess > -0.5, jnp.log1p(jnp.maximum(excess, -0.5)), tail)

    def ratio(z):  # F(z) / P(z) = 1 / (p + (1 - p) F(-z) / F(z)), which is 1 at epsilon = inf for any z
        return 1 / (jnp.exp(log_truth) + jnp.exp(log_lie + link.log_cdf(-z) - link.log_cdf(z)))

    def report_slope(z):  # (d/dz log_report) / gain^2, with F' = F slope
        return link.slope(z) * ratio(z) / gain

    def report_curvature(z):  # -(d^2/dz^2 log_report) / gain^2, with F'' = F (slope^2 - curvature)
        share = ratio(z)
        return share * (link.curvature(z) / gain + link.slope(z) ** 2 * (share - 1 / gain))

    return Loss(
        value=lambda z, y: -(y * log_report(z) + (1 - y) * log_report(-z)) / gain**2,
        slope=lambda z, y: -(y * report_slope(z) - (1 - y) * report_slope(-z)),
        curvature=lambda z, y: y * report_curvature(z) + (1 - y) * report_curvature(-z),
    )


def randomized_information(link: Link, epsilon: jax.Array, margins: jax.Array) -> jax.Array:
    """Returns the Fisher information of one randomized label about its margin: P'(z)^2 / (P(z) P(-z)).

    P(z) = p F(z) + (1 - p) F(-z) is the probability of the report 1, p = sigmoid(epsilon), and F is the link.
    """
    truth, lie = jax.nn.sigmoid(epsilon), jax.nn.sigmoid(-epsilon)
    up, down = link.cdf(margins), link.cdf(-margins)
    density = up * link.slope(margins)  # F' = F (log F)'
    return (jnp.tanh(epsilon / 2) * density) ** 2 / ((truth * up + lie * down) * (truth * down + lie * up))


def likelihood_objective(
    features: jax.Array, targets: jax.Array, loss: Loss, *, careful: bool = False, weights: jax.Array | None = None
) -> Objective:
    """Builds the mean loss over samples.

    Args:
        features: [num_samples, dim] float.
        targets: [num_samples] float.
        loss: the loss of one sample.
        careful: whether the gradient is summed in parts for any number of samples; see `sum_over_samples`.
        weights: [num_samples] float >= 0, weights of the samples' losses, with mean 1; None means that all are 1.

    Returns:
        A function theta [dim] -> Evaluation.
    """
    weights = jnp.ones((), features.dtype) if weights is None else weights
    columns = features.T  # samples as the last axis are three times faster for small dim on CPU

    def evaluate(theta: jax.Array) -> Evaluation:
        margins = product(theta, columns)
        count = features.shape[0]
        losses = weights * loss.value(margins, targets)
        return Evaluation(
            value=jnp.mean(losses),
            magnitude=jnp.mean(jnp.abs(losses)),
            gradient=sum_over_samples(columns, weights * loss.slope(margins, targets), careful=careful) / count,
            hessian=product(columns * (weights * loss.curvature(margins, targets))[None, :], columns.T) / count,
            ridge=jnp.zeros((), theta.dtype),
        )

    return evaluate


def add_quadratic(objective: Objective, linear: jax.Array, regularization: jax.Array) -> Objective:
    """Adds linear^T theta + (regularization / 2) |theta|^2 to an objective; regularization >= 0."""

    def evaluate(theta: jax.Array) -> Evaluation:
        plain = objective(theta)
        tilt, penalty = linear @ theta, regularization / 2 * (theta @ theta)
        return Evaluation(
            value=plain.value + tilt + penalty,
            magnitude=plain.magnitude + jnp.abs(tilt) + penalty,
            gradient=plain.gradient + linear + regularization * theta,
            hessian=plain.hessian + jnp.diag(jnp.broadcast_to(regularization, theta.shape)),
            ridge=plain.ridge + regularization,
        )

    return evaluate


def statistic_objective(
    features: jax.Array, statistic: jax.Array, regularization: jax.Array, weights: jax.Array | None = None
) -> Objective:
    """Builds the mean logistic loss, in which labels y_i enter only through the statistic S = sum_i w_i y_i x_i.

    The loss is (1/n) sum_i w_i log(1 + exp(x_i^T theta)) - S^T theta / n + beta / (2 n) * |theta|^2. It is convex for
    every real S, even if S comes from de-biased reports or has noise.

    Args:
        features: [num_samples, dim] float.
        statistic: [dim] float, S or an unbiased estimate of S.
        regularization: [] or [dim] float >= 0, beta for each component, on the scale of the sum over samples.
        weights: [num_samples] float >= 0, w_i, with mean 1; None means that all are 1.

    Returns:
        A function theta [dim] -> Evaluation, with the exact Hessian.
    """
    columns = features.T
    count = features.shape[0]
    weights = jnp.ones((), features.dtype) if weights is None else weights

    def evaluate(theta: jax.Array) -> Evaluation:
        margins = product(theta, columns)
        probabilities = jax.nn.sigmoid(margins)
        curvatures = weights * probabilities * (1 - probabilities)
        linear, ridge = statistic / count, regularization / count
        loss, label, penalty = jnp.mean(weights * jax.nn.softplus(margins)), linear @ theta, theta @ (ridge / 2 * theta)
        return Evaluation(
            value=loss - label + penalty,
            magnitude=loss + jnp.abs(label) + penalty,
            gradient=sum_over_samples(columns, weights * probabilities) / count - linear + ridge * theta,
            hessian=product(columns * curvatures[None, :], columns.T) / count
            + jnp.diag(jnp.broadcast_to(ridge, theta.shape)),
            ridge=ridge,
        )

    return evaluate


def choice_objective(
    features: jax.Array,
    statistic: jax.Array,
    regularization: jax.Array,
    *,
    depth: int = 1,
    weights: jax.Array | None = None,
) -> Objective:
    """Builds the mean Plackett-Luce loss of choices or rankings, given their sufficient statistic S.

    The loss is (1/n) sum_i w_i sum_{s < depth} log sum_{k >= s} exp(phi_ik^T theta) - S^T theta / n + beta / (2 n) *
    |theta|^2. Depth 1 is a choice among all K actions. Depth K - 1 is a ranking: for each rank, a choice among the
    remaining actions, in the order of `features`. The loss is convex for every real S.

    Args:
        features: [num_samples, K, dim] float; for depth > 1 in ranked order, best first.
        statistic: [dim] float, S, the sum of w_i times the chosen actions' features, or an unbiased estimate of it.
        regularization: [] or [dim] float >= 0, beta for each component, on the scale of the sum over samples.
        depth: number of choices of each sample, static.
        weights: [num_samples] float >= 0, w_i, with mean 1; None means that all are 1.

    Returns:
        A function theta [dim] -> Evaluation, with the exact Hessian.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (11) and appendix C.4.
    """
    count, num_actions, dim = features.shape
    rows = features.reshape(count * num_actions, dim)
    position = jnp.arange(num_actions)
    weights = jnp.ones((count,), features.dtype) if weights is None else weights

    def evaluate(theta: jax.Array) -> Evaluation:
        margins = product(rows, theta).reshape(count, num_actions)

        def choice(total, first: jax.Array):
            remaining = jnp.where((position >= first)[None, :], margins, -jnp.inf)
            partition = jax.nn.logsumexp(remaining, axis=1)
            probabilities = jnp.exp(remaining - partition[:, None])
            mean = jnp.einsum("nk,nkd->nd", probabilities, features, precision="highest")
            root = jnp.sqrt(weights[:, None] * probabilities)
            spread = (root[:, :, None] * (features - mean[:, None, :])).reshape(rows.shape)
            losses = weights * partition
            terms = jnp.mean(losses), jnp.mean(jnp.abs(losses)), jnp.mean(weights[:, None] * mean, axis=0)
            return jax.tree.map(jnp.add, total, (*terms, product(spread.T, spread) / count)), None

        zeros = (jnp.zeros((), theta.dtype), jnp.zeros((), theta.dtype), jnp.zeros_like(theta))
        start = (*zeros, jnp.zeros((dim, dim), theta.dtype))
        (loss, magnitude, gradient, hessian), _ = jax.lax.scan(choice, start, jnp.arange(depth))
        linear, ridge = statistic / count, regularization / count
        label, penalty = linear @ theta, theta @ (ridge / 2 * theta)
        return Evaluation(
            value=loss - label + penalty,
            magnitude=magnitude + jnp.abs(label) + penalty,
            gradient=gradient - linear + ridge * theta,
            hessian=hessian + jnp.diag(jnp.broadcast_to(ridge, theta.shape)),
            ridge=ridge,
        )

    return evaluate


def sum_over_samples(columns: jax.Array, weights: jax.Array, *, careful: bool = False) -> jax.Array:
    """Returns the sum over samples of a sample's column times its weight, [dim]; columns are [dim, num_samples].

    More than 65,536 samples are summed in parts, since rounding would stop a running float32 sum from growing. If
    `careful`, fewer samples are summed in parts too, which is slower.
    """
    dim, count = columns.shape
    if count <= MANY and not careful:
        return product(weights, columns.T)
    products = columns * weights[None, :]
    num_grouped = count // PART * PART
    parts = products[:, :num_grouped].reshape(dim, -1, PART).sum(2)
    while parts.shape[1] > PART:
        num_whole = parts.shape[1] // PART * PART
        parts = jnp.concatenate([parts[:, :num_whole].reshape(dim, -1, PART).sum(2), parts[:, num_whole:]], axis=1)
    return parts.sum(1) + products[:, num_grouped:].sum(1)
