"""The dotted curves of the studies' figures."""

import numpy as np
import pytest

from jaxdp.studies import reward_estimation
from jaxdp.studies.orders import sample_orders
from jaxdp.theory import reward_estimation as theory

COUNTS = np.array([1e2, 1e8])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, np.inf])
def test_exponents(epsilon):
    """Checks that local errors fall as n^-1/2 (up to a log log), and central ones as n^-1 first, n^-1/2 in the end."""
    names = [
        "mle",
        "sgd",
        "debiased_rr",
        "mle_rr",
        "sgd_rr",
        "objective_perturbation",
        "literal_objective_perturbation",
    ]
    orders = sample_orders(names, 1e-3)
    assert set(orders) == set(names)
    exponents = {name: np.diff(np.log(order(COUNTS, epsilon, 5)))[0] / np.log(1e6) for name, order in orders.items()}
    for name in ("mle", "sgd"):
        assert exponents[name] == pytest.approx(-0.5)
    for name in ("debiased_rr", "mle_rr", "sgd_rr"):
        assert -0.5 < exponents[name] < -0.47
    for name in ("objective_perturbation", "literal_objective_perturbation"):
        assert exponents[name] == pytest.approx(-0.5) if np.isinf(epsilon) else -1 < exponents[name] < -0.5
    if np.isfinite(epsilon):
        assert exponents["literal_objective_perturbation"] < exponents["objective_perturbation"]  # more noise


def test_no_order_is_drawn_where_no_theorem_speaks():
    """Checks weights and K-norm noise; the names of their estimators end so in every study."""
    for study in (reward_estimation.estimators("exact"), reward_estimation.estimators("averaged")):
        beyond = {name for name in study if "cut" in name or "k_norm" in name}
        assert beyond
        assert set(sample_orders(list(study), 1e-3)) == study.keys() - beyond
        assert study.keys() <= reward_estimation.LABELS.keys()


def test_too_few_comparisons_for_a_theorem_have_no_order():
    found = sample_orders(["debiased_rr", "mle"], 1e-3)
    counts = np.array([2, 4, 50])
    np.testing.assert_array_equal(np.isfinite(found["debiased_rr"](counts, 1.0, 5)), [False, True, True])
    assert np.isfinite(found["mle"](counts, 1.0, 5)).all()


def test_the_noise_of_the_paper_is_the_theorems():
    order = sample_orders(["literal_objective_perturbation"], 1e-3, lambda _: 5)["literal_objective_perturbation"]
    sigma = theory.objective_perturbation_stddev(0.5, 1e-3, 1.0)
    units = {"feature_norm": 1.0, "radius": 1.0, "coverage": 1.0, "failure_prob": 0.05}
    expected = theory.central_l2_upper(COUNTS, 5, noise_stddev=sigma, **units)
    np.testing.assert_allclose(order(COUNTS, 0.5, "any row"), expected)
