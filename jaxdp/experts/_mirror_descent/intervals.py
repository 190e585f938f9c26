"""Form "intervals" of `mirror_descent`: Hedge on dyadic intervals, and fixed share over the interval lengths."""

import math
from typing import NamedTuple

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
    scalar_leaf,
)
from jaxdp.core.conversions import zcdp_rho
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._losses import UNIT, losses_interface, reveal_units
from jaxdp.experts._mirror_descent.parameters import level_switches, mirror_descent_parameters
from jaxdp.experts._mirror_descent.sampling import play_distribution, step_of
from jaxdp.mechanisms import gaussian, round_up
from jaxdp.mechanisms.numerical import all_of, normal_delta, weighted_delta
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import UNITS, Sum, in_64_bits
from jaxdp.random import fine_index, weighted_index
from jaxdp.validation import check_epsilon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float > 0. Infinity is the non-private algorithm; all finite values have the same effect.
        interval_rates: [num_levels] float > 0, the learning rate of Hedge on each level's intervals.
        noise_stddev: [] float >= 0, standard deviation of the noise on the losses of levels.
        learning_rate: [] float > 0, the rate of fixed share over levels.
    """

    epsilon: Scalar
    interval_rates: np.ndarray | jax.Array
    noise_stddev: Scalar
    learning_rate: Scalar


class Public(NamedTuple):
    """The released state, and values computed from the released state.

    Attributes:
        round: [] integer, rounds played.
        distributions: [num_levels, num_experts] float, the distribution of each level's play in the next round. It is
            one-hot at the drawn expert; at epsilon = inf, it is the weights of the level's interval.
        shares: [num_levels] float, the probabilities of the levels.
    """

    round: jax.Array
    distributions: jax.Array
    shares: jax.Array


def intervals(num_experts: int, horizon: int, num_switches: int) -> Learner:
    """Returns `mirror_descent` with the form "intervals", from arguments that `mirror_descent` has checked."""
    num_levels = horizon.bit_length()
    step = step_of("fixed_share", num_levels, horizon, level_switches(num_switches, horizon))
    problem = {"num_experts": num_experts, "horizon": horizon, "num_switches": num_switches, "form": "intervals"}

    def params(*, epsilon: float, delta: float, learning_rate: float | None = None) -> Params:
        tuned = mirror_descent_parameters(epsilon=epsilon, delta=delta, **problem)
        rate = tuned.learning_rate if learning_rate is None else check_positive("learning_rate", learning_rate)
        return Params(
            epsilon=leaf_rounded_down("epsilon", epsilon),
            interval_rates=np.asarray(
                [leaf_rounded_down("epsilon", level_rate) for level_rate in tuned.interval_rates]
            ),
            noise_stddev=round_up(tuned.noise, default_float()),
            learning_rate=scalar_leaf("learning_rate", rate),
        )

    def claim(epsilon: float, delta: float, learning_rate: float | None = None) -> Guarantee:
        del learning_rate
        unit = {
            "trust_model": "central",
            "privacy_unit": UNIT,
            "argument": "a loss vector is in one interval of each level, and draws for an interval are by the "
            "exponential mechanism; it also enters the losses of all levels, which get Gaussian noise",
        }
        if check_epsilon(epsilon) == math.inf:
            return Guarantee.none(**unit)
        rho = zcdp_rho(epsilon, delta)
        draw_delta = weighted_delta(num_experts, 2**num_levels)  # in each level, at most one interval changes
        return Guarantee.zcdp(rho, **unit, numerical_delta=all_of(draw_delta, normal_delta(num_levels, rho=rho)))

    def init(key, params: Params) -> State:
        totals = fixed_point.zero((num_levels, num_experts))
        shares = jnp.full(num_levels, 1 / num_levels, default_float())
        even = jnp.full((num_levels, num_experts), 1 / num_experts, default_float())
        distributions = play_distribution(params.epsilon, even, _draw_each_row(key, even))
        return State(totals, Public(jnp.zeros((), jnp.result_type(int)), distributions, shares))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, jnp.sum(public.shares[:, None] * public.distributions, axis=0))

    def update(key, params: Params, state: State, report) -> State:
        key_losses, key_draws = jax.random.split(key)
        round, distributions, shares = state.public
        stddev = jnp.asarray(params.noise_stddev)
        losses = jnp.sum(distributions * (report.astype(distributions.dtype) * (1 / UNITS))[None], axis=1)
        # Because of rounding, a distribution may sum to more than 1, which would increase the sensitivity.
        losses = jnp.minimum(losses, 1)
        noisy = gaussian(key_losses, losses, stddev, l2_sensitivity=math.sqrt(num_levels))
        # An interval of length 2^k ends, and its totals are reset to 0, when the number of rounds played is a multiple
        # of 2^k.
        lengths = jnp.left_shift(1, jnp.arange(num_levels, dtype=round.dtype))
        ends = (round + 1) % lengths == 0
        added = fixed_point.add(state.private, jnp.broadcast_to(report, distributions.shape))
        totals = jax.tree.map(lambda leaf: jnp.where(ends[:, None], 0, leaf), added)
        distributions = play_distribution(
            params.epsilon, *_weigh_and_draw(key_draws, totals, jnp.asarray(params.interval_rates))
        )
        return State(totals, Public(round + 1, distributions, step(shares, params.learning_rate * noisy)))

    params.__qualname__ = "mirror_descent.params"  # named in error messages
    values = only(params, ("epsilon", "delta", "learning_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_units,
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


@in_64_bits
def _weigh_and_draw(key: jax.Array, totals: Sum, rates: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns each level's weights ([num_levels, num_experts] float) and experts drawn by them ([num_levels] int32)."""
    exact = -rates.astype(jnp.float64)[:, None] * fixed_point.to_float(
        fixed_point.excess_over_least(totals), jnp.float64
    )
    scores, largest = exact.astype(rates.dtype), rates.max()
    # Each level is one exponential mechanism. The tape has one entry, with the cost (half the range)^2 / 2 per level.
    recorded = record(Entry("levels", scores, "spread", key, largest, 2 * largest, jnp.square(largest) / 2))
    used = exact if recorded is scores else recorded.astype(jnp.float64)
    weights = jax.nn.softmax(used, axis=1)
    return weights.astype(rates.dtype), _draw_each_row(key, weights)


def _draw_each_row(key: jax.Array, weights: jax.Array) -> jax.Array:
    """Draws one index for each row, [num_levels] int32."""
    return jax.vmap(fine_index)(jax.random.split(key, len(weights)), weights)
