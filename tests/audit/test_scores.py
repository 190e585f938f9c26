"""Scores that order outputs: each finds its kind of difference, on outputs that did not shape it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Attack, audit, events
from jaxdp.audit.additive import (
    BOOSTED,
    _bin_counts,
    _ordered_bin_counts,
    binned_logit,
    boost_bins,
    fit_bins,
    fit_hinges,
    hinge_logit,
)
from jaxdp.audit.classifier import logit, train
from jaxdp.audit.columns import Columns, Extra, all_columns, kept_columns, varying_columns
from jaxdp.audit.sampling import Outputs
from jaxdp.core import Guarantee
from jaxdp.mechanisms import laplace

CLAIM = Guarantee.pure(1.0, trust_model="central", privacy_unit="one record", argument="test")


def found(release, neighbours, *, trials, exact=None, key=0, **more):
    return audit(jax.random.key(key), Attack(release, None, neighbours, CLAIM, exact), trials=trials, **more)


def several(key, params, values):
    """Makes five numbers that share the epsilon: only outputs that are far out in all of them have all of the
    evidence.
    """
    return laplace(key, values, 1.0, l1_sensitivity=5.0)


FLOAT = jnp.result_type(float)
ALL_MOVE = np.zeros(5, FLOAT), np.ones(5, FLOAT)


def test_scores_find_a_ratio_that_adds_up(monkeypatch):
    """Plants the network alone."""
    assert found(several, ALL_MOVE, trials=300_000).lower_bound > 0.88
    learn = events.learn_scores

    def network(*args, **more):
        return [score for score in learn(*args, **more) if score.name == "estimated log ratio"]

    monkeypatch.setattr("jaxdp.audit.black_box.learn_scores", network)
    assert found(several, ALL_MOVE, trials=300_000).lower_bound < 0.88


@pytest.mark.parametrize(("fit", "score"), [(fit_hinges, hinge_logit), (fit_bins, binned_logit)])
def test_a_log_ratio_is_estimated(fit, score):
    """Estimates the log ratio of Laplace noise on two numbers, which is known; NaN and infinity spoil nothing."""
    key = jax.random.key(0)
    rows = [np.array(jax.random.laplace(k, (50_000, 2), jnp.float32)) for k in jax.random.split(key, 3)]
    rows[1] += 1
    weights = fit(*rows[:2])
    x = rows[2][:2000]
    true = np.sum(np.abs(x - 1) - np.abs(x), axis=1)
    error = score(weights, x) - true
    assert np.abs(error - error.mean()).mean() < 0.12  # a score may lack a constant
    spoiled = rows[0].copy()
    spoiled[::7, 0] = np.nan
    spoiled[1::7, 0], spoiled[2::7, 0] = np.inf, -np.inf
    assert np.isfinite(score(fit(spoiled, rows[1]), spoiled)).all()


@pytest.mark.parametrize("unit", [1e-30, 1e25])  # in float32, the squares of these numbers are 0 or infinite
def test_hinges_do_not_depend_on_the_unit_of_outputs(unit):
    key = jax.random.key(0)
    first, second = (np.array(jax.random.laplace(k, (5_000, 2), jnp.float32)) for k in jax.random.split(key))
    second += 1
    plain = hinge_logit(fit_hinges(first, second), first)
    factor = np.float32(unit)
    scaled = hinge_logit(fit_hinges(first * factor, second * factor), first * factor)
    assert plain.std() > 0.5
    np.testing.assert_allclose(scaled, plain, atol=0.01)


@pytest.mark.parametrize("unit", [1e-30, 1e25])
def test_a_network_does_not_depend_on_the_unit_of_outputs(unit):
    key = jax.random.key(0)
    first, second = (np.array(jax.random.laplace(k, (5_000, 2), jnp.float32)) for k in jax.random.split(key))
    second += 1
    factor = np.float32(unit)
    scaled = logit(train(key, first * factor, second * factor, all_columns=2), first * factor)
    assert np.corrcoef(scaled, np.sum(np.abs(first - 1) - np.abs(first), axis=1))[0, 1] > 0.9


def test_a_network_takes_numbers_that_hardly_vary():
    first, second = np.zeros((2, 500, 2), np.float32)
    first[0, 0], first[:, 1], second[:, 1] = 1e-45, 1, -1  # the deviation of the first column is 0 in float32
    weights = train(jax.random.key(0), first, second, all_columns=2)
    assert logit(weights, first[1:]).min() > 0 > logit(weights, second).max()


def one_bare(key, chance, values):
    """Adds Laplace noise to many numbers; one of them, each time another, often stays without."""
    key_noise, key_which, key_fails = jax.random.split(key, 3)
    noise = jax.random.laplace(key_noise, values.shape)
    which = jax.random.randint(key_which, (), 0, values.size)
    return values + jnp.where((jnp.arange(values.size) == which) & jax.random.bernoulli(key_fails, chance), 0, noise)


def first_moves(size):
    first = np.zeros(size, FLOAT)
    second = first.copy()
    second[0] = 1
    return first, second


def always_one_bare(key, params, values):
    return one_bare(key, 1.0, values)


def test_a_bare_number_among_many_is_found():
    assert found(always_one_bare, first_moves(100), trials=50_000).lower_bound > 3


def test_a_bare_number_among_a_thousand_is_found():
    least = 1.5 if jax.config.read("jax_enable_x64") else 3  # float64 noise repeats less often
    assert found(always_one_bare, first_moves(1000), trials=200_000, key=1).lower_bound > least


def test_bare_numbers_that_are_too_rare_to_repeat_are_found_by_what_they_should_be():
    """Plants a search without `exact`."""
    inputs = np.zeros(50, FLOAT), np.full(50, 0.02, FLOAT)

    def release(key, params, values):
        return one_bare(key, 2e-3, values)

    assert found(release, inputs, trials=50_000, exact=lambda x: x).lower_bound > 2
    assert found(release, inputs, trials=50_000).lower_bound < 1
    with pytest.raises(ValueError, match="exact must return as many numbers as release, 50, got 1"):
        found(release, inputs, trials=50_000, exact=lambda x: x[0])
    with pytest.raises(ValueError, match="exact must return as many numbers as release, 50, got 50 and 1"):
        found(release, inputs, trials=50_000, exact=lambda x: x if x[0] == 0 else x[0])


def textbook(key, params, value):
    return value + jax.random.laplace(key, (), jnp.float32)


def test_low_bits_of_textbook_noise_are_seen_where_they_are_asked_for():
    inputs = np.float32(0), np.float32(1)
    assert found(textbook, inputs, trials=20_000).verdict == "consistent"
    result = found(textbook, inputs, trials=20_000, low_bits=True)
    assert result.lower_bound > 3, result

    def integers(key, params, value):
        return laplace(key, value, 1.0, l1_sensitivity=1.0)

    assert found(integers, inputs, trials=20_000, low_bits=True).verdict == "consistent"


def test_powers_of_two():
    values = [1.0, 3.0, 0.75, -2.5, 2.0**20, 0.0, np.nan, np.inf]
    none, own = np.zeros(0, np.int32), np.zeros(1, np.int32)
    numbers = np.asarray(values, np.float32)[:, None]
    outputs = Outputs(numbers, numbers[:, :0], np.zeros(len(values), np.int32))
    powers = all_columns(Extra(none, none, own), outputs)[:, -1]
    np.testing.assert_array_equal(powers[:5], [0, 0, -2, -1, 20])
    assert (powers[5:] > 100).all()


def test_classifiers_leave_out_constant_columns():
    varying, other = np.arange(4.0), np.asarray([0.0, np.nan, 0.0, 1.0])
    first = np.stack([np.full(4, np.nan), varying, np.ones(4), varying, other], axis=1)
    second = np.stack([np.full(4, np.nan), varying + 1, np.full(4, 2.0), varying + 1, other], axis=1)
    kept = varying_columns(first, second)
    np.testing.assert_array_equal(kept, [1, 2, 3, 4])  # column 2 is constant under each input, but not the same
    np.testing.assert_array_equal(varying_columns(np.ones((3, 2)), np.ones((3, 2))), [0])
    none = np.zeros(0, np.int32)
    outputs = Outputs(first, first[:, :0], np.zeros(4, np.int32))
    np.testing.assert_array_equal(kept_columns(Columns(Extra(none, none, none), kept), outputs), first[:, kept])


def test_bins_of_ordered_values_are_counted_alike():
    values = np.asarray([np.nan, -np.inf, 3.0, 1.0, 1.0, 2.0, np.inf, np.nan, -1.0])
    for edges in ([], [1.0], [-1.0, 1.0, 2.5]):
        counts = _bin_counts(values, np.asarray(edges))
        np.testing.assert_array_equal(_ordered_bin_counts(np.sort(values), np.asarray(edges)), counts)


def test_training_outputs_are_not_counted(monkeypatch):
    """Scores that learn their training outputs by heart must gain nothing by it."""
    learn = events.learn_scores

    def by_heart(key, first, second, **more):
        scores = learn(key, first, second, **more)
        known = np.sort(first.numbers[:, 0])

        def score(weights, outputs):
            place = np.clip(np.searchsorted(known, outputs.numbers[:, 0]), 0, known.size - 1)
            return (known[place] == outputs.numbers[:, 0]).astype(known.dtype)

        return [*scores, scores[0]._replace(function=score, weights=(), name="known")]

    monkeypatch.setattr("jaxdp.audit.black_box.learn_scores", by_heart)
    result = found(textbook, (np.float32(0), np.float32(0)), trials=50_000)
    assert result.lower_bound == 0


@pytest.mark.parametrize("size", [12, BOOSTED + 20])
def test_boosting_does_not_count_the_same_evidence_twice(size):
    """Gives four columns evidence, three more copies of the first one, and the others none."""
    generator = np.random.default_rng(0)

    def draw(shift, rows):
        columns = generator.laplace(scale=3.0, size=(rows, size))
        columns[:, :4] += shift
        columns[:, 4:7] = columns[:, :1]
        return columns

    shaping, fresh = ([draw(shift, rows) for shift in (0.0, 1.0)] for rows in (4000, 20_000))
    exact = [np.sum(np.abs(x[:, :4] - 1) - np.abs(x[:, :4]), axis=1) / 3 for x in fresh]
    errors = []
    for fit in (boost_bins, fit_bins):
        bins = fit(*shaping)
        scores = [binned_logit(bins, x) for x in fresh]
        errors.append(np.mean(np.square(np.concatenate(scores) - np.concatenate(exact))))
    assert errors[0] < 0.1 < errors[1], "the copies weigh too much in histograms"


def test_boosting_counts_missing_numbers_as_the_lowest():
    first, second = np.linspace(0, 1, 400)[:, None], np.linspace(0, 1, 400)[:, None]
    first[:100] = np.nan
    bins = boost_bins(first, second)
    assert binned_logit(bins, np.asarray([[np.nan]])) > binned_logit(bins, np.asarray([[0.9]]))


def test_first_coordinates_of_many_are_scores_if_asked():
    generator = np.random.default_rng(0)
    sides = [Outputs(generator.normal(size=(200, 12)).astype(FLOAT), np.zeros((200, 0)), np.arange(200)) for _ in "ab"]
    for singles in (0, 2):
        names = [score.name for score in events.learn_scores(jax.random.key(0), *sides, singles=singles)]
        assert [name for name in names if name.startswith("output[")] == ["output[0]", "output[1]"][:singles]
