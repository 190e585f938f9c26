"""Features of pairs do not depend on who won; the difference of chosen and rejected does, and an audit says so."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Attack, audit
from jaxdp.core import Guarantee
from jaxdp.mechanisms import randomized_response
from jaxdp.preferences import pairs_from_chosen_rejected

KEY = jax.random.key(2)


def table(dtype=np.float64, num=60):
    """Makes responses with few different entries, so that some pairs share bytes, pairs or both responses."""
    rng = np.random.default_rng(1)
    return rng.integers(-1, 2, (num, 3)).astype(dtype), rng.integers(-1, 2, (num, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_features_and_order_are_those_of_the_swapped_table(dtype):
    chosen, rejected = table(dtype)
    chosen[:5] *= -1.0  # zeros of both signs
    swap = np.random.default_rng(3).random(len(chosen)) < 0.5
    other = [np.where(swap[:, None], *pair) for pair in ((rejected, chosen), (chosen, rejected))]
    pairs, swapped = pairs_from_chosen_rejected(chosen, rejected), pairs_from_chosen_rejected(*other)
    np.testing.assert_array_equal(pairs.features, swapped.features)
    np.testing.assert_array_equal(pairs.rows, swapped.rows)
    is_equal = (chosen == rejected).all(axis=1)[pairs.rows]
    assert is_equal.any()
    assert pairs.labels[is_equal].all()
    changed = swap[pairs.rows] & ~is_equal
    np.testing.assert_array_equal(pairs.labels != swapped.labels, changed)
    with pytest.raises(AssertionError):  # planted: the sign is the label
        np.testing.assert_array_equal(chosen - rejected, other[0] - other[1])


@pytest.mark.parametrize("orient", ["bytes", "coin"])
def test_pairs_are_the_rows_of_the_table(orient):
    chosen, rejected = table()
    pairs = pairs_from_chosen_rejected(chosen, rejected, orient=orient, key=KEY if orient == "coin" else None)
    signs = np.where(pairs.labels == 1, 1, -1)[:, None]
    np.testing.assert_array_equal(signs * pairs.features, (chosen - rejected)[pairs.rows])
    assert sorted(pairs.rows) == list(range(len(chosen)))
    if orient == "coin":
        assert abs(pairs.labels.mean() - 0.5) < 5 * 0.5 / math.sqrt(len(chosen))


def test_an_audit_flags_features_that_know_the_winner():
    """Attacks reports and features of one pair: neighbours of the raw table swap chosen and rejected."""
    claim = Guarantee.pure(1.0, trust_model="local", privacy_unit="one label", argument="randomized response")
    neighbours = jnp.asarray([[2.0], [1.0]], jnp.float32), jnp.asarray([[1.0], [2.0]], jnp.float32)

    def right(key, epsilon, row):
        pair = jnp.sort(row, axis=0)[::-1]  # as "bytes": of positive floats the larger
        return randomized_response(key, (row[0] == pair[0]).astype(jnp.int32), epsilon), pair[0] - pair[1]

    def wrong(key, epsilon, row):
        return randomized_response(key, jnp.ones(1, jnp.int32), epsilon), row[0] - row[1]

    def coin(key, epsilon, row):  # its key is known
        heads = jax.random.bits(KEY, ()) & 1
        return (
            randomized_response(key, heads.astype(jnp.int32)[None], epsilon),
            jnp.where(heads, 1, -1) * (row[0] - row[1]),
        )

    verdicts = {
        run.__name__: audit(jax.random.key(0), Attack(run, jnp.float32(1), neighbours, claim), trials=20_000).verdict
        for run in (right, wrong, coin)
    }
    assert verdicts == {"right": "consistent", "wrong": "violated", "coin": "violated"}


def test_an_audit_flags_dropped_ties():
    """Attacks reports and features of one pair: neighbours are a label and a tie, the last entry of the raw row."""
    claim = Guarantee.pure(1.0, trust_model="local", privacy_unit="one label", argument="randomized response")
    neighbours = jnp.asarray([2.0, 1.0, 0.0], jnp.float32), jnp.asarray([2.0, 1.0, 1.0], jnp.float32)

    def half(key, epsilon, row):  # a tie is a fair secret coin
        key_coin, key_report = jax.random.split(key)
        label = jnp.where(row[2] == 1, jax.random.bernoulli(key_coin).astype(jnp.int32), 1)
        return randomized_response(key_report, label, epsilon), row[0] - row[1]

    def drop_ties(key, epsilon, row):  # a pair that is missing is 0
        report, feature = half(key, epsilon, row)
        return jnp.where(row[2] == 1, 0, report), jnp.where(row[2] == 1, 0, feature)

    verdicts = [
        audit(jax.random.key(0), Attack(run, jnp.float32(1), neighbours, claim), trials=20_000).verdict
        for run in (half, drop_ties)
    ]
    assert verdicts == ["consistent", "violated"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chosen": [[1, 2]]}, r"chosen must be a table of float16, float32, float64, got int64 of shape \(1, 2\)"),
        ({"chosen": np.ones((1, 2), np.longdouble)}, "chosen must be a table of .*, got (longdouble|float128)"),
        ({"chosen": [1.0, 2.0]}, "chosen must be a table of float16, float32, float64"),
        (
            {"rejected": [[1.0]]},
            r"rejected must have the type and shape of chosen, float64 \(1, 2\), got float64 \(1, 1\)",
        ),
        ({"chosen": np.ma.array([[1.0, 2.0]], mask=[[True, False]])}, "chosen must have no masked entries, got 1 of"),
        ({"orient": "label"}, "orient must be one of bytes, coin"),
        ({"orient": "coin"}, 'key must be given for orient="coin"'),
        ({"key": KEY}, 'key must be given for orient="coin" and None otherwise'),
    ],
)
def test_wrong_pairs_are_refused(changes, message):
    values: dict[str, Any] = {"chosen": [[1.0, 2.0]], "rejected": [[0.0, 2.0]]} | changes
    with pytest.raises(ValueError, match=message):
        pairs_from_chosen_rejected(values.pop("chosen"), values.pop("rejected"), **values)


def test_an_error_does_not_say_which_response_is_not_finite():
    rows = [[1.0, 2.0]], [[math.nan, 2.0]]
    messages = set()
    for chosen, rejected in (rows, rows[::-1]):
        with pytest.raises(ValueError, match="NaN or infinity in 1 of 1 rows") as caught:
            pairs_from_chosen_rejected(np.asarray(chosen), np.asarray(rejected))
        messages.add(str(caught.value))
    assert len(messages) == 1
