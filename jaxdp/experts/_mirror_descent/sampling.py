"""Form "sampling" of `mirror_descent`: weights use the exact losses; only the draws of plays are private mechanisms.

In this module, shares are the experts' weights, normalised to sum 1. They are the probabilities of the next play.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Guarantee,
    Learner,
    Scalar,
    State,
    default_float,
    guarantee_for,
    leaf_rounded_down,
    only,
)
from jaxdp.core.conversions import zcdp_rho
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._lane_kernels import keep_lane_layout, select  # they set a layout for CPUs
from jaxdp.experts._losses import UNIT, losses_interface, reveal_losses
from jaxdp.experts._mirror_descent.parameters import contraction, draws_reached, mirror_descent_parameters
from jaxdp.experts._share_kernels import exact_fixed_share_step, read  # laid out for CPUs
from jaxdp.experts._shares import clipped_step, fixed_share_step
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane, lanes_last_if_many
from jaxdp.random import fine_index, weighted_index
from jaxdp.validation import check_epsilon, check_positive

SLACK = 1e-12  # relative tolerance for the rounding of the largest learning rate
LONGEST_CLIPPED = 10**5  # maximum horizon of clipped sampling in float32
GENTLE = 1 / 8  # up to this learning rate, steps are computed as increments of compensated sums


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float > 0. Infinity selects the non-private algorithm; all finite values have the same effect.
        learning_rate: [] float > 0.
    """

    epsilon: Scalar
    learning_rate: Scalar


def sampling(num_experts: int, horizon: int, num_switches: int, *, mixing: str) -> Learner:
    """Returns `mirror_descent` with the form "sampling", from arguments that `mirror_descent` has checked."""
    is_coarse = default_float() == np.float32
    if mixing == "clipped" and is_coarse and horizon > LONGEST_CLIPPED:
        raise ValueError(
            f"horizon must be <= {LONGEST_CLIPPED} for clipped sampling in 32-bit floats, because rounding would spend "
            f"more than is claimed, got {horizon}: use mixing='fixed_share' or 64-bit floats"
        )
    step = exact_step_of(mixing, num_experts, horizon, num_switches)
    draws_per_vector = draws_reached(num_experts, num_switches, horizon) if mixing == "fixed_share" else float(horizon)
    rounds_kept = min(float(horizon), 1 / max(1 - contraction(num_experts, num_switches, horizon), 1 / horizon))
    problem = {"num_experts": num_experts, "horizon": horizon, "num_switches": num_switches, "form": "sampling"}

    def rate_leaf(epsilon: float, delta: float, learning_rate: float | None) -> np.floating:
        """Checks that epsilon allows the learning rate, and returns the rate as a leaf that is rounded down."""
        rho = zcdp_rho(check_epsilon(epsilon), delta)
        # Shares are read as floats, and this rounding widens the range of ln(w / w') at each draw.
        rounding = 2 * float(np.finfo(default_float()).eps) * math.sqrt(horizon)
        budget = math.sqrt(2 * rho) - rounding
        largest = budget / math.sqrt(draws_per_vector)
        if largest > GENTLE and mixing == "fixed_share":
            # A step at a larger rate rounds the shares, which widens the range by 8 times the machine epsilon. Fixed
            # share contracts these errors in the same way as losses.
            largest = max(GENTLE, (budget - 2 * rounding * rounds_kept) / math.sqrt(draws_per_vector))
        if budget <= 0:
            raise ValueError(
                f"epsilon must cover the cost of rounding in {default_float()} at horizon {horizon}, got {epsilon}"
            )
        if learning_rate is None:
            best = mirror_descent_parameters(epsilon=epsilon, delta=delta, **problem).learning_rate
            learning_rate = min(best, largest)
        rate = leaf_rounded_down("learning_rate", check_positive("learning_rate", learning_rate))
        if float(rate) > largest * (1 + SLACK):
            raise ValueError(f"learning_rate must be <= {largest:g}, which epsilon pays for, got {learning_rate}")
        return rate

    def params(*, epsilon: float, delta: float, learning_rate: float | None = None) -> Params:
        return Params(
            epsilon=leaf_rounded_down("epsilon", epsilon), learning_rate=rate_leaf(epsilon, delta, learning_rate)
        )

    def claim(epsilon: float, delta: float) -> Guarantee:
        unit = {
            "trust_model": "central",
            "privacy_unit": UNIT,
            "argument": "each play is drawn by an exponential mechanism whose range is at most 2 learning_rate and, "
            "with fixed share, shrinks in every round; the claim includes the cost of reading shares as floats, but no "
            "bound on rounding errors in the shares is proved",
        }
        return Guarantee.none(**unit) if epsilon == math.inf else Guarantee.zcdp(zcdp_rho(epsilon, delta), **unit)

    def init(key, params: Params) -> State:
        shares = jnp.full(num_experts, 1 / num_experts, default_float())
        exact = compensated.add(compensated.zero(shares), shares)
        return State(exact, play_distribution(params.epsilon, shares, weighted_index(key, shares)))

    def act(key, params: Params, public: jax.Array, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, public)

    def update(key, params: Params, state: State, report) -> State:
        exact = step(state.private, report, jnp.asarray(params.learning_rate))
        shares = read(exact)
        drawn = _draw_play(key, shares, jnp.asarray(params.learning_rate))
        return keep_lane_layout(State(exact, play_distribution(params.epsilon, shares, drawn)), lanes_last_if_many)

    params.__qualname__ = "mirror_descent.params"  # named in error messages
    values = only(params, ("epsilon", "delta", "learning_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_losses,
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


def step_of(
    mixing: str, num_experts: int, horizon: int, num_switches: int
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Returns the update (shares, losses times the learning rate) -> next shares ([num_experts]) for the mixing."""
    if mixing == "clipped":
        floor = num_switches / (num_experts * horizon)
        return lambda shares, scaled_losses: clipped_step(shares, scaled_losses, floor)
    rate = num_switches / (horizon - 1)
    return lambda shares, scaled: fixed_share_step(shares, scaled, jnp.asarray(rate, shares.dtype))


def exact_step_of(
    mixing: str, num_experts: int, horizon: int, num_switches: int
) -> Callable[[compensated.Sum, jax.Array, jax.Array], compensated.Sum]:
    """Returns the update (shares, losses, learning rate) -> next shares, where shares are compensated sums."""
    # Only the step of fixed share needs compensated sums.
    plain_step = step_of(mixing, num_experts, horizon, num_switches)

    def step_rounded(shares: compensated.Sum, scaled_losses: jax.Array) -> compensated.Sum:
        after = plain_step(shares.total - shares.excess, scaled_losses)
        return compensated.zero(after)._replace(total=after)

    def step(shares: compensated.Sum, losses: jax.Array, learning_rate: jax.Array) -> compensated.Sum:
        switch_rate, scaled = jnp.asarray(num_switches / (horizon - 1), losses.dtype), learning_rate * losses
        exact = exact_fixed_share_step(shares, scaled, switch_rate)

        def select_step() -> compensated.Sum:
            rounded = step_rounded(shares, scaled)
            return select(learning_rate <= GENTLE, exact, rounded)

        is_rounded = any_lane(learning_rate > GENTLE)
        return jax.lax.cond(is_rounded, select_step, lambda: keep_lane_layout(exact, lanes_last_if_many))

    def step_clipped(shares: compensated.Sum, losses: jax.Array, learning_rate: jax.Array) -> compensated.Sum:
        return step_rounded(shares, learning_rate * losses)

    return step_clipped if mixing == "clipped" else step


def play_distribution(epsilon: Scalar, shares: jax.Array, drawn: jax.Array) -> jax.Array:
    """Returns the released distribution of the play: one-hot at the drawn expert, or the shares at epsilon = inf."""
    one_hot = jax.nn.one_hot(drawn, shares.shape[-1], dtype=shares.dtype)
    return jnp.where(jnp.asarray(epsilon) < jnp.inf, one_hot, shares)


def _draw_play(key: jax.Array, shares: jax.Array, learning_rate: jax.Array) -> jax.Array:
    """Draws the next round's expert by an exponential mechanism of range 2 learning_rate."""
    scores = jnp.log(shares)
    epsilon = 2 * learning_rate
    recorded = record(Entry("play", scores, "spread", key, learning_rate, epsilon, jnp.square(epsilon) / 8))
    return fine_index(key, shares if recorded is scores else jax.nn.softmax(recorded))
