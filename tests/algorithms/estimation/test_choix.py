"""Fits without privacy against choix, an independent library of choice models."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import (
    debiased_rr,
    estimate,
    mle,
    objective_perturbation,
    plackett_luce_debiased_krr,
    plackett_luce_mle,
)
from jaxdp.preferences import sample_choices, sample_comparisons, sample_rankings

choix = pytest.importorskip("choix")

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
NUM_ITEMS = 5
UTILITIES = np.array([0.8, -0.4, 0.1, -0.9, 0.4])
TOLERANCE = 1e-9 if X64 else 1e-6
ALPHA = 1e-12  # choix's own regularization


def check(theta, expected):
    expected = expected - expected.mean()
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-5)
    with pytest.raises(AssertionError):  # planted: two items swapped
        np.testing.assert_allclose(theta, expected[[1, 0, 2, 3, 4]], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("factory", "values"),
    [(mle, {}), (debiased_rr, {"epsilon": np.inf}), (objective_perturbation, {"epsilon": np.inf, "delta": 1e-3})],
)
def test_pairs(factory, values):
    pairs = np.array(list(itertools.combinations(range(NUM_ITEMS), 2)) * 12)
    features = np.eye(NUM_ITEMS)[pairs[:, 0]] - np.eye(NUM_ITEMS)[pairs[:, 1]]
    labels = np.asarray(sample_comparisons(jax.random.key(1), jnp.asarray(features @ UTILITIES, DTYPE)))
    won = [(i, j) if label else (j, i) for (i, j), label in zip(pairs, labels, strict=True)]
    expected = choix.opt_pairwise(NUM_ITEMS, won, alpha=ALPHA, method="Newton-CG", tol=1e-10)
    check(
        estimate(factory(zero_sum=True), features, labels, **values, key=jax.random.key(0), tolerance=TOLERANCE).theta,
        expected,
    )


def choices(sampler):
    """Returns items of 80 choice sets of three, their features, and the preferred items."""
    items = np.array(list(itertools.combinations(range(NUM_ITEMS), 3)) * 8)
    return items, np.eye(NUM_ITEMS)[items], np.asarray(sampler(jax.random.key(2), jnp.asarray(UTILITIES[items], DTYPE)))


@pytest.mark.parametrize(
    ("factory", "values"), [(plackett_luce_mle, {}), (plackett_luce_debiased_krr, {"epsilon": np.inf})]
)
def test_top_one(factory, values):
    items, features, labels = choices(sample_choices)
    rows = range(len(items))
    rest = [tuple(np.delete(items[row], labels[row])) for row in rows]
    data = [(int(items[row, labels[row]]), rest[row]) for row in rows]
    expected = choix.opt_top1(NUM_ITEMS, data, alpha=ALPHA, method="Newton-CG", tol=1e-10)
    check(
        estimate(factory(zero_sum=True), features, labels, **values, key=jax.random.key(0), tolerance=TOLERANCE).theta,
        expected,
    )


def test_rankings():
    items, features, labels = choices(sample_rankings)
    data = [tuple(ranked) for ranked in np.take_along_axis(items, labels, axis=1).tolist()]
    expected = choix.opt_rankings(NUM_ITEMS, data, alpha=ALPHA, method="Newton-CG", tol=1e-10)
    check(
        estimate(plackett_luce_mle(zero_sum=True), features, labels, key=jax.random.key(0), tolerance=TOLERANCE).theta,
        expected,
    )
