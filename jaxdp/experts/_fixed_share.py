"""Non-private fixed share; at epsilon = inf, private learners with its prior or mixing have its play distribution."""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._losses import UNIT, losses_interface, reveal_losses
from jaxdp.experts._mirror_descent.parameters import check_switches, tracking_nats
from jaxdp.experts._share_kernels import fixed_share_step  # in a layout for CPUs; `_shares` has plain functions
from jaxdp.random import weighted_index
from jaxdp.validation import check_above, check_count, check_horizon, check_positive, check_within


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        learning_rate: [] float > 0.
        switch_rate: [] float in (0, 1].
    """

    learning_rate: Scalar
    switch_rate: Scalar


@factory
def fixed_share(*, num_experts: int, horizon: int, num_switches: int) -> Learner:
    r"""Plays by exponential weights; each round, every expert passes a fraction of its weight equally to all others.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 2.
        num_switches: the comparator's number of switches S, >= 1 and < T, from which defaults are computed. For S = 0,
            use `hedge`.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        learning_rate: > 0, by default the minimiser of the regret bound (see Math) at the default switch_rate.
        switch_rate: a, in (0, 1], the fraction of its weight that an expert passes to all others together; by default
            S / (T - 1).

    Privacy:
        - None.
        - At epsilon = inf, with the same rates and for oblivious losses, each play has the same distribution in
          `mirror_descent` with the mixing "fixed_share", and in `lazy_weights` and `counter_weights` over
          `markov(switch_rate=a)`.

    Source:
        Herbster & Warmuth (1998), the fixed share algorithm.

    Deviations:
        None.

    Math:
        With $w_{t,i}$ the probability of expert $i$ in round $t$, and $a$ the `switch_rate`,

        $$
        v_{t,i} = \frac{w_{t,i} e^{-\eta \ell_{t,i}}}{\sum_j w_{t,j} e^{-\eta \ell_{t,j}}}, \quad
        w_{t+1,i} = (1 - a) v_{t,i} + \frac{a}{N - 1} \sum_{j \ne i} v_{t,j}
        $$

        The regret against every sequence of $S$ switches is at most

        $$
        \frac{1}{\eta} \Big( \ln N + S \ln \frac{N - 1}{a} + (T - 1 - S) \ln \frac{1}{1 - a} \Big) + \frac{\eta T}{8}
        $$
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    num_switches = check_switches(num_switches, horizon)

    def params(*, learning_rate: float | None = None, switch_rate: float | None = None) -> Params:
        if learning_rate is None:
            learning_rate = math.sqrt(8 * tracking_nats(num_experts, num_switches, horizon) / horizon)
        share = num_switches / (horizon - 1) if switch_rate is None else switch_rate
        check_above("switch_rate", float(check_within("switch_rate", share, 0.0, 1.0)), 0.0)
        return Params(
            learning_rate=scalar_leaf("learning_rate", check_positive("learning_rate", learning_rate)),
            switch_rate=scalar_leaf("switch_rate", share),
        )

    def claim(learning_rate: float | None = None, switch_rate: float | None = None) -> Guarantee:
        del learning_rate, switch_rate
        return Guarantee.none(trust_model="central", privacy_unit=UNIT, argument="losses are used as they are")

    def init(key, params: Params) -> State:
        del key, params
        return State((), jnp.full(num_experts, 1 / num_experts, default_float()))

    def act(key, params: Params, public: jax.Array, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, public)

    def update(key, params: Params, state: State, report) -> State:
        del key
        switch_rate = jnp.asarray(params.switch_rate)
        return State((), fixed_share_step(state.public, params.learning_rate * report, switch_rate))

    values = only(params, ("learning_rate", "switch_rate"))
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
