"""All entries, by name, and how users add their own."""

import difflib
from typing import Any

from jaxdp.core import Guarantee
from jaxdp.registry.bandits import BANDITS
from jaxdp.registry.barriers import BARRIERS
from jaxdp.registry.best_arm import BEST_ARM
from jaxdp.registry.channels import CHANNELS
from jaxdp.registry.contextual import CONTEXTUAL
from jaxdp.registry.convex import CONVEX
from jaxdp.registry.counters import COUNTERS
from jaxdp.registry.dueling import DUELING
from jaxdp.registry.dueling_blocks import DUELING_BLOCKS
from jaxdp.registry.entries import Entry, EstimatorEntry, LearnerEntry, MechanismEntry
from jaxdp.registry.estimation import ESTIMATION
from jaxdp.registry.experts import EXPERTS
from jaxdp.registry.linear_duels import LINEAR_DUELS
from jaxdp.registry.mechanisms import RELEASES
from jaxdp.registry.reached import told_auditors
from jaxdp.registry.shuffle import SHUFFLED
from jaxdp.registry.shuffled_duels import SHUFFLED_DUELS


class Table(dict[str, Any]):
    """Entries by name. A name that is not there is told with those that are near it."""

    def __missing__(self, name: str) -> Any:
        near = difflib.get_close_matches(str(name), self) or list(self)
        raise KeyError(f"{name}: no entry has this name; near it: {', '.join(near)}")


MECHANISMS: dict[str, MechanismEntry] = Table(told_auditors({**RELEASES, **CHANNELS, **COUNTERS, **SHUFFLED}))
LEARNERS: dict[str, LearnerEntry] = Table(
    told_auditors(
        {
            **BANDITS,
            **BEST_ARM,
            **CONVEX,
            **BARRIERS,
            **CONTEXTUAL,
            **EXPERTS,
            **DUELING,
            **LINEAR_DUELS,
            **DUELING_BLOCKS,
            **SHUFFLED_DUELS,
        }
    )
)
ESTIMATORS: dict[str, EstimatorEntry] = Table(told_auditors({**ESTIMATION}))

TABLES: dict[str, tuple[type[Entry], dict[str, Any]]] = {
    "mechanism": (MechanismEntry, MECHANISMS),
    "learner": (LearnerEntry, LEARNERS),
    "estimator": (EstimatorEntry, ESTIMATORS),
}
KINDS = tuple(TABLES)
_LIBRARYS = frozenset(name for _, table in TABLES.values() for name in table)


def register(name: str, entry: Entry, *, replace: bool = False) -> None:
    """Adds a learner, an estimator or a mechanism of your own, for this process.

    From then on it is listed by `python -m jaxdp list`, attacked by `python -m jaxdp audit` and checked by
    `jaxdp.testing.check_registered`. So that the commands find it, call this in a module that is named by
    `--with MODULE`, or that your distribution declares as an entry point of the group `jaxdp.register`.

    Args:
        name: by which commands know it: letters, digits and underscores, and nobody else's.
        entry: a `LearnerEntry`, an `EstimatorEntry` or a `MechanismEntry` of `jaxdp.registry`.
        replace: whether the entry may take the place of an earlier one of yours, as when a notebook's cell runs again.

    Raises:
        ValueError: if the name is taken, with `replace` by an entry of the library, or is no identifier; if entry is of
            another type, what its factory makes is not of its kind, or `values` do not fit.

    Examples:
        >>> from jaxdp.registry import LEARNERS
        >>> wider = LEARNERS["rucb"].sized(num_arms=8)
        >>> register("rucb_of_eight", wider)
        >>> LEARNERS.pop("rucb_of_eight").make()
        rucb(num_arms=8)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name must be letters, digits and underscores, and not start with a digit, got {name!r}")
    for kind, (_, table) in TABLES.items():
        if name in table and (name in _LIBRARYS or not replace):
            raise ValueError(f"name must be new, got {name!r}, which is a registered {kind}")
    own = next((table for made, table in TABLES.values() if isinstance(entry, made)), None)
    if own is None:
        kinds = ", ".join(made.__name__ for made, _ in TABLES.values())
        raise ValueError(f"entry must be one of {kinds}, got an instance of {type(entry).__name__}")
    claim_of(entry)
    for _, table in TABLES.values():
        table.pop(name, None)
    own[name] = entry


def own_entries() -> dict[str, Any]:
    """Returns the entries that were registered beside the library's, by name."""
    return {name: entry for _, table in TABLES.values() for name, entry in table.items() if name not in _LIBRARYS}


def claim_of(entry: Any) -> Guarantee:
    """What an entry claims at its values.

    Raises:
        ValueError: if its `params` or its `guarantee` does not take its values, or the latter makes anything else.
    """
    made = entry.make()
    try:
        made.params(**entry.values)
        claim = made.guarantee(**entry.values)
    except TypeError as error:
        raise ValueError(f"values must be what params and guarantee take, got {dict(entry.values)}: {error}") from error
    if not isinstance(claim, Guarantee):
        raise ValueError(f"guarantee must return a Guarantee, got {claim!r}")
    return claim


def entry_of(name: str) -> Any:
    """The entry of that name; a KeyError if there is none."""
    return next(table for _, table in TABLES.values() if name in table)[name]
