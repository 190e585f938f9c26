"""Sums in fixed point against Python's integers, at every carry, sign and end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.numerics import compensated, fixed_point
from jaxdp.numerics.fixed_point import BITS, MOST_TERMS, UNITS, Sum

EDGES = [0, 1, 2, UNITS // 2, UNITS - 2, UNITS - 1, UNITS, UNITS + 1]
WHOLES = [0, 1, 2**24 - 1, 2**24, 2**26, 2**30 - 1]


def sums_of(numbers) -> Sum:
    """Sums that hold these numbers of units."""
    numbers = np.asarray(numbers, np.int64)
    integer = jnp.result_type(int)
    return Sum(jnp.asarray(numbers >> BITS, integer), jnp.asarray(numbers & (UNITS - 1), integer))


def integers_of(sums: Sum) -> list[int]:
    """Returns the numbers of units, as Python's integers."""
    assert ((np.asarray(sums.part) >= 0) & (np.asarray(sums.part) < UNITS)).all()
    return [int(whole) * UNITS + int(part) for whole, part in zip(*map(np.ravel, sums), strict=True)]


def edge_numbers() -> np.ndarray:
    numbers = [sign * (whole * UNITS + edge) for whole in WHOLES for edge in EDGES for sign in (1, -1)]
    return np.asarray(sorted(set(numbers)), np.int64)


def test_sums_and_differences_are_those_of_integers():
    numbers = edge_numbers()
    left, right = (side.ravel() for side in np.meshgrid(numbers[::3], numbers[::5]))
    for operation, exact in ((fixed_point.plus, np.add), (fixed_point.minus, np.subtract)):
        wanted = exact(left, right)
        fits = np.abs(wanted) < 2**31 * UNITS
        result = integers_of(jax.jit(operation)(sums_of(left[fits]), sums_of(right[fits])))
        assert result == wanted[fits].tolist()
    assert integers_of(fixed_point.negative(sums_of(numbers))) == (-numbers).tolist()


@pytest.mark.parametrize("more", [1, UNITS - 1, UNITS, MOST_TERMS * UNITS, -1, -UNITS, -MOST_TERMS * UNITS])
def test_units_are_carried(more):
    numbers = edge_numbers()
    added = fixed_point.add(sums_of(numbers), jnp.asarray(more, jnp.result_type(int)))
    assert integers_of(added) == [number + more for number in numbers.tolist()]


def test_distances_from_the_least_sum():
    rows = np.asarray([[2**50, 2**50 + 1, 2**50 - 1], [-5, 7 * UNITS, -UNITS], [3, 3, 3]], np.int64)
    result = integers_of(fixed_point.excess_over_least(sums_of(rows)))
    assert result == (rows - rows.min(axis=1, keepdims=True)).ravel().tolist()


def test_data_become_units():
    values = jnp.asarray([0.0, 1.0, 0.5, 2.0, -1.0, np.nan, np.inf, -np.inf, 2.0**-21, 3.3e38], jnp.float32)
    assert fixed_point.units(values).tolist() == [0, UNITS, UNITS // 2, UNITS, 0, 0, UNITS, 0, 0, UNITS]

    for low, high in ((3.0, 8.0), (-1e30, 1e30), (0.0, 1e-30), (0.1, 0.7)):
        width = np.float32(np.float32(high) - np.float32(low))
        scale = np.float32(UNITS / width)
        assert fixed_point.units(jnp.asarray([0.0, width]), scale).tolist() == [0, UNITS]


def test_a_replaced_datum_moves_a_sum_by_its_change_alone():
    """Checks that floats of a large sum, also compensated ones, move by another amount."""
    losses = np.random.default_rng(0).uniform(0.9, 1.0, (1024, 64)).astype(np.float32)
    losses[0] = 0.0
    changed = losses.copy()
    changed[0] = 1.0

    def exact(losses: jax.Array) -> Sum:
        start = Sum(*(jnp.full(losses.shape[1], word, jnp.result_type(int)) for word in (2**26, UNITS - 1)))
        return jax.lax.scan(lambda total, row: (fixed_point.add(total, fixed_point.units(row)), None), start, losses)[0]

    def floats(losses: jax.Array) -> compensated.Sum:
        start = jax.tree.map(lambda leaf: leaf + 0, compensated.zero(losses[0]))
        start = start._replace(total=start.total + 2.0**26)
        return jax.lax.scan(lambda total, row: (compensated.add(total, row), None), start, losses)[0]

    first, second = (integers_of(jax.jit(exact)(jnp.asarray(rows))) for rows in (losses, changed))
    assert {right - left for left, right in zip(first, second, strict=True)} == {UNITS}
    totals = [jax.jit(floats)(jnp.asarray(rows)) for rows in (losses, changed)]
    moved = np.asarray(totals[1].total, np.float64) - np.asarray(totals[0].total, np.float64)
    if jnp.result_type(float) == jnp.float32:
        assert (moved != 1.0).any()


def test_floats_are_rounded_once():
    numbers = edge_numbers()
    exact = numbers.astype(np.float64) / UNITS
    rounded = np.asarray(fixed_point.to_float(sums_of(numbers), jnp.float32), np.float64)
    np.testing.assert_allclose(rounded, exact, rtol=2.0**-22)
