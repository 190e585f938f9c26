"""Mirror descent that is private because it draws its experts: form "sampling" of `mirror_descent`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Guarantee,
    Learner,
    Scalar,
    State,
    claimed,
    default_float,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.conversions import zcdp_rho
from jaxdp.experts._lane_kernels import carried, chosen  # values are the same
from jaxdp.experts._losses import UNIT, clipped, losses_interface
from jaxdp.experts._mirror_descent.parameters import contraction, draws_reached, mirror_descent_parameters
from jaxdp.experts._share_kernels import exact_fixed_share_step, read  # for CPUs; `_shares` has them as they read
from jaxdp.experts._shares import clipped_step, fixed_share_step
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane
from jaxdp.random import fine_index, weighted_index
from jaxdp.validation import check_epsilon, check_positive

SLACK = 1e-12  # relative, of the budget: rounding
LONGEST_CLIPPED = 10**5  # rounds in float32
GENTLE = 1 / 8  # learning rate; steps of larger ones are no small increments, and far above rounding


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float > 0; infinity is the non-private algorithm, and any other number makes no difference here.
        learning_rate: [] float > 0.
    """

    epsilon: Scalar
    learning_rate: Scalar


def sampling(num_experts: int, horizon: int, num_switches: int, *, mixing: str) -> Learner:
    """See `mirror_descent`; arguments have been checked there."""
    is_coarse = default_float() == np.float32
    if mixing == "clipped" and is_coarse and horizon > LONGEST_CLIPPED:
        raise ValueError(
            f"horizon must be <= {LONGEST_CLIPPED} for clipped sampling in 32-bit floats, whose rounding would spend "
            f"more than is claimed, got {horizon}"
        )
    step = exact_step_of(mixing, num_experts, horizon, num_switches)
    reached = draws_reached(num_experts, num_switches, horizon) if mixing == "fixed_share" else float(horizon)
    kept = min(float(horizon), 1 / max(1 - contraction(num_experts, num_switches, horizon), 1 / horizon))
    about = {"num_experts": num_experts, "horizon": horizon, "num_switches": num_switches, "form": "sampling"}

    def settled(epsilon: float, delta: float, learning_rate: float | None) -> np.floating:
        """The rate as the program holds it: rounded down."""
        rho = zcdp_rho(check_epsilon(epsilon), delta)
        # Shares are read as floats, whose rounding widens the range of each draw.
        rounding = 2 * float(np.finfo(default_float()).eps) * math.sqrt(horizon)
        budget = math.sqrt(2 * rho) - rounding
        most = budget / math.sqrt(reached)
        if most > GENTLE and mixing == "fixed_share":
            # Steps of larger rates round the shares anew, each by a range of 8 epsilons, which are forgotten as losses.
            most = max(GENTLE, (budget - 2 * rounding * kept) / math.sqrt(reached))
        if budget <= 0:
            raise ValueError(
                f"epsilon must pay for more than rounding in {default_float()} at horizon {horizon}, got {epsilon}"
            )
        if learning_rate is None:
            best = mirror_descent_parameters(epsilon=epsilon, delta=delta, **about).learning_rate
            learning_rate = min(best, most)
        rate = leaf_rounded_down("learning_rate", check_positive("learning_rate", learning_rate))
        if float(rate) > most * (1 + SLACK):
            raise ValueError(f"learning_rate must be <= {most:g}, which epsilon pays for, got {learning_rate}")
        return rate

    def params(*, epsilon: float, delta: float, learning_rate: float | None = None) -> Params:
        return Params(epsilon=scalar_leaf("epsilon", epsilon), learning_rate=settled(epsilon, delta, learning_rate))

    def claim(epsilon: float, delta: float) -> Guarantee:
        unit = {
            "trust_model": "central",
            "privacy_unit": UNIT,
            "argument": "each play is drawn by the exponential mechanism, of a range of 2 learning_rate at most, which "
            "fixed share makes smaller with every round; what reading shares as floats adds is paid for, but no bound "
            "on what rounding leaves in the shares is proved",
        }
        return Guarantee.none(**unit) if epsilon == math.inf else Guarantee.zcdp(zcdp_rho(epsilon, delta), **unit)

    def init(key, params: Params) -> State:
        shares = jnp.full(num_experts, 1 / num_experts, default_float())
        exact = compensated.add(compensated.zero(shares), shares)
        return State(exact, law_of_play(params.epsilon, shares, weighted_index(key, shares)))

    def act(key, params: Params, public: jax.Array, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, public)

    def privatize(key, params: Params, public: jax.Array, context: None, action, feedback) -> jax.Array:
        del key, params, public, context, action
        return clipped(feedback)

    def update(key, params: Params, state: State, report) -> State:
        exact = step(state.private, report, jnp.asarray(params.learning_rate))
        shares = read(exact)
        drawn = _drawn(key, shares, jnp.asarray(params.learning_rate))
        return carried(State(exact, law_of_play(params.epsilon, shares, drawn)))

    params.__qualname__ = "mirror_descent.params"  # whose values they are, for errors
    values = only(params, ("epsilon", "delta", "learning_rate"))
    return Learner(
        params=values,
        guarantee=claimed(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


def step_of(
    mixing: str, num_experts: int, horizon: int, num_switches: int
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """(shares, scaled losses) -> shares."""
    if mixing == "clipped":
        floor = num_switches / (num_experts * horizon)
        return lambda shares, scaled_losses: clipped_step(shares, scaled_losses, floor)
    rate = num_switches / (horizon - 1)
    return lambda shares, scaled: fixed_share_step(shares, scaled, jnp.asarray(rate, shares.dtype))


def exact_step_of(
    mixing: str, num_experts: int, horizon: int, num_switches: int
) -> Callable[[compensated.Sum, jax.Array, jax.Array], compensated.Sum]:
    """(shares, losses, learning rate) -> shares: `step_of` on compensated sums; fixed share alone needs them."""
    plain = step_of(mixing, num_experts, horizon, num_switches)

    def rounded(shares: compensated.Sum, scaled_losses: jax.Array) -> compensated.Sum:
        after = plain(shares.total - shares.excess, scaled_losses)
        return compensated.zero(after)._replace(total=after)

    def step(shares: compensated.Sum, losses: jax.Array, learning_rate: jax.Array) -> compensated.Sum:
        switch_rate, scaled = jnp.asarray(num_switches / (horizon - 1), losses.dtype), learning_rate * losses
        exact = exact_fixed_share_step(shares, scaled, switch_rate)

        def either() -> compensated.Sum:
            coarse = rounded(shares, scaled)
            return chosen(learning_rate <= GENTLE, exact, coarse)

        return carried(jax.lax.cond(any_lane(learning_rate > GENTLE), either, lambda: carried(exact)))

    def of_clipped(shares: compensated.Sum, losses: jax.Array, learning_rate: jax.Array) -> compensated.Sum:
        return rounded(shares, learning_rate * losses)

    return of_clipped if mixing == "clipped" else step


def law_of_play(epsilon: Scalar, shares: jax.Array, drawn: jax.Array) -> jax.Array:
    """What is released: certainty of the expert that was drawn; at epsilon = inf the shares themselves.

    Args:
        epsilon: [] float.
        shares: [..., num_experts] float, whose sums are 1.
        drawn: [...] int32.
    """
    certain = jax.nn.one_hot(drawn, shares.shape[-1], dtype=shares.dtype)
    return jnp.where(jnp.asarray(epsilon) < jnp.inf, certain, shares)


def _drawn(key: jax.Array, shares: jax.Array, learning_rate: jax.Array) -> jax.Array:
    """The expert of the next round: an exponential mechanism whose scores move within a range 2 learning_rate."""
    scores = jnp.log(shares)
    epsilon = 2 * learning_rate
    told = record(Entry("play", scores, "spread", key, learning_rate, epsilon, jnp.square(epsilon) / 8))
    return fine_index(key, shares if told is scores else jax.nn.softmax(told))
