"""DP-Reward's Figure 1 with exact solvers: errors against an independent simulation in NumPy and SciPy."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.estimation import debiased_rr, gaussian_rewards, mle, mle_rr, objective_perturbation

SIZES = [1000, 3000, 10000]
REFERENCE = {  # mean l2 errors over 3000 repetitions at each of SIZES; d = 5, radius |theta*|, beta = 0, delta = 1e-3
    ("clear", 1.0): [0.1453, 0.0845, 0.0473],
    ("central", 1.0): [0.2495, 0.1164, 0.0549],
    ("local", 1.0): [0.4643, 0.2932, 0.1762],
    ("clear", 0.1): [0.1453, 0.0845, 0.0473],
    ("central", 0.1): [0.9645, 0.4361, 0.1686],
    ("local", 0.1): [2.1335, 1.6393, 1.1128],
}
REFERENCE_ERROR = 0.01  # relative standard error
EXACT = {"clear": mle(), "central": objective_perturbation(), "local": debiased_rr()}


def simulate(estimators, num_samples, num_seeds, epsilons=(0.1, 1.0)):
    def build(num_samples):
        return jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=num_samples, dim=5))

    return jaxdp.sweep(
        build,
        axes={"epsilon": epsilons, **({"delta": [1e-3]} if "central" in estimators else {})},
        static_axes={"num_samples": num_samples},
        num_seeds=num_seeds,
        key=jax.random.key(11),
        tile_size=100,
    )


def check_errors(results):
    errors = results.l2_error.squeeze("delta") if "delta" in results.dims else results.l2_error
    means, deviations = errors.mean("seed"), errors.std("seed", ddof=1) / np.sqrt(errors.sizes["seed"])
    for (name, epsilon), references in REFERENCE.items():
        for size, reference in zip(SIZES, references, strict=True):
            point = {"estimator": name, "epsilon": epsilon, "num_samples": size}
            if size in errors.num_samples and epsilon in errors.epsilon and name in errors.estimator:
                error = np.hypot(deviations.sel(point), REFERENCE_ERROR * reference)
                assert abs(means.sel(point) - reference) <= 4.5 * error, (point, float(means.sel(point)))


def with_statistic_noise(scale):
    """Plants objective perturbation with `scale` times its noise."""

    def privatize(key, params, features, labels):
        statistic = labels.astype(features.dtype) @ features
        return statistic + scale * (EXACT["central"].privatize(key, params, features, labels) - statistic)

    return {"central": EXACT["central"]._replace(privatize=privatize)}


def test_errors_of_the_small_form():
    results = simulate(EXACT, [1000], 100)
    check_errors(results)
    assert results.converged.all()
    assert float(results.certificate.max()) <= 1e-5


def test_wrong_estimators_are_caught():
    """Plants reports taken for labels, and half the noise; each fails by itself, where the difference is large."""
    biased = EXACT["local"]._replace(fit=EXACT["clear"].fit)
    results = simulate({"local": biased, **with_statistic_noise(0.5)}, [1000], 100)
    for name, epsilon in [("local", 1.0), ("central", 0.1)]:
        with pytest.raises(AssertionError):
            check_errors(results.sel(estimator=[name], epsilon=[epsilon]))


def test_figure_1():
    """Checks, at all sample sizes, the errors, the order of the curves, and that they fall."""
    results = simulate(EXACT, SIZES, 1000)
    check_errors(results)
    assert results.converged.all()
    means = results.l2_error.mean("seed")
    clear, central, local = (means.sel(estimator=name) for name in ["clear", "central", "local"])
    assert bool((clear < central).all())
    assert bool((central < local).all())
    assert bool((means.diff("num_samples") < 0).all())


def test_less_noise_is_caught():
    with pytest.raises(AssertionError):
        check_errors(simulate(with_statistic_noise(0.8), [1000], 1000, epsilons=[0.1]))


def test_the_likelihood_of_reports_is_no_worse_than_debiasing():
    """Compares eq. (3), the efficient likelihood of reports; the paper's reason against it is convexity, not error."""
    results = simulate({"local": debiased_rr(), "likelihood": mle_rr()}, [3000], 200, epsilons=[1.0])
    errors = results.l2_error.squeeze(["num_samples", "epsilon"])
    difference = errors.sel(estimator="likelihood") - errors.sel(estimator="local")
    error = float(difference.std("seed", ddof=1)) / np.sqrt(difference.sizes["seed"])
    assert float(difference.mean()) < 4.5 * error
