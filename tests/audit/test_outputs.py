"""Outputs of every kind: whatever distinguishes the inputs in them is found, for any dtype and place."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Attack, audit
from jaxdp.audit.columns import Extra
from jaxdp.audit.events import _column, candidate_thresholds
from jaxdp.audit.sampling import Outputs, Score, draw, histogram, output_size
from jaxdp.core import Guarantee
from jaxdp.mechanisms import laplace, randomized_response

CLAIM = Guarantee.pure(1.0, trust_model="central", privacy_unit="one record", argument="test")
LABELS = (np.int32(0), np.int32(1))
SPECIAL = [np.nan, np.inf, -np.inf]


def found(release, *, trials, labels=LABELS):
    return audit(jax.random.key(0), Attack(release, None, labels, CLAIM), trials=trials)


def normal(key, shape=()):
    return jax.random.normal(key, shape, jnp.float32)


PAIRS = list(itertools.combinations([*SPECIAL, 0.0], 2))


@pytest.mark.parametrize(("special", "other"), PAIRS)
def test_special_numbers_are_outcomes(special, other):
    result = found(lambda key, params, x: jnp.where(x > 0, jnp.float32(special), jnp.float32(other)), trials=10_000)
    assert result.lower_bound > 7, result


@pytest.mark.parametrize("special", [np.nan, *SPECIAL[1:]])
def test_special_numbers_among_others(special):
    """Makes nine numbers, too many for a score each; half of the time the first is special under one input only."""

    def release(key, params, x):
        values, coin = normal(key, (9,)), jax.random.bernoulli(jax.random.fold_in(key, 1))
        return values.at[0].set(jnp.where((x > 0) & coin, jnp.float32(special), values[0]))

    result = found(release, trials=20_000)
    assert result.lower_bound > 5, result


@pytest.mark.parametrize("number", [*SPECIAL, 0.0])
def test_both_ways_of_counting_agree(number):
    def release(key, params, x):
        return jnp.where(jax.random.bernoulli(key), jnp.float32(number), x)

    def score(weights, outputs):
        return outputs.numbers[:, 0] * weights.astype(outputs.numbers.dtype)

    scores = [Score(score, np.float32(1), "")]
    arguments = (jax.random.key(0), release, None, np.float32(-3), scores)
    thresholds = [-5.0, -1.0, 1.0]
    several = histogram(*arguments, np.asarray([thresholds]), trials=1000, chunk=64)[0]
    single = [histogram(*arguments, np.asarray([[t]]), trials=1000, chunk=64)[0, 0] for t in thresholds]
    np.testing.assert_array_equal(several, single)


def test_an_event_of_negative_integers_is_the_one_that_was_chosen():
    def release(key, params, x):
        key_rare, key_coin = jax.random.split(key)
        rare = jax.random.randint(key_rare, (), -20_000, -2, jnp.int32)
        return jnp.where(jax.random.bernoulli(key_coin), -1 - x, rare)

    assert found(release, trials=100_000).lower_bound > 5


def test_a_threshold_lies_between_neighbouring_floats():
    one = np.float32(1)
    for values in ([one, np.nextafter(one, np.float32(2))], [np.nextafter(one, np.float32(0)), one], [-3.4e38, 3.4e38]):
        outputs = Outputs(np.asarray(values, np.float32)[:, None], np.zeros((2, 0), np.float32), np.zeros(2, np.int32))
        none = np.zeros(0, np.int32)
        thresholds = candidate_thresholds(Score(_column, (Extra(none, none, none), 0), ""), outputs)
        assert np.all((outputs.numbers.min() <= thresholds) & (thresholds < outputs.numbers.max()))


@pytest.mark.parametrize(("shift", "trials"), [(10**6, 3000), (500_000, 20_000)])
def test_integers_of_which_none_repeats(shift, trials):
    """Makes more outcomes than samples: a histogram shows nothing, their order does."""

    def release(key, params, x):
        return jax.random.randint(key, (), 0, 10**6, jnp.int32) + jnp.int32(shift) * x

    assert found(release, trials=trials).lower_bound > 4


def test_rare_integers_beside_a_common_one():
    def release(key, params, x):
        rare = jax.random.randint(key, (), 1, 10**6, jnp.int32) + jnp.int32(10**6) * x
        return jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 1), 0.05), rare, 0)

    assert found(release, trials=20_000).lower_bound > 3


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_rounded_noise_is_found_at_its_epsilon(dtype):
    def release(key, params, x):
        noisy = laplace(key, x.astype(jnp.float32), 3.0, l1_sensitivity=1.0)
        return jnp.round(100 * noisy).astype(dtype)

    assert 2.6 < found(release, trials=20_000).lower_bound <= 3


def test_many_labels_without_order():
    """Makes 10,000 outcomes, of which two distinguish; these are 0.2% of the outputs."""

    def release(key, params, x):
        return randomized_response(key, x, 3.0, num_labels=10_000)

    result = found(release, trials=200_000, labels=(np.int32(3000), np.int32(7000)))
    assert 2 < result.lower_bound <= 3, result


@pytest.mark.parametrize(
    "release",
    [
        lambda key, params, x: (2**25 + x, normal(key)),
        lambda key, params, x: (np.uint32(2**32 - 2) + x.astype(jnp.uint32), normal(key)),
        lambda key, params, x: jnp.stack([2**30 + x, jax.random.randint(key, (), 0, 2**30, jnp.int32)]),
        lambda key, params, x: jnp.append(normal(key, (9,)), x.astype(jnp.float32)),
        lambda key, params, x: jax.lax.complex(normal(key), normal(key) + 10 * x.astype(jnp.float32)),
        lambda key, params, x: (x.astype(jnp.bfloat16), x > 0, normal(key)),
    ],
)
def test_no_dtype_hides_a_number(release):
    assert found(release, trials=20_000).lower_bound > 3


@pytest.mark.skipif(not jax.config.read("jax_enable_x64"), reason="64-bit integers need x64")
@pytest.mark.parametrize(
    "release",
    [
        lambda key, params, x: x.astype(jnp.int64) * 2**32,
        lambda key, params, x: (x.astype(jnp.int64) * 2**32, normal(key)),
        lambda key, params, x: (2**60 + x.astype(jnp.int64), normal(key)),
        lambda key, params, x: (np.uint64(2**63) + x.astype(jnp.uint64), normal(key)),
        lambda key, params, x: 1.0 + 1e-15 * x.astype(jnp.float64) + 0 * normal(key).astype(jnp.float64),
    ],
)
def test_no_wide_number_is_narrowed(release):
    assert found(release, trials=10_000).lower_bound > 6


def test_outputs_of_equal_distributions_are_not_told_apart():
    """Computes every score at once: special numbers, rounded integers, outcomes that repeat."""

    def release(key, params, x):
        special = jnp.where(jax.random.bernoulli(key), jnp.float32(np.nan), normal(key))
        return special, jax.random.randint(key, (), 0, 2**30, jnp.int32), jnp.zeros((), jnp.int32)

    bounds = [
        audit(jax.random.key(k), Attack(release, None, LABELS, CLAIM), trials=5000).lower_bound for k in range(10)
    ]
    assert np.mean(np.array(bounds) > 0) <= 0.1


def test_what_is_kept_of_an_output():
    def release(key, params, x):
        return x, x.astype(jnp.float32) / 2, x > 0, jnp.stack([2**24 + x, 2**24 - 1 + x])

    outputs = draw(jax.random.key(0), release, None, np.int32(1), trials=3, chunk=2)
    wide = outputs.numbers.dtype == np.float64
    assert output_size(release, None, np.int32(1)) == 5
    np.testing.assert_array_equal(outputs.numbers, [[1, 0.5, 1, 2**24 + wide, 2**24]] * 3)
    np.testing.assert_array_equal(outputs.low, [[0, 0, 0, 0 if wide else 1, 0]] * 3)
    assert len(set(outputs.bucket.tolist())) == 1
