"""Local reports keep their claims where floats round: at the ends of an interval, at tiny budgets, and in counts."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import default_float
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import randomize_scalar, scalar_randomizer, vector_randomizer
from jaxdp.mechanisms._randomized_response import chance_for_counts, odds_for_counts
from jaxdp.random import _binomial

pytestmark = pytest.mark.precision

BUDGETS = [1e-7, 3e-7, 1e-5, 1e-3, 0.1, 0.7, 1.0, 5.0, 20.0, 60.0, 100.0]


def log_odds(moved: Fraction, stayed: Fraction) -> float:
    return math.log(stayed / moved) if moved else math.inf


@pytest.mark.optimised
@pytest.mark.parametrize(("low", "high"), [(1.0, 1 + 2.0**-23), (1e30, 1e30 + 2e23)])
def test_a_narrow_interval_is_private_where_its_ends_are_constants(low, high):
    """Attacks a compiled report whose parameters are constants: XLA then adds two of them first."""
    randomizer, keys = scalar_randomizer(), jax.random.split(jax.random.key(0), 4000)
    params = randomizer.params(epsilon=1.0, low=np.float32(low), high=np.float32(high))
    reports = jax.jit(lambda value: jax.vmap(lambda key: randomizer.report(key, params, value))(keys))
    smaller, larger = (np.asarray(reports(jnp.asarray(value, default_float()))) for value in (low, high))
    chances = [np.mean(values == values.min()) for values in (smaller, larger)]  # each report is one of two numbers
    for chance, other in ((chances[0], chances[1]), (1 - chances[0], 1 - chances[1])):
        assert chance <= math.e * other + 5 * math.sqrt((chance + math.e**2 * other) / len(keys))


def test_the_smallest_interval_is_not_released():
    """Attacks an interval whose half width is flushed to 0: its ends were told apart with certainty."""
    tiny = float(jnp.finfo(default_float()).smallest_normal)
    randomizer, keys = scalar_randomizer(), jax.random.split(jax.random.key(0), 100)
    params = randomizer.params(epsilon=1.0, low=0.0, high=1.5 * tiny)
    low, high = (
        np.asarray(jax.vmap(lambda key, value=value: randomizer.report(key, params, value))(keys))
        for value in (0.0, 1.5 * tiny)
    )
    assert set(low.tolist()) & set(high.tolist())


def test_no_number_is_randomized():
    reports = jax.vmap(lambda key: randomize_scalar(key, jnp.float32(math.nan), 1.0, bound=1.0))(
        jax.random.split(jax.random.key(0), 1000)
    )
    assert abs(float(jnp.mean(reports == 1)) - 1 / (1 + math.e)) < 5 * math.sqrt(0.2 / 1000)


def test_numbers_beyond_the_bound_are_the_ends():
    """Gives 0.3 in bfloat16, which is rounded up beyond the bound: such bits were not private."""
    numbers = jnp.repeat(jnp.asarray([0.3, math.inf, -5.0], jnp.bfloat16), 2000)
    ends = jnp.repeat(jnp.asarray([0.3, 0.3, -0.3], jnp.float32), 2000)
    reports, wanted = (randomize_scalar(jax.random.key(0), values, 1.0, bound=0.3) for values in (numbers, ends))
    np.testing.assert_array_equal(reports, wanted)
    assert set(np.asarray(reports[:2000]).tolist()) == {-1, 1}


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_counts_of_binary_reports_spend_no_more_than_claimed(epsilon):
    move = Fraction(float(jax.jit(chance_for_counts)(jnp.asarray(epsilon, default_float()))))
    assert log_odds(move, 1 - move) <= epsilon
    if epsilon > 1e-6:
        assert log_odds(move, 1 - move) > min(0.9 * epsilon, 21.0)


@pytest.mark.parametrize("epsilon", [1e-30, 1e-16])
def test_a_bit_in_counts_never_moves_more_often_than_it_stays(epsilon):
    assert float(jax.jit(chance_for_counts)(jnp.asarray(epsilon, default_float()))) == 0.5


@pytest.mark.parametrize("num_labels", [3, 8])
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_counts_of_labels_spend_no_more_than_claimed(epsilon, num_labels, monkeypatch):
    """Follows the chances with which `multinomial` draws one category after the other."""
    odds = float(odds_for_counts(jnp.asarray(epsilon, default_float()), num_labels))
    drawn = []
    monkeypatch.setattr(_binomial, "_draw", lambda key, n, *both: drawn.append(both) or n)

    def chances(kept: int) -> list[Fraction]:
        drawn.clear()
        weights = jnp.full(num_labels, odds, default_float()).at[kept].set(1)
        with jax.disable_jit():
            _binomial.multinomial(jax.random.key(0), jnp.int32(1), weights)
        left, found = Fraction(1), []
        for p, q in drawn:
            rare = Fraction(float(min(p, q)))
            found.append(left * (rare if p <= q else 1 - rare))
            left -= found[-1]
        return [*found, left]

    rows = [chances(kept) for kept in range(num_labels)]
    for column in zip(*rows, strict=True):
        assert log_odds(min(column), max(column)) <= epsilon


def test_budgets_of_local_laplace_noise_are_rounded_down():
    leaves = [
        scalar_randomizer("laplace").params(epsilon=0.1).epsilon,
        vector_randomizer((2,), "l1").params(epsilon=0.1).epsilon,
        exponential_weights(num_experts=2, horizon=9).params(epsilon=0.1).epsilon,
    ]
    assert all(float(leaf) <= 0.1 for leaf in leaves)
