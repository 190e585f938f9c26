"""Ties, half a win for either side: labels in {0, 1/2, 1}."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import default_float
from jaxdp.estimation import (
    Estimate,
    comparison_table,
    debiased_rr,
    estimate,
    mle,
    mle_rr,
    objective_perturbation,
    objective_perturbation_full,
    sgd,
    sgd_rr,
)
from jaxdp.estimation.label_reports import report_randomized
from jaxdp.preferences import ComparisonTable, gaussian_comparisons

TABLE = ComparisonTable.from_arrays(["a", "b", "a"], ["b", "a", "b"], weight=[60, 20, 40], tie=[False, False, True])


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (mle, {}),
        (debiased_rr, {"epsilon": np.inf}),
        (objective_perturbation, {"epsilon": np.inf, "delta": 1e-6}),
    ],
)
def test_half_a_win_for_either_side(make, values):
    """Checks that 60 wins, 20 losses and 40 ties are 80 to 40; without ties it would be ln 3."""
    theta = estimate(make(zero_sum=True), *TABLE.design(), key=jax.random.key(11), radius=5.0, **values).theta
    assert float(theta[0] - theta[1]) == pytest.approx(np.log(2), abs=1e-4)


def test_reports_of_ties_are_fair_coins():
    """Checks p of y = 1 at epsilon = 1, .731, and of a tie, 1/2, without bias. Planted: ties that are losses."""
    labels = np.repeat(np.array([0, 0.5, 1], np.float32), 20_000)
    params = debiased_rr().params(epsilon=1.0)
    report = np.asarray(report_randomized(jax.random.key(11), params, jnp.zeros(0), jnp.asarray(labels))).reshape(3, -1)
    assert set(np.unique(report)) == {0, 1}
    kept = 1 / (1 + np.exp(-1.0))
    expected, error = np.array([1 - kept, 0.5, kept]), 5 * 0.5 / np.sqrt(20_000)
    np.testing.assert_allclose(report.mean(axis=1), expected, atol=error)
    lost = np.asarray(
        report_randomized(jax.random.key(11), params, jnp.zeros(0), jnp.asarray(labels * (labels == 1)))
    ).reshape(3, -1)
    assert np.abs(lost.mean(axis=1) - expected).max() > error, "planted"
    assert expected.max() / expected.min() == pytest.approx(np.e)  # and 1/2 lies between


def test_coins_do_not_follow_what_is_flipped():
    """Checks that a tie's report is independent of whether a label of the same user would be flipped."""
    count = 40_000
    params = debiased_rr().params(epsilon=0.5)
    tie = np.asarray(report_randomized(jax.random.key(11), params, jnp.zeros(0), jnp.full(count, 0.5, jnp.float32)))
    lost = np.asarray(report_randomized(jax.random.key(11), params, jnp.zeros(0), jnp.zeros(count, jnp.float32)))
    flipped = lost == 1
    for part in (tie[flipped], tie[~flipped]):
        assert abs(part.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(part))


def test_another_label_moves_the_statistic_by_a_row_at_most():
    """Checks that labels in {0, 1/2, 1} have the sensitivity of {0, 1}, and that labels beyond them are clipped."""
    features = jax.random.normal(jax.random.key(11), (4, 3))
    central = objective_perturbation()
    params = central.params(epsilon=np.inf, delta=1e-6)

    def statistic(label):
        return central.privatize(jax.random.key(11), params, features, jnp.array([label, 1, 0.5, 0], features.dtype))

    length = float(jnp.linalg.norm(features[0]))
    moves = [float(jnp.linalg.norm(statistic(one) - statistic(two))) for one in (0, 0.5, 1) for two in (0, 0.5, 1)]
    assert max(moves) == pytest.approx(length, rel=1e-5)
    np.testing.assert_array_equal(statistic(2), statistic(1))


def check_floats(make, values):
    data = gaussian_comparisons(jax.random.key(1), num_samples=60, dim=2)
    estimator = make()
    whole = estimate(estimator, data.features, np.asarray(data.labels), key=jax.random.key(11), radius=2.0, **values)
    floats = estimate(
        estimator, data.features, np.asarray(data.labels, float), key=jax.random.key(11), radius=2.0, **values
    )
    np.testing.assert_array_equal(whole.theta, floats.theta)


@pytest.mark.parametrize(
    ("make", "values"), [(debiased_rr, {"epsilon": 1.0}), (sgd_rr, {"epsilon": 1.0, "feature_norm": 10.0})]
)
def test_floats_without_ties_are_the_same_bits(make, values):
    check_floats(make, values)


def test_floats_without_ties_are_the_same_bits_to_all_other_estimators():
    approximate = {"epsilon": 1.0, "delta": 1e-6}
    check_floats(mle, {})
    check_floats(sgd, {})
    check_floats(mle_rr, {"epsilon": 1.0})
    check_floats(objective_perturbation, approximate)
    check_floats(objective_perturbation_full, {**approximate, "feature_norm": 10.0})


def test_whether_a_tie_occurred_does_not_show_in_types():
    """Checks that types show whether ties are possible, which is public, and not whether there is one."""
    none = ComparisonTable.from_arrays(["a", "b"], ["b", "a"], tie=[0, 0])
    one = ComparisonTable.from_arrays(["a", "b"], ["b", "a"], tie=[0, 1])
    for first, second in zip(none.design(), one.design(), strict=True):
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
    np.testing.assert_array_equal(none.design()[0], one.design()[0])
    assert one.design()[1].tolist() == [1, 0.5]
    assert ComparisonTable.from_arrays(["a"], ["b"]).design()[1].dtype == np.int32
    params = comparison_table(one).params()
    assert params.labels.dtype == np.float32
    shapes = [
        jax.eval_shape(debiased_rr().privatize, jax.random.key(11), debiased_rr().params(epsilon=1.0), *table.design())
        for table in (none, one)
    ]
    assert shapes[0].dtype == shapes[1].dtype


def test_other_fractions_are_refused():
    with pytest.raises(ValueError, match=r"labels must be in \{0, 1\}, or 1/2 for a tie, got 1 of \d+ that are not$"):
        estimate(mle(), np.ones((2, 1)), [1, 0.25], key=jax.random.key(11))
    assert jnp.asarray(0.5, default_float()) == 0.5


def test_equal_abilities_are_ranked_in_a_random_order_and_nan_not_at_all():
    problem = comparison_table(ComparisonTable.from_arrays(["a", "b", "a"], ["b", "a", "c"]))

    def rank(key, theta):
        sample = problem.sample(key, params)
        fitted = Estimate(jnp.asarray(theta, default_float()), jnp.zeros(()), jnp.int32(0), jnp.asarray(True))
        return problem.metrics(params, sample, fitted)["rank"]

    params, num_seeds = problem.params(), 400
    keys = jax.random.split(jax.random.key(12), num_seeds)
    ranks = np.asarray(jax.vmap(lambda key: rank(key, [1.0, 1.0, 2.0]))(keys))
    assert (ranks[:, 2] == 1).all()
    assert abs((ranks[:, 0] == 2).mean() - 0.5) < 5 * 0.5 / np.sqrt(num_seeds)
    assert (ranks.sum(axis=1) == 6).all()
    assert rank(keys[0], [0.0, 3.0, -1.0]).tolist() == [2, 1, 3]
    assert rank(keys[0], [np.nan, 3.0, -1.0]).tolist() == [0, 0, 0]  # the mean is NaN, too
