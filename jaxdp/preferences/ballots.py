"""Ballots, which are voters' rankings of alternatives, and the pairwise preferences that ballots imply.

Rankings may have ties and may be incomplete. An "answer" is a ballot's preference between two alternatives.
"""

import itertools
import operator
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdp.preferences.files import short_repr
from jaxdp.preferences.tables import ComparisonTable, tabulate
from jaxdp.validation import check_choice

Order = tuple[tuple[int, ...], ...]

UNRANKED = ("unknown", "last")
DATA_TYPES = ("soc", "soi", "toc", "toi")
MAX_BALLOTS = 2**53
_MAX_DESIGN_BYTES = 2**29  # so that sums of answers stay within int32


@dataclass(frozen=True)
class Ballots:
    """Ballots that rank alternatives, stored as distinct orders with the number of ballots of each order.

    An order is a sequence of groups, the best group first. The alternatives in a group are tied; an alternative in no
    group is not ranked. The constructor checks the values, converts sequences to tuples and integers to int, and sorts
    the indices of each group.

    Attributes:
        items: distinct names of the alternatives; text that is not empty, without control characters or lone
            surrogates, and without leading or trailing spaces.
        orders: tuple of distinct orders, at least one. An order is a tuple of groups, and a group is an increasing
            tuple of indices into items. No order and no group is empty, and no index occurs twice in an order.
        counts: number of ballots with each order, >= 1; their sum is at most 2**53.

    Raises:
        ValueError: if a value violates these rules.

    Examples:
        >>> ballots = Ballots(("ann", "bob", "cy"), (((0,), (2, 1)), ((2,),)), (3, 2))
        >>> ballots.orders, ballots.num_ballots, ballots.data_type
        ((((0,), (1, 2)), ((2,),)), 5, 'toi')
    """

    items: tuple[str, ...]
    orders: tuple[Order, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _to_tuple("items", self.items))
        object.__setattr__(self, "counts", tuple(map(_to_int, _to_tuple("counts", self.counts))))
        object.__setattr__(
            self, "orders", tuple(map(_to_nested_tuples, itertools.count(), _to_tuple("orders", self.orders)))
        )
        for index, name in enumerate(self.items):
            if reason := name_fault(name):
                raise ValueError(f"items[{index}] {reason}")
        if len(set(self.items)) < len(self.items):
            raise ValueError("items must all be different")
        if len(self.orders) != len(self.counts) or not self.orders:
            raise ValueError(
                f"orders and counts must have the same length >= 1, got {len(self.orders)} and {len(self.counts)}"
            )
        for index, order in enumerate(self.orders):
            if reason := order_fault(order, len(self.items)):
                raise ValueError(f"orders[{index}] {reason}")
        object.__setattr__(self, "orders", tuple(tuple(tuple(sorted(g)) for g in order) for order in self.orders))
        if len(set(self.orders)) < len(self.orders):
            raise ValueError("orders must all be different")
        for index, count in enumerate(self.counts):
            if not _is_whole(count) or not count >= 1:
                raise ValueError(f"counts[{index}] must be an integer >= 1, got {short_repr(count)}")
        if self.num_ballots > MAX_BALLOTS:
            raise ValueError("counts must sum to at most 2**53")

    @property
    def num_ballots(self) -> int:
        """The number of ballots."""
        return sum(self.counts)

    @property
    def data_type(self) -> str:
        """The most restrictive PrefLib type for these ballots: soc, soi, toc or toi."""
        strict = all(len(group) == 1 for order in self.orders for group in order)
        complete = all(sum(map(len, order)) == len(self.items) for order in self.orders)
        return ("s" if strict else "t") + "o" + ("c" if complete else "i")

    def with_unranked_last(self) -> "Ballots":
        """Returns complete ballots, in which the alternatives that a ballot does not rank are tied in a last group.

        This is the usual way to count ballots in elections. Each ballot of the result has the preferences that
        `answers(unranked="last")` returns for the original ballot.

        Examples:
            >>> Ballots(("a", "b", "c"), (((0,),), ((0,), (1, 2)), ((0,), (1,))), (3, 1, 2)).with_unranked_last()
            Ballots(items=('a', 'b', 'c'), orders=(((0,), (1, 2)), ((0,), (1,), (2,))), counts=(4, 2))
        """
        counts: dict[Order, int] = {}
        for order, count in zip(self.orders, self.counts, strict=True):
            left_out = sorted(set(range(len(self.items))).difference(*order))
            complete = (*order, tuple(left_out)) if left_out else order
            counts[complete] = counts.get(complete, 0) + count
        return Ballots(self.items, tuple(counts), tuple(counts.values()))

    def num_silent(self, *, unranked: str = "unknown") -> int:
        """Returns the number of ballots that prefer no alternative to another alternative.

        Args:
            unranked: see `answers`. With "unknown", a ballot that ranks only one alternative has no preference.

        Raises:
            ValueError: if `answers` raises.
        """
        is_silent = (self.answers(unranked=unranked) == 1).all(axis=1)
        return sum(count for count, silent in zip(self.counts, is_silent, strict=True) if silent)

    def answers(self, *, unranked: str = "unknown") -> np.ndarray:
        """Returns each order's preference between the two alternatives of each pair (the order's answer).

        An order prefers the alternative in the earlier group. It has no preference between two tied alternatives or
        between two alternatives that are not ranked.

        Args:
            unranked: the preference between a ranked and an unranked alternative. "unknown": there is no preference, as
                in PrefLib's definition of incomplete orders and in models of partial rankings. "last": the ranked
                alternative is preferred to the unranked one, as is usual when counting votes.

        Returns:
            [num_orders, num_pairs] int8 in {0, 1, 2} for the pairs i < j in the order of `pair_indices`: 2 if i is
            preferred, 0 if j is preferred, 1 if there is no preference. An answer is twice the label in {0, 1/2, 1}.

        Raises:
            ValueError: if unranked has another value, there are fewer than two alternatives, or the result would take
                more than 512 MiB.
        """
        check_choice("unranked", unranked, UNRANKED)
        num_items, num_orders = len(self.items), len(self.orders)
        if num_items < 2:
            raise ValueError(f"items must have at least two names for comparisons, got {num_items}")
        _check_size(num_orders, num_items)
        positions = np.full((num_orders, num_items), -1, np.int64)
        for row, order in enumerate(self.orders):
            for position, group in enumerate(order):
                positions[row, list(group)] = position
        is_ranked = positions >= 0
        if unranked == "last":
            positions[~is_ranked] = num_items
            is_ranked[:] = True
        answers = np.empty((num_orders, num_items * (num_items - 1) // 2), np.int8)
        start = 0
        for first in range(num_items - 1):  # one alternative against all later alternatives, to keep temporaries small
            stop = start + num_items - 1 - first
            above = np.sign(positions[:, first + 1 :] - positions[:, first, None]).astype(np.int8)
            answers[:, start:stop] = 1 + above * (is_ranked[:, first + 1 :] & is_ranked[:, first, None])
            start = stop
        return answers

    def comparisons(self, *, unranked: str = "unknown") -> ComparisonTable:
        """Returns a table with one comparison for each ballot and each pair about which the ballot has a preference.

        One ballot gives up to num_items * (num_items - 1) / 2 comparisons, so a guarantee for one comparison does not
        protect a whole ballot. The table makes public which pairs were compared, and so which alternatives were ranked.

        Args:
            unranked: see `answers`.

        Returns:
            The table of all alternatives; its items are sorted, so indices may differ from indices into `items`.

        Raises:
            ValueError: if `answers` raises, or if no ballot prefers an alternative to another one.
        """
        answers = self.answers(unranked=unranked)
        counts = np.asarray(self.counts, np.int64)
        above, below = counts @ (answers == 2), counts @ (answers == 0)
        if not above.any() and not below.any():
            raise ValueError("ballots must rank an alternative above another one at least once, got no such ballot")
        wins = {}
        for (first, second), won, lost in zip(pair_indices(len(self.items)).tolist(), above, below, strict=True):
            wins[self.items[first], self.items[second]] = int(won)
            wins[self.items[second], self.items[first]] = int(lost)
        return tabulate(wins)

    def design(self, *, unranked: str = "unknown") -> tuple[np.ndarray, np.ndarray]:
        """Returns features of all pairs of alternatives, and every ballot's preferences about these pairs.

        Args:
            unranked: see `answers`.

        Returns:
            features: [num_pairs, num_items] float32, e_i - e_j for all pairs i < j. The features depend only on the
                number of alternatives.
            labels: [num_ballots, num_pairs] int8 in {0, 1, 2}, the `answers` of every ballot.

        Raises:
            ValueError: if `answers` raises, or labels would take more than 512 MiB.
        """
        answers = self.answers(unranked=unranked)
        _check_size(self.num_ballots, len(self.items))
        return pair_features(len(self.items)), np.repeat(answers, self.counts, axis=0)


def pair_indices(num_items: int) -> np.ndarray:
    """Returns all pairs i < j of items in lexicographic order. The result is [num_pairs, 2] int64."""
    return np.stack(np.triu_indices(num_items, 1), axis=1)


def pair_features(num_items: int) -> np.ndarray:
    """Returns e_i - e_j for all pairs i < j of items, in the order of `pair_indices`.

    Shape: [num_pairs, num_items] float32.
    """
    pairs = pair_indices(num_items)
    rows = np.arange(len(pairs))
    features = np.zeros((len(pairs), num_items), np.float32)
    features[rows, pairs[:, 0]] = 1
    features[rows, pairs[:, 1]] = -1
    return features


def name_fault(name: object) -> str | None:
    """Returns the rule that the name of an alternative violates; None if the name is valid."""
    if not isinstance(name, str) or not name:
        return f"must be a name, got {short_repr(name)}"
    if name != name.strip() or any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return f"must have no control characters and no spaces at its ends, got {short_repr(name)}"
    return None


def order_fault(order: Sequence[Sequence[int]], num_items: int) -> str | None:
    """Returns the rule that an order of groups of indices violates; None if the order is valid."""
    if not order or not all(order):
        return "must rank at least one alternative, in groups that are not empty"
    ranked = [item for group in order for item in group]
    if not all(_is_whole(item) and 0 <= item < num_items for item in ranked):
        return f"must rank alternatives in [0, {num_items}), got {short_repr(order)}"
    if len(set(ranked)) < len(ranked):
        return f"must rank each alternative at most once, got {short_repr(order)}"
    return None


def _to_tuple(name: str, values: Any) -> tuple:
    """Returns the values as a tuple; raises a ValueError if they are text or not iterable."""
    try:
        if not isinstance(values, str | bytes):
            return tuple(values)
    except TypeError:
        pass
    raise ValueError(f"{name} must be a sequence, got {short_repr(values)}")


def _to_nested_tuples(index: int, order: Any) -> tuple:
    """Returns an order as a tuple of tuples; raises a ValueError if it is not a sequence of sequences."""
    name = f"orders[{index}]"
    return tuple(tuple(map(_to_int, _to_tuple(f"every group of {name}", group))) for group in _to_tuple(name, order))


def _to_int(value: Any) -> Any:
    """Converts an integer of any type to int; returns all other values, including bools, unchanged."""
    try:
        return value if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_size(num_rows: int, num_items: int) -> None:
    num_bytes = num_rows * num_items * (num_items - 1) // 2
    if num_bytes > _MAX_DESIGN_BYTES:
        raise ValueError(
            f"answers of {num_rows} ballots about all pairs of {num_items} items would take {num_bytes} bytes, "
            f"more than {_MAX_DESIGN_BYTES}"
        )
