"""Exponential weights (Hedge) on loss vectors to which each user adds noise."""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import (
    Guarantee,
    Learner,
    Scalar,
    State,
    default_float,
    factory,
    guarantee_for,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._lane_kernels import add_losses
from jaxdp.experts._losses import UNIT, loss_privatizer, losses_interface
from jaxdp.experts._shares import odds
from jaxdp.mechanisms import analytic_gaussian, round_up
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_slow
from jaxdp.random import weighted_index
from jaxdp.validation import check_choice, check_count, check_epsilon, check_horizon, check_positive

NOISES = ("laplace", "gaussian")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        noise_stddev: [] float >= 0, standard deviation of Gaussian noise; zero for Laplace noise, because its scale is
            computed from epsilon.
        learning_rate: [] float > 0.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    learning_rate: Scalar


@factory
def exponential_weights(*, num_experts: int, horizon: int, noise: str = "laplace") -> Learner:
    r"""Plays expert i with probability proportional to exp(-learning_rate * total reported loss of expert i).

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        noise: "laplace" (scale N / epsilon) or "gaussian" (analytically calibrated to L2 sensitivity sqrt(N)).

    Returns:
        A learner for losses ([num_experts] float in [0, 1]); its actions are experts ([] int32).

    Raises:
        ValueError: if num_experts < 2, horizon < 1, or noise is not one of the names above. The result's `params`
            raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian noise, in (0, 1).
        learning_rate: > 0 and finite, by default sqrt(ln N / (T * (1/8 + s^2 / 2))), where s is the standard deviation
            of the noise in one entry.

    Privacy:
        - Claim: epsilon-DP (Laplace) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's loss vector; adjacency: replace one.
        - Sensitivity: Every entry may change by 1, so the vector has L1 sensitivity N and L2 sensitivity sqrt(N). On
          the user's device, `privatize` clips each entry to [0, 1] (NaN becomes 0) and adds the noise. Everything else
          is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Freund & Schapire (1997), Hedge; noise as in Dwork & Roth (2014), Theorem 3.6, or Balle & Wang (2018), Theorem
        8. The default rate minimises a bound on the expected regret (see Math). This bound uses ln E exp(-rate Z) =
        rate^2 s^2 / 2 for Gaussian noise Z. For Laplace noise the left side is at most 15% larger if rate * s <= 0.7,
        which holds for the default rate if T >= 4.1 ln N.

    Deviations:
        Totals of reports are compensated sums, because plain float32 sums would stop growing at long horizons.

    Math:
        Round $t$ plays expert $i$ with probability proportional to

        $$
        \exp\Big( -\eta \sum_{s < t} \tilde\ell_{s,i} \Big), \quad \tilde\ell_{s,i} = \ell_{s,i} + Z_{s,i}
        $$

        where the noise of "laplace" is $Z_{s,i} \sim \mathrm{Lap}(b)$ with

        $$
        b = \frac{N}{\varepsilon}
        $$

        With $s$ the standard deviation of the noise of one entry, the default rate minimises the bound

        $$
        \frac{\ln N}{\eta} + \eta T \Big( \frac{1}{8} + \frac{s^2}{2} \Big)
        $$
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    is_gaussian = check_choice("noise", noise, NOISES) == "gaussian"

    def params(*, epsilon: float, delta: float = 0.0, learning_rate: float | None = None) -> Params:
        checked = check_epsilon(epsilon) if is_gaussian else check_laplace(epsilon, numbers=num_experts)
        budget = leaf_rounded_down("epsilon", checked)
        stddev = analytic_gaussian(epsilon, delta, math.sqrt(num_experts)) if is_gaussian else 0.0
        spread = stddev if is_gaussian else math.sqrt(2) * num_experts / epsilon
        if learning_rate is None:
            learning_rate = math.sqrt(math.log(num_experts) / horizon) / math.hypot(
                math.sqrt(1 / 8), spread / math.sqrt(2)
            )
        check_positive("learning_rate", learning_rate)
        return Params(
            epsilon=budget,
            noise_stddev=round_up(stddev, default_float()),
            learning_rate=scalar_leaf("learning_rate", learning_rate),
        )

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="local",
            privacy_unit=UNIT,
            argument=f"each report is one release of the {noise.capitalize()} mechanism",
        )

    def init(key, params: Params) -> State:
        del key
        return State(private=(), public=compensated.zero(jnp.zeros(num_experts, default_float())))

    def act(key, params: Params, public: compensated.Sum, context: None) -> jax.Array:
        del context
        return weighted_index(key, lanes_slow(odds(public, params.learning_rate)))  # exponentials keep the sums' layout

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        return State((), add_losses(state.public, report))

    values = only(params, ("epsilon", "delta", "learning_rate") if is_gaussian else ("epsilon", "learning_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=loss_privatizer(num_experts, is_gaussian=is_gaussian),
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )
