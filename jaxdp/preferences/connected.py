"""Finds connected components of the graph of comparisons. Under label privacy, this graph is public."""

import numpy as np

from jaxdp.preferences.files import short_repr
from jaxdp.preferences.tables import ComparisonTable

_SHOWN_GROUPS, _SHOWN_ITEMS = 3, 4  # maximum numbers of groups, and of items in each group, that an error names


def comparison_groups(table: ComparisonTable) -> list[tuple[str, ...]]:
    """Returns the connected components of the graph of comparisons, as groups of items.

    Two items are in the same group if they were compared, or if a chain of comparisons connects them. An item that was
    never compared is a group by itself. Items of different groups cannot be ranked relative to each other. The groups
    depend only on `table.items` and `table.pairs`, which are public, and not on who won, which is private.

    Args:
        table: table of comparisons.

    Returns:
        Groups in the order of their first items. The items of each group are in the order of `table.items`.

    Examples:
        >>> comparison_groups(ComparisonTable.from_arrays(["a", "c", "b"], ["b", "d", "a"]))
        [('a', 'b'), ('c', 'd')]
    """
    from scipy.sparse import coo_array  # imported here because SciPy is slow to import
    from scipy.sparse.csgraph import connected_components

    first, second = table.pairs.reshape(-1, 2).T
    shape = (len(table.items), len(table.items))
    edges = coo_array((np.ones(len(first), np.int8), (first, second)), shape=shape)
    count, groups = connected_components(edges, directed=False)
    members: list[list[str]] = [[] for _ in range(count)]
    for name, group in zip(table.items, groups, strict=True):
        members[group].append(name)
    return [tuple(names) for names in members]


def check_connected(name: str, table: ComparisonTable, way_out: str = "rank each group separately") -> None:
    """Checks that comparisons connect all items.

    Args:
        name: name of the argument in the error message.
        table: table of comparisons.
        way_out: advice at the end of the error message.

    Raises:
        ValueError: if comparisons do not connect all items. The error names up to three groups, which are public, with
            up to four items each.
    """
    groups = comparison_groups(table)
    if len(groups) > 1:
        named = [_shown_group(group) for group in groups[:_SHOWN_GROUPS]] + ["..."] * (len(groups) > _SHOWN_GROUPS)
        raise ValueError(
            f"{name} must connect all items by comparisons, got {len(groups)} groups that were never compared with one "
            f"another, {', '.join(named)}: {way_out}"
        )


def _shown_group(group: tuple[str, ...]) -> str:
    names = [short_repr(name)[1:-1] for name in group[:_SHOWN_ITEMS]]
    more = len(group) - len(names)
    return f"{{{', '.join(names)}{f' and {more} more' if more else ''}}}"
