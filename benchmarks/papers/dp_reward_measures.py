"""Measures of DP-Reward (Chowdhury, Zhou & Natarajan, 2023)."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

import functools
import math
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from benchmarks.papers.measures import (
    difference,
    exponent,
    largest,
    mean,
    mean_ratio,
    share,
    smallest,
)
from benchmarks.papers.rows import Interval, Measures, Size
from jaxdp.core import Estimator
from jaxdp.core.estimator import Problem
from jaxdp.estimation import (
    debiased_rr,
    gaussian_rewards,
    mle_rr,
    plackett_luce_rewards,
    sgd_krr,
    sgd_rr,
    thurstone_rr,
)
from jaxdp.estimation.objectives import randomized_label_loss
from jaxdp.preferences import gaussian_comparisons, logistic, probit
from jaxdp.simulation import estimation_run, sweep
from jaxdp.studies import private_policy as policies
from jaxdp.studies.reward_estimation import estimators
from jaxdp.studies.tiles import cpu_tile
from jaxdp.theory import reward_estimation as theory

DIM, DELTA, FAILURE_PROB = 5, 1e-3, 0.05
EPSILONS = (0.1, 0.5, 1.0, math.inf)
SAMPLES = (1000, 3000, 10_000)
ENDS = SAMPLES[::2]
CURVES = ("mle", "objective_perturbation", "debiased_rr")  # of Figure 1: no privacy, central, local
LITERAL = ("sgd", "literal_objective_perturbation", "sgd_rr")
AVERAGED = ("sgd", "sgd_objective_perturbation", "sgd_rr")
NORM = 1.0  # L and B where features and parameter are bounded
COVERAGE = 0.35  # a little less than kappa of differences of such features in 5 dimensions
LARGE = (3000, 30_000)
LONG = (2000, 50_000)
LONGER = (20_000, 200_000)
TILE_SIZE = 16


# ---- simulations that rows share -------------------------------------------------------------------------------------
@functools.cache
def figure_1(size: Size, solver: str = "exact", num_features: int = DIM) -> xr.Dataset:
    """Measures errors of the estimators of the study of Figure 1, as far as the paper has them."""
    samples = SAMPLES if (solver, num_features) == ("exact", DIM) else SAMPLES[::2]
    if size.name == "small":
        samples = (100, 300)
    names = {"exact": CURVES, "averaged": AVERAGED, "literal": LITERAL}[solver]
    known = ("feature_norm",) if solver == "literal" else ("radius", "feature_norm")
    compared = {name: estimators(solver)[name] for name in names}
    results = sweep(
        lambda num_samples: estimation_run(
            compared, gaussian_rewards(num_samples=num_samples, dim=num_features, known=known)
        ),
        axes={"epsilon": list(EPSILONS), "delta": [DELTA]},
        static_axes={"num_samples": list(samples)},
        num_seeds=size.repeats(100 if num_features == DIM else 48, small=8),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )
    return results.squeeze("delta", drop=True)


def estimated(
    size: Size,
    compared: Mapping[str, Estimator],
    problem: Callable[[int], Problem],
    samples: tuple[int, ...],
    num_seeds: int,
    budgets: tuple[float, float] = (0.5, 1.0),
    /,
    **values: float,
) -> xr.Dataset:
    """Measures errors at two epsilon, by default 0.5 and 1, of estimators on a problem of so many samples."""
    if size.name == "small":
        samples = tuple(count // 20 for count in samples)
    results = sweep(
        lambda num_samples: estimation_run(compared, problem(num_samples)),
        axes={"epsilon": list(budgets), **{name: [value] for name, value in values.items()}},
        static_axes={"num_samples": list(samples)},
        num_seeds=size.repeats(num_seeds),
        key=size.key,
        tile_size=cpu_tile(TILE_SIZE),
    )
    return results.squeeze(list(values), drop=True) if values else results


@functools.cache
def bounded(size: Size) -> xr.Dataset:
    """Builds features and parameter in the unit ball: constants of the theorems are moderate there."""
    return estimated(size, {"debiased_rr": debiased_rr()}, _in_the_ball, LARGE, 100)


def _in_the_ball(num_samples: int, parameter_norm: float = NORM) -> Problem:
    return gaussian_rewards(num_samples=num_samples, dim=DIM, feature_norm=NORM, parameter_norm=parameter_norm)


def _one_pass(size: Size, step_size: str, **values: float) -> xr.DataArray:
    found = estimated(size, {"sgd_rr": sgd_rr(step_size=step_size, average="none")}, _in_the_ball, LONG, 64, **values)
    return found.l2_error.isel(estimator=0)


# ---- figure 1 --------------------------------------------------------------------------------------------------------
def falls(errors: xr.DataArray) -> Interval:
    """Returns the largest exponent of the number of samples, over epsilon and estimators."""
    return largest(
        exponent(errors.sel(estimator=name, epsilon=epsilon), "num_samples")
        for name in errors.estimator.values
        for epsilon in errors.epsilon.values
    )


def _gaps(errors: xr.DataArray, more: str, less: str) -> Interval:
    private = errors.sel(epsilon=errors.epsilon[np.isfinite(errors.epsilon)])
    points = private.stack(point=("epsilon", "num_samples"))
    return smallest(
        difference(points.sel(estimator=more).isel(point=at), points.sel(estimator=less).isel(point=at))
        for at in range(points.sizes["point"])
    )


def curves(
    size: Size, solver: str = "exact", names: tuple[str, str, str] = CURVES, dims: tuple[int, ...] = (DIM,)
) -> Measures:
    """Measures whether errors fall and are ordered as in the figure: the worst over n, epsilon and d."""
    found = [figure_1(size, solver, dim).l2_error.sel(estimator=list(names)) for dim in dims]
    clear, central, local = names
    return {
        "largest exponent of n": largest(falls(errors) for errors in found),
        "least central - non-private": smallest(_gaps(errors, central, clear) for errors in found),
        "least local - central": smallest(_gaps(errors, local, central) for errors in found),
    }


def literal(size: Size) -> Measures:
    """Runs the simulation as its text reads, and with averages on a ball."""
    as_read = figure_1(size, "literal").l2_error.sel(estimator=list(LITERAL))
    mended = figure_1(size, "averaged").l2_error.sel(estimator=list(AVERAGED))
    return {"largest exponent of n": falls(as_read), "largest exponent of n, averaged": falls(mended)}


# ---- orders ----------------------------------------------------------------------------------------------------------
def _growth(errors: xr.DataArray, budgets: tuple[float, float] = (0.5, 1.0)) -> Interval:
    """Returns the factor by which the mean grows from the second epsilon to the first at the largest n."""
    last = errors.isel(num_samples=-1)
    less, more = budgets
    return mean_ratio(last.sel(epsilon=less), last.sel(epsilon=more))


def local_lower(size: Size, norm: str) -> Measures:
    """Compares errors of the local estimator with the root of the order of the local lower bounds."""
    errors = figure_1(size)[norm].sel(estimator="debiased_rr")
    budgets = np.array([0.5, 1.0])
    bound = theory.local_semi_norm_lower(budgets, 1000, DIM)
    growth, factor = _growth(errors), math.sqrt(bound[0] / bound[1])
    return {
        "exponent of n, ε = 1": exponent(errors.sel(epsilon=1.0), "num_samples"),
        "growth in ε / bound's": Interval(*(each / factor for each in growth)),
    }


def local_upper(size: Size, norm: str) -> Measures:
    """Compares errors of the local estimator in the unit ball with the order of the upper bounds."""
    errors = bounded(size)[norm].isel(estimator=0)
    factor = math.tanh(0.5) / math.tanh(0.25)
    growth = _growth(errors)
    return {
        "exponent of n, ε = 1": exponent(errors.sel(epsilon=1.0), "num_samples"),
        "growth in ε / bound's": Interval(*(each / factor for each in growth)),
    }


def likelihood_above_its_threshold(size: Size) -> Measures:
    """Compares errors of the likelihood of randomized labels where it is convex with the order of Theorem 4.1."""
    radius, budgets = NORM / 2, (2.5, 4.0)
    curved = 2 * NORM * radius  # 2 L B; the right threshold is twice that
    assert 2 * curved < min(budgets)
    errors = estimated(
        size,
        {"mle_rr": mle_rr()},
        functools.partial(_in_the_ball, parameter_norm=radius),
        LARGE,
        100,
        budgets,
    ).semi_norm_error.isel(estimator=0)
    bound = [(math.exp(each + curved) + 1) / math.expm1(each - curved) for each in budgets]
    return {
        "exponent of n, ε = 4": exponent(errors.sel(epsilon=budgets[1]), "num_samples"),
        "growth in ε / bound's": Interval(*(each * bound[1] / bound[0] for each in _growth(errors, budgets))),
    }


def within_constant(size: Size) -> Measures:
    """Measures how often the error is below Theorem 4.2 with a constant that can be proved."""
    errors = bounded(size).semi_norm_error.sel(estimator="debiased_rr", epsilon=1.0).isel(num_samples=-1)
    count = int(errors.num_samples)
    bound = theory.local_semi_norm_upper(
        1.0, count, DIM, feature_norm=NORM, radius=NORM, failure_prob=FAILURE_PROB, scale=math.sqrt(3) / 2
    )
    return {
        "share of runs within": share(errors <= float(bound)),
        **local_upper(size, "semi_norm_error"),
        "mean error / bound": mean(errors / float(bound)),
    }


def one_pass_steps(size: Size) -> Measures:
    """Runs one pass of SGD with the statement's steps and with the proof's."""
    gamma = float(theory.curvature(NORM, NORM))
    printed = _one_pass(size, "constant", learning_rate=1 / (gamma * COVERAGE))
    proved = _one_pass(size, "inverse_time", coverage=COVERAGE)
    return {
        "exponent of n, printed steps": exponent(printed.sel(epsilon=1.0), "num_samples"),
        "exponent of n, 1/(γ_ε κ t)": exponent(proved.sel(epsilon=1.0), "num_samples"),
        "growth in ε / bound's, 1/(γ_ε κ t)": Interval(
            *(each * math.tanh(0.25) / math.tanh(0.5) for each in _growth(proved))
        ),
    }


def choices(size: Size, num_actions: int = 3) -> Measures:
    """Runs one pass on choices of one among K actions."""

    def problem(num_samples: int) -> Problem:
        return plackett_luce_rewards(
            num_samples=num_samples, num_actions=num_actions, dim=DIM, feature_norm=NORM, parameter_norm=NORM / 4
        )

    found = estimated(
        size, {"sgd_krr": sgd_krr(step_size="inverse_time", average="none")}, problem, LONGER, 64, coverage=0.25
    )
    errors = found.l2_error.isel(estimator=0)
    bound = 1 + num_actions / np.expm1([0.5, 1.0])
    growth = _growth(errors)
    return {
        "exponent of n, ε = 1": exponent(errors.sel(epsilon=1.0), "num_samples"),
        "growth in ε / bound's": Interval(*(each * bound[1] / bound[0] for each in growth)),
    }


def thurstone(size: Size) -> Measures:
    """Runs one pass in Thurstone's model, with steps as in Theorem 4.5."""

    def problem(num_samples: int) -> Problem:
        return gaussian_rewards(num_samples=num_samples, dim=DIM, link=probit, feature_norm=NORM, parameter_norm=NORM)

    compared = {"thurstone_rr": thurstone_rr(step_size="inverse_time", average="none")}
    errors = estimated(size, compared, problem, LONG, 64, coverage=COVERAGE).l2_error.isel(estimator=0)
    return {"exponent of n, ε = 1": exponent(errors.sel(epsilon=1.0), "num_samples")}


def _costs(size: Size, norm: str) -> dict[str, xr.DataArray]:
    """Returns the squared error that privacy adds, by model."""
    squares = figure_1(size)[norm] ** 2
    clear = squares.sel(estimator="mle")
    return {name: squares.sel(estimator=name) - clear for name in ("objective_perturbation", "debiased_rr")}


def central_cost(size: Size, norm: str) -> Measures:
    """Measures how the central cost in squared error falls with n."""
    cost = _costs(size, norm)["objective_perturbation"]
    return {f"exponent of n, cost at ε = {e:g}": exponent(cost.sel(epsilon=e), "num_samples") for e in (0.5, 1.0)}


def central_upper(size: Size, norm: str) -> Measures:
    """Compares errors of the central estimator with the order of the upper bound at the same points."""
    found = {}
    for epsilon in (0.5, 1.0):
        errors = figure_1(size)[norm].sel(estimator="objective_perturbation", epsilon=epsilon)
        samples = errors.num_samples.values
        sigma = float(theory.objective_perturbation_stddev(epsilon, DELTA, NORM))
        bound = theory.central_l2_upper(
            samples, DIM, feature_norm=NORM, radius=NORM, coverage=NORM, failure_prob=FAILURE_PROB, noise_stddev=sigma
        )
        order = np.polyfit(np.log(samples), np.log(bound), 1)[0]
        if norm == "semi_norm_error":  # sqrt(d / n), the larger of two terms in the end
            order = -0.5
        found[f"exponent of n, less bound's, ε = {epsilon:g}"] = Interval(
            *(each - order for each in exponent(errors, "num_samples"))
        )
    return found


def central_against_local(size: Size) -> Measures:
    """Measures how much faster the central cost in squared error falls with n than the local one."""
    costs = _costs(size, "l2_error")
    central, local = (exponent(costs[name].sel(epsilon=1.0), "num_samples") for name in costs)
    low, high = central.low - local.high, central.high - local.low
    return {"central's exponent of n less local's": Interval(central.value - local.value, low, high)}


# ---- counterexamples -------------------------------------------------------------------------------------------------
def longest_difference(size: Size) -> Measures:
    """Computes the longest differences of features of norm L = 1, and the largest kappa."""
    count = size.repeats(20_000, small=500)
    features = gaussian_comparisons(size.key, num_samples=count, dim=2, feature_norm=0.01).features
    opposite = np.array([[2.0], [-2.0]])  # phi1 = -phi0 = +-L in one dimension
    return {
        "max |x| / L": Interval.exact(float(jnp.linalg.norm(features, axis=1).max() / 0.01)),
        "κ d / L², opposite features": Interval.exact(float(theory.coverage(opposite.T @ opposite / 2))),
    }


def curvature_of_the_likelihood(size: Size) -> Measures:
    """Computes the least Hessian coefficient of eq.

    (3) on |z| <= 2 L B, above the printed threshold and above the right one.
    """
    del size
    found = {}
    with jax.enable_x64(True):
        margins = jnp.linspace(-2 * NORM * NORM, 2 * NORM * NORM, 2001)
        for epsilon in (3.0, 4.01):
            loss = randomized_label_loss(logistic, jnp.asarray(epsilon))
            least = min(float(loss.curvature(margins, jnp.full_like(margins, label)).min()) for label in (0.0, 1.0))
            found[f"least coefficient, ε = {epsilon:g} L B"] = Interval.exact(least)
    return found


# ---- policies --------------------------------------------------------------------------------------------------------
def policy_gap(size: Size, policy: str) -> Measures:
    """Measures how a policy's loss falls with n."""
    results = policies.private_policy(
        epsilon=(0.3, 1.0),
        num_samples=(100, 200) if size.name == "small" else (500, 8000),
        num_seeds=size.repeats(16),
        key=size.key,
    )
    lost = results.suboptimality.sel(estimator="debiased_rr", policy=policy, epsilon=1.0)
    return {"exponent of n, ε = 1": exponent(lost, "num_samples")}
