"""One person as the unit of privacy: sensitivities of sums, budgets of reports, claims, and fewer labels a person."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import Guarantee
from jaxdp.estimation import claims_for_persons, debiased_rr, estimate, mle, objective_perturbation, sgd_rr
from jaxdp.estimation.persons import most_labels, person_norms, sum_norm
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.preferences import limit_per_person

KEY = jax.random.key(5)
DTYPE = jax.dtypes.canonicalize_dtype(float)
PERSONS = np.repeat(["a", "b", "c"], [6, 3, 1])
CENTRAL = {"epsilon": 1.0, "delta": 1e-6}


def features(num=10, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(num, dim))


def largest_change(rows):
    """Finds max |rows^T v| over v in {-1, 1}^k by brute force: the norm is convex, so corners suffice."""
    corners = np.array(list(itertools.product((-1, 1), repeat=len(rows))))
    return np.linalg.norm(corners @ rows, axis=1).max()


@pytest.mark.parametrize("dim", [1, 3, 40])
@pytest.mark.parametrize("num", [1, 2, 6, 10])
def test_no_change_of_a_persons_labels_is_beyond_the_bound(num, dim):
    for seed in range(20):
        rows = features(num, dim, seed)
        rows *= np.exp(np.random.default_rng(seed).normal(size=(num, 1)))
        bound, exact = sum_norm(rows), largest_change(rows)
        assert exact <= bound <= np.linalg.norm(rows, axis=1).sum() * (1 + 1e-8)
        if num > 1:
            assert np.linalg.norm(rows, axis=1).max() < exact  # planted: one label's change does not cover a person's


def test_each_term_of_the_bound_can_be_the_least():
    same, many = np.ones((4, 3)), features(400, 3)
    sizes, count = np.linalg.norm(same, axis=1), math.sqrt(400)
    assert sum_norm(same) == pytest.approx(sizes.sum(), rel=1e-7)
    assert sum_norm(many) == pytest.approx(count * np.linalg.norm(many, 2), rel=1e-6)
    assert sum_norm(np.eye(5)) == pytest.approx(math.sqrt(5), rel=1e-7)
    uneven = np.diag([10.0, 1.0])
    assert sum_norm(uneven) == pytest.approx(math.sqrt(101), rel=1e-7)  # inner products alone: 14.1 by the others
    assert sum_norm(np.zeros((2, 3))) == 0
    assert sum_norm(1e200 * same) == pytest.approx(1e200 * sizes.sum(), rel=1e-7)


def test_norms_are_the_persons_and_not_rounded_down():
    rows = jnp.asarray(features(), jnp.float32)
    index = np.unique(PERSONS, return_inverse=True)[1].astype(np.int32)
    norms = np.asarray(jax.jit(person_norms)(rows, index), float)
    exact = [largest_change(np.asarray(rows, float)[index == person]) for person in range(3)]
    assert (norms >= np.asarray(exact)[index]).all()
    assert len(set(norms)) == 3
    assert most_labels(jnp.asarray(index)) == 6
    with pytest.raises(ValueError, match=r"persons must have one id per sample, 10, got shape \(9,\)"):
        person_norms(rows, jnp.asarray(index[:9]))


def check_noise(reports, mean, stddev):
    noise = np.asarray(reports, float) - mean
    assert abs(noise.std() / stddev - 1) < 5 / math.sqrt(2 * noise.size)


@pytest.mark.parametrize("weights", ["none", "cut"])
def test_noise_is_that_of_the_person_who_can_move_the_sum_most(weights):
    rows, labels = jnp.asarray(features(), DTYPE), jnp.asarray([1, 0] * 5, jnp.int32)
    index = np.unique(PERSONS, return_inverse=True)[1]
    reach = np.asarray([sum_norm(np.asarray(rows, float)[index == person]) for person in range(3)])[index]
    estimator = objective_perturbation(privacy_unit="person", weights=weights)
    values = {"cut": 2.0} if weights == "cut" else {}
    params = estimator.params(**CENTRAL, **values, persons=PERSONS)
    reports = jax.jit(jax.vmap(estimator.privatize, (0, None, None, None)))(
        jax.random.split(KEY, 2000), params, rows, labels
    )
    if weights == "cut":
        assert float(reports.cut[0]) == 2.0
        reports, shares, most = reports.report, np.minimum(1, 2 / reach), 2.0
    else:
        shares, most = np.ones(10), reach.max()
    mean = (shares * np.asarray(labels)) @ np.asarray(rows, float)
    check_noise(reports, mean, analytic_gaussian(1.0, 1e-6) * most)
    one_label = np.linalg.norm(shares[:, None] * np.asarray(rows, float), axis=1).max()
    with pytest.raises(AssertionError):  # planted: the noise of one label
        check_noise(reports, mean, analytic_gaussian(1.0, 1e-6) * one_label)


def test_a_local_report_has_its_share_of_the_persons_budget():
    counts = np.repeat([6, 3, 1], [6, 3, 1])
    estimator = debiased_rr(privacy_unit="person")
    params = estimator.params(epsilon=2.0, persons=PERSONS)
    np.testing.assert_allclose(params.epsilon, 2 / counts, rtol=1e-6)
    rows, labels = jnp.asarray(features(), DTYPE), jnp.ones(10, jnp.int32)
    keys = jax.random.split(KEY, 4000)
    reports = np.asarray(jax.vmap(estimator.privatize, (0, None, None, None))(keys, params, rows, labels))
    expected = 1 / (1 + np.exp(-2 / counts))

    def excess(shares):
        return np.abs(reports.mean(0) - shares).max() / (0.5 / math.sqrt(4000))

    assert excess(expected) < 5
    assert excess(1 / (1 + np.exp(-2.0)) * np.ones(10)) > 5  # planted: the whole budget for each label
    assert np.abs(np.corrcoef(reports.T) - np.eye(10)).max() < 5 / math.sqrt(4000)


@pytest.mark.parametrize(
    ("estimator", "values"),
    [(debiased_rr(privacy_unit="person"), {}), (objective_perturbation(privacy_unit="person"), {"delta": 1e-9})],
)
def test_an_estimate_is_near_the_clear_one_at_a_large_budget(estimator, values):
    rows = features(400)
    labels = (np.random.default_rng(1).random(400) < 1 / (1 + np.exp(-rows @ [1, -1, 0.5]))).astype(np.int32)
    persons = np.arange(400) // 2
    clear = estimate(mle(), rows, labels, key=KEY, radius=5.0)
    private = estimate(estimator, rows, labels, key=KEY, persons=persons, epsilon=1e3, radius=5.0, **values)
    np.testing.assert_allclose(private.theta, clear.theta, atol=0.05)
    with pytest.raises(ValueError, match=r"persons must have one id per label, 400, got shape \(399,\)"):
        estimate(estimator, rows, labels, key=KEY, persons=persons[1:], epsilon=1.0, **values)
    with pytest.raises(TypeError, match="persons"):
        estimate(estimator, rows, labels, key=KEY, epsilon=1.0, **values)
    with pytest.raises(ValueError, match="persons must be a vector of at least one id, got None"):
        estimator.params(epsilon=1.0, persons=None, **values)  # noise for one label would not satisfy the claim


def test_persons_are_refused_where_a_claim_is_for_labels():
    with pytest.raises(ValueError, match="persons must be left out for debiased_rr"):
        estimate(debiased_rr(), features(), [1] * 10, key=KEY, persons=PERSONS, epsilon=1.0)
    with pytest.raises(ValueError, match="privacy_unit must be one of label, person"):
        objective_perturbation(privacy_unit="household")
    with pytest.raises(ValueError, match="constants must not be 'paper' with privacy_unit='person'"):
        objective_perturbation(privacy_unit="person", constants="paper")


def test_claims_for_both_units():
    group = claims_for_persons(objective_perturbation(), PERSONS, **CENTRAL)
    factor = (math.exp(6) - 1) / (math.exp(1) - 1)
    assert (group.person.epsilon, group.most_labels) == (6.0, 6)
    assert group.person.delta == pytest.approx(factor * 1e-6)
    assert "no claim" in str(claims_for_persons(objective_perturbation(), [1] * 20, **CENTRAL)).splitlines()[1]
    direct = claims_for_persons(objective_perturbation(privacy_unit="person"), PERSONS, **CENTRAL)
    assert (direct.person.epsilon, direct.person.delta, direct.person.privacy_unit) == (1.0, 1e-6, "one person")
    assert (direct.label.epsilon, direct.label.privacy_unit) == (1.0, "one label")
    assert claims_for_persons(sgd_rr(), PERSONS, epsilon=0.5).person.epsilon == 3.0
    split = claims_for_persons(debiased_rr(privacy_unit="person"), [1, 1, 2, 2, 2], epsilon=3.0)
    assert (split.label.epsilon, split.person.epsilon) == (1.5, 3.0)
    clear = claims_for_persons(debiased_rr(privacy_unit="person"), PERSONS, epsilon=math.inf)
    assert clear.person.kind == clear.label.kind == "none"
    assert isinstance(split.person, Guarantee)


def test_the_budgets_of_a_persons_labels_are_at_most_the_claim_together():
    for epsilon in (1.0, 0.3, 9.1):
        budgets = debiased_rr(privacy_unit="person").params(epsilon=epsilon, persons=PERSONS).epsilon
        totals = {name: sum(map(Fraction, budgets[name == PERSONS].tolist())) for name in "abc"}
        assert max(totals.values()) <= Fraction(epsilon), totals
        np.testing.assert_allclose(budgets, epsilon / np.repeat([6, 3, 1], [6, 3, 1]), rtol=3e-7)
    least = float(jnp.finfo(DTYPE).smallest_normal)
    # The program would flush a subnormal share to 0.
    with pytest.raises(ValueError, match="epsilon / 3 must be within the range of float"):
        debiased_rr(privacy_unit="person").params(epsilon=2 * least, persons=[1, 1, 1])


def test_at_most_k_rows_a_person_remain_whoever_won():
    ids = np.asarray(["x", "y"])[(np.arange(300) % 3 > 0).astype(int)]
    rows = limit_per_person(ids, 8, KEY)
    assert np.unique(ids[rows], return_counts=True)[1].tolist() == [8, 8]
    assert (np.diff(rows) > 0).all()
    assert limit_per_person(ids, 1000, KEY).tolist() == list(range(300))
    drawn = np.concatenate([limit_per_person(ids, 8, key) for key in jax.random.split(KEY, 200)])
    shares = np.bincount(drawn, minlength=300)[ids == "x"] / 200
    assert np.abs(shares - 0.08).max() < 5 * math.sqrt(0.08 * 0.92 / 200)  # 8 of 100 rows, each as often
    for arguments, message in (((ids, 0, KEY), "k must be"), ((ids[:, None], 1, KEY), "ids must be a vector")):
        with pytest.raises(ValueError, match=message):
            limit_per_person(*arguments)


def test_claims_refuse_a_factory_that_was_not_called():
    with pytest.raises(ValueError, match=r"estimator must be of type jaxdp\.Estimator, got the function debiased_rr"):
        claims_for_persons(debiased_rr, [1, 1], epsilon=1.0)  # pyright: ignore[reportArgumentType]
