"""LinUCB from sums that one continual counter privatizes.

The algorithm is Algorithm 5 of LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), as in `_linear_ucb`, with two changes.
The user sends x and y to the curator (`privatize`). The counter adds noise to the sums V~_t and u_t, which `solve`
reads.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.bandits.contextual._contexts import select_context
from jaxdp.bandits.contextual._model import Model, best_arm, initial_model, model_updater, solve_model
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
from jaxdp.mechanisms import Counter, toeplitz_counter, tree_counter
from jaxdp.mechanisms.continual_counting.arity import best_arity, num_digits
from jaxdp.mechanisms.local_randomizers.vector import into_ball, norm_error
from jaxdp.mechanisms.numerical import TOEPLITZ_STEPS, gaussian_rho, normal_delta, tree_steps
from jaxdp.numerics.fixed_point import UNITS
from jaxdp.numerics.small_linear_algebra import square_triangle, triangle
from jaxdp.validation import check_choice, check_count, check_horizon, check_positive

COUNTERS = ("toeplitz", "tree")
ONE_SIGMA = math.erfc(math.sqrt(0.5))  # the probability that |z| > 1 for a standard normal z


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        counter: parameters of the counter.
        radii: constants of the bounds on the noise of the sums. Their scale n is the standard deviation of the
            counter's noise.
        reward_bound: [] float > 0, the absolute value to which rewards are clipped.
        confidence_multiplier: [] float > 0, the factor that multiplies the ellipsoid's radius.
    """

    counter: Any
    radii: ellipsoid.Radii
    reward_bound: Scalar
    confidence_multiplier: Scalar


class Report(NamedTuple):
    """A user's data, which only the curator sees.

    Attributes:
        context: [dim] float in the unit ball, the context of the arm that was played.
        reward: [] float, clipped.
    """

    context: jax.Array
    reward: jax.Array


class Public(NamedTuple):
    """Public state: the released model.

    Attributes:
        round: [] integer, rounds played.
        model: the model computed from the counter's sums, in this round or an earlier round.
    """

    round: jax.Array
    model: Model


@factory
def linear_ucb_joint(
    *,
    num_arms: int,
    dim: int,
    horizon: int,
    counter: str = "toeplitz",
    update_every: int | float | str = 0.01,
) -> Learner:
    r"""Plays LinUCB in the joint model: a curator sees contexts and rewards, and releases models from private sums.

    The learner is `linear_ucb`, except that users send x and y to the curator, and one continual counter sums x x^T and
    y x / Y with Y = reward_bound. After t rounds the counter's noise has the standard deviation v_t on the diagonal of
    x x^T and in each entry of y x / Y, and v_t / sqrt(2) off the diagonal. v_t is of order sqrt(ln t ln T) with the
    Toeplitz counter, and at most of order ln T with the tree. In contrast, the noise of t local reports would grow as
    sqrt(t). Section Math defines the model and its confidence ellipsoid.

    Args:
        num_arms: number of contexts in a round K, >= 2.
        dim: dimension of contexts d, >= 1.
        horizon: rounds T, >= 1.
        counter: "toeplitz" (noise correlated as in the square-root factorisation) or "tree" (a tree of noisy sums,
            which needs more noise and more time).
        update_every: the rounds after which theta and beta are recomputed, as for `linear_ucb`. Unless it is
            "doubling", the counter is read only in rounds with an update.

    Returns:
        A learner for contexts ([num_arms, dim] float, each row of norm at most 1; in the report, rows of larger norm
        are scaled to norm 1, and NaN counts as 0) and rewards ([] float, NaN counts as 0); its actions are arms ([]
        int32), and its recommendation is theta ([dim] float). Let D = d (d + 3) / 2. A lane stores 2 D integers for
        exact sums. For noise it stores D 64-bit integers for each running sum in the Toeplitz counter (at most 6
        running sums for T <= 2^20), or for each level of the tree (at most log2(T) + 1 levels).

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: in (0, 1).
        reward_bound: Y, finite and > 0, by default 1: rewards are clipped to [-Y, Y].
        failure_prob: in (0, 1), by default 0.05.
        noise_proxy: R^2, finite and > 0, a variance proxy of y - x^T theta* (see Math), by default Y^2.
        confidence_multiplier: > 0, by default 1; multiplies beta.

    Privacy:
        - Claim: (epsilon, delta)-DP in the joint model, for the joint view of all users except the replaced one.
        - Unit: one user's context and reward; adjacency: replace one, by any pair.
        - Why: A user is one entry of the counter's stream. Replacing the user changes the entry by at most sqrt(4.5) in
          L2 norm (see `moment_randomizer`), and the counter is calibrated to this sensitivity plus the rounding of its
          entries. Everybody sees the models, which are functions of the counter's output. A user's own action, and the
          data that the user sends to the curator, also depend directly on the user's context.
        - Released: models.
        - Private: the counter.

    Source:
        Shariff & Sheffet (2018), Algorithms 1 and 2, with shifted regularisers.

    Deviations:
        One noise vector covers both moments; the noise is isotropic and analytically calibrated. The paper uses a
        binary tree of Wishart or Gaussian matrices; by default the square-root factorisation replaces the tree. The
        model is not recomputed in every round; if V has no Cholesky factor, the model is not changed. The diagonal of x
        x^T, sqrt(2) times the entries above it, and y x / Y are rounded to multiples of 2^-20 and summed as integers.
        Noise is integer, in steps of a public grid, as in `toeplitz_counter`.

    Math:
        The learner plays the context with the largest bound

        $$
        x^\top \hat\theta + \beta_t \sqrt{x^\top V^{-1} x}, \quad
        \hat\theta = V^{-1} \tilde u, \quad V = \tilde M + 2 L_t I
        $$

        where $\tilde M$ is the counter's sum of $x x^\top$, and $\tilde u$ is $Y$ times the counter's sum of $y x / Y$.
        The counter is calibrated to the $L_2$ sensitivity $\sqrt{4.5}$. With $v_t$ the standard deviation of its noise,
        and $\alpha$ `failure_prob`, let

        $$
        L_t = \max(1, \kappa v_t), \quad \kappa = \sqrt{2 d} + \sqrt{2 l}, \quad l = \ln(6 T / \alpha)
        $$

        Let $E[y] = x^\top \theta^*$ with $|\theta^*| \le 1$. $v_t$ includes the noise that covers rounding for a single
        counter; for the Toeplitz counter with a very large $T / \varepsilon$ the noise is larger (1.05 times at
        $T = 2^{30}$, $d = 5$ and $\varepsilon = 1$), and what follows is not proven.

        With probability $1 - \alpha$, in all rounds, the eigenvalues of the noise in $\tilde M$ are at most $L_t$ in
        absolute value, and the distance of the model from $\theta^*$ in the norm of $V$ is at most

        $$
        \beta_t = \sqrt{3 L_t} + \frac{Y v_t (\sqrt{d} + \sqrt{2 l})}{\sqrt{L_t}} +
        R \sqrt{2 l + d \ln\Big( 1 + \frac{t}{d L_t} \Big)}
        $$

    Examples:
        >>> learner = linear_ucb_joint(num_arms=10, dim=5, horizon=10_000)
        >>> print(learner.guarantee(epsilon=1.0, delta=1e-5))
        (1, 1e-05)-DP (rounding: delta 7e-07), joint, one user's context and reward
    """
    num_arms, dim = check_count("num_arms", num_arms, 2), check_count("dim", dim)
    rounds = check_horizon(horizon, spare=1)
    noisy_sums, update_model = _counter(counter, rounds), model_updater(update_every)
    num_entries = dim * (dim + 3) // 2

    def params(
        *,
        epsilon: float,
        delta: float,
        reward_bound: float = 1.0,
        failure_prob: float = 0.05,
        noise_proxy: float | None = None,
        confidence_multiplier: float = 1.0,
    ) -> Params:
        bound = scalar_leaf("reward_bound", check_positive("reward_bound", reward_bound))
        proxy = float(bound) ** 2 if noise_proxy is None else check_positive("noise_proxy", noise_proxy)
        # The counter rounds each entry of the old and the new vector by at most half a step of 2^-20.
        sensitivity = math.sqrt(4.5) * (1 + 4 * norm_error(dim)) + math.sqrt(num_entries) / UNITS
        multiplier = check_positive("confidence_multiplier", confidence_multiplier)
        return Params(
            counter=noisy_sums.params(epsilon=epsilon, delta=delta, l2_sensitivity=sensitivity),
            radii=ellipsoid.gaussian_radii(
                dim=dim,
                horizon=rounds,
                failure_prob=failure_prob,
                noise_stddev=1.0,
                cross_stddev=float(bound),
                noise_proxy=proxy,
            ),
            reward_bound=bound,
            confidence_multiplier=scalar_leaf("confidence_multiplier", multiplier),
        )

    def claim(epsilon: float, delta: float) -> Guarantee:
        rho = gaussian_rho(epsilon, delta)
        if counter == "toeplitz":  # fresh noise hides the change in its own round and in every later round
            added = normal_delta(rounds * num_entries, rho=rho, steps=TOEPLITZ_STEPS)
        else:
            levels = num_digits(rounds, best_arity(rounds, noise="gaussian"))
            steps = tree_steps(3 * math.sqrt(levels / rho), 1 / UNITS)
            added = normal_delta(levels * num_entries, rho=rho, steps=steps)
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="joint",
            privacy_unit="one user's context and reward",
            argument="one Gaussian counter over (x x^T, y x), clipped, at L2 sensitivity sqrt(4.5)",
            numerical_delta=added,
        )

    def shift_and_width(params: Params, round_: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the shift c_t of V, and the ellipsoid's radius beta_t, both [] float, after t = `round_` rounds."""
        stddev = noisy_sums.radius(params.counter, jnp.maximum(round_, 1), ONE_SIGMA)
        noise = jnp.where(round_ > 0, stddev, 0)  # v_t, the scale n of `Radii`
        bound = ellipsoid.eigenvalue_bound(params.radii, noise)
        width = ellipsoid.noise_width(params.radii, bound, noise)
        width = width + ellipsoid.reward_width(params.radii, bound, round_.astype(noise.dtype), dim)
        return 2 * bound, params.confidence_multiplier * width

    def init(key, params: Params) -> State:
        no_rounds, nothing = jnp.zeros((), jnp.result_type(int)), jnp.zeros(dim, default_float())
        model = initial_model(nothing, *shift_and_width(params, no_rounds), no_rounds)
        return State(
            noisy_sums.init(key, params.counter, (num_entries,), dtype=default_float()), Public(no_rounds, model)
        )

    def act(key, params: Params, public: Public, context: jax.Array) -> jax.Array:
        del params
        return best_arm(key, public.model, context)

    def privatize(key, params: Params, public: Public, context: jax.Array, action, feedback) -> Report:
        del key, public
        bound, reward = jnp.asarray(params.reward_bound), jnp.asarray(feedback, default_float())
        reported_context = into_ball(jnp.asarray(select_context(context, action), default_float()), 1.0, "l2")
        return Report(reported_context, jnp.clip(jnp.where(jnp.isnan(reward), 0, reward), -bound, bound))

    def update(key, params: Params, state: State, report: Report) -> State:
        entry = joint_vector(report.context, report.reward / jnp.asarray(params.reward_bound))
        private = noisy_sums.feed(key, params.counter, state.private, entry)
        round_ = state.public.round + 1

        def solve() -> Model:
            outer, cross = joint_moments(noisy_sums.read(params.counter, private), dim)
            return solve_model(outer, params.reward_bound * cross, *shift_and_width(params, round_), round_)

        return State(private, Public(round_, update_model(state.public.model, round_, solve)))

    values = only(params, ("epsilon", "delta", "reward_bound", "failure_prob", "noise_proxy", "confidence_multiplier"))
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
        clip=lambda params: (-params.reward_bound, params.reward_bound),
    )


def joint_vector(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns x x^T and y x of a user as one vector [dim (dim + 3) / 2] with the same norm as (x x^T, y x)."""
    # First the `triangle` of x x^T, with off-diagonal entries multiplied by sqrt(2); then y x.
    return jnp.concatenate([square_triangle(x) * _roots(len(x), x.dtype), y * x])


def joint_moments(joint: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
    """Splits a sum of `joint_vector`s into the sum of x x^T ([dim (dim + 1) / 2]) and the sum of y x ([dim])."""
    roots = _roots(dim, joint.dtype)
    return joint[: len(roots)] / roots, joint[len(roots) :]


def _roots(dim: int, dtype: np.dtype) -> np.ndarray:
    return np.asarray(triangle(np.where(np.eye(dim, dtype=bool), 1.0, math.sqrt(2))), dtype)


def _counter(name: str, horizon: int) -> Counter:
    if check_choice("counter", name, COUNTERS) == "toeplitz":
        return toeplitz_counter(horizon=horizon)
    return tree_counter(horizon=horizon, noise="gaussian")
