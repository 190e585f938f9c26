"""Non-private exponential weights (Hedge). Some private learners play as Hedge does at epsilon = inf."""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._lane_kernels import add_losses  # `compensated.add`, laid out for CPUs
from jaxdp.experts._losses import UNIT, losses_interface, reveal_losses
from jaxdp.experts._share_kernels import odds  # in a layout for CPUs; `_shares` has plain functions
from jaxdp.numerics import compensated
from jaxdp.random import weighted_index
from jaxdp.validation import check_count, check_horizon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        learning_rate: [] float > 0.
    """

    learning_rate: Scalar


@factory
def hedge(*, num_experts: int, horizon: int) -> Learner:
    r"""Plays expert i with probability proportional to exp(-learning_rate * total loss of expert i).

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if num_experts < 2 or horizon < 1. The result's `params` raises this error if learning_rate is not
            > 0 and finite.

    Values:
        learning_rate: > 0 and finite, by default sqrt(8 ln N / T).

    Privacy:
        - None.
        - Without privacy, three private learners play from the same distribution in each round: `exponential_weights`,
          and `lazy_weights` and `counter_weights` with the sequence class `static()`. This holds at epsilon = inf, with
          the same learning rate, and for oblivious losses.

    Source:
        Freund & Schapire (1997); the default rate is from Cesa-Bianchi & Lugosi (2006), Theorem 2.2 (Hoeffding's
        lemma).

    Deviations:
        Totals are compensated sums.

    Math:
        Round $t$ plays expert $i$ with probability proportional to

        $$
        \exp\Big( -\eta \sum_{s < t} \ell_{s,i} \Big)
        $$

        The default rate, with which the regret is at most $\sqrt{T \ln(N) / 2}$, is

        $$
        \eta = \sqrt{\frac{8 \ln N}{T}}
        $$
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)

    def params(*, learning_rate: float | None = None) -> Params:
        rate = math.sqrt(8 * math.log(num_experts) / horizon) if learning_rate is None else learning_rate
        return Params(learning_rate=scalar_leaf("learning_rate", check_positive("learning_rate", rate)))

    def claim(learning_rate: float | None = None) -> Guarantee:
        del learning_rate
        return Guarantee.none(trust_model="central", privacy_unit=UNIT, argument="losses are used as they are")

    def init(key, params: Params) -> State:
        del key, params
        return State((), compensated.zero(jnp.zeros(num_experts, default_float())))

    def act(key, params: Params, public: compensated.Sum, context: None) -> jax.Array:
        del context
        return weighted_index(key, odds(public, jnp.asarray(params.learning_rate)))

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        return State((), add_losses(state.public, report))

    values = only(params, ("learning_rate",))
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
