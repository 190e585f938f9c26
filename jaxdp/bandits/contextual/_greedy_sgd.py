"""Greedy play with a linear model that descends private gradients; each user reports one point on a sphere."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.contextual._contexts import products, select_context
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
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms.local_randomizers._ball import randomize_in_ball, sphere_radius
from jaxdp.mechanisms.local_randomizers._host import local_claim
from jaxdp.mechanisms.local_randomizers.vector import into_ball
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_count, check_epsilon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; at infinity the reports are clipped gradients without noise.
        reward_bound: [] float > 0, the absolute value to which rewards are clipped.
        gradient_bound: [] float > 0, the norm to which gradients are clipped.
        report_radius: [] float, the norm of reports divided by gradient_bound.
        step_delay: [] float > 0, the number added to t in the denominator of steps, which delays their decrease.
        step_multiplier: [] float > 0, multiplies steps.
    """

    epsilon: Scalar
    reward_bound: Scalar
    gradient_bound: Scalar
    report_radius: Scalar
    step_delay: Scalar
    step_multiplier: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        theta: [dim] float, the model.
    """

    round: jax.Array
    theta: jax.Array


@factory
def greedy_sgd(*, num_arms: int, dim: int) -> Learner:
    r"""Plays the arm with the largest x^T theta, and updates theta by private gradients of squared errors.

    Arms with equal products are equally likely. The learner does not explore deliberately; it relies on the variation
    of contexts.

    The user of round t computes the gradient (x^T theta - y) x, where x is the context of the arm played and y the
    reward. A gradient of norm above G is scaled down to norm G. It is reported as a random point on the sphere of
    radius B. The step size is d / (t + (d B / Y)^2), which needs no horizon. Theta is projected onto the ball of radius
    Y, because |y| <= Y. The step sizes are those in a Kalman filter. Suppose that theta* had the distribution N(0, (Y^2
    / d) I), and that reports had the mean (theta - theta*) / d and independent Gaussian noise of covariance (B^2 / d)
    I. Then theta, without the projection, would be the mean of theta* given the reports. At epsilon = inf, reports are
    the scaled gradients without noise, and B has its limit value.

    Args:
        num_arms: number of contexts in a round K, >= 2.
        dim: dimension of contexts d, >= 2.

    Returns:
        A learner for contexts ([num_arms, dim] float, each row of norm at most 1; in the report, rows of larger norm
        are scaled to norm 1, and NaN counts as 0) and rewards ([] float, NaN counts as 0); its actions are arms ([]
        int32), and its recommendation is theta ([dim] float).

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        reward_bound: Y, finite and > 0, by default 1: rewards are clipped to [-Y, Y].
        gradient_bound: G, finite and > 0, by default Y / 2. A smaller bound has less noise but more bias, because the
            norm of a gradient can be as large as 2 Y.
        step_multiplier: > 0, by default 1; multiplies the step sizes.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one user's context and reward; adjacency: replace one, by any pair.
        - Why: The gradient leaves the device in one release, by `randomize_in_ball`. The proof of `randomize_in_ball`
          holds for every vector, and also in floating-point arithmetic: for any gradient, each of two opposite points
          has a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon). Theta, the bounds and the step
          sizes are computed from earlier reports and from public values. The action does not leave the device, because
          it depends on the user's context.
        - Released: all reports, and the models computed from them.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Han, Liang, Wang & Zhang (2021), the stochastic gradient estimator with greedy play; Duchi, Jordan & Wainwright
        (2018), section 4.2.3, for the ball.

    Deviations:
        - The authors' program has step sizes sqrt(K) d / (1000 sqrt(t)) at every epsilon, and does not project theta.
        - Their reports are unbiased for gradients of norm at most 1, but the norms of gradients can be larger. Here
          gradients are clipped to a public norm G, so that reports of gradients of larger norm are biased.
        - Only the linear model is implemented, without a warm-up.

        No regret bound is proved for this learner. `benchmarks/published/greedy.json` compares its regret in 20,000
        rounds, at epsilon = 0.5 to 8, with two versions of `linear_ucb(report="l2_ball")`, which have a
        confidence_multiplier of 1 and of 0.1. The regret of `greedy_sgd`, divided by the smaller one of the two regrets
        of `linear_ucb`, is

        - 0.17 to 0.68 in five worlds with contexts on the sphere, and rewards without noise or with uniform noise;
        - 1.1 to 1.6 with rewards of 1 or -1, where nearly all gradients have norms above G; 0.77 to 0.92 with G = 1;
        - 1.7 to 2.7 with two arms of means 0.8 and 0.2 that never change. If contexts do not vary, greedy play may
          never leave a suboptimal arm, and regret grows linearly: half of the regret is from the second half of the
          rounds.

    Math:
        Let $\Pi_r$ scale vectors of norm above $r$ to norm $r$, and let $\theta_1 = 0$. Then round $t = 1, 2, \dots$
        plays the context $x_t$ with the largest $x^\top \theta_t$. With the reward $y_t$, clipped to $[-Y, Y]$,

        $$
        \theta_{t + 1} = \Pi_Y\Big(\theta_t - \frac{d}{t + \tau} \tilde g_t\Big), \quad
        E[\tilde g_t] = \Pi_G\big((x_t^\top \theta_t - y_t) x_t\big)
        $$

        where a `step_multiplier` multiplies the step $d / (t + \tau)$, and $\tilde g_t$ is uniform on one of two
        half-spheres of radius

        $$
        B = G \sqrt{\pi} \frac{\Gamma((d + 1) / 2)}{\Gamma(d / 2)} \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        and steps are delayed by

        $$
        \tau = (d B / Y)^2
        $$

    Examples:
        >>> learner = greedy_sgd(num_arms=10, dim=5)
        >>> print(learner.guarantee(epsilon=1.0))
        1-DP, local, one user's context and reward
    """
    num_arms, dim = check_count("num_arms", num_arms, 2), check_count("dim", dim, 2)

    def params(
        *,
        epsilon: float,
        reward_bound: float = 1.0,
        gradient_bound: float | None = None,
        step_multiplier: float = 1.0,
    ) -> Params:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        reward = check_positive("reward_bound", reward_bound)
        gradient = reward / 2 if gradient_bound is None else check_positive("gradient_bound", gradient_bound)
        report_radius = sphere_radius(dim, epsilon, 1.0)
        scalar_leaf("the length of reports at these epsilon and gradient_bound", gradient * report_radius)
        delay = dim * gradient * report_radius / reward
        delay_name = "the delay of steps at these epsilon, gradient_bound and reward_bound"
        return Params(
            epsilon=budget,
            reward_bound=scalar_leaf("reward_bound", reward),
            gradient_bound=scalar_leaf("gradient_bound", gradient),
            report_radius=scalar_leaf("the length of reports at this epsilon", report_radius),
            step_delay=scalar_leaf(delay_name, check_positive(delay_name, delay * delay)),
            step_multiplier=scalar_leaf("step_multiplier", check_positive("step_multiplier", step_multiplier)),
        )

    def init(key, params: Params) -> State:
        del key, params
        return State((), Public(jnp.zeros((), jnp.result_type(int)), jnp.zeros(dim, default_float())))

    def act(key, params: Params, public: Public, context: jax.Array) -> jax.Array:
        del params
        scores = products(jnp.asarray(context, public.theta.dtype), public.theta)
        return ties.largest(jnp.where(jnp.isnan(scores), jnp.inf, scores), ties.ranks(own_word(key), num_arms))

    def privatize(key, params: Params, public: Public, context: jax.Array, action, feedback) -> jax.Array:
        played = into_ball(jnp.asarray(select_context(context, action), default_float()), 1.0, "l2")
        reward = jnp.asarray(feedback, played.dtype)
        bound, longest = (jnp.asarray(part, played.dtype) for part in (params.reward_bound, params.gradient_bound))
        residual = jnp.sum(played * public.theta) - jnp.clip(jnp.where(jnp.isnan(reward), 0, reward), -bound, bound)
        gradient = into_ball(residual / longest * played, 1.0, "l2")
        noisy = randomize_in_ball(key, gradient, params.epsilon, radius=1.0, report_radius=params.report_radius)
        return longest * jnp.where(jnp.isinf(params.epsilon), gradient, noisy)

    def update(key, params: Params, state: State, report: jax.Array) -> State:
        del key
        public: Public = state.public
        round_ = public.round + 1
        step = params.step_multiplier * dim / (round_.astype(report.dtype) + params.step_delay)
        return State((), Public(round_, into_ball(public.theta - step * report, params.reward_bound, "l2")))

    argument = (
        "one release of the gradient, scaled down: a random point of a sphere or the opposite point, each with "
        "probability at least 1 / (1 + e^epsilon)"
    )
    release_claim = local_claim("one user's context and reward", argument, ("report", "public"))

    def claim(epsilon: float) -> Guarantee:
        return release_claim(epsilon)

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        recommend=lambda params, public: public.theta,
        interface=Interface(arms(num_arms), Space("numbers"), Space("numbers", (num_arms, dim))),
        clip=lambda params: (-params.reward_bound, params.reward_bound),
    )
