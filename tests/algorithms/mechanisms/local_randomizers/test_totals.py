"""Totals of reports have the distribution of the sum of reports."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import LabelParams, label_randomizer
from jaxdp.testing.keys import check_keys_of
from tests.algorithms.mechanisms.local_randomizers.randomizers import CASES, params_of

KEY = partial(jax.random.key, 11)
DRAWS = 20_000
ONES, COUNT = 1, 12
HAVE = [5, 0, 1, 3, 2]  # of five labels
INTEGER = jnp.result_type(int)
BINARY = ("binary_rr", "binary_laplace", "binary_gaussian", "labels_2")


def values_of(name):
    labels = np.repeat(np.arange(5), HAVE) if name == "labels_5" else np.arange(COUNT) < ONES
    return jnp.asarray(labels, jnp.int32)


@functools.cache
def sums(name):
    """Sums single reports, [draws, totals], as the randomizer's `total` has them."""
    randomizer, values = CASES[name].randomizer, values_of(name)

    @jax.jit
    def draw(key, params):
        reports = jax.vmap(lambda key: randomizer.report(key, params, values))(jax.random.split(key, DRAWS))
        if name == "labels_5":
            return jax.nn.one_hot(reports, 5, dtype=jnp.int32).sum(1)
        return reports.sum(1, keepdims=True)

    return draw


@functools.cache
def totals(name):
    total = CASES[name].randomizer.total
    assert total is not None
    given = jnp.asarray(HAVE if name == "labels_5" else ONES, INTEGER)
    count = jnp.asarray(len(values_of(name)), INTEGER)

    @jax.jit
    def draw(key, params):
        keys = jax.random.split(key, DRAWS)
        return jax.vmap(lambda key: total(key, params, given, count))(keys).reshape(DRAWS, -1)

    return draw


def check_one_distribution(one, other):
    """Compares two samples: distribution functions of totals, and of differences, by Massart's bound at 1e-9 each."""
    allowed = 2 * math.sqrt(math.log(2e9) / 2 / DRAWS)
    one, other = (
        np.concatenate([x, np.diff(x, axis=1)], axis=1).astype(float).round(4) for x in map(np.asarray, (one, other))
    )
    for mine, its in zip(one.T, other.T, strict=True):
        at = np.unique(np.concatenate([mine, its]))
        apart = [np.searchsorted(np.sort(x), at, side="right") / DRAWS for x in (mine, its)]
        assert np.abs(apart[0] - apart[1]).max() <= allowed


@pytest.mark.parametrize("name", [*BINARY, "labels_5"])
def test_a_total_has_the_distribution_of_the_sum_of_reports(name):
    key_sums, key_totals = jax.random.split(KEY())
    for epsilon in (0.5, 3.0):
        params = params_of(name, epsilon)
        expected = sums(name)(key_sums, params)
        check_one_distribution(expected, totals(name)(key_totals, params))
        with pytest.raises(AssertionError):  # planted: reports at another epsilon, with another mean or spread
            check_one_distribution(expected, totals(name)(key_totals, params_of(name, epsilon / 2)))
    exact = totals(name)(KEY(), params_of(name, math.inf))
    assert np.all(np.asarray(exact) == (HAVE if name == "labels_5" else ONES))


@pytest.mark.parametrize("name", [*BINARY, "labels_5"])
def test_a_total_uses_no_key_twice(name):
    total, params = CASES[name].randomizer.total, params_of(name, 0.7)
    assert total is not None
    have = jnp.asarray(HAVE if name == "labels_5" else ONES, INTEGER)
    check_keys_of(jax.make_jaxpr(lambda key: total(key, params, have, jnp.asarray(COUNT, INTEGER)))(KEY()))


def test_one_users_noise_is_not_that_of_all():
    """Plants a total that gets noise once."""
    for name in ("binary_laplace", "binary_gaussian"):
        randomizer, params = CASES[name].randomizer, params_of(name, 1.0)
        once = jax.vmap(lambda key, c=randomizer, p=params: c.report(key, p, 1.0))(jax.random.split(KEY(), DRAWS))
        with pytest.raises(AssertionError):
            check_one_distribution(sums(name)(KEY(), params), once[:, None] + ONES - 1)


@pytest.mark.precision
@pytest.mark.parametrize("name", BINARY)
def test_totals_of_many(name):
    """Checks mean and variance of 10^9 reports, and of none; separately for each arm."""
    total, params = CASES[name].randomizer.total, params_of(name, 0.7)
    assert total is not None
    count = jnp.asarray([10**9, 0, 1000], INTEGER)
    ones = jnp.asarray([3 * 10**8, 0, 1000], INTEGER)
    drawn = jax.vmap(lambda key: total(key, params, ones, count))(jax.random.split(KEY(), 2000))
    found = np.asarray(drawn, float)
    bias = math.tanh(0.35)
    if name == "labels_2":
        mean, variance = (1 - bias) / 2 * np.asarray(count) + bias * np.asarray(ones), (1 - bias**2) / 4
    else:
        mean = np.asarray(ones, float)
        noise = {"binary_rr": (1 / bias**2 - 1) / 4, "binary_laplace": 2 / 0.49}
        variance = noise.get(name, float(np.asarray(getattr(params, "noise_stddev", 0.0))) ** 2)
    spread = np.sqrt(variance * np.asarray(count, float))
    assert np.all(np.abs(found.mean(0) - mean) <= 5 * spread / math.sqrt(2000) + 1e-7 * mean)
    # of the variance of a sample: relative standard error sqrt(2 / n) of a normal one
    assert np.all(np.abs(found.var(0) - spread**2) <= 5 * math.sqrt(2 / 2000) * spread**2 + 1e-12)


def test_totals_of_labels_keep_their_sum_and_their_shape():
    randomizer = label_randomizer(3)
    have = jnp.asarray([[10**9, 5, 0], [0, 0, 0]], INTEGER)
    assert randomizer.total is not None
    drawn = randomizer.total(KEY(), LabelParams(epsilon=1.0), have, have.sum(axis=1))
    assert (drawn.shape, drawn.dtype) == (have.shape, have.dtype)
    assert np.array_equal(drawn.sum(1), [10**9 + 5, 0])
    keep = math.e / (math.e + 2)
    assert abs(int(drawn[0, 0]) - keep * 10**9) < 5 * math.sqrt(keep * (1 - keep) * 10**9)


def test_no_total_where_totals_do_not_tell():
    assert [name for name, case in CASES.items() if case.randomizer.total is None] == [
        *("rr", "laplace", "gaussian", "l1", "l2", "moments_ball")
    ]
