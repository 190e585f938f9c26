"""Independent losses with fixed means."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Visits, add_visits, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._adversary import cast, means_vector
from jaxdp.experts._comparators import Comparison, add_round, add_rounds, check_switches, init_comparison, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.gaps import unit_instance
from jaxdp.numerics.lookup import entry
from jaxdp.random import binomial
from jaxdp.random.coins import coins


@pytree_dataclass
class StochasticParams:
    """The environment's parameters, which JAX traces.

    Attributes:
        means: [num_experts] float in [0, 1], the experts' mean losses.
        gaps: [num_experts] float >= 0, each mean minus the smallest mean.
    """

    means: np.ndarray
    gaps: np.ndarray


@factory
def stochastic_losses(
    means: ArrayLike, *, num_switches: int | None = None, visits: Visits | None = None
) -> Environment:
    """Losses of 0 or 1, independent over rounds and experts.

    Args:
        means: [num_experts] in [0, 1], mean losses.
        num_switches: maximum number of switches of the comparator sequence in `dynamic_regret`, >= 0. If None, the
            environment computes no metrics in hindsight; if visits are None too, it supports feedback totals, for
            `engine="counts"`.
        visits: the schedule of people's participation, as for `jaxdp.bandits.bernoulli_bandit`; None for an environment
            without people.

    Returns:
        An environment for actions in [0, num_experts) and losses ([num_experts] float, each 0 or 1). Without visits it
        supports blocks. Outcomes: `loss`, the loss of the expert played; `pseudo_regret`, this expert's mean loss minus
        the smallest mean. Both are NaN for an expert outside [0, num_experts). If num_switches is given, metrics in
        hindsight are as for `loss_sequence`. Feedback totals are [num_experts] integer, the number of each expert's
        losses that are 1. (Sums of integers are exact, unlike sums of floats.)

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1], num_switches is not an integer >= 0, or
            visits are not a `Visits`. The result's `params` raises this error if a value is out of range or results in
            a mean outside [0, 1], or if `gap` is given and all means are equal.

    Values:
        gap: > 0, the difference between the next larger mean and the smallest mean; by default the difference in
            `means`. All gaps are rescaled in proportion, and the smallest mean stays the same unless `best_mean` is
            given.
        best_mean: in [0, 1], the smallest mean, by default the smallest of `means`. Means are `best_mean` plus the
            gaps.

    Source:
        Standard.

    Deviations:
        In float32 a probability is a multiple of 2^-24, except in feedback totals.
    """
    base_means, switches = means_vector("means", means), check_switches(num_switches)

    def params(*, gap: float | None = None, best_mean: float | None = None) -> StochasticParams:
        exact, gaps = unit_instance(base_means, gap, best_mean, losses=True)
        return StochasticParams(means=cast(exact), gaps=cast(gaps))

    def init(key, params: StochasticParams) -> Comparison | tuple[()]:
        del key, params
        return () if switches is None else init_comparison(len(base_means), switches)

    def draw_round(key, params: StochasticParams, action):
        losses = coins(key, jnp.asarray(params.means))
        gap = entry(jnp.asarray(params.gaps), action)
        return losses, {"loss": entry(losses, action), "pseudo_regret": gap}

    def feedback(key, params: StochasticParams, world, action):
        losses, outcome = draw_round(key, params, action)
        return () if switches is None else add_round(world, losses, outcome["loss"]), losses, outcome

    def block(keys, params: StochasticParams, world, contexts: None, actions):
        del contexts
        losses, outcome = jax.vmap(lambda key, action: draw_round(key, params, action))(keys, actions)
        return () if switches is None else add_rounds(world, losses, outcome["loss"]), losses, outcome

    def feedback_totals(key, params: StochasticParams, world, counts):
        played_ones, other_ones = _totals(key, jnp.asarray(params.means), counts)
        loss = played_ones.sum(dtype=played_ones.dtype).astype(params.gaps.dtype)
        regret = jnp.sum(counts.astype(params.gaps.dtype) * params.gaps)
        return world, played_ones + other_ones, {"loss": loss, "pseudo_regret": regret}

    world = Environment(
        params=params,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=None if switches is None else lambda params, world: metrics(world, is_switching=True),
        block=block,
        feedback_totals=feedback_totals if switches is None else None,
        interface=losses_interface(len(base_means)),
    )
    return add_visits(world, visits)


def _totals(key: jax.Array, means: jax.Array, counts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draws the numbers of rounds with loss 1 in which each expert is played, and is not played, [num_experts] each."""
    other_rounds = counts.sum(dtype=counts.dtype) - counts
    played_ones, other_ones = binomial(key, jnp.stack([counts, other_rounds]), jnp.stack([means, means]))
    return played_ones, other_ones
