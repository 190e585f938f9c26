"""Numbers that the code computes, and values of symbols, for the cases of `formula_cases`."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits, experts, mechanisms
from jaxdp.bandits import contextual, convex
from jaxdp.bandits.contextual import _ellipsoid as ellipsoid
from jaxdp.dueling._double_thompson._double_thompson import posterior
from jaxdp.estimation import _sgd as sgd


def width_factor(epsilon: float) -> Any:
    """Returns the c of `ucb` from its parameters, where the variance proxy is c^2 / 4."""
    params: Any = bandits.ucb(num_arms=3).params(epsilon=epsilon, exploration_rate=2.0)
    return np.sqrt(params.squared_radius / (2 * 2.0 / 4))


def spread_of_reports(epsilon: float) -> float:
    """Returns the Laplace scale of `exponential_weights`: ln N / rate^2 = T (1/8 + s^2 / 2), s^2 = 2 b^2."""
    params: Any = experts.exponential_weights(num_experts=8, horizon=500).params(epsilon=epsilon)
    return math.sqrt(math.log(8) / float(params.learning_rate) ** 2 / 500 - 1 / 8)


def second_moment(epsilon: float) -> float:
    """Returns the second moment of randomized responses of losses in [-1, 1]."""
    return ((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)) ** 2


def laplace_scale(sensitivity: float, epsilon: float) -> Any:
    """Returns the scale of Laplace noise, from the mean of its absolute values."""
    zeros = jnp.zeros(400_000)
    noisy = mechanisms.laplace(jax.random.key(0), zeros, l1_sensitivity=sensitivity, epsilon=epsilon)
    return jnp.abs(noisy).mean()


EPSILON = 0.7
DESCENT = {"D": 1.0, "R": 1.0, "d": 3, "G": 1.0, "s": 4.0, "T": 400, "M_2": second_moment(EPSILON)}
CHOSEN: Any = experts.lazy_weights_parameters(epsilon=1.0, delta=1e-6, num_experts=4, horizon=1000)
SPENT = {"K": CHOSEN.budget, r"\eta": CHOSEN.learning_rate, "p": CHOSEN.fake_switch_prob}


def fkm() -> Any:
    return convex.fkm(dim=3, horizon=400).params(epsilon=EPSILON)


def two_point() -> Any:
    return convex.two_point(dim=3, horizon=400).params(epsilon=EPSILON)


EPS, BETA = r"\varepsilon", r"\beta"
BARRIER: Any = {
    **DESCENT,
    "T": 10**6,
    "M": second_moment(EPSILON) ** 0.5,
    r"\theta": 1.0,
    BETA: 1.0,
    r"\mu": 1.0,
    "B": 1.0,
}
BALLS: Any = {"dim": 3, "horizon": 10**6}
SLACK: Any = {"T": 1000, r"\alpha": 0.05, "d": 3}
CONTEXTS: Any = {"num_arms": 4, "dim": 3, "horizon": 1000}
SPLIT: Any = {EPS: 0.5, BETA: 0.05, "S": 4, "k": 8, "D": 2.0**-8}
LADDER: Any = {"p": 1 / (1 + math.exp(-EPSILON)), EPS: EPSILON, r"\kappa": 0.5, "t": 1, "L": 0.8, "B": 1.5}
STEPS: Any = {"epsilon": EPSILON, "radius": 1.5, "coverage": 0.5, "feature_norm": 0.8}


def step_size(model: sgd.Model, gain: float, epsilon: float) -> Any:
    """Returns the first step of "inverse_time"."""
    return sgd.first_step(
        sgd.randomized_params(**{**STEPS, "epsilon": epsilon}), "inverse_time", model, jnp.float32(gain)
    )


def gaussian_scale(learner: Any, **values: float) -> Any:
    """Returns the standard deviation of Gaussian noise that `params` holds."""
    return learner.params(**values).noise_stddev


def gumbel_scale(gap: float, epsilon: float, sensitivity: float) -> float:
    """Returns b from the share of 4e5 draws that select the larger of two scores: 1 / (1 + e^(-gap / b))."""
    scores = jnp.zeros((400_000, 2)).at[:, 1].set(gap)
    drawn = mechanisms.noisy_max(jax.random.key(0), scores, epsilon, sensitivity=sensitivity, noise="gumbel")
    share = float(drawn.mean())
    return gap / math.log(share / (1 - share))


def lead_scale(sensitivity: float, epsilon: float) -> Any:
    """Returns b from the mean distance of two noisy zeros, which is 3 b / 2."""
    zeros = jnp.zeros((400_000, 2), jnp.int32)
    leads = mechanisms.noisy_leads(jax.random.key(0), zeros, epsilon, l1_sensitivity=sensitivity)
    return -leads.min(axis=1).mean() / 1.5


def posterior_ones(won: float, lost: float) -> Any:
    """Returns the part a of the first parameter of double Thompson sampling's Beta distribution."""
    return posterior(jnp.float32(won), jnp.float32(lost), EPSILON) - 1


def debiased_share(won: float, lost: float) -> float:
    """Returns the debiased share of wins."""
    return 0.5 + (won / (won + lost) - 0.5) * second_moment(EPSILON) ** 0.5


def keep_probability(num_labels: int) -> float:
    """Returns the probability that a label is kept, from the two entries of its estimate, 1 / (p - q) apart."""
    entries = mechanisms.debias_one_hot(jnp.zeros((), jnp.int32), EPSILON, num_labels=num_labels)
    return (float(1 / (entries[0] - entries[1])) * (num_labels - 1) + 1) / num_labels


def ellipsoid_radius() -> float:
    """Returns the radius that `linear_ucb` has after 500 rounds, for rewards in [-3, 3], from its parameters."""
    params: Any = contextual.linear_ucb(**CONTEXTS).params(epsilon=EPSILON, delta=1e-5, reward_bound=3.0)
    noise, rounds = jnp.sqrt(500.0), jnp.asarray(500.0)
    bound = ellipsoid.eigenvalue_bound(params.radii, noise)
    width = ellipsoid.noise_width(params.radii, bound, noise)
    return float(width + ellipsoid.reward_width(params.radii, bound, rounds, CONTEXTS["dim"]))


def variance(counter: mechanisms.Counter, time: int, **values: float) -> float:
    """Returns the variance of a counter's estimate after some entries."""
    return float(counter.variance(counter.params(**values), time))


def square_sum(horizon: int) -> float:
    """Returns the sum of the squares of f_i, f_0 = 1, f_i = (2 i - 1) / (2 i) f_(i - 1)."""
    steps = np.arange(1, horizon)
    return float(np.sum(np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))]) ** 2))
