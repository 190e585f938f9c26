"""The estimator of Thurstone's model under randomized response."""

import optax

from jaxdp.core import Estimator, reusing_factory
from jaxdp.estimation._sgd import sgd_rr
from jaxdp.preferences import probit


@reusing_factory
def thurstone_rr(
    *,
    step_size: str = "constant",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    r"""Builds `sgd_rr` with the probit link: one pass of projected SGD on the de-biased loss of randomized labels.

    In expectation the gradient of a sample (see Math) is 2p - 1 times the gradient at the label itself, p =
    sigmoid(epsilon).

    The loss of exact labels is convex. On |x^T theta| <= 2 L B it is strongly convex, with curvature at least
    `probit.curvature(2 L B)`, the curvature of -log Phi at 2 L B. The de-biased loss of one report is not convex, since
    the unbiased label lies outside [0, 1]; SGD needs only that its expectation is the loss of the label. The
    certificate of the full-batch minimiser (`debiased_rr(link=probit)`) certifies only a stationary point.

    The logistic loss depends on the labels y only through the sum of y * x over samples. The probit loss does not, so
    `objective_perturbation` has no probit form.

    Args:
        step_size: "constant" (learning_rate), or "inverse_time": 1 / (gamma_eps kappa t) at sample t (see `sgd_rr`).
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        zero_sum: whether to constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant step.

    Returns:
        An estimator like `sgd_rr`.

    Raises:
        ValueError: as `sgd_rr`.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: Each label is reported once by randomized response.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 4.4, and eq. (10).

    Deviations:
        As `sgd_rr`. Gradients are bounded by 2 L * probit.slope(-2 L B), which grows with L B. The logistic link has
        the bound 2 L.

    Math:
        Let $z_t = x_t^\top \theta_t$, $\varphi$ and $\Phi$ be the normal density and distribution function,
        $p = 1 / (1 + e^{-\varepsilon})$, and $r_t$ the report of label $t$. With the other symbols of `sgd_rr`,

        $$
        \theta_{t+1} = \Pi\Big( \theta_t - \eta_t (2 p - 1) \varphi(z_t) \Big( \frac{1 - \tilde y_t}{\Phi(-z_t)} -
        \frac{\tilde y_t}{\Phi(z_t)} \Big) x_t \Big), \quad \tilde y_t = \frac{r_t - (1 - p)}{2 p - 1}
        $$
    """
    return sgd_rr(link=probit, step_size=step_size, average=average, zero_sum=zero_sum, optimizer=optimizer)
