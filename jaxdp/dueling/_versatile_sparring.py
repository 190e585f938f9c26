"""Two Tsallis-INF players, one for each arm of a duel; they learn from reports that users randomize."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    default_float,
    factory,
    guarantee_for,
    only,
    pairs,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling import _versatile_sparring_kernels
from jaxdp.dueling.reports import local_claim, noisy_outcome, randomized_outcome
from jaxdp.mechanisms import analytic_gaussian, round_up
from jaxdp.numerics import compensated
from jaxdp.numerics.tsallis import tsallis_weights
from jaxdp.random import index_from_uniform
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_choice, check_epsilon, check_horizon, check_num_arms, check_probability

REPORTS = ("rr", "gaussian")


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        noise_stddev: [] float >= 0, noise standard deviation of a Gaussian report; zero for randomized response.
        shift: [] float >= 0. Gaussian reports are clipped to [-shift, 1 + shift] and mapped to losses in [0, 1]; zero
            for randomized response.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    shift: Scalar


class Public(NamedTuple):
    """Values computed from the reports. Column 0 is for the left arm's player, column 1 for the right arm's player.

    Attributes:
        round: [] integer, rounds played.
        losses: [num_arms, 2] compensated sums of estimated losses.
        weights: [num_arms, 2] float, each player's probabilities of playing the arms in the next round.
    """

    round: jax.Array
    losses: compensated.Sum
    weights: jax.Array


def draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) from uniforms [2] and the players' weights [num_arms, 2]."""
    return jax.vmap(index_from_uniform, (0, 1))(uniforms, weights)


def importance(weights: jax.Array, arms: jax.Array, won: jax.Array, squared_rate: jax.Array) -> jax.Array:
    """Estimates the losses ([num_arms, 2] float) of all arms for both players by importance weighting.

    The estimate for arm i is 1[i = I] y / w_i if a player drew arm I and had the loss y. `weights` are the arms'
    probabilities, [num_arms, 2]. `won`, in [0, 1], is the reported outcome; 1 means that the left arm won. Only
    `reduced_variance` uses the squared learning rate.
    """
    del squared_rate
    is_drawn, lost_by_player = _drawn_arms(weights, arms), _losses_of_players(won)
    return jnp.where(is_drawn, lost_by_player[None] / weights, 0)


def reduced_variance(weights: jax.Array, arms: jax.Array, won: jax.Array, squared_rate: jax.Array) -> jax.Array:
    """Estimates losses as `importance` does, with a base b_i instead of 0: b_i + 1[i = I] (y - b_i) / w_i.

    b_i is 1/2 if w_i >= squared_rate, which reduces the variance, and 0 otherwise.
    """
    is_drawn, lost_by_player = _drawn_arms(weights, arms), _losses_of_players(won)
    base = jnp.where(weights >= squared_rate, 0.5, 0).astype(weights.dtype)
    return base + jnp.where(is_drawn, (lost_by_player[None] - base) / weights, 0)


def _drawn_arms(weights: jax.Array, arms: jax.Array) -> jax.Array:
    """Returns the arms that the two players drew, one-hot. The result is [num_arms, 2] bool."""
    return jnp.arange(len(weights), dtype=arms.dtype)[:, None] == arms[None]


def _losses_of_players(won: jax.Array) -> jax.Array:
    """Returns the losses of the left and the right player, [2] float; the left player's loss is 1 - won."""
    return jnp.where(jnp.arange(2) == 0, 1 - won, won)


def add_losses(
    estimate: Callable[..., jax.Array],
    losses: compensated.Sum,
    weights: jax.Array,
    arms: jax.Array,
    won: jax.Array,
    squared_rate: jax.Array,
) -> compensated.Sum:
    """Adds a round's estimated losses, computed by one of `ESTIMATES`, to the sums of estimated losses."""
    return compensated.add(losses, estimate(weights, arms, won, squared_rate))


ESTIMATES = {"importance": importance, "reduced_variance": reduced_variance}


class Steps(NamedTuple):
    """The steps of a round, in plain JAX or in `_versatile_sparring_kernels`.

    Attributes:
        draw: (uniforms, weights) -> pair of arms.
        add_losses: (estimate, losses, weights, arms, won, squared_rate) -> losses.
    """

    draw: Callable[..., jax.Array]
    add_losses: Callable[..., compensated.Sum]


PLAIN = Steps(draw, add_losses)
KERNELS = Steps(_versatile_sparring_kernels.draw, _versatile_sparring_kernels.add_losses)


@factory
def versatile_sparring(
    *, num_arms: int, report: str = "rr", losses: str = "importance", horizon: int | None = None
) -> Learner:
    r"""Plays two Tsallis-INF players against each other; one draws the left arm, and the other draws the right arm.

    The player with the losing arm has the loss 1, and the other player has the loss 0. The probability w_i with which a
    player draws arm i is a function of the player's sums of estimated losses so far (see Math).

    Args:
        num_arms: number of arms, >= 2.
        report: "rr", randomized response; or "gaussian", the outcome plus Gaussian noise with the standard deviation s
            of the analytic calibration. A Gaussian report is mapped to (report + m) / (1 + 2 m), clipped to [0, 1],
            where m = s sqrt(2 ln(2 T / failure_prob)).
        losses: how a player who drew arm I, with reported loss y, estimates the losses of all arms i: "importance",
            importance weighting, 1[i = I] y / w_i; or "reduced_variance" (see Math).
        horizon: rounds T, >= 1; required for Gaussian reports, and not allowed otherwise.

    Returns:
        A learner. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32, 1 if the left arm wins,
        else 0 (clipped).

    Raises:
        ValueError: if num_arms < 2, the number of pairs exceeds the integer range, report or losses is unknown, or
            horizon < 1 or exceeds this range; if horizon is missing for Gaussian reports, or given for randomized
            response. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        failure_prob: with Gaussian reports, in (0, 1), by default 0.05; bounds the probability that any of the T
            reports is clipped.

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Why: an outcome leaves the user's device once; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Ailon, Karnin & Joachims (2014), sparring; Saha & Gaillard (2022), with Tsallis-INF (Zimmert & Seldin, 2021);
        Asi & Saha (2025), "Optimal Rates for Private Stochastic Dueling Bandits", for privatized responses. Randomized
        bits are losses in [0, 1]. Their means are affine in the true losses, with slope (e^epsilon - 1) / (e^epsilon +
        1), so the regret grows by the inverse of the slope. Gaussian reports cost a factor of 1 + 2 m.

    Deviations:
        Estimated losses are compensated sums, and weights in float32 are accurate to about 1e-6.

    Math:
        In round $t$ a player draws arm $i$ with probability

        $$
        w_{t,i} = \frac{4}{\eta_t^2 \, (\hat L_{t,i} - x_t)^2}
        $$

        where $x_t < \min_i \hat L_{t,i}$ makes the probabilities sum to 1. Let $I_t$ be the arm that the player drew
        and $y_t$ its reported loss. The player's estimated losses $\hat L_t$ grow by

        $$
        \hat\ell_{t,i} = \frac{y_t \mathbf{1}[i = I_t]}{w_{t,i}}, \quad \eta_t = \frac{2}{\sqrt{t}}
        $$

        for "importance", and for "reduced_variance" by

        $$
        \hat\ell_{t,i} = \frac{(y_t - b_i) \mathbf{1}[i = I_t]}{w_{t,i}} + b_i, \quad \eta_t = \frac{4}{\sqrt{t}}
        $$

        where $b_i = 1/2$ if $w_{t,i} \ge \eta_t^2$, and $b_i = 0$ otherwise.
    """
    num_arms = check_num_arms(num_arms)
    is_gaussian = check_choice("report", report, REPORTS) == "gaussian"
    estimate = ESTIMATES[check_choice("losses", losses, tuple(ESTIMATES))]
    if is_gaussian != (horizon is not None):
        raise ValueError(
            f"horizon must be given for Gaussian reports and left out otherwise, got {horizon} for {report!r}"
        )
    rounds = 0 if horizon is None else check_horizon(horizon)
    rate_factor = 2.0 if estimate is importance else 4.0
    steps = KERNELS  # these kernels serve any number of arms; tests compare them with PLAIN

    def params(*, epsilon: float, delta: float = 0.0, failure_prob: float = 0.05) -> Params:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        stddev = shift = 0.0
        if is_gaussian:
            check_probability("failure_prob", failure_prob)
            stddev = analytic_gaussian(epsilon, delta)
            shift = stddev * math.sqrt(2 * (math.log(2 * rounds) - math.log(failure_prob)))
        return Params(
            epsilon=budget,
            noise_stddev=round_up(stddev, default_float()),
            shift=scalar_leaf("the shift of reports", shift),
        )

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        if is_gaussian:
            return local_claim(epsilon, delta, "the Gaussian mechanism at L2 sensitivity 1")
        return local_claim(epsilon)

    def init(key, params: Params) -> State:
        del key, params
        zeros = jnp.zeros((num_arms, 2), default_float())
        return State((), Public(jnp.zeros((), jnp.result_type(int)), compensated.zero(zeros), zeros + 1 / num_arms))

    def rate(round_: jax.Array, dtype) -> jax.Array:
        """Returns the learning rate of round `round_`, counted from 0 (section Math counts rounds t from 1)."""
        return rate_factor / jnp.sqrt((round_ + 1).astype(dtype))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return steps.draw(two_uniforms(key), public.weights)

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        if not is_gaussian:
            return randomized_outcome(key, params.epsilon, action, feedback)
        return noisy_outcome(key, params.epsilon, params.noise_stddev, action, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (arms, response) = state.public, report
        float_ = public.weights.dtype
        won = jnp.clip((response.astype(float_) + params.shift) / (1 + 2 * params.shift), 0, 1)
        squared_rate = rate(public.round, float_) ** 2
        losses = steps.add_losses(estimate, public.losses, public.weights, arms, won, squared_rate)
        weights = tsallis_weights(losses.total, rate(public.round + 1, float_), losses.excess)
        return State((), Public(public.round + 1, losses, weights))

    values = only(params, ("epsilon", "delta", "failure_prob") if is_gaussian else ("epsilon",))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
        best_action=lambda params, public: jnp.argmax(public.weights, axis=0).astype(jnp.int32),
    )
