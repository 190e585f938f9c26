"""Measures of privacy in DP-Reward (Chowdhury, Zhou & Natarajan, 2023)."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

from benchmarks.papers.dp_reward_measures import DELTA, DIM, SAMPLES, estimated
from benchmarks.papers.measures import lower_bound, mean_ratio
from benchmarks.papers.rows import Interval, Measures, Size
from jaxdp import registry
from jaxdp.audit import audit, exact_epsilon
from jaxdp.estimation import gaussian_rewards, objective_perturbation
from jaxdp.mechanisms import analytic_gaussian, gaussian_delta
from jaxdp.theory import reward_estimation as theory


def randomized_response_spends(size: Size) -> Measures:
    """Computes the exact epsilon of the registered distribution of randomized responses, over the claim."""
    del size
    entry = registry.MECHANISMS["randomized_response"]
    distribution, made = entry.make_distribution(), entry.make()
    assert distribution is not None
    shares = []
    for epsilon in (0.1, 1.0, 4.0):
        first, second = (distribution(made.params(epsilon=epsilon), data) for data in entry.make_neighbours())
        shares.append(exact_epsilon(first, second) / epsilon)
    return {"exact ε / claimed": Interval.exact(round(max(shares), 6))}


def noise_of_theorem_5_2(size: Size) -> Measures:
    """Computes the cost of the published sigma: a Gaussian mechanism on the sum of y x, of sensitivity 2 L."""
    del size
    worst, ratio = 0.0, []
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        sigma = float(theory.objective_perturbation_stddev(epsilon, DELTA, 1.0))
        worst = max(worst, gaussian_delta(epsilon, sigma, 2.0) / DELTA)
        ratio.append(sigma / analytic_gaussian(epsilon, DELTA, 2.0))
    return {
        "exact δ / claimed, largest": Interval.exact(worst),
        "published σ / least σ, ε = 1": Interval.exact(ratio[2]),
    }


def published_noise_costs(size: Size) -> Measures:
    """Compares errors with the published sigma and with the least sigma."""

    def privatize(key, params, features, labels):
        honest = objective_perturbation()
        statistic = labels.astype(features.dtype) @ features
        more = theory.objective_perturbation_stddev(1.0, DELTA, 1.0) / analytic_gaussian(1.0, DELTA, 2.0)
        return statistic + float(more) * (honest.privatize(key, params, features, labels) - statistic)

    compared = {"least": objective_perturbation(), "published": objective_perturbation()._replace(privatize=privatize)}
    found = estimated(size, compared, lambda n: gaussian_rewards(num_samples=n, dim=DIM), SAMPLES[:1], 256, delta=DELTA)
    errors = found.l2_error.sel(epsilon=1.0).isel(num_samples=0)
    return {
        "error with published σ / with least": mean_ratio(
            errors.sel(estimator="published"), errors.sel(estimator="least")
        )
    }


def audit_of_records(size: Size) -> Measures:
    """Runs a black-box audit of the release under standard DP."""
    target = registry.attacks(["objective_perturbation_full"])["objective_perturbation_full"]
    attack = next(iter(target.attacks.values()))
    found = audit(size.key, attack, trials=size.repeats(20_000, small=2000))
    return {"lower bound on ε / claimed": lower_bound(found.lower_bound / found.claimed)}
