"""Exponential weights over a class of sequences of experts, computed from totals that a private counter releases."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.conversions import zcdp_rho
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._counter_parameters import counter_of, counter_weights_parameters
from jaxdp.experts._lane_kernels import keep_lane_layout
from jaxdp.experts._losses import UNIT, losses_interface, reveal_losses
from jaxdp.experts._sequence_class import Sequences, Weights
from jaxdp.experts.classes import static
from jaxdp.mechanisms.numerical import TOEPLITZ_STEPS, normal_delta
from jaxdp.numerics.kernels import lanes_last_if_many
from jaxdp.random import weighted_index
from jaxdp.validation import check_count, check_epsilon, check_horizon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        counter: parameters of the counter.
        learning_rate: [] float > 0.
    """

    counter: Any
    learning_rate: Scalar


class Public(NamedTuple):
    """The released totals, and the weights computed from them.

    Attributes:
        round: [] integer, rounds played.
        totals: [num_experts] float, the most recent noisy totals of losses.
        weights: the weights of the class, which are computed only from noisy totals.
    """

    round: jax.Array
    totals: jax.Array
    weights: Weights


@factory
def counter_weights(
    *, num_experts: int, horizon: int, sequences: Sequences | None = None, num_switches: int | None = None
) -> Learner:
    r"""Plays by exponential weights over a class of sequences of experts, computed from noisy totals of losses.

    After each round, one counter releases the noisy total loss of every expert. The differences of consecutive noisy
    totals are used as noisy losses in the weights of the sequences. Each round draws an expert with probability
    proportional to the total weight of the sequences that play this expert in this round. Weights and draws are
    post-processing of the counter's output, so the privacy cost is the same for every class.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        sequences: a class of `jaxdp.experts.classes`, by default `static()`.
        num_switches: the comparator's number of switches, for which the rate is tuned. The default is 0 for `static()`,
            S for `switching(num_switches=S)`, and the rounded expected number of switches for
            `markov(switch_rate=...)`. `markov()` has no default.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32). For each expert, a lane stores the counter's running sums of noise (at most 6 complex numbers for T <=
        2^20), the exact total (2 words), the most recent noisy total, and 2 words for each row of the class (a row is,
        for example, a number of switches). The numbers of running sums and of rows of `markov()` grow slowly with the
        horizon; otherwise, memory does not depend on it.

    Raises:
        ValueError: if num_experts < 2, horizon < 1 or the class does not allow these sizes; if num_switches is not an
            integer >= 0, or is None for `markov()`. The result's `params` raises this error if a value is out of range,
            or the class has no sequence with num_switches switches.

    Values:
        epsilon: the privacy budget, > 0.
        delta: in (0, 1).
        learning_rate: > 0, by default from `counter_weights_parameters`.

    Privacy:
        - Claim: rho-zCDP in the central model, with the rho that implies (epsilon, delta)-DP.
        - Unit: one round's loss vector; adjacency: replace one. Losses may depend on earlier plays and released totals.
        - Sensitivity: A vector adds one entry to each of N counters. Every entry may change by 1, so the L2 sensitivity
          is sqrt(N), and `toeplitz_counter` is calibrated to this sensitivity.
        - Private: the counter's state.

    Source:
        Agarwal & Singh (2017), for weights computed from privately counted losses; here with the factorisation of
        `toeplitz_counter` instead of trees, and over classes of sequences. `docs/proofs/counter_weights.md` proves the
        regret bound over `static()` (see Math). Over other classes no bound is proved.

    Deviations:
        Losses are rounded to multiples of 2^-20 and summed as integers; noise is integer, in steps of a public grid, as
        in `toeplitz_counter`. Noisy losses are differences of released floats. So their sum is the released total, and
        rounding errors do not accumulate.

    Math:
        With $\tilde L_{t,i} = L_{t,i} + n_{t,i}$ the noisy total of expert $i$, a play over single experts is drawn
        with

        $$
        P(i) \propto e^{-\eta \tilde L_{t,i}}
        $$

        where $n_t$ is the noise of a counter at the $L_2$ sensitivity $\sqrt{N}$. With $v_t$ its variance in each
        entry, the expected regret for oblivious losses is at most

        $$
        \frac{\ln N}{\eta} + \eta \Big( \frac{T}{8} + \frac{v_T}{2} \Big)
        $$
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon, spare=1)
    sequences = static() if sequences is None else sequences
    chain = sequences(num_experts=num_experts, horizon=horizon)
    switches = chain.num_switches if num_switches is None else check_count("num_switches", num_switches, 0)
    if switches is None:
        raise ValueError(f"num_switches must be given for {chain.name}, got None")
    problem = {"num_experts": num_experts, "horizon": horizon, "num_switches": switches, "sequences": sequences}
    counter = counter_of(horizon)

    def params(*, epsilon: float, delta: float, learning_rate: float | None = None) -> Params:
        tuned = counter_weights_parameters(epsilon=epsilon, delta=delta, **problem)
        rate = tuned.learning_rate if learning_rate is None else check_positive("learning_rate", learning_rate)
        return Params(
            counter=counter.params(rho=tuned.rho, l2_sensitivity=math.sqrt(num_experts)),
            learning_rate=scalar_leaf("learning_rate", rate),
        )

    def claim(epsilon: float, delta: float, learning_rate: float | None = None) -> Guarantee:
        del learning_rate
        unit = {
            "trust_model": "central",
            "privacy_unit": UNIT,
            "argument": "one Gaussian counter over loss vectors, at L2 sensitivity sqrt(num_experts)",
        }
        if check_epsilon(epsilon) == math.inf:
            return Guarantee.none(**unit)
        rho = zcdp_rho(epsilon, delta)
        numbers = horizon * num_experts  # upper bound on the number of noise values from the changed entry on
        return Guarantee.zcdp(rho, **unit, numerical_delta=normal_delta(numbers, rho=rho, steps=TOEPLITZ_STEPS))

    def init(key, params: Params) -> State:
        zeros = jnp.zeros(num_experts, default_float())
        counted = counter.init(key, params.counter, (num_experts,), dtype=default_float())
        return State(counted, Public(jnp.zeros((), jnp.result_type(int)), zeros, chain.init()))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, chain.marginal(public.weights, public.round))

    def update(key, params: Params, state: State, report) -> State:
        counted = counter.feed(key, params.counter, state.private, report)
        round, before, weights = state.public
        totals = counter.read(params.counter, counted)
        moved = chain.forward(weights, round, params.learning_rate * (totals - before))
        after = State(counted, Public(round + 1, totals, moved))
        return keep_lane_layout(after, lanes_last_if_many)

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
