"""Noise that docstrings display as a function of epsilon, and the noise that the code adds.

An algorithm may have its cases in `NOISES` of a file `noise_cases.py` in its folder of tests.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits, dueling, estimation, experts, mechanisms
from jaxdp.audit.accounting import noise_scale
from jaxdp.bandits import contextual
from jaxdp.core import State
from jaxdp.dueling import _pair_blocks
from jaxdp.estimation.label_reports import unbiased_labels
from jaxdp.mechanisms import sparse_vector
from jaxdp.mechanisms.additive import geometric
from jaxdp.mechanisms.branches import deciding
from jaxdp.mechanisms.calibration import analytic_gaussian
from jaxdp.mechanisms.tape import Entry, recording
from jaxdp.numerics import fixed_point
from tests.contract.latex import definition, formulas, laplace_scales

EPS = r"\varepsilon"
DRAWS = 200_000
DELTA = 1e-5
GOLDEN: Any = {"delta": DELTA}
KEY = jax.random.key(5)


class Noise(NamedTuple):
    """Noise of one docstring.

    Attributes:
        function: the function with the docstring.
        latex: the formula, from the docstring.
        number: epsilon -> the number of the code.
        symbols: values of the formula's symbols besides epsilon, or functions of epsilon.
        tolerance: relative; of a number from draws, 5 standard errors or more.
        epsilons: the values of epsilon.
        name: the symbol that the formula defines, or the position of a Laplace scale.
    """

    function: Any
    latex: str
    number: Callable[[float], Any]
    symbols: dict[str, Any]
    tolerance: float
    epsilons: tuple[float, ...]
    name: str | int


def defines(
    function: Any,
    symbol: str,
    number: Callable[[float], Any],
    tolerance: float = 1e-4,
    epsilons: tuple[float, ...] = (0.5, 2.0),
    **symbols: Any,
) -> Noise:
    """Builds the case of a symbol that a displayed formula defines; names of symbols lack braces."""
    latex = definition(function, symbol).replace("_{ij}", "").removesuffix(r", \; z \ge 0")
    return Noise(function, latex, number, symbols, tolerance, epsilons, symbol)


def scale(
    function: Any, number: Callable[[float], Any], which: int = 0, tolerance: float = 1e-4, **symbols: float
) -> Noise:
    """Builds the case of the scale of a Laplace distribution in the section `Math`, by its position."""
    return Noise(function, laplace_scales(function)[which], number, symbols, tolerance, (0.5, 2.0), which)


def first_release(learner: Any, rounds: int, **values: float) -> Callable[[float], Entry]:
    """Returns epsilon -> the first release that mechanisms record when the learner plays."""

    def first_entry(epsilon: float) -> Entry:
        params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon, **values))
        state = learner.init(KEY, params)
        with recording() as entries, deciding(bool):
            for _ in range(rounds):
                action = learner.act(KEY, params, state.public, None)
                report = learner.privatize(KEY, params, state.public, None, action, jnp.int32(1))
                state = learner.update(KEY, params, state, report)
                if entries:
                    return entries[0]
        raise AssertionError(f"no release in {rounds} rounds")

    return first_entry


def released_scale(learner: Any, rounds: int, **values: float) -> Callable[[float], float]:
    """Returns epsilon -> the scale of the first release's Laplace noise."""
    first_entry = first_release(learner, rounds, **values)

    def scale_of(epsilon: float) -> float:
        entry = first_entry(epsilon)
        assert (entry.name, entry.distribution) == ("laplace", "laplace")
        return noise_scale(entry)

    return scale_of


def reach_of_reports(learner: Any) -> Callable[[float], float]:
    """Returns epsilon -> the size of debiased reports of [-1, 1], at the budget that the learner's reports have."""
    first_entry = first_release(learner, 1)

    def reach(epsilon: float) -> float:
        entry = first_entry(epsilon)
        assert entry.name in ("randomized_response", "randomize_scalar")
        return mechanisms.scalar_randomizer("rr").range_bound(10, 0.05, epsilon=float(entry.epsilon), low=-1.0)

    return reach


def geometric_variance(epsilon: float) -> float:
    """Returns the variance of noise at the budget of the first release of `thompson_central`."""
    entry = first_release(bandits.thompson_central(num_arms=2), 2)(epsilon)
    noise = geometric(KEY, jnp.zeros(4 * DRAWS, jnp.int32), float(entry.epsilon))
    return float(jnp.var(noise))


def threshold_scale(start: Callable[[jax.Array], sparse_vector.AboveThreshold]) -> float:
    """Returns the mean distance of noisy thresholds from the threshold 0."""
    runs = jax.vmap(start)(jax.random.split(KEY, DRAWS))
    one = jax.tree.map(lambda leaf: leaf[0], runs)
    steps = np.asarray(runs.noisy_threshold[0], np.float64) * fixed_point.UNITS + np.asarray(runs.noisy_threshold[1])
    return float(np.abs(steps / float(sparse_vector.grid_of(one).per_one)).mean())


def selection_tail(epsilon: float) -> float:
    """Returns twice the share of draws of `noisy_argmax` in which a total that is 1 lower is selected."""
    learner = bandits.noisy_argmax(num_arms=2, num_rounds=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    start = learner.init(KEY, params)
    state = State(start.private._replace(totals=jnp.asarray([1, 0])), start.public._replace(round=jnp.asarray(1)))
    last = jax.vmap(lambda key: learner.update(key, params, state, (jnp.int32(1), jnp.int32(0))))
    return 2 * float(jnp.mean(last(jax.random.split(KEY, DRAWS)).public.best_arm == 1))


def share_kept(num_labels: int, report: int) -> Callable[[float], float]:
    """Returns epsilon -> the share of randomized responses of the label 0 that are `report`."""
    labels = jnp.zeros(DRAWS, jnp.int32)
    return lambda epsilon: float(
        jnp.mean(mechanisms.randomized_response(KEY, labels, epsilon, num_labels=num_labels) == report)
    )


def share_of_upper(epsilon: float) -> float:
    """Returns the share of reports of 1.3 in [0.5, 2] above the centre."""
    randomizer = mechanisms.scalar_randomizer("rr")
    params = randomizer.params(epsilon=epsilon, low=0.5, high=2.0)
    reports = jax.vmap(lambda key: randomizer.report(key, params, 1.3))(jax.random.split(KEY, DRAWS))
    return float(jnp.mean(reports > 1.25))


def share_of_ones(epsilon: float) -> float:
    """Returns the share of ones that `shuffled_ones` keeps."""
    return float(mechanisms.shuffled_ones(KEY, jnp.int32(10**6), epsilon, batch=10**6)) / 10**6


def paper_radius(epsilon: float) -> float:
    """Returns the paper's radius of `ebs_elimination` after 4e7 duels, of 3 arms in 1,000 rounds."""
    params = dueling.ebs_elimination(num_arms=3, horizon=1000, constants="paper").params(epsilon=epsilon)
    return float(math.sqrt(params.squared_radius[3] * 4e7) + params.intercepts[0]) / 4e7


def node_scale(epsilon: float) -> float:
    """Returns the scale of nodes of `ebs_elimination`; its counters have 1,003 entries, so 10 binary digits."""
    noise = dueling.ebs_elimination(num_arms=3, horizon=1000, arity=2).params(epsilon=epsilon).noise
    return float(noise.l1_sensitivity) / float(noise.epsilon)


def proxy_of_reports(epsilon: float) -> float:
    """Returns the variance proxy of reports of [-1, 1] in `lil_ucb`, from the squared width of its bounds."""
    params = bandits.lil_ucb(num_arms=3, rewards="bounded").params(epsilon=epsilon, reward_low=-1.0)
    return float(params.squared_width) / (2 * (1 + 0.01) * (2 * (1 + math.sqrt(0.01))) ** 2)


def least_duels(epsilon: float) -> float:
    """Returns the duels of one arm alone in the second phase of `ebs_phased`, which are N, rounded up."""
    return float(dueling.ebs_phased(num_arms=2, constants="split").params(epsilon=epsilon).passes[1, 1])


def k_norm_variance(epsilon: float) -> float:
    """Returns the variance of a coordinate of K-norm noise in five dimensions, at the sensitivity 2."""
    draw = jax.vmap(lambda key: mechanisms.k_norm(key, jnp.zeros(5), epsilon, sensitivity=2.0))
    return float(jnp.var(draw(jax.random.split(KEY, DRAWS))))


def selection_rho(epsilon: float) -> float:
    """Returns the cost in zCDP that `noisy_max` records for Gumbel noise."""
    with recording() as entries:
        mechanisms.noisy_max(KEY, jnp.zeros(3), epsilon, noise="gumbel")
    return float(entries[0].rho)


def kept_answers(epsilon: float) -> float:
    """Returns the probability with which `ballot_rr` keeps an answer, at its number of answers."""
    params = estimation.ballot_rr().params(epsilon=epsilon)
    return 1 / (1 + math.exp(-epsilon / int(params.num_answers)))


def svt(learner: Any, **values: float) -> Callable[[float], sparse_vector.AboveThreshold]:
    """Returns epsilon -> the first run of AboveThreshold of a learner."""
    return lambda epsilon: learner.init(KEY, learner.params(epsilon=epsilon, **values)).private.monitor


def svt_threshold(learner: Any, **values: float) -> Callable[[float], float]:
    """Returns epsilon -> the scale of the noise of a learner's thresholds."""

    def scale_of(epsilon: float) -> float:
        params = learner.params(epsilon=epsilon, **values)
        return threshold_scale(lambda key: learner.init(key, params).private.monitor)

    return scale_of


RESTARTS = experts.svt_restarts(num_experts=2, horizon=64, check_every=8)
LAZY = experts.svt_lazy(num_experts=2, horizon=64)
LINEAR = contextual.linear_ucb(num_arms=2, dim=5, horizon=10)
LINEAR_NOISE: Any = {r"\sigma": lambda epsilon: LINEAR.params(epsilon=epsilon, **GOLDEN).randomizer.noise_stddev}
FEW: Any = {"confidence_multiplier": 1e-6}  # phases with the fewest rounds
BETA: Any = {r"\beta": 0.05}
THREE: Any = {r"\Delta": 3.0}
CLASSICAL: Any = {r"\Delta": 1.0, r"\delta": DELTA}
LOCAL: Any = {r"\varepsilon_0": lambda epsilon: epsilon}

NOISES = {
    "explore_then_commit": defines(
        bandits.explore_then_commit, "b", released_scale(bandits.explore_then_commit(num_arms=2, explore_rounds=2), 2)
    ),
    "successive_elimination_central": scale(
        bandits.successive_elimination_central,
        released_scale(bandits.successive_elimination_central(num_arms=2), 2, **FEW),
    ),
    "successive_elimination_central, R": defines(
        bandits.successive_elimination_central,
        "R",
        lambda epsilon: (
            bandits.successive_elimination_central(num_arms=4, constants="paper").params(epsilon=epsilon).plays[1, 4]
        ),
        1e-7,
        (2.0, 0.01),
        S=4,
        k=2,
        D=0.25,
        **BETA,
    ),
    "ucb_central": scale(bandits.ucb_central, released_scale(bandits.ucb_central(num_arms=2), 2)),
    "noisy_argmax": defines(bandits.noisy_argmax, "P(Z_i > z)", selection_tail, 0.05, z=1.0),
    "thompson_central": defines(bandits.thompson_central, "V", geometric_variance, 0.03),
    "lil_ucb": defines(bandits.lil_ucb, r"\sigma^2", proxy_of_reports, B=1.0),
    "lil_ucb, c": defines(
        bandits.lil_ucb,
        "c",
        lambda epsilon: mechanisms.scalar_randomizer("rr").range_bound(10, 0.05, epsilon=epsilon, low=-1.0),
    ),
    "greedy_sgd": defines(
        contextual.greedy_sgd,
        "B",
        lambda epsilon: (lambda params: params.report_radius * params.gradient_bound)(
            contextual.greedy_sgd(num_arms=2, dim=5).params(epsilon=epsilon, gradient_bound=0.3)
        ),
        d=5,
        G=0.3,
    ),
    "linear_ucb": defines(contextual.linear_ucb, r"\delta", lambda epsilon: DELTA, 1e-3, **LINEAR_NOISE),
    "svt_restarts, query": scale(experts.svt_restarts, lambda epsilon: svt(RESTARTS)(epsilon).query_scale),
    "svt_restarts, threshold": scale(experts.svt_restarts, svt_threshold(RESTARTS), 1, 0.015),
    "svt_lazy, query": scale(experts.svt_lazy, lambda epsilon: svt(LAZY)(epsilon).query_scale),
    "svt_lazy, threshold": scale(experts.svt_lazy, svt_threshold(LAZY, threshold=0.0), 1, 0.015),
    "above_threshold": defines(
        mechanisms.above_threshold,
        "a",
        lambda epsilon: threshold_scale(
            lambda key: mechanisms.above_threshold_init(key, epsilon, threshold=0.0, sensitivity=3.0)
        ),
        0.015,
        **THREE,
    ),
    "ebs_phased": scale(dueling.ebs_phased, released_scale(dueling.ebs_phased(num_arms=2), 4, **FEW)),
    "ebs_phased, N": defines(
        dueling.ebs_phased, "N", least_duels, 1e-3, (2.0, 0.01), x=math.log(8 * 2**2 / 0.05), D=0.25
    ),
    "ebs_elimination, b": defines(dueling.ebs_elimination, "b", node_scale, m=10),
    "ebs_elimination, r": defines(dueling.ebs_elimination, "r_i", paper_radius, 1e-3, K=3, T=1000, n_i=4e7, **BETA),
    "ebs_local": defines(dueling.ebs_local, "c", reach_of_reports(dueling.ebs_local(num_arms=2, horizon=10))),
    "rucb": defines(dueling.rucb, "c", reach_of_reports(dueling.rucb(num_arms=2))),
    "rucb, Z": scale(dueling.rucb, released_scale(dueling.rucb(num_arms=2, release="blocks"), 8)),
    "rucb, w": defines(
        dueling.rucb, "w_{ij}", lambda epsilon: _pair_blocks.weight_of(jnp.int32(8), jnp.asarray(epsilon)), n=8
    ),
    "double_thompson": defines(dueling.double_thompson, "c", reach_of_reports(dueling.double_thompson(num_arms=2))),
    "double_thompson, Z": scale(
        dueling.double_thompson, released_scale(dueling.double_thompson(num_arms=2, release="blocks"), 8)
    ),
    "double_thompson, w": defines(
        dueling.double_thompson,
        "w",
        lambda epsilon: _pair_blocks.weight_of(jnp.int32(8), jnp.asarray(epsilon)),
        n=8,
    ),
    "g_optimal_elimination": scale(
        dueling.g_optimal_elimination,
        released_scale(dueling.g_optimal_elimination(features=np.eye(2)), 4, **FEW),
    ),
    "debiased_rr": defines(
        estimation.debiased_rr,
        r"\tilde y_i",
        lambda epsilon: unbiased_labels(jnp.ones(1, jnp.int32), jnp.float32(epsilon))[0],
        r_i=1,
        p=lambda epsilon: 1 / (1 + math.exp(-epsilon)),
    ),
    "plackett_luce_debiased_krr": defines(estimation.plackett_luce_debiased_krr, "q", share_kept(4, 2), 0.05, K=4),
    "plackett_luce_objective_perturbation": defines(
        estimation.plackett_luce_objective_perturbation,
        r"\sigma",
        lambda epsilon: (
            estimation.plackett_luce_objective_perturbation(constants="classical")
            .params(epsilon=epsilon, delta=DELTA)
            .noise_multiplier
        ),
        1e-4,
        (0.3, 0.9),
        **CLASSICAL,
    ),
    "ballot_rr": defines(estimation.ballot_rr, "p", kept_answers, 1e-4, (0.5, 3.267, 9.0)),
    "randomized_response, y": defines(mechanisms.randomized_response, "P(r = y)", share_kept(4, 0), 0.02, K=4),
    "randomized_response, j": defines(mechanisms.randomized_response, "P(r = j)", share_kept(4, 2), 0.05, K=4),
    "randomize_scalar": defines(
        mechanisms.randomize_scalar,
        "P(Y = 1)",
        lambda epsilon: jnp.mean(mechanisms.randomize_scalar(KEY, jnp.full(DRAWS, 0.6), epsilon, bound=1.5) > 0),
        0.01,
        v=0.6,
        B=1.5,
    ),
    "scalar_randomizer, P": defines(
        mechanisms.scalar_randomizer, "P(m + B c)", share_of_upper, 0.01, v=1.3, m=1.25, B=0.75
    ),
    "noisy_max": defines(mechanisms.noisy_max, r"\rho", selection_rho),
    "shuffled_ones": defines(mechanisms.shuffled_ones, "p", share_of_ones, 0.005, **LOCAL),
    "k_norm": Noise(
        mechanisms.k_norm,
        formulas(mechanisms.k_norm)[1],
        k_norm_variance,
        {"d": 5, r"\Delta": 2.0},
        0.02,
        (0.5, 2.0),
        1,
    ),
}
# Standard deviations of Gaussian noise that solve the displayed formula of `gaussian`, and the sensitivities.
GAUSSIANS: dict[str, tuple[Callable[[float], Any], float]] = {
    "gaussian": (lambda epsilon: analytic_gaussian(epsilon, DELTA, 1.7), 1.7),
    "scalar_randomizer": (
        lambda epsilon: (
            mechanisms.scalar_randomizer("gaussian").params(epsilon=epsilon, low=-1.0, **GOLDEN).noise_stddev
        ),
        2.0,
    ),
    "vector_randomizer": (
        lambda epsilon: (
            mechanisms.vector_randomizer((4,), "l2").params(epsilon=epsilon, radius=1.5, **GOLDEN).noise_stddev
        ),
        3.0,
    ),
    "moment_randomizer": (
        lambda epsilon: mechanisms.moment_randomizer(5, "gaussian").params(epsilon=epsilon, **GOLDEN).noise_stddev,
        4.5**0.5,
    ),
    "objective_perturbation": (
        lambda epsilon: estimation.objective_perturbation().params(epsilon=epsilon, **GOLDEN).noise_multiplier,
        1.0,
    ),
    "plackett_luce_objective_perturbation": (
        lambda epsilon: (
            estimation.plackett_luce_objective_perturbation().params(epsilon=epsilon, **GOLDEN).noise_multiplier
        ),
        1.0,
    ),
    "ebs_elimination": (
        lambda epsilon: (
            dueling.ebs_elimination(num_arms=3, horizon=1000, arity=2, noise="gaussian")
            .params(epsilon=epsilon, **GOLDEN)
            .noise.noise_stddev
        ),
        20**0.5,
    ),
}
