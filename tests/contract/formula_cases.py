"""Formulas of docstrings, values of their symbols, and the numbers that the code computes from the same values."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits, dueling, estimation, experts, mechanisms
from jaxdp.bandits import contextual, convex
from jaxdp.estimation import _sgd as sgd
from jaxdp.estimation._sgd_krr import CHOICES
from jaxdp.mechanisms.calibration import analytic_gaussian, zcdp_gaussian, zcdp_rho
from jaxdp.preferences import logistic
from tests.contract.formula_numbers import (
    BALLS,
    BARRIER,
    BETA,
    CONTEXTS,
    DESCENT,
    EPS,
    EPSILON,
    LADDER,
    SLACK,
    SPLIT,
    debiased_share,
    ellipsoid_radius,
    fkm,
    gaussian_scale,
    gumbel_scale,
    keep_probability,
    laplace_scale,
    lead_scale,
    posterior_ones,
    second_moment,
    spread_of_reports,
    square_sum,
    step_size,
    two_point,
    variance,
    width_factor,
)


class Case(NamedTuple):
    """A symbol of a docstring's formula, values of its symbols, and the code's number."""

    function: Any
    symbol: str
    symbols: dict[str, float]
    number: Callable[[], Any]
    tolerance: float = 1e-4


CASES = {
    "exp3": Case(
        bandits.exp3,
        r"\eta",
        {"K": 5, "T": 900},
        lambda: bandits.exp3(num_arms=5, horizon=900).params(epsilon=1.0).learning_rate,
    ),
    "hedge": Case(
        experts.hedge,
        r"\eta",
        {"N": 7, "T": 900},
        lambda: experts.hedge(num_experts=7, horizon=900).params().learning_rate,
    ),
    "ucb": Case(bandits.ucb, "c", {r"\varepsilon": EPSILON}, lambda: width_factor(EPSILON)),
    "exponential_weights": Case(
        experts.exponential_weights, "b", {"N": 8, r"\varepsilon": 2.0}, lambda: spread_of_reports(2.0)
    ),
    "fkm, rho": Case(convex.fkm, r"\rho", DESCENT, lambda: fkm().exploration),
    "fkm, eta": Case(convex.fkm, r"\eta", DESCENT, lambda: fkm().step * fkm().exploration / 3),
    "two_point, rho": Case(convex.two_point, r"\rho", DESCENT, lambda: two_point().exploration),
    "two_point, eta": Case(convex.two_point, r"\eta", DESCENT, lambda: two_point().step / 3),
    "laplace": Case(
        mechanisms.laplace, "b", {r"\Delta": 2.0, r"\varepsilon": 0.5}, lambda: laplace_scale(2.0, 0.5), 0.01
    ),
    "gaussian": Case(
        mechanisms.gaussian,
        r"\rho",
        {r"\Delta": 2.0, r"\sigma": zcdp_gaussian(0.3, 2.0)},
        lambda: 0.3,
    ),
    "successive_elimination_central": Case(
        bandits.successive_elimination_central,
        "R",
        SPLIT,
        lambda: bandits.successive_elimination_central(num_arms=4, constants="paper").params(epsilon=0.5).plays[7, 4],
    ),
    "lil_ucb, w": Case(
        bandits.lil_ucb,
        "w",
        {r"\nu": 0.05, r"\gamma": 0.01},
        lambda: math.exp(-float(bandits.lil_ucb(num_arms=3).params(epsilon=1.0).log_risk)),
    ),
    "lil_ucb, L": Case(
        bandits.lil_ucb,
        "L",
        {r"\nu": 0.05, r"\gamma": 0.01},
        lambda: bandits.lil_ucb(num_arms=3).params(epsilon=1.0).patience,
    ),
    "strongly_convex_one_point": Case(
        convex.strongly_convex_one_point,
        r"\rho",
        BARRIER,
        lambda: convex.strongly_convex_one_point(**BALLS).params(epsilon=EPSILON).exploration,
    ),
    "barrier_smooth, rho": Case(
        convex.barrier_smooth,
        r"\rho",
        {**BARRIER, "R": 1.5},
        lambda: convex.barrier_smooth(**BALLS, radius=1.5).params(epsilon=EPSILON).exploration,
    ),
    "barrier_smooth, rho of few rounds": Case(
        convex.barrier_smooth,
        r"\rho",
        {**BARRIER, "T": 10},
        lambda: convex.barrier_smooth(dim=3, horizon=10).params(epsilon=EPSILON).exploration,
    ),
    "barrier_smooth, eta of few rounds": Case(
        convex.barrier_smooth,
        r"\eta",
        {**BARRIER, "T": 10},
        lambda: (lambda params: params.step * params.exploration**2 / 3)(
            convex.barrier_smooth(dim=3, horizon=10).params(epsilon=EPSILON)
        ),
    ),
    "barrier_strongly_convex of few rounds": Case(
        convex.barrier_strongly_convex,
        r"\eta",
        {**BARRIER, "T": 10},
        lambda: convex.barrier_strongly_convex(dim=3, horizon=10).params(epsilon=EPSILON).step / 3,
    ),
    "barrier_smooth, eta": Case(
        convex.barrier_smooth,
        r"\eta",
        BARRIER,
        lambda: (lambda params: params.step * params.exploration**2 / 3)(
            convex.barrier_smooth(**BALLS).params(epsilon=EPSILON)
        ),
    ),
    "barrier_strongly_convex": Case(
        convex.barrier_strongly_convex,
        r"\eta",
        BARRIER,
        lambda: convex.barrier_strongly_convex(**BALLS).params(epsilon=EPSILON).step / 3,
    ),
    "stochastic_1d": Case(
        convex.stochastic_1d,
        "n_i",
        {"s": second_moment(EPSILON) ** 0.5, "T": 10**6, r"\gamma_i": 2.0**-5},
        lambda: convex.stochastic_1d(horizon=10**6).params(epsilon=EPSILON).samples[4],
    ),
    "generalized_linear": Case(
        contextual.generalized_linear,
        r"\zeta",
        {**SLACK, "Y": 3.0, "s": 3 * analytic_gaussian(EPSILON, 1e-5, 4.5**0.5)},
        lambda: contextual.generalized_linear(**CONTEXTS).params(epsilon=EPSILON, delta=1e-5).descent.learning_rate,
    ),
    "greedy_sgd": Case(
        contextual.greedy_sgd,
        r"\tau",
        {"d": 2, "B": 0.25 * math.pi / math.tanh(EPSILON / 2), "Y": 1.0},
        lambda: contextual.greedy_sgd(num_arms=2, dim=2).params(epsilon=EPSILON).step_delay,
    ),
    "linear_ucb": Case(
        contextual.linear_ucb,
        "r",
        {
            **SLACK,
            "R": 3.0,
            "Y": 3.0,
            "t": 500,
            **dict.fromkeys(("s", r"\sigma"), analytic_gaussian(EPSILON, 1e-5, 4.5**0.5)),
        },
        ellipsoid_radius,
    ),
    "linear_ucb, B": Case(
        contextual.linear_ucb,
        "B",
        {EPS: EPSILON, "d": 3},
        lambda: contextual.linear_ucb(**CONTEXTS, report="l2_ball").params(epsilon=EPSILON).randomizer.report_radius,
    ),
    "rucb, p": Case(dueling.rucb, "p", {EPS: EPSILON}, lambda: keep_probability(2)),
    "linear_ucb_joint": Case(
        contextual.linear_ucb_joint,
        r"\kappa",
        SLACK,
        lambda: contextual.linear_ucb_joint(**CONTEXTS).params(epsilon=EPSILON, delta=1e-5).radii.matrix_rate,
    ),
    "limited_updates_oblivious": Case(
        experts.limited_updates_oblivious,
        r"\eta",
        {EPS: EPSILON, "n": 19, "N": 5, "m": 50, "T": 1000},
        lambda: (
            experts.limited_updates_oblivious(num_experts=5, horizon=1000)
            .params(epsilon=EPSILON, batch=50)
            .learning_rate
        ),
    ),
    "svt_restarts": Case(
        experts.svt_restarts,
        r"\Lambda",
        {EPS: EPSILON, "C": 125, "T": 1000, "b": 0.002},
        lambda: experts.svt_restarts(num_experts=3, horizon=1000, check_every=8).params(epsilon=EPSILON).margin,
    ),
    "svt_lazy, eta": Case(
        experts.svt_lazy,
        r"\eta",
        {EPS: EPSILON, "K": 6},
        lambda: experts.svt_lazy(num_experts=5, horizon=1000).params(epsilon=EPSILON, max_switches=6).learning_rate,
    ),
    "svt_lazy, eta of a large epsilon": Case(
        experts.svt_lazy,
        r"\eta",
        {EPS: 20.0, "K": 1},
        lambda: experts.svt_lazy(num_experts=5, horizon=1000).params(epsilon=20.0, max_switches=1).learning_rate,
    ),
    "svt_lazy, tau": Case(
        experts.svt_lazy,
        r"\tau",
        {EPS: EPSILON, "K": 6, "T": 1000, BETA: 0.01},
        lambda: experts.svt_lazy(num_experts=5, horizon=1000).params(epsilon=EPSILON, max_switches=6).threshold,
    ),
    "mirror_descent, sigma": Case(
        experts.mirror_descent,
        r"\sigma",
        {"N": 5, r"\rho": zcdp_rho(1.0, 1e-6)},
        lambda: gaussian_scale(
            experts.mirror_descent(num_experts=5, horizon=100, num_switches=2, form="noisy_losses"),
            epsilon=1.0,
            delta=1e-6,
        ),
    ),
    "mirror_descent, b": Case(
        experts.mirror_descent,
        "b",
        {"N": 5, EPS: EPSILON},
        lambda: (
            experts.mirror_descent_parameters(
                epsilon=EPSILON, num_experts=5, horizon=100, num_switches=2, form="noisy_losses", noise="laplace"
            ).noise
        ),
    ),
    "ebs_phased": Case(
        dueling.ebs_phased,
        "N",
        {**SPLIT, "x": math.log(8 * 4 * 64 / 0.05)},
        lambda: dueling.ebs_phased(num_arms=4, constants="split").params(epsilon=0.5).passes[7, 4] * 4.0,
    ),
    "ebs_local": Case(
        dueling.ebs_local,
        "r",
        {"K": 4, "T": 1000, BETA: 0.05},
        lambda: math.sqrt(dueling.ebs_local(num_arms=4, horizon=1000).params(epsilon=EPSILON).squared_radius),
    ),
    "double_thompson": Case(
        dueling.double_thompson,
        "a",
        {"s": debiased_share(60, 40), "N": 100, EPS: EPSILON},
        lambda: posterior_ones(60, 40),
    ),
    "g_optimal_elimination": Case(
        dueling.g_optimal_elimination,
        r"\kappa",
        {"r": 1.5},
        lambda: dueling.g_optimal_elimination(features=np.eye(2)).params(epsilon=1.0, radius=1.5).slope,
    ),
    "sgd": Case(estimation.sgd, r"\eta_t", LADDER, lambda: step_size(sgd.pairwise(logistic), 1.0, math.inf)),
    "sgd_rr": Case(
        estimation.sgd_rr,
        r"\eta_t",
        LADDER,
        lambda: step_size(sgd.pairwise(logistic), math.tanh(EPSILON / 2), EPSILON),
    ),
    "sgd_krr": Case(
        estimation.sgd_krr,
        r"\eta_t",
        {**LADDER, "K": 4},
        lambda: step_size(CHOICES, float(CHOICES.gain(jnp.float32(EPSILON), jnp.zeros((1, 4, 2)))), EPSILON),
    ),
    "literal_objective_perturbation": Case(
        estimation.literal_objective_perturbation,
        r"\sigma",
        {EPS: EPSILON, r"\delta": 1e-5, "L": 1.0},
        lambda: estimation.literal_objective_perturbation().params(epsilon=EPSILON, delta=1e-5).noise_multiplier,
    ),
    "objective_perturbation_full": Case(
        estimation.objective_perturbation_full,
        r"\sigma",
        {EPS: EPSILON, r"\delta": 1e-5, "L": 1.0},
        lambda: (
            estimation.objective_perturbation_full()
            .params(epsilon=EPSILON, delta=1e-5, feature_norm=1.0)
            .noise_multiplier
        ),
    ),
    "plackett_luce_debiased_krr": Case(
        estimation.plackett_luce_debiased_krr, "p", {EPS: EPSILON, "K": 4}, lambda: keep_probability(4)
    ),
    "label_randomizer, p": Case(mechanisms.label_randomizer, "p", {EPS: EPSILON, "K": 4}, lambda: keep_probability(4)),
    "label_randomizer, q": Case(
        mechanisms.label_randomizer, "q", {EPS: EPSILON, "K": 4}, lambda: (1 - keep_probability(4)) / 3
    ),
    "ballot_objective_perturbation": Case(
        estimation.ballot_objective_perturbation, r"\Delta", {"m": 7}, lambda: estimation.ballot_sensitivity(7)
    ),
    "randomize_scalar": Case(
        mechanisms.randomize_scalar,
        "c",
        {EPS: EPSILON},
        lambda: mechanisms.debias_scalar(jnp.ones((), jnp.int32), EPSILON, bound=1.0),
    ),
    "noisy_max": Case(  # 4 standard errors
        mechanisms.noisy_max, "b", {r"\Delta": 2.0, EPS: 0.5}, lambda: gumbel_scale(8.0, 0.5, 2.0), 0.015
    ),
    "noisy_leads": Case(  # 7 standard errors
        mechanisms.noisy_leads, "b", {r"\Delta": 2.0, EPS: 0.5}, lambda: lead_scale(2.0, 0.5), 0.01
    ),
    "above_threshold": Case(
        mechanisms.above_threshold,
        "b",
        {r"\Delta": 2.0, EPS: EPSILON},
        lambda: mechanisms.above_threshold_init(jax.random.key(0), EPSILON, threshold=0.0, sensitivity=2.0).query_scale,
    ),
    "scalar_randomizer, c": Case(
        mechanisms.scalar_randomizer,
        "c",
        {EPS: EPSILON},
        lambda: mechanisms.scalar_randomizer("rr").range_bound(10, 0.05, epsilon=EPSILON, low=-1.0),
    ),
    "scalar_randomizer, b": Case(
        mechanisms.scalar_randomizer,
        "b",
        {EPS: EPSILON, "B": 1.0},
        lambda: ((mechanisms.scalar_randomizer("laplace").second_moment(epsilon=EPSILON, low=-1.0) - 1) / 2) ** 0.5,
    ),
    "vector_randomizer": Case(
        mechanisms.vector_randomizer,
        "b",
        {EPS: EPSILON, "R": 1.5},
        lambda: mechanisms.vector_randomizer((4,), "l1").params(epsilon=EPSILON, radius=1.5).sensitivity / EPSILON,
    ),
    "moment_randomizer, B": Case(
        mechanisms.moment_randomizer,
        "B",
        {EPS: EPSILON, "D": 20},
        lambda: mechanisms.moment_randomizer(5, "l2_ball").params(epsilon=EPSILON).report_radius,
    ),
    "moment_randomizer, tau": Case(
        mechanisms.moment_randomizer,
        r"\tau",
        {EPS: EPSILON, "D": 20},
        lambda: mechanisms.moment_randomizer(5, "l2_ball").params(epsilon=EPSILON).noise_stddev,
    ),
    "tree_counter, b": Case(
        mechanisms.tree_counter,
        "b",
        {EPS: EPSILON, "k": 10, r"\Delta": 1.0},
        lambda: variance(mechanisms.tree_counter(horizon=1000, arity=2), 1, epsilon=EPSILON) ** 0.5 / 2**0.5,
    ),
    "tree_counter, V": Case(
        mechanisms.tree_counter,
        "V",
        {r"\rho": 0.5, "k": 10, r"\Delta": 2.0},
        lambda: variance(
            mechanisms.tree_counter(horizon=1000, arity=2, noise="gaussian"), 1, rho=0.5, l2_sensitivity=2.0
        ),
    ),
    "toeplitz_counter": Case(  # its docstring promises 1%
        mechanisms.toeplitz_counter,
        "V",
        {r"\rho": 0.5, "s_T": square_sum(1000), r"\Delta": 2.0},
        lambda: variance(mechanisms.toeplitz_counter(horizon=1000), 1000, rho=0.5, l2_sensitivity=2.0),
        0.01,
    ),
    "doubling_counter": Case(
        mechanisms.doubling_counter,
        "b",
        {EPS: EPSILON, "m": 1, r"\Delta": 1.0},
        lambda: (
            (
                (
                    variance(mechanisms.doubling_counter(horizon=100), 2, epsilon=EPSILON)
                    - variance(mechanisms.doubling_counter(horizon=100), 1, epsilon=EPSILON)
                )
                / 2
            )
            ** 0.5
        ),
    ),
}
