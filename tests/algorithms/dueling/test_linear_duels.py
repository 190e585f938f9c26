"""Duels of arms with features: winners, regret, feedback totals of many pairs, and errors."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.dueling import _linear_duels, linear_duels, utility_duels
from jaxdp.preferences import utility_matrix

KEY = partial(jax.random.key, 8)
FEATURES = np.array([[0.6, 0.8], [1.0, 0.0], [-0.5, 0.1], [0.0, -0.9]])
WEIGHTS = np.array([1.0, 0.5])
INTEGER = jnp.result_type(int)


def test_it_is_duels_of_its_utilities():
    """Round by round the answers of `utility_duels`, and its pseudo-regret, at any scale."""
    for scale, link in ((1.0, "logistic"), (2.5, "probit")):
        linear = linear_duels(FEATURES, WEIGHTS, link=link)
        plain = utility_duels(scale * FEATURES @ WEIGHTS, link=link)
        ours, theirs = linear.params(scale=scale), plain.params()
        pairs = np.argwhere(np.ones((4, 4))).astype(np.int32)
        pairs = jnp.asarray(np.concatenate([pairs, [[0, 4], [-1, 2]]]).astype(np.int32))
        keys = jax.random.split(KEY(), len(pairs))
        many = [
            jax.jit(jax.vmap(lambda key, pair, each=each, params=params: each.feedback(key, params, (), pair)[1:]))(
                keys, pairs
            )
            for each, params in ((linear, ours), (plain, theirs))
        ]
        np.testing.assert_array_equal(many[0][0][:16], many[1][0][:16])
        for name, values in many[0][1].items():
            np.testing.assert_allclose(values, many[1][1][name], atol=1e-5, err_msg=name)
        assert np.isnan(many[0][1]["pseudo_regret"][16:]).all()
        block = linear.block
        assert block is not None
        _, won, outcome = jax.jit(lambda params, block=block: block(*params))((keys, ours, (), None, pairs))
        np.testing.assert_array_equal(won, many[0][0])
        np.testing.assert_array_equal(outcome["pseudo_regret"], many[0][1]["pseudo_regret"])
        evaluate = linear.evaluate
        assert evaluate is not None
        assert [bool(evaluate(ours, (), jnp.int32(arm))["correct"]) for arm in range(4)] == [True, True, False, False]


SCALE = 3.0
LINE = np.stack([np.linspace(-0.9, 0.9, 5), np.linspace(0, 0.4, 5) ** 2], axis=1)  # features; the last arm is best
UTILITIES = SCALE * LINE @ [0.8, 0.1]
PLANS = np.stack([np.where(np.arange(25) % 2, 50, 0), np.where(np.arange(25) == 24, 7, 0), np.arange(25)])


def tallied(num_lanes):
    """Returns wins [plans, lanes, pairs] and outcomes of plans.

    The last one has more pairs than are drawn at a time.
    """
    duels = linear_duels(LINE, [0.8, 0.1])
    params, feedback_totals = duels.params(scale=SCALE), duels.feedback_totals
    assert feedback_totals is not None
    many = jax.vmap(jax.vmap(lambda key, counts: feedback_totals(key, params, (), counts)[1:], (0, None)), (None, 0))
    return jax.tree.map(np.asarray, jax.jit(many)(jax.random.split(KEY(), num_lanes), jnp.asarray(PLANS, INTEGER)))


def test_each_duel_is_counted_once(monkeypatch):
    monkeypatch.setattr(_linear_duels, "binomial", lambda key, count, chance: count)  # the left arm wins all
    won, outcomes = tallied(1)
    np.testing.assert_array_equal(won[:, 0], PLANS)
    np.testing.assert_array_equal(outcomes["left_wins"][:, 0], PLANS.sum(1))
    regret = np.add.outer(*[UTILITIES.max() - UTILITIES] * 2).ravel()
    np.testing.assert_allclose(outcomes["pseudo_regret"][:, 0], PLANS @ regret, rtol=1e-5)
    assert outcomes["best_duels"][:, 0].tolist() == [0, 7, 24]


def test_feedback_totals_have_the_distribution_of_rounds():
    chances, found = utility_matrix(UTILITIES).ravel(), tallied(2000)[0]
    for plan, won in zip(PLANS, found, strict=True):
        assert (won[:, plan == 0] == 0).all()
        assert ((won >= 0) & (won <= plan)).all()
        spread = np.sqrt(plan * chances * (1 - chances))
        assert (abs(won.mean(0) - plan * chances) <= 5 * spread / math.sqrt(2000) + 1e-9).all()
        assert (abs(won.std(0) - spread) <= 5 * spread / math.sqrt(2 * 2000) + 1e-3).all()
        wrong = np.roll(chances, 1)  # of another pair
        assert not (abs(won.mean(0) - plan * wrong) <= 5 * spread / math.sqrt(2000) + 1e-9).all()


BAD: list[tuple[Any, Any, str]] = [
    ([[0.5, math.nan], [0.1, 0.2]], [1, 1], r"features must be finite, got nan at index \(0, 1\)"),
    ([[0.5, 0.9], [0.1, 0.2]], [1, 1], "features must have rows of norm at most 1, got 1.02956 of arm 0"),
    ([[0.5, 0.1, 0.0], [0.1, 0.2, 0.0]], [1, 1, 1], "features must have at most as many columns as rows, got dim 3"),
    ([[0.5], [0.1], [0.5]], [1], "features must have different rows, got the same row for arms 0 and 2"),
    ([[0.5]], [1], "num_arms must be an integer >= 2, got 1"),
    ([0.5, 0.1], [1], r"features must be \[num_arms, dim\] with dim >= 1, got shape \(2,\)"),
    ([[], []], [], r"features must be \[num_arms, dim\] with dim >= 1, got shape \(2, 0\)"),
    ([["a"], ["b"]], [1], "features must be numbers"),
    ([[0.5], [0.1]], [1, 2], r"weights must be \[1\], one number for each of the features, got shape \(2,\)"),
    ([[0.5], [0.1]], [math.nan], "weights must be finite, got nan"),
    ([[1.0], [-1.0]], [1.5e308], "weights must make differences of utilities within the range of float"),
]


@pytest.mark.parametrize(("features", "weights", "said"), BAD)
def test_errors(features, weights, said):
    with pytest.raises(ValueError, match=said):
        linear_duels(features, weights)


def test_errors_of_values_and_links():
    with pytest.raises(ValueError, match="link must be one of logistic, probit, got 'cauchit'"):
        linear_duels(FEATURES, WEIGHTS, link="cauchit")
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale must be "):
            linear_duels(FEATURES, WEIGHTS).params(scale=bad)
    with pytest.raises(
        ValueError, match=r"scale must make twice the largest difference of utilities, .* range of float"
    ):
        linear_duels(FEATURES, WEIGHTS).params(scale=np.finfo(jnp.zeros(()).dtype).max)
