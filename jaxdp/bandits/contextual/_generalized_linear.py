"""Optimism in a generalized linear model of contexts and rewards, from noisy moments that users report.

`docs/proofs/linear_models.md` contains the proofs, and maps the lines of the published algorithm to this code.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.bandits.contextual._contexts import select_context
from jaxdp.bandits.contextual._descent import Descent, descent_of, prediction_width, step
from jaxdp.bandits.contextual._model import Model, add_reports, best_arm, initial_model, model_updater, solve_model
from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    arms,
    default_float,
    factory,
    guarantee_for,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import MomentParams, Moments, moment_randomizer
from jaxdp.mechanisms.local_randomizers.vector import into_ball
from jaxdp.numerics import compensated
from jaxdp.numerics.small_linear_algebra import triangle_product
from jaxdp.preferences import Link, logistic
from jaxdp.preferences.links import check_link
from jaxdp.validation import check_count, check_horizon, check_positive

MARGINS = 257  # number of points at which a link's slope is checked


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        randomizer: parameters of the randomizer of the report. The residual g(x^T w) - y takes the place of the reward,
            and residual_bound the place of reward_bound.
        radii: bounds on the noise of the sums.
        descent: the step size, and the constants of the bound on prediction errors, which is one term of the
            ellipsoid's radius.
        confidence_multiplier: [] float > 0, the factor that multiplies the ellipsoid's radius.
    """

    randomizer: MomentParams
    radii: ellipsoid.Radii
    descent: Descent
    confidence_multiplier: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        outer: [dim (dim + 1) / 2] sums of the reports of x x^T, one triangle of the matrix.
        cross: [dim] sums over reports of the matrix x x^T times the iterate that the user saw. This is not the sum of
            `Moments.cross`, which are gradients.
        iterate: [dim] float, the iterate of gradient descent, in the unit ball.
        model: the model computed from these sums, in this round or an earlier round.
    """

    round: jax.Array
    outer: compensated.Sum
    cross: compensated.Sum
    iterate: jax.Array
    model: Model


@factory
def generalized_linear(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    link: Link | str = logistic,
    report: str = "gaussian",
    update_every: int | float | str = 0.01,
) -> Learner:
    r"""Plays optimistically in the model E[y] = g(x^T theta*), |theta*| <= 1, on private moments and gradients.

    The server shows each user an iterate w of gradient descent. The user reports x x^T and the gradient (g(x^T w) - y)
    x, with noise, where x is the context of the arm played and y the reward. Descent takes a step against the reported
    gradient, and projects w onto the unit ball. The predictions x^T w are the labels of a linear regression: theta =
    V^-1 u. Here V is the sum of the reports of x x^T plus 2 L times the identity, and L >= 1 bounds the eigenvalues of
    the sum of the noise. Each report of x x^T is multiplied by the w that its user saw, and u is the sum of these
    products. The learner plays an arm with the largest x^T theta + beta |x|_V^-1. With probability 1 - failure_prob,
    |theta - theta*|_V <= beta in all rounds.

    Args:
        num_arms: number of contexts in a round K, >= 2.
        dim: dimension of contexts d, >= 1.
        horizon: rounds T, >= 1.
        link: the link, with the cumulative distribution function g: `jaxdp.preferences.logistic`, `probit` or another
            `Link`, or the name of a link.
        report: as for `moment_randomizer`: "gaussian", or "l2_ball".
        update_every: as for `linear_ucb`; descent takes a step in every round.

    Returns:
        A learner as from `linear_ucb`, except that it clips the residuals g(x^T w) - y instead of the rewards. If a
        reward is NaN, the residual counts as 0.

    Raises:
        ValueError: if an argument is out of range, there is no such link, or the link's slope is not > 0 on [-1, 1].
            The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        residual_bound: Y, finite and > 0, by default 3: g(x^T w) - y is clipped to [-Y, Y]. The default is 2 C + 1, for
            |g| <= C = 1 and noise in [-1, 1]; for rewards in [0, 1], the value 1 suffices.
        noise_proxy: R^2, a variance proxy of y - g(x^T theta*), by default 1, which is valid for noise in [-1, 1]; for
            rewards in [0, 1] the value 1/4 is valid.
        learning_rate: > 0, by default the value zeta that minimises the bound on prediction errors after T rounds
            (nearly, for Gaussian reports).
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies beta.

    Privacy:
        - Claim: (epsilon, delta)-DP ("gaussian") or epsilon-DP ("l2_ball") in the local model.
        - Unit: one user's context and reward; adjacency: replace one, by any pair.
        - Sensitivity: Both moments leave the device in one release of `moment_randomizer`, with the residual r = g(x .
          w) - y in place of a reward. On the device r is clipped to [-Y, Y], and NaN becomes 0. The iterate w is
          public, and no property of r is assumed. The joint L2 sensitivity of (x x^T, r x / Y) is sqrt(4.5); see
          `docs/proofs/linear_models.md`. The action does not leave the device.
        - Released: all reports, and everything computed from them.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 3. At epsilon = inf it is GLOC of Jun, Bhargava,
        Nowak & Willett (2017), with gradient descent in place of Newton steps.

    Deviations:
        - Gradients have norms of up to 2 C + 1, but the paper's noise is calibrated to the norm C. With the paper's
          noise, the claim does not hold for every C: at epsilon = 0.9 and delta = 1e-5 it fails at C = 0.4, and holds
          at C = 1 only by the slack of the paper's calibration.
        - The paper also releases (x^T w) x. Here the server computes this vector from the report of x x^T and from w.
          The other two moments are one release, with isotropic, analytically calibrated noise.
        - The published radius is stated only up to a constant factor, so there is no `constants="paper"`;
          `docs/proofs/linear_models.md` derives a radius with explicit constants. The default step size (nearly)
          minimises this radius; the published step size is a constant divided by sqrt(T).
        - V, theta and beta are not recomputed in every round. Sums are compensated.

    Math:
        User $t$ sees $w_t$ and plays the context with the largest bound

        $$
        x^\top \hat\theta + \beta_t \sqrt{x^\top V^{-1} x}, \quad
        \hat\theta = V^{-1} \tilde u, \quad V = \tilde M + 2 L I
        $$

        where $\tilde M$ is the sum of the noisy reports of $x x^\top$, and $\tilde u$ the sum of the same reports, each
        times the $w_t$ of its user. With $\tilde g_t$ the noisy report of $(g(x_t^\top w_t) - y_t) x_t$, the iterate
        moves by

        $$
        w_{t+1} = \Pi( w_t - \zeta \tilde g_t )
        $$

        where $\Pi$ projects onto the unit ball. For Gaussian reports the noise of each entry of $\tilde g_t$ has the
        standard deviation $s = Y \sigma$, where $\sigma$ is calibrated to the $L_2$ sensitivity $\sqrt{4.5}$, and by
        default

        $$
        \zeta = \frac{1}{\sqrt{(Y^2 + d s^2) T + 2 s^2 \sqrt{2 d l T} + 2 s^2 l}}, \quad l = \ln(6 T / \alpha)
        $$

        where $\alpha$ is `failure_prob`.

    Examples:
        >>> learner = generalized_linear(num_arms=10, dim=5, horizon=10_000, link="probit", report="l2_ball")
        >>> print(learner.guarantee(epsilon=1.0))
        1-DP, local, one user's context and reward
    """
    num_arms, dim = check_count("num_arms", num_arms, 2), check_count("dim", dim)
    rounds, model_link = check_horizon(horizon), check_link(link)
    curvature = smallest_slope(model_link)
    randomizer = moment_randomizer(dim, report)
    is_ball = report == "l2_ball"
    update_model = model_updater(update_every)
    randomizer_names = ("epsilon",) if is_ball else ("epsilon", "delta")

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        residual_bound: float = 3.0,
        noise_proxy: float = 1.0,
        learning_rate: float | None = None,
        failure_prob: float = 0.05,
        confidence_multiplier: float = 1.0,
    ) -> Params:
        check_positive("residual_bound", residual_bound)
        randomizer_inputs = {"epsilon": epsilon, "delta": delta}
        reports: MomentParams = randomizer.params(
            **{name: randomizer_inputs[name] for name in randomizer_names}, reward_bound=residual_bound
        )
        bound, outer_stddev = float(reports.reward_bound), float(reports.noise_stddev)
        # The noise of r x / Y: its standard deviation in each entry or, for "l2_ball", its sub-Gaussian parameter.
        cross_stddev = float(reports.cross_stddev)
        radius = float(reports.report_radius) if outer_stddev > 0 else 0.0
        sizes: dict[str, Any] = {"dim": dim, "horizon": rounds, "failure_prob": failure_prob}
        # The noise of the sums from which the model is computed. In every direction, the noise of x x^T w in a report
        # is at most the noise of one entry of the report, because |w| <= 1.
        noise: dict[str, Any] = {
            "noise_stddev": outer_stddev,
            "cross_stddev": cross_stddev,
            "noise_proxy": noise_proxy,
        }
        radii = (
            ellipsoid.ball_radii(**sizes, **noise, report_radius=radius)
            if is_ball
            else ellipsoid.gaussian_radii(**sizes, **noise)
        )
        descent = descent_of(
            dim=dim,
            horizon=rounds,
            log_term=ellipsoid.log_term_of(rounds, failure_prob),
            residual_bound=bound,
            noise_stddev=bound * cross_stddev,
            report_radius=bound * radius,
            mean_square=dim * (bound * outer_stddev) ** 2,
            curvature=curvature,
            noise_proxy=noise_proxy,
            learning_rate=learning_rate,
        )
        multiplier = check_positive("confidence_multiplier", confidence_multiplier)
        return Params(
            randomizer=reports,
            radii=radii,
            descent=descent,
            confidence_multiplier=scalar_leaf("confidence_multiplier", multiplier),
        )

    def shift_and_width(params: Params, round_: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the shift c_t of V, and the ellipsoid's radius beta_t, both [] float, after t = `round_` rounds."""
        round_float = round_.astype(default_float())
        noise = jnp.sqrt(round_float)  # the scale n of `Radii`: each of t users adds noise
        bound = ellipsoid.eigenvalue_bound(params.radii, noise)
        width = prediction_width(params.descent, round_float) + ellipsoid.noise_width(params.radii, bound, noise)
        return 2 * bound, params.confidence_multiplier * width

    def init(key, params: Params) -> State:
        del key
        no_rounds, nothing = jnp.zeros((), jnp.result_type(int)), jnp.zeros(dim, default_float())
        model = initial_model(nothing, *shift_and_width(params, no_rounds), no_rounds)
        return State((), Public(no_rounds, compensated.zero(model.factor), compensated.zero(nothing), nothing, model))

    def act(key, params: Params, public: Public, context: jax.Array) -> jax.Array:
        del params
        return best_arm(key, public.model, context)

    def privatize(key, params: Params, public: Public, context: jax.Array, action, feedback) -> Moments:
        x = into_ball(jnp.asarray(select_context(context, action), default_float()), 1.0, "l2")
        residual = model_link.cdf(jnp.sum(x * public.iterate)) - jnp.asarray(feedback, x.dtype)
        return randomizer.report(key, params.randomizer, (x, residual))  # clips the residual

    def update(key, params: Params, state: State, report: Moments) -> State:
        del key
        public: Public = state.public
        round_ = public.round + 1
        labelled = triangle_product(report.outer, public.iterate)  # z x with noise, where z = x^T w is the label
        outer, cross = add_reports((public.outer, public.cross), (report.outer, labelled))
        iterate = step(params.descent, public.iterate, report.cross)  # r x with noise: the gradient

        def solve() -> Model:
            return solve_model(outer.total, cross.total, *shift_and_width(params, round_), round_)

        model = update_model(public.model, round_, solve)
        return State((), Public(round_, outer, cross, iterate, model))

    values = only(
        params,
        (*randomizer_names, "residual_bound", "noise_proxy", "learning_rate", "failure_prob", "confidence_multiplier"),
    )

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        randomizer_inputs = {"epsilon": epsilon, "delta": delta}
        return randomizer.guarantee(**{name: randomizer_inputs[name] for name in randomizer_names})

    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        recommend=lambda params, public: public.model.theta,
        horizon=rounds,
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim))),
    )


def smallest_slope(link: Link) -> float:
    """Returns the minimum derivative of the link's cumulative distribution function on a grid of [-1, 1].

    The grid contains both ends, where the derivatives of "logistic" and "probit" are smallest.

    Raises:
        ValueError: if this minimum is not > 0.
    """
    with jax.ensure_compile_time_eval():
        margins = jnp.linspace(-1, 1, MARGINS, dtype=default_float())
        slope = float(np.min(np.asarray(link.cdf(margins) * link.slope(margins), np.float64)))
    if not slope > 0:
        raise ValueError(f"link must have a slope > 0 on [-1, 1], got {slope} of {link.name}")
    return slope
