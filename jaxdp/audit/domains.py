"""Defines domains of neighbouring inputs, in which audits search for revealing pairs."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.checks import differ
from jaxdp.core import default_float
from jaxdp.validation import check_choice, check_count, check_positive

NORMS = ("l1", "l2", "max")
POWERS = tuple(2.0**power for power in (-24, -10, -3, -1, 0, 1, 2, 3, 7, 8, 15, 16, 24, 30))
ANYTHING = (0.0, *POWERS, *(-x for x in POWERS), 127.0, 255.0, 20.0, 2.0**24 + 2, 2.0**100, -(2.0**100))
NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
ROUNDING = 1e-6  # relative excess of a norm over its bound that is allowed for rounding

Change = Callable[[Any, Any], Any]


class Domain(NamedTuple):
    """A set of pairs of neighbouring inputs, represented by functions.

    A search stores a pair as a genome, a pytree of arrays. JAX can trace all functions except `genome`.

    Attributes:
        start: key -> a random genome.
        alter: (key, genome, another genome) -> a genome, slightly changed or combined from both.
        pair: genome -> (first input, second input, changed). The inputs are neighbours, or equal, for every genome.
            `changed` is the row in which the inputs differ; 0 if an input is one row, or one array of numbers.
        genome: (first input, second input) -> genome of these neighbours, on the host; raises ValueError if the inputs
            are no neighbours.
    """

    start: Callable[[jax.Array], Any]
    alter: Callable[[jax.Array, Any, Any], Any]
    pair: Callable[[Any], tuple[Any, Any, jax.Array]]
    genome: Callable[[Any, Any], Any]


class Rows(NamedTuple):
    """A genome for inputs of rows: the first input, and a new row for the second input at one index.

    Attributes:
        base: pytree of [count, ...] arrays, the first input; count is 1 if an input is one row.
        other: pytree of [...] arrays, the new row. The second input takes only the privacy unit from the new row, by
            default the whole row.
        changed: [] int32, index of the row that changes, in [0, count).
    """

    base: Any
    other: Any
    changed: jax.Array


class Moved(NamedTuple):
    """A genome for arrays: the first input, and the change that leads to the second input.

    Attributes:
        base: [...] numbers, the first input.
        delta: [...] of the same dtype, the change. `Domain.pair` returns equal inputs if the change, after rounding and
            clipping, has a norm beyond the bound.
    """

    base: jax.Array
    delta: jax.Array


def replace_one_row(
    draw: Callable[[jax.Array], Any],
    *,
    count: int | None = None,
    specials: Sequence[Sequence[float]] = (),
    unit: Change = lambda row, other_row: other_row,
) -> Domain:
    """Builds a domain of inputs that differ in one row: a user, a record or an entry of a stream.

    Args:
        draw: key -> one row, a pytree of arrays. It should sometimes draw extreme rows.
        count: number of rows of an input, >= 1; None if an input is one row, without a leading axis.
        specials: for each leaf of a row, special numbers that its entries may also have; empty if no leaf has special
            numbers.
        unit: (row, new row) -> a row in which the part that belongs to one privacy unit comes from the new row, and the
            rest from the old row; by default the whole new row.

    Returns:
        The domain. The rows of an input are drawn independently. Then one row may be copied over another row, over all
        rows, over every second row, or over all rows on one side of a random index. The two inputs may differ in any
        row.

    Raises:
        ValueError: if count < 1.

    Examples:
        >>> domain = replace_one_row(lambda key: jax.random.bernoulli(key).astype(jnp.int32), count=4)
        >>> first, second, changed = domain.pair(domain.start(jax.random.key(0)))
        >>> first.shape, int(jnp.sum(first != second)) <= 1
        ((4,), True)
    """
    rows = 1 if count is None else check_count("count", count)
    like = jax.eval_shape(draw, jax.random.key(0))
    specials = specials or [()] * len(jax.tree.leaves(like))

    width = sum(leaf.size for leaf in jax.tree.leaves(like))

    def user(key: jax.Array, dice: Dice) -> Any:
        """Draws a row; some of its entries may be special numbers."""
        return _with_specials(dice, jax.tree.map(jnp.asarray, draw(key)), specials)

    def start(key: jax.Array) -> Rows:
        key_rows, key_other, key_alter, key_dice = jax.random.split(key, 4)
        dice = Dice(key_dice, 8 + 4 * (width + 8))
        base = jax.tree.map(jnp.asarray, jax.vmap(draw)(jax.random.split(key_rows, rows)))
        genome = Rows(base, user(key_other, dice), dice.below(rows))
        return alter(key_alter, genome, genome)

    def alter(key: jax.Array, genome: Rows, partner: Rows) -> Rows:
        key_user, key_dice = jax.random.split(key)
        dice = Dice(key_dice, 64 + 4 * (width + 8))
        new = user(key_user, dice)
        base = _select_rows(_draw_rows(dice, 0.3, rows), partner.base, genome.base)
        index = _draw_index(dice, rows, genome.changed, partner.changed)
        stream = dice.one_of([new, genome.other, jax.tree.map(lambda x: x[0], base)])
        base = _select_rows(_draw_rows(dice, 0.5, rows), _repeat_row(stream, rows), base)
        row = jax.tree.map(lambda x: x[index], base)
        row = dice.one_of([row, row, new, partner.other])
        base = jax.tree.map(lambda x, value: x.at[index].set(value), base, row)
        other = dice.one_of([genome.other, genome.other, new, partner.other])
        return Rows(base, other, index)

    def pair(genome: Rows) -> tuple[Any, Any, jax.Array]:
        row = jax.tree.map(lambda x: x[genome.changed], genome.base)
        new_row = unit(row, genome.other)
        second = jax.tree.map(lambda x, value: x.at[genome.changed].set(value), genome.base, new_row)
        inputs = genome.base, second
        if count is None:
            inputs = jax.tree.map(lambda x: x[0], inputs)
        return (*inputs, genome.changed)

    def genome(first: Any, second: Any) -> Rows:
        if count is None:
            first, second = (jax.tree.map(lambda x: np.asarray(x)[None], data) for data in (first, second))
        differs = _differing_rows(first, second)
        changed = np.flatnonzero(differs)
        if len(changed) > 1:
            raise ValueError(f"neighbours must differ in at most one row, got changes of rows {changed.tolist()}")
        index = int(changed.sum())
        other = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[index]), second)
        length = len(differs)
        # Missing rows are copies of the last row, or of the row before it if the last row is the changed one.
        sources = np.minimum(np.arange(rows), length - 1)
        sources = np.where((np.arange(rows) >= length) & (sources == index), max(index - 1, 0), sources)
        if index >= rows:
            raise ValueError(f"neighbours must differ in one of the first {rows} rows, got a change of row {index}")
        base = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[sources]), first)
        for row, other_row in zip(jax.tree.leaves(like), jax.tree.leaves(other), strict=True):
            if row.shape != other_row.shape:
                raise ValueError(f"neighbours must have rows of shape {row.shape}, got {other_row.shape}")
        base, other = (jax.tree.map(lambda x, to: x.astype(to.dtype), data, like) for data in (base, other))
        base_row = jax.tree.map(lambda leaf: leaf[index], base)
        in_unit = jax.tree.map(lambda leaf, expected: not differ(leaf, expected).any(), unit(base_row, other), other)
        if not all(jax.tree.leaves(in_unit)):
            raise ValueError(f"neighbours must differ in one privacy unit, got a larger change of row {index}")
        return Rows(base, other, jnp.int32(index))

    return Domain(start, alter, pair, genome)


def perturb_entries(
    shape: tuple[int, ...],
    *,
    norm: str,
    by: float,
    dtype: Any = np.float32,
    low: float = -(2.0**30),
    high: float = 2.0**30,
) -> Domain:
    """Builds a domain of pairs of arrays at a bounded distance, such as exact answers to queries on adjacent data.

    Args:
        shape: shape of an input; every length is >= 1.
        norm: norm of the difference, "l1", "l2" or "max".
        by: maximum norm of the difference, > 0.
        dtype: dtype of the numbers, floating-point or integer.
        low: smallest number that may occur, or the smallest finite number of the dtype if that is larger; rounded to a
            floating-point dtype. -infinity may occur only if low is -infinity.
        high: largest number that may occur, or the largest finite number of the dtype if that is smaller; rounded to a
            floating-point dtype. Infinity may occur only if high is infinity.

    Returns:
        The domain. Its inputs include ties, powers of two, the ends of the range, and numbers near these.

    Raises:
        ValueError: if norm is unknown, by is not > 0 and finite, low <= high does not hold, the dtype has no number in
            [low, high] up to rounding, the dtype is neither floating-point nor integer, or a length is < 1.

    Examples:
        >>> domain = perturb_entries((3,), norm="l1", by=1.0)
        >>> first, second, _ = domain.pair(domain.start(jax.random.key(0)))
        >>> float(jnp.abs(first - second).sum()) <= 1 + 1e-6
        True
    """
    check_choice("norm", norm, NORMS)
    check_positive("by", by)
    for length in shape:
        check_count("shape", length)
    kind = jnp.result_type(dtype)
    if not jnp.issubdtype(kind, jnp.integer) and not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(f"dtype must be floating-point or integer, got {kind}")
    is_whole = jnp.issubdtype(kind, jnp.integer)
    ends = f"low and high must be ends of a range with a number of dtype {kind}, got {low:g} and {high:g}"
    if not low <= high:
        raise ValueError(ends)
    if is_whole:
        low, high = math.ceil(max(low, np.iinfo(kind).min)), math.floor(min(high, np.iinfo(kind).max))
    else:
        least, largest = float(jnp.finfo(kind).min), float(jnp.finfo(kind).max)
        low, high = low if low == -math.inf else max(low, least), high if high == math.inf else min(high, largest)
    if low > high:
        raise ValueError(ends)
    values = [x for x in (*ANYTHING, low, high, by, -by, by / 2, low + by, high - by) if low <= x <= high]
    values = np.unique(np.asarray([round(x) for x in values] if is_whole else values).astype(kind))

    size = max(int(np.prod(shape)), 1)
    spread = by / {"l1": size, "l2": size**0.5, "max": 1}[norm]

    def numbers(dice: Dice) -> jax.Array:
        """Draws zeros, equal or nearly equal numbers, one number among zeros, or mixed special numbers."""
        value = jnp.asarray(values)[dice.below(len(values))]
        mixed = jnp.asarray(values)[dice.below(len(values), shape)]
        near = value + (by * (4 * dice.uniform(shape) - 2)).astype(kind)
        zero, same = jnp.zeros(shape, kind), jnp.full(shape, value)
        single = jnp.where((jnp.arange(size, dtype=jnp.int32) == dice.below(size)).reshape(shape), value, zero)
        return jnp.clip(dice.one_of([zero, zero, same, single, near, mixed]), kind.type(low), kind.type(high))

    def change(dice: Dice) -> jax.Array:
        """Draws a change of one entry or of all entries, with the maximum norm or a smaller norm."""
        is_moved = (jnp.arange(size, dtype=jnp.int32) == dice.below(size)).reshape(shape)
        single = jnp.where(is_moved, by, 0.0)
        signs = jnp.where(dice.uniform(shape) < 0.5, 1.0, -1.0)
        share, all_but_one = dice.uniform(shape), jnp.where(is_moved, -spread, spread)
        moves = [single * signs, signs * spread, all_but_one, -all_but_one, single * share, signs * share * spread]
        if is_whole and spread < 1:  # parts below 1 round to 0, or to 1 and then may exceed the bound
            moves = moves[:1]
        delta = dice.one_of([x.astype(default_float()) for x in moves])
        return (jnp.round(delta) if is_whole else delta).astype(kind)

    def start(key: jax.Array) -> Moved:
        dice = Dice(key, 16 + 4 * size)
        return Moved(numbers(dice), change(dice))

    def alter(key: jax.Array, genome: Moved, partner: Moved) -> Moved:
        dice = Dice(key, 16 + 5 * size)
        new = numbers(dice)
        partly_new = jnp.where(dice.uniform(shape) < 0.3, dice.one_of([partner.base, new]), genome.base)
        base = dice.one_of([genome.base, partly_new, partly_new, new])
        return Moved(base, dice.one_of([genome.delta, genome.delta, partner.delta, -genome.delta, change(dice)]))

    def pair(genome: Moved) -> tuple[Any, Any, jax.Array]:
        # The sum is rounded, so the norm is checked again; a pair beyond the bound becomes a pair of equal inputs.
        second = genome.base + genome.delta
        if is_whole:  # a sum that wrapped around is on the wrong side of the base
            second = jnp.where((second > genome.base) == (genome.delta > 0), second, genome.base)
        second = jnp.clip(second, kind.type(low), kind.type(high))
        moved = jnp.abs(second.astype(default_float()) - genome.base.astype(default_float()))
        if is_whole:
            moved = jnp.abs(second - genome.base).astype(default_float())
        distance = {"l1": jnp.sum, "l2": lambda x: jnp.sqrt(jnp.sum(jnp.square(x))), "max": jnp.max}[norm](moved)
        second = jnp.where(distance <= by * (1 + ROUNDING), second, genome.base)
        return genome.base, second, jnp.int32(0)

    def genome(first: Any, second: Any) -> Moved:
        first, second = (np.asarray(x) for x in (first, second))
        if first.shape != shape or second.shape != shape:
            raise ValueError(f"neighbours must have the shape {shape}, got {first.shape} and {second.shape}")
        if not all(((x >= low) & (x <= high)).all() for x in (first, second)):
            raise ValueError(f"neighbours must be in [{low:g}, {high:g}], got {first} and {second}")
        moved = Moved(jnp.asarray(first, kind), jnp.asarray(second, kind) - jnp.asarray(first, kind))
        if np.array_equal(pair(moved)[1], first) and not np.array_equal(first, second):
            raise ValueError(f"neighbours must be at most {by:g} apart in the {norm} norm, got {first} and {second}")
        return moved

    return Domain(start, alter, pair, genome)


def _differing_rows(first: Any, second: Any) -> np.ndarray:
    """Returns whether two inputs differ in each row, as [rows] bool."""
    leaves = zip(*(map(np.asarray, jax.tree.leaves(data)) for data in (first, second)), strict=True)
    return np.any([differ(left, right).reshape(len(left), -1).any(axis=1) for left, right in leaves], axis=0)


class Dice:
    """Random numbers from one large draw, which compiles faster than many small draws."""

    def __init__(self, key: jax.Array, size: int) -> None:
        self._numbers, self._num_used = jax.random.uniform(key, (size,)), 0

    def uniform(self, shape: tuple[int, ...] = ()) -> jax.Array:
        """Returns [*shape] float in [0, 1)."""
        size = int(np.prod(shape))
        first, self._num_used = self._num_used, self._num_used + size
        assert self._num_used <= len(self._numbers)
        return self._numbers[first : first + size].reshape(shape)

    def below(self, count: int, shape: tuple[int, ...] = ()) -> jax.Array:
        """Returns [*shape] int32 in [0, count)."""
        return jnp.minimum((self.uniform(shape) * count).astype(jnp.int32), count - 1)

    def one_of(self, forms: list[Any]) -> Any:
        """Returns one of these pytrees, each with the same probability."""
        which = self.below(len(forms))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves)[which], *forms)


def _with_specials(dice: Dice, row: Any, specials: Sequence[Sequence[float]]) -> Any:
    """Replaces no entry, one entry or all entries of each leaf that has special numbers, by at most two of these."""
    leaves, tree = jax.tree.flatten(row)
    changed = []
    for leaf, numbers in zip(leaves, specials, strict=True):
        if not len(numbers):
            changed.append(leaf)
            continue
        special, other = jnp.asarray(np.asarray(numbers).astype(leaf.dtype))[dice.below(len(numbers), (2,))]
        some = dice.uniform(leaf.shape) < 0.3
        single = (jnp.arange(leaf.size, dtype=jnp.int32) == dice.below(max(leaf.size, 1))).reshape(leaf.shape)
        forms = [leaf, jnp.full_like(leaf, special), jnp.where(single, special, leaf), jnp.where(some, special, other)]
        changed.append(dice.one_of(forms))
    return jax.tree.unflatten(tree, changed)


def _draw_index(dice: Dice, rows: int, current: jax.Array, other: jax.Array) -> jax.Array:
    """Draws the changed row: the current one with probability 1/2, otherwise the first, last, any or `other` one."""
    return dice.one_of([current, current, current, current, jnp.int32(0), jnp.int32(rows - 1), dice.below(rows), other])


def _draw_rows(dice: Dice, share: float, rows: int) -> jax.Array:
    """Draws [rows] bool: no rows with probability 1 - share, else one, all, every second, or all on a side of a cut."""
    index = jnp.arange(rows, dtype=jnp.int32)
    cut = dice.below(rows)
    selected = dice.one_of([index == cut, jnp.ones(rows, bool), index % 2 == 0, index < cut, index >= cut])
    return selected & (dice.uniform() < share)


def _select_rows(selected: jax.Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(selected.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old)


def _repeat_row(row: Any, rows: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (rows, *x.shape)), row)
