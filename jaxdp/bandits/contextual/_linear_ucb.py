"""LinUCB: optimism in a linear model of contexts and rewards, from noisy moments that users report.

This list maps Algorithm 5 of LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020) to the code:

* sigma is computed by `moment_randomizer`, and alpha is `failure_prob`;
* Upsilon_t is `ellipsoid.eigenvalue_bound` (L in the docstring); c_t and beta_t are computed by `shift_and_width`;
* V_0, u_0 and theta_0 are computed by `init`;
* `act` chooses x_t by `best_arm`; `privatize` computes the noisy x x^T and y x that the user sends;
* the server's sums of the reports, V~_t and u_t, are `Public.outer` and `Public.cross`; `update` adds to them;
* V_t = V~_t + c_t I and theta_t = V_t^-1 u_t are computed by `solve_model`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.bandits.contextual._contexts import select_context
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
from jaxdp.numerics import compensated
from jaxdp.validation import check_choice, check_count, check_horizon, check_positive

CONSTANTS = ("tight", "paper")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        randomizer: parameters of the randomizer of the report.
        radii: bounds on the noise of the sums, from which the ellipsoid's radius is computed.
        confidence_multiplier: [] float > 0, the factor that multiplies the ellipsoid's radius.
    """

    randomizer: MomentParams
    radii: ellipsoid.Radii
    confidence_multiplier: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        outer: [dim (dim + 1) / 2] sums of the reports of x x^T, one triangle of the matrix.
        cross: [dim] sums of the reports of y x.
        model: the model computed from these sums, in this round or an earlier round.
    """

    round: jax.Array
    outer: compensated.Sum
    cross: compensated.Sum
    model: Model


@factory
def linear_ucb(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    report: str = "gaussian",
    constants: str = "tight",
    update_every: int | float | str = 0.01,
) -> Learner:
    r"""Plays the arm with the largest upper confidence bound x^T theta + beta |x|_V^-1 (LinUCB), on private reports.

    Arms with equal bounds are equally likely.

    A user reports x x^T and y x with noise, where x is the context of the arm played and y the reward. After t rounds,
    V is the sum of the reports of x x^T plus c times the identity. Here c = 2 L, and L >= 1 bounds the eigenvalues of
    the sum of the noise. The model theta is V^-1 u, where u is the sum of the reports of y x. With tight constants and
    confidence_multiplier = 1, |theta - theta*|_V <= beta in all rounds with probability at least 1 - failure_prob,
    where E[y] = x^T theta* and |theta*| <= 1. At epsilon = inf and with tight constants, the learner is OFUL with a
    regularization parameter of 2 and a larger radius.

    Args:
        num_arms: number of contexts in a round K, >= 2.
        dim: dimension of contexts d, >= 1.
        horizon: rounds T, >= 1.
        report: the report of the moments, as for `moment_randomizer`: "gaussian" (normal noise) or "l2_ball".
        constants: "tight"; or "paper", for Gaussian reports: the published noise and radii. Because V_0 = 0 has no
            inverse, "paper" plays uniformly random arms until V is computed for the first time, which is after one
            round, or later if update_every > 1.
        update_every: the rounds after which V, theta and beta are recomputed. An integer n >= 1: every n rounds. A
            number g in (0, 1): whenever t has grown by the fraction 1 / ceil(1 / g), which is about g if g is small.
            "doubling": after the first round, and whenever det V has doubled.

    Returns:
        A learner for contexts ([num_arms, dim] float, each row of norm at most 1; in the report, rows of larger norm
        are scaled to norm 1, and NaN counts as 0) and rewards ([] float, NaN counts as 0); its actions are arms ([]
        int32), and its recommendation is theta ([dim] float).

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range,
            or if epsilon is finite and >= 1.5 with the paper's constants, because the noise is not proved to be
            sufficient there.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        reward_bound: Y, finite and > 0, by default 1: rewards are clipped to [-Y, Y].
        failure_prob: in (0, 1), by default 0.05.
        noise_proxy: with tight constants, R^2 > 0, a variance proxy of y - x^T theta*, by default Y^2, which is valid
            for all rewards in [-Y, Y].
        confidence_multiplier: > 0, by default 1; multiplies beta.

    Privacy:
        - Claim: epsilon-DP ("l2_ball") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one user's context and reward; adjacency: replace one, by any pair.
        - Why: The two moments leave the device in one release (see `moment_randomizer`), or with the paper's constants
          in two releases, which share the budget. The action does not leave the device, because it depends on the
          user's context.
        - Released: all reports, and the models computed from them.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 5. At epsilon = inf: OFUL of Abbasi-Yadkori, Pal &
        Szepesvari (2011), Figure 1, and Figure 3 for "doubling".

    Deviations:
        - Noise is isotropic and analytically calibrated to both moments together, and `docs/proofs/linear_models.md`
          proves the ellipsoid for this noise. Noise and ellipsoid are far smaller than the published ones. "l2_ball"
          has pure differential privacy; the paper claims this for Laplace noise without a proof.
        - The paper's rewards lie in [-2, 2], which corresponds to reward_bound = 2; the default is 1.
        - V, theta and beta are not recomputed in every round. (Measured at 5 dimensions, 20 arms and epsilon = 1: the
          default increases regret by 0.18% in 10^5 rounds; in 20,000 rounds, update_every=0.1 increases regret by 1.2%,
          and "doubling" by 3.4%.) If V has no Cholesky factor, because of rounding or because of an event of
          probability at most failure_prob, the model is not changed.
        - Sums are compensated.

    Math:
        The learner plays the context with the largest bound

        $$
        x^\top \hat\theta + \beta \sqrt{x^\top V^{-1} x}, \quad \hat\theta = V^{-1} \tilde u, \quad V = \tilde M + 2 L I
        $$

        where $\tilde M$ is the sum of the noisy reports of $x x^\top$, $\tilde u$ the sum of the noisy reports of
        $y x$, and $L \ge 1$ bounds the eigenvalues of the sum of the noise. Let $v$ be the vector of all $x_i^2$, all
        $\sqrt{2} x_i x_j$ with $i < j$, and all $y x_i / Y$, for rewards in $[-Y, Y]$. A "gaussian" report is $v + Z$
        with independent normal $Z_k$ of mean 0 and the standard deviation $\sigma$ that solves

        $$
        \delta = \Phi\Big( \frac{\Delta}{2 \sigma} - \frac{\varepsilon \sigma}{\Delta} \Big) -
        e^{\varepsilon} \Phi\Big( -\frac{\Delta}{2 \sigma} - \frac{\varepsilon \sigma}{\Delta} \Big), \quad
        \Delta = \sqrt{4.5}
        $$

        where $\Delta$ is the $L_2$ sensitivity of $v$. With "tight" constants, $\alpha$ for `failure_prob` and $R^2$
        for `noise_proxy`, let

        $$
        L = \max(1, \kappa \sqrt{t}), \quad \kappa = \sigma (\sqrt{2 d} + \sqrt{2 l}), \quad l = \ln(6 T / \alpha)
        $$

        After $t$ rounds the factor $\beta$ is `confidence_multiplier` times the radius

        $$
        r = \sqrt{3 L} + \frac{Y s \sqrt{t} (\sqrt{d} + \sqrt{2 l})}{\sqrt{L}} +
        R \sqrt{2 l + d \ln\Big( 1 + \frac{t}{d L} \Big)}
        $$

        where $s = \sigma$. An "l2_ball" report is a random point of mean $v$ on the sphere of radius

        $$
        B = \sqrt{2 \pi} c \frac{\Gamma((D + 1) / 2)}{\Gamma(D / 2)}, \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}, \quad D = \frac{d (d + 3)}{2}
        $$

        as in `moment_randomizer`. There $s^2$ is a variance proxy of the noise of $v$ in every direction, between
        $B^2 / D$ and $1.13 B^2 / (D - 1)$, and with $m = l + \ln d$

        $$
        L = \max\Big( 1, \frac{B}{\sqrt{D}} \sqrt{(d + 1) m t} + \frac{2}{3} (B + 1) m \Big)
        $$

    Examples:
        >>> learner = linear_ucb(num_arms=10, dim=5, horizon=10_000, report="l2_ball")
        >>> print(learner.guarantee(epsilon=1.0))
        1-DP, local, one user's context and reward
    """
    num_arms, dim = check_count("num_arms", num_arms, 2), check_count("dim", dim)
    rounds = check_horizon(horizon)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"
    randomizer = moment_randomizer(dim, report, constants=constants)
    is_ball = report == "l2_ball"
    update_model = model_updater(update_every)
    randomizer_names = ("epsilon", "reward_bound") if is_ball else ("epsilon", "delta", "reward_bound")

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        reward_bound: float = 1.0,
        failure_prob: float = 0.05,
        noise_proxy: float | None = None,
        confidence_multiplier: float = 1.0,
    ) -> Params:
        randomizer_inputs = {"epsilon": epsilon, "delta": delta, "reward_bound": reward_bound}
        reports: MomentParams = randomizer.params(**{name: randomizer_inputs[name] for name in randomizer_names})
        outer_stddev = float(reports.noise_stddev)
        cross_stddev = float(reports.cross_stddev) * float(reports.reward_bound)  # noise in y x; reports have y x / Y
        proxy = float(reports.reward_bound) ** 2 if noise_proxy is None else check_positive("noise_proxy", noise_proxy)
        sizes: Any = {"dim": dim, "horizon": rounds, "failure_prob": failure_prob}
        if is_paper:  # the paper has one sigma; the two standard deviations are equal for its Y = 2
            radii = ellipsoid.published_radii(**sizes, noise_stddev=max(outer_stddev, cross_stddev))
        else:
            noise: Any = {"noise_stddev": outer_stddev, "cross_stddev": cross_stddev, "noise_proxy": proxy}
            if is_ball:
                radii = ellipsoid.ball_radii(**sizes, **noise, report_radius=float(reports.report_radius))
            else:
                radii = ellipsoid.gaussian_radii(**sizes, **noise)
        multiplier = check_positive("confidence_multiplier", confidence_multiplier)
        return Params(
            randomizer=reports,
            radii=radii,
            confidence_multiplier=scalar_leaf("confidence_multiplier", multiplier),
        )

    def shift_and_width(params: Params, round_: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the shift c_t of V, and the ellipsoid's radius beta_t, both [] float, after t = `round_` rounds."""
        round_float = round_.astype(default_float())
        noise = jnp.sqrt(round_float)  # the scale n of `Radii`: each of t users adds noise
        bound = ellipsoid.eigenvalue_bound(params.radii, noise)
        if is_paper:
            width = ellipsoid.published_width(params.radii, bound, noise, dim)
        else:
            width = ellipsoid.noise_width(params.radii, bound, noise)
            width = width + ellipsoid.reward_width(params.radii, bound, round_float, dim)
        return 2 * bound, params.confidence_multiplier * width

    def init(key, params: Params) -> State:
        del key
        no_rounds, nothing = jnp.zeros((), jnp.result_type(int)), jnp.zeros(dim, default_float())
        model = initial_model(nothing, *shift_and_width(params, no_rounds), no_rounds)
        return State((), Public(no_rounds, compensated.zero(model.factor), compensated.zero(nothing), model))

    def act(key, params: Params, public: Public, context: jax.Array) -> jax.Array:
        del params
        if not is_paper:
            return best_arm(key, public.model, context)
        key_first, key_ties = jax.random.split(key)
        first = jax.random.randint(key_first, (), 0, num_arms, jnp.int32)
        return jnp.where(public.model.solved == 0, first, best_arm(key_ties, public.model, context))

    def privatize(key, params: Params, public: Public, context: jax.Array, action, feedback) -> Moments:
        del public
        return randomizer.report(key, params.randomizer, (select_context(context, action), feedback))

    def update(key, params: Params, state: State, report: Moments) -> State:
        del key
        public: Public = state.public
        round_ = public.round + 1
        outer, cross = add_reports((public.outer, public.cross), (report.outer, report.cross))

        def solve() -> Model:
            return solve_model(outer.total, cross.total, *shift_and_width(params, round_), round_)

        return State((), Public(round_, outer, cross, update_model(public.model, round_, solve)))

    values = only(
        params, (*randomizer_names, "failure_prob", *(() if is_paper else ("noise_proxy",)), "confidence_multiplier")
    )

    def claim(epsilon: float, delta: float = 0.0, reward_bound: float = 1.0) -> Guarantee:
        randomizer_inputs = {"epsilon": epsilon, "delta": delta, "reward_bound": reward_bound}
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
        clip=lambda params: (-params.randomizer.reward_bound, params.randomizer.reward_bound),
    )
