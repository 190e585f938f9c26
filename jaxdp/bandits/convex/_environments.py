"""Families of convex losses on a ball or a box, with closed forms of the best points."""

import math

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex._ball_kernels import inner, length
from jaxdp.bandits.convex._domain import checked_domain
from jaxdp.bandits.convex._world import Losses, Params, convex_environment, diagonal
from jaxdp.core import Environment, default_float, factory
from jaxdp.validation import check_at_least, check_positive, check_probability


@factory
def linear_losses(
    *,
    dim: int,
    radius: float = 1.0,
    feedback: str = "point",
    hindsight: bool = False,
    adaptive: bool = False,
    domain: str = "ball",
) -> Environment:
    """Losses with a linear mean g(x) = slope <e, x>, where all entries of the unit vector e are equal.

    The best point is -D e, on the boundary. D is the maximum distance of a point from 0: radius for a ball, and radius
    sqrt(dim) for a box, where the best point is a corner.

    Args:
        dim: dimension of points, >= 1.
        radius: radius of the domain R, finite and > 0.
        feedback: "point": an action is a point ([dim] float), and the feedback is the loss at this point. "difference":
            an action is `Probe(centre, offset)`, and the feedback is f(centre + offset) - f(centre - offset), computed
            without cancellation.
        hindsight: whether to compute `regret`, which needs additional sums.
        adaptive: whether the adversary observes the actions and increases the losses of points near past actions.
        domain: "ball", the points of norm at most R; or "box", the points with entries in [-R, R].

    Returns:
        An environment with feedback [] float, which is unbounded for points if `noise` > 0. Outcomes: `pseudo_regret`,
        the expected loss of the round minus the expected loss of the best point of g (expectations are over noise, tilt
        and random coordinates and labels); `loss`, the loss of this round. For a probe, both outcomes are means over
        the two points of the probe. They are NaN if a point lies outside the domain by more than rounding. The loss at
        the point 0 is 0 plus the round's noise. Losses are Lipschitz with the constant slope + tilt + drift + push.
        With hindsight, the summary `regret` is the sum of losses minus the sum of losses of the best fixed point in
        hindsight.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        slope: finite and > 0, by default 0.5.
        noise: finite and >= 0, by default 0, the standard deviation of a normal variate that is added to all losses of
            a round, and therefore cancels in the difference of two losses.
        tilt: finite and >= 0, by default 0, the norm of a random linear part, tilt s / sqrt(dim) with random signs s.
        drift: finite and >= 0, by default 0, the norm of a linear part that rotates, with one full turn in `period`
            rounds. If dim is 1, this part oscillates between -drift and drift.
        period: number of rounds of a full turn, an integer in [2, 2^31 - 1], by default 1000.
        push: finite and >= 0, by default 0.25; only if adaptive. An additional linear part is push m / D, where m is
            the mean of all points played so far (for probes, of their centres).

    Source:
        Standard.

    Deviations:
        None.
    """
    body = checked_domain(domain, dim, radius)
    towards = diagonal(body.dim)

    def shape(*, slope: float = 0.5):
        return {"slope": check_positive("slope", slope)}, -body.reach * towards

    def rise(shape, centre, offset):
        del centre
        return 2 * shape["slope"] * inner(jnp.asarray(towards, offset.dtype), offset)

    def loss_in_hindsight(params: Params, rounds, linear_sum):
        along = jnp.asarray(towards, linear_sum.dtype)
        if domain == "box":  # the best value of each coordinate is -R or R, depending on the sign of its total slope
            slopes = rounds * params.shape["slope"] * along + linear_sum
            return 2 * body.radius * jnp.sum(jnp.maximum(-slopes, 0))
        ahead = rounds * params.shape["slope"] + jnp.sum(linear_sum * along)
        across = linear_sum - jnp.sum(linear_sum * along) * along
        total = jnp.sqrt(ahead * ahead + jnp.sum(across * across))
        # The norm of the gradient minus its component along e, computed without cancellation if the component is > 0.
        return body.radius * jnp.where(
            ahead > 0, jnp.sum(across * across) / jnp.where(ahead > 0, total + ahead, 1), total - ahead
        )

    return convex_environment(body, feedback, hindsight, adaptive, Losses(shape, rise, hindsight=loss_in_hindsight))


@factory
def quadratic_losses(
    *,
    dim: int,
    radius: float = 1.0,
    feedback: str = "point",
    hindsight: bool = False,
    adaptive: bool = False,
    domain: str = "ball",
) -> Environment:
    """Losses with a quadratic mean g(x) = curvature (|x - m|^2 - |m|^2) / 2, for a point m.

    Here m = target e, where all entries of the unit vector e are equal. These losses are strongly convex and smooth,
    both with the constant `curvature`. The best point is the projection of m onto the domain.

    Args:
        dim: as for `linear_losses`.
        radius: as for `linear_losses`.
        feedback: as for `linear_losses`.
        hindsight: as for `linear_losses`.
        adaptive: as for `linear_losses`.
        domain: as for `linear_losses`.

    Returns:
        An environment as from `linear_losses`. Without the round's noise, the absolute values of losses are at most
        curvature (D^2 / 2 + target D) + (tilt + drift + push) D, with D as in `linear_losses`. Losses are Lipschitz
        with the constant curvature (D + target) + tilt + drift + push.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        curvature: finite and > 0, by default 0.5.
        target: finite and >= 0, the distance of m from the centre, by default half the radius; it may be more than D.
        noise, tilt, drift, period, push: as for `linear_losses`.

    Source:
        Standard.

    Deviations:
        None.
    """
    body = checked_domain(domain, dim, radius)
    towards = diagonal(body.dim)

    def shape(*, curvature: float = 0.5, target: float = radius / 2):
        parameters = {
            "curvature": check_positive("curvature", curvature),
            "target": check_at_least("target", target, 0.0),
        }
        return parameters, min(target, body.reach) * towards

    def middle(shape, like):
        return shape["target"] * jnp.asarray(towards, like.dtype)

    def rise(shape, centre, offset):
        return 2 * shape["curvature"] * inner(centre - middle(shape, centre), offset)

    def loss_in_hindsight(params: Params, rounds, linear_sum):
        best = jnp.asarray(params.best)
        shifted = middle(params.shape, linear_sum) - linear_sum / (params.shape["curvature"] * jnp.maximum(rounds, 1))
        best_in_hindsight = body.project(shifted, jnp.asarray(body.radius, linear_sum.dtype))
        half = (best - best_in_hindsight) / 2
        return rounds * rise(params.shape, (best + best_in_hindsight) / 2, half) + 2 * jnp.sum(linear_sum * half)

    return convex_environment(body, feedback, hindsight, adaptive, Losses(shape, rise, hindsight=loss_in_hindsight))


@factory
def huber_losses(
    *, dim: int, radius: float = 1.0, feedback: str = "point", adaptive: bool = False, domain: str = "ball"
) -> Environment:
    """Losses with a mean that is a Huber function of the distance from a point m, minus its value at the centre.

    Here m = target e, as in `quadratic_losses`. The Huber function is slope h(|x - m|), with h(r) = r^2 / (2 width) for
    r <= width, and h(r) = r - width / 2 for r > width. Losses are convex, and smooth with the constant slope / width,
    but not strongly convex. The best point is the projection of m onto the domain.

    Args:
        dim: as for `linear_losses`.
        radius: as for `linear_losses`.
        feedback: as for `linear_losses`.
        adaptive: as for `linear_losses`.
        domain: as for `linear_losses`.

    Returns:
        An environment as from `linear_losses`, without `regret`. Losses are Lipschitz with the constant slope + tilt +
        drift + push.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        slope: finite and > 0, by default 0.5.
        width: finite and > 0, by default a quarter of the radius.
        target: finite and >= 0, the distance of m from the centre, by default half the radius.
        noise, tilt, drift, period, push: as for `linear_losses`.

    Source:
        Huber (1964).

    Deviations:
        None.
    """
    body = checked_domain(domain, dim, radius)
    towards = diagonal(body.dim)

    def shape(*, slope: float = 0.5, width: float = radius / 4, target: float = radius / 2):
        parameters = {
            "slope": check_positive("slope", slope),
            "width": check_positive("width", width),
            "target": check_at_least("target", target, 0.0),
        }
        return parameters, min(target, body.reach) * towards

    def rise(shape, centre, offset):
        width, away = shape["width"], centre - shape["target"] * jnp.asarray(towards, centre.dtype)
        ends = length(away + offset), length(away - offset)
        # The difference of the distances is computed from the difference of their squares, to avoid cancellation.
        both = ends[0] + ends[1]
        further = 4 * inner(away, offset) / jnp.where(both > 0, both, 1)
        near, far = jnp.minimum(*ends), jnp.maximum(*ends)
        # The mean of h' between the two distances is computed by the trapezium rule, plus the area of the kink above
        # the chord.
        difference = jnp.where(far > near, far - near, 1)
        kink = jnp.maximum(width - near, 0) * jnp.maximum(far - width, 0) / (2 * difference)
        mean = ((jnp.minimum(near, width) + jnp.minimum(far, width)) / 2 + kink) / width
        return shape["slope"] * further * mean

    return convex_environment(body, feedback, False, adaptive, Losses(shape, rise))


@factory
def logistic_losses(
    *, dim: int, radius: float = 1.0, feedback: str = "point", adaptive: bool = False, domain: str = "ball"
) -> Environment:
    """Logistic losses f_t(x) = ln(1 + exp(-y steepness x_j)) - ln 2, with a random coordinate j and a random label y.

    The coordinate j is uniform. The label y is 1 with probability `label_prob`, and -1 otherwise. Losses are convex,
    and smooth with the constant steepness^2 / 4; their mean is strongly convex on the domain. The best point is the
    projection onto the domain of the point with all entries equal to ln(label_prob / (1 - label_prob)) / steepness.

    Args:
        dim: as for `linear_losses`.
        radius: as for `linear_losses`.
        feedback: as for `linear_losses`.
        adaptive: as for `linear_losses`.
        domain: as for `linear_losses`.

    Returns:
        An environment as from `linear_losses`, without `regret`. Losses are Lipschitz with the constant steepness +
        tilt + drift + push.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        steepness: finite and > 0, by default 1.
        label_prob: in (0, 1), by default 0.6.
        noise, tilt, drift, period, push: as for `linear_losses`.

    Source:
        Standard.

    Deviations:
        None.
    """
    body = checked_domain(domain, dim, radius)

    def shape(*, steepness: float = 1.0, label_prob: float = 0.6):
        chance, steepness = check_probability("label_prob", label_prob), check_positive("steepness", steepness)
        along = (math.log(chance) - math.log1p(-chance)) / steepness * math.sqrt(body.dim)
        return {"steepness": steepness, "label_prob": chance}, max(-body.reach, min(body.reach, along)) * diagonal(
            body.dim
        )

    def rise(shape, centre, offset):
        middle, half, chance = shape["steepness"] * centre, shape["steepness"] * offset, shape["label_prob"]
        return jnp.mean(chance * _logistic_rise(middle, half) + (1 - chance) * _logistic_rise(-middle, -half))

    def sample(key, shape):
        key_coordinate, key_label = jax.random.split(key)
        label = jnp.where(jax.random.uniform(key_label, dtype=default_float()) < shape["label_prob"], 1, -1)
        return jax.random.randint(key_coordinate, (), 0, body.dim), label

    def rise_of(shape, sample, centre, offset):
        coordinate, label = sample
        factor = shape["steepness"] * label
        return _logistic_rise(factor * centre[coordinate], factor * offset[coordinate])

    return convex_environment(body, feedback, False, adaptive, Losses(shape, rise, sample, rise_of))


def _logistic_rise(middle: jax.Array, half: jax.Array) -> jax.Array:
    """Returns ln(1 + exp(-(middle + half))) - ln(1 + exp(-(middle - half))), without cancellation."""
    size = jnp.abs(half)
    small = jnp.minimum(size, 1)
    close = jnp.log1p(jnp.expm1(-2 * small) * jax.nn.sigmoid(small - middle))
    far = jax.nn.softplus(-(middle + size)) - jax.nn.softplus(size - middle)
    return jnp.where(half < 0, -1, 1) * jnp.where(size > 1, far, close)
