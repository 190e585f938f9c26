"""One-pass stochastic gradient descent, from exact labels or from randomized labels.

This list maps the lines of Algorithm 1 of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) to the code of `sgd_rr`:

* 1, the learning rates eta_t: `first_step`, and `Recipe.inverse_time`; the ball Theta_B: `Params.radius`.
* 2 to 4, theta_1 = 0 and a loop over samples: `one_pass`.
* 5, randomized response: `report_randomized`, for all labels at once.
* 6, the gradient: `Pass.gain` times `Model.slope` times x, with an unbiased estimate of the label, computed from the
  report, in place of the label (`Model.targets`). This equals the paper's gradient, see `sgd_rr`.
* 7, 9, the projected step and the output: `one_pass`. With average="none" the output is the last iterate, as in the
  paper.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.core import Estimator, Guarantee, Scalar, guarantee_for, only, reusing_factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.constraints import center, radius_leaf, rate_leaf
from jaxdp.estimation.label_params import clear_labels_claim, randomized_labels_claim
from jaxdp.estimation.label_reports import report_clear, report_randomized, unbiased_labels
from jaxdp.estimation.objectives import label_loss
from jaxdp.estimation.one_pass import AVERAGES, Pass, Recipe, one_pass
from jaxdp.estimation.solver import Estimate
from jaxdp.preferences import Link, logistic
from jaxdp.validation import check_above, check_choice, check_epsilon

LARGEST_STEP = 1e12
STEP_SIZES = ("constant", "inverse_time")


@pytree_dataclass
class Params:
    """Values that a sweep may vary.

    Attributes:
        epsilon: [] float > 0, budget of the randomized response; at infinity the labels themselves are reported.
        radius: [] float > 0, bound B on the parameter's norm; infinity means no projection.
        learning_rate: [] float > 0, the constant step size eta; used only for "constant" without an optimizer.
        coverage: [] float > 0, kappa, smallest eigenvalue of the covariance of the differential features; used only for
            "inverse_time".
        feature_norm: [] float > 0, L, bound on the norm of an action's features phi; used only for "inverse_time". A
            differential feature x, one action's features minus the other action's, has norm at most 2 L.
    """

    epsilon: Scalar
    radius: Scalar
    learning_rate: Scalar
    coverage: Scalar
    feature_norm: Scalar


class Model(NamedTuple):
    """The functions of a preference model under randomized response that one pass of SGD needs.

    Attributes:
        slope: (margins, targets) -> derivative of one sample's loss with respect to its margins; see `Recipe`.
        targets: (report, epsilon, features) -> [num_samples, ...], an unbiased estimate of each label.
        gain: (epsilon, features) -> [] float in (0, 1], the factor by which randomizing shrinks the expected gradient:
            2p - 1 for a comparison, where p = sigmoid(epsilon).
        curvature: (feature_norm, radius) -> [] float, gamma, a lower bound on the curvature of the loss as a function
            of the margins, for all theta in the ball.
    """

    slope: Callable[[jax.Array, jax.Array], jax.Array]
    targets: Callable[[jax.Array, Scalar, jax.Array], jax.Array]
    gain: Callable[[jax.Array, jax.Array], jax.Array]
    curvature: Callable[[jax.Array, jax.Array], jax.Array]


def pairwise(link: Link) -> Model:
    """Returns the model of comparisons of two actions, in which `link` gives the probability of the label 1."""
    return Model(
        slope=label_loss(link).slope,
        targets=lambda report, epsilon, features: unbiased_labels(report, epsilon),
        gain=lambda epsilon, features: jnp.tanh(epsilon / 2),  # 2p - 1
        # Every link here has its smallest curvature over |z| <= 2 L B at the margin 2 L B.
        curvature=lambda feature_norm, radius: link.curvature(2 * feature_norm * radius),
    )


def first_step(params: Params, step_size: str, model: Model, gain: jax.Array) -> jax.Array:
    """Returns the step size at the first sample, [] float: learning_rate, or 1 / (gamma_eps kappa) for "inverse_time".

    gamma is the model's least curvature, and gamma_eps = gain * gamma is the least curvature of the de-biased loss. For
    "inverse_time", the step at sample t is the first step divided by t. This first step is capped at 1e12, also if
    gamma underflows (for the logistic link in float32, if 2 L B is above about 87).

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 4.5, with the step size of its proof (the statement drops
        the t and the epsilon).
    """
    dtype = gain.dtype
    if step_size == "constant":
        return jnp.asarray(params.learning_rate, dtype)
    radius, norm, coverage = (
        jnp.asarray(value, dtype) for value in (params.radius, params.feature_norm, params.coverage)
    )
    return jnp.minimum(1 / (gain * model.curvature(norm, radius) * coverage), LARGEST_STEP)


def estimate_without_certificate(theta: jax.Array, num_samples: int) -> Estimate:
    """Builds the estimate of an algorithm that computes no certificate (see `Estimate`).

    The field `certificate` is infinity, and `converged` is False.
    """
    return Estimate(
        theta=theta,
        certificate=jnp.asarray(jnp.inf, theta.dtype),
        steps=jnp.int32(num_samples),
        converged=jnp.asarray(False),
    )


def one_pass_estimator(
    params: Callable[..., Params],
    claim: Callable[..., Guarantee],
    privatize: Callable[..., jax.Array],
    *,
    model: Model,
    step_size: str,
    average: str,
    zero_sum: bool,
    optimizer: optax.GradientTransformation | None,
) -> Estimator:
    """Builds an estimator that makes one pass of SGD on the de-biased loss of the labels that `privatize` reports.

    Reports are randomized at the grid point's epsilon; at infinity they are the labels. `params` builds a grid point,
    `claim` is the guarantee, and `model` the preference model. The other arguments are as for `sgd`.
    """
    check_choice("step_size", step_size, STEP_SIZES)
    check_choice("average", average, AVERAGES)
    if optimizer is not None and step_size != "constant":
        raise ValueError(f"step_size must be left at 'constant' if an optimizer is given, got {step_size!r}")
    recipe = Recipe(model.slope, average, step_size == "inverse_time", zero_sum)

    def checked_params(**values) -> Params:
        point = params(**values)
        for name in ("radius", "coverage", "feature_norm") if step_size == "inverse_time" else ():
            if not np.isfinite(getattr(point, name)):
                raise ValueError(f"{name} must be finite for step_size='inverse_time', got {getattr(point, name)}")
        return point

    read_names = {"epsilon", "radius"}  # all other values are rejected
    if optimizer is None:
        read_names |= {"learning_rate"} if step_size == "constant" else {"coverage", "feature_norm"}
    read_params = only(functools.wraps(params)(checked_params), read_names)

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        dtype = features.dtype
        gain = model.gain(jnp.asarray(params.epsilon, dtype), features)
        data = Pass(
            features=center(features) if zero_sum else features,
            targets=model.targets(report, params.epsilon, features).astype(dtype),
            gain=gain,
            rate=first_step(params, step_size, model, gain),
            radius=jnp.asarray(params.radius, dtype),
        )
        return estimate_without_certificate(one_pass(data, recipe, optimizer), features.shape[0])

    return Estimator(read_params, guarantee_for(read_params, claim), privatize, fit, features_public=True)


def randomized_params(
    *,
    epsilon: float,
    radius: float = np.inf,
    learning_rate: float = 0.1,
    coverage: float = np.inf,
    feature_norm: float = np.inf,
) -> Params:
    """Checks the values of a grid point and builds its `Params`."""
    return Params(
        epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
        radius=radius_leaf(radius),
        learning_rate=rate_leaf(learning_rate),
        coverage=scalar_leaf("coverage", check_above("coverage", coverage, 0.0)),
        feature_norm=scalar_leaf("feature_norm", check_above("feature_norm", feature_norm, 0.0)),
    )


def clear_params(
    *, radius: float = np.inf, learning_rate: float = 0.1, coverage: float = np.inf, feature_norm: float = np.inf
) -> Params:
    """Checks the values of a grid point of a non-private estimator, and builds its `Params` with infinite epsilon."""
    return randomized_params(
        epsilon=np.inf, radius=radius, learning_rate=learning_rate, coverage=coverage, feature_norm=feature_norm
    )


@reusing_factory
def sgd(
    *,
    link: Link = logistic,
    step_size: str = "constant",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    r"""Builds an estimator that makes one pass of SGD over exact labels, the non-private baseline for `sgd_rr`.

    Args:
        link: preference model F; `logistic` (BTL) or `probit` (Thurstone).
        step_size: "constant" (learning_rate), or "inverse_time": 1 / (gamma kappa t) at sample t.
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        zero_sum: whether to constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant step.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}, or float in
        {0, 1/2, 1}; 1/2 is a tie. The samples are processed in order. The `params` take radius (default inf). Without
        an optimizer they also take learning_rate (0.1) or, for "inverse_time", coverage kappa, the smallest eigenvalue
        of the covariance of the features, and feature_norm L (features have norms of at most 2 L).

    Raises:
        ValueError: if step_size or average is unknown, or an optimizer is given with "inverse_time". The result's
            `params` raises this error if a value is not > 0 or too large or small for the float type, or if radius,
            coverage or feature_norm is infinite for "inverse_time".

    Privacy:
        - None.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6.

    Deviations:
        Averaging is an addition, on by default: with a constant step, the last iterate's error does not fall with n.

    Math:
        Sample $t$ moves the estimate, for the logistic link $F$, by

        $$
        \theta_{t+1} = \Pi( \theta_t - \eta_t ( F(x_t^\top \theta_t) - y_t ) x_t )
        $$

        where $\Pi$ projects onto the ball of radius $B$. For "inverse_time"

        $$
        \eta_t = \frac{1}{\gamma \kappa t}, \quad \gamma = \frac{1}{2 + e^{-2 L B} + e^{2 L B}}
        $$
    """
    return one_pass_estimator(
        clear_params,
        clear_labels_claim,
        report_clear,
        model=pairwise(link),
        step_size=step_size,
        average=average,
        zero_sum=zero_sum,
        optimizer=optimizer,
    )


@reusing_factory
def sgd_rr(
    *,
    link: Link = logistic,
    step_size: str = "constant",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    r"""Builds an estimator that makes one pass of SGD on the de-biased loss of randomized labels.

    Let P_y be the model's probability of the label y, r the report, and p = sigmoid(epsilon). The gradient of a sample
    (see Math) equals the paper's [grad log P_0 + grad log P_1] / (e^epsilon + 1) - grad log P_r. In expectation it is
    2p - 1 times the gradient at the label itself. For the logistic link a sample's gradient has norm at most 2 L p.

    Args:
        link: preference model F; `logistic` (BTL) or `probit` (Thurstone).
        step_size: "constant" (learning_rate), or "inverse_time": the corrected step 1 / (gamma_eps kappa t) at sample t
            (see Math), which requires a finite radius B, and kappa and L as `coverage` and `feature_norm`.
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        zero_sum: whether to constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant step.

    Returns:
        An estimator like `sgd`, but its `params` take epsilon as well.

    Raises:
        ValueError: as `sgd`. The result's `params` also raises this error if epsilon is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: Each label is reported once by randomized response.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (10), Theorem 4.5, Algorithm 1.

    Deviations:
        The "inverse_time" step is 1/(gamma_eps kappa t), as in the proof of Theorem 4.5; its statement prints
        1/(gamma kappa), a constant step, with which the last iterate does not converge. Averaging is an addition, on by
        default.

    Math:
        Let $F$ be the logistic link, $p = 1 / (1 + e^{-\varepsilon})$, $x_t$ the features of sample $t$ and $r_t$ the
        report of its label. $\Pi$ projects onto the ball of radius $B$. This sample moves the estimate by

        $$
        \theta_{t+1} = \Pi( \theta_t - \eta_t (2 p - 1) ( F(x_t^\top \theta_t) - \tilde y_t ) x_t ), \quad
        \tilde y_t = \frac{r_t - (1 - p)}{2 p - 1}
        $$

        By default $\eta_t$ is `learning_rate`. With a bound $2 L$ on the norm of $x_t$, and the smallest eigenvalue
        $\kappa$ of the covariance of $x_t$, the corrected step size of "inverse_time", from the proof of Theorem 4.5,
        is

        $$
        \eta_t = \frac{1}{\gamma_\varepsilon \kappa t}, \quad \gamma_\varepsilon = (2 p - 1) \gamma, \quad
        \gamma = \frac{1}{2 + e^{-2 L B} + e^{2 L B}}
        $$
    """
    return one_pass_estimator(
        randomized_params,
        randomized_labels_claim,
        report_randomized,
        model=pairwise(link),
        step_size=step_size,
        average=average,
        zero_sum=zero_sum,
        optimizer=optimizer,
    )
