"""Form "noisy_losses" of `mirror_descent`: each loss vector gets independent noise; updates use only noisy losses."""

import math

import jax
import jax.numpy as jnp

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
from jaxdp.experts._losses import UNIT, loss_privatizer, losses_interface
from jaxdp.experts._mirror_descent.parameters import mirror_descent_parameters
from jaxdp.experts._mirror_descent.sampling import step_of
from jaxdp.mechanisms import round_up
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.random import weighted_index
from jaxdp.validation import check_epsilon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float > 0, the privacy budget of Laplace noise; infinity with Gaussian noise.
        noise_stddev: [] float >= 0, standard deviation of Gaussian noise; 0 with Laplace noise.
        learning_rate: [] float > 0.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    learning_rate: Scalar


def noisy_losses(num_experts: int, horizon: int, num_switches: int, *, mixing: str, noise: str) -> Learner:
    """Returns `mirror_descent` with the form "noisy_losses", from arguments that `mirror_descent` has checked."""
    step = step_of(mixing, num_experts, horizon, num_switches)
    # noise="paper" means Laplace(1 / epsilon) noise and the published learning rate.
    is_gaussian, is_paper = noise == "gaussian", noise == "paper"
    problem = {"num_experts": num_experts, "horizon": horizon, "num_switches": num_switches, "form": "noisy_losses"}

    def params(*, epsilon: float, delta: float = 0.0, learning_rate: float | None = None) -> Params:
        budget = num_experts * check_epsilon(epsilon) if is_paper else epsilon
        if learning_rate is None and is_paper:
            learning_rate = min(epsilon, 1.0) * math.sqrt(num_switches / (horizon * math.log(num_experts * horizon)))
        tuned = mirror_descent_parameters(
            epsilon=budget, delta=delta, noise="gaussian" if is_gaussian else "laplace", **problem
        )
        if not is_gaussian:
            check_laplace(budget, numbers=num_experts)
        rate = tuned.learning_rate if learning_rate is None else check_positive("learning_rate", learning_rate)
        return Params(
            epsilon=leaf_rounded_down("epsilon", math.inf if is_gaussian else budget),
            noise_stddev=round_up(tuned.noise if is_gaussian else 0.0, default_float()),
            learning_rate=scalar_leaf("learning_rate", rate),
        )

    def claim(epsilon: float, delta: float = 0.0, learning_rate: float | None = None) -> Guarantee:
        del learning_rate
        unit = {
            "trust_model": "local",
            "privacy_unit": UNIT,
            "argument": f"each vector is one release of the {'Gaussian' if is_gaussian else 'Laplace'} mechanism"
            + (" at L1 sensitivity num_experts, with noise for sensitivity 1" if is_paper else ""),
        }
        if check_epsilon(epsilon) == math.inf:
            return Guarantee.none(**unit)
        if is_gaussian:
            return Guarantee.zcdp(zcdp_rho(epsilon, delta), **unit)
        return Guarantee.pure(num_experts * epsilon if is_paper else epsilon, **unit)

    def init(key, params: Params) -> State:
        del key, params
        return State((), jnp.full(num_experts, 1 / num_experts, default_float()))

    def act(key, params: Params, public: jax.Array, context: None) -> jax.Array:
        del params, context
        return weighted_index(key, public)  # line 4 of Algorithm 3 of Asi, Raman & Saha (2025)

    def update(key, params: Params, state: State, report) -> State:
        del key
        return State((), step(state.public, params.learning_rate * report))  # line 7 of Algorithm 3

    params.__qualname__ = "mirror_descent.params"  # named in error messages
    values = only(params, ("epsilon", "delta", "learning_rate") if is_gaussian else ("epsilon", "learning_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=loss_privatizer(num_experts, is_gaussian=is_gaussian),  # line 6 of Algorithm 3
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )
