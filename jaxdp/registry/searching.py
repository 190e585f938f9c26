"""Inputs that an audit searches, and other values and sizes that it attacks."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxdp.audit import Attack, AttackPoint, Domain, Space, replace_one_row
from jaxdp.audit.adversary import num_rounds
from jaxdp.audit.as_code import program
from jaxdp.audit.domains import ANYTHING, NO_NUMBERS
from jaxdp.audit.moving import moving_attack
from jaxdp.audit.transcripts import in_unit
from jaxdp.audit.units import map_units
from jaxdp.core import Guarantee
from jaxdp.registry.entries import Entry, LearnerEntry
from jaxdp.registry.plugins import imported_modules

ROUNDS = 16  # rounds of a run in a search, unless its horizon is shorter or the entry's neighbours need more
DRAWS = 256  # number of drawn users from which the range of users' values is taken


def spaces(entry: Any, name: str, attacks: Mapping[str, Attack]) -> dict[str, Callable[[], Space]]:
    """Returns the inputs to search for an entry, by path; empty if the entry does not determine them.

    Args:
        entry: an entry. Its `domain`, or else a learner's `draw_user`, determines the inputs. A learner with an
            adaptive `draw_user` has no inputs to search.
        name: the registered name, for code that repeats the attack on a pair that the search finds.
        attacks: attacks by path, between the entry's neighbours.
    """
    if isinstance(entry, LearnerEntry):
        if entry.is_adaptive or (entry.draw_user is None and entry.domain is None):
            return {}
        return {path: partial(_learner_space, entry, name, path) for path in attacks}
    if entry.domain is None:
        return {}
    return {path: partial(_space, entry, name, path, attack) for path, attack in attacks.items()}


def points(
    entry: Any, name: str, attacks: Mapping[str, Attack], paths: Callable[[Any], Mapping[str, Callable[[], Attack]]]
) -> tuple[AttackPoint, ...]:
    """Returns further values and sizes at which an entry is attacked: `grid`, one value at a time, and `other_sizes`.

    Args:
        entry: an entry.
        name: the registered name.
        attacks: attacks by path, at the entry's values. Attacks at other values use the program of the first path.
        paths: entry -> functions that make its attacks.
    """
    if not attacks:
        return ()
    path, attack = next(iter(attacks.items()))
    more_points = []
    for value, numbers in entry.grid.items():
        for number in numbers:
            at = dataclasses.replace(entry, values={**entry.values, value: number}, distribution=None)
            make = partial(_at_values, at, attack)
            more_points.append(AttackPoint(f"{value}={number:g}", make, partial(_first_space, at, name, path, make)))
    for sizes in entry.other_sizes:
        at = dataclasses.replace(entry.sized(**sizes), distribution=None)
        make = paths(at)[path]
        what = ", ".join(f"{size}={number}" for size, number in sizes.items())
        more_points.append(AttackPoint(what, make, partial(_first_space, at, name, path, make)))
    return tuple(more_points)


def _at_values(entry: Any, attack: Attack) -> Attack:
    """Returns `attack` with its program unchanged, and with params, neighbours and claim at the entry's values."""
    mechanism = entry.make()
    return attack._replace(
        params=mechanism.params(**entry.values),
        neighbours=entry.make_neighbours(),
        guarantee=mechanism.guarantee(**entry.values),
    )


def _first_space(entry: Any, name: str, path: str, make: Callable[[], Attack]) -> Space | None:
    if isinstance(entry, LearnerEntry):
        inputs = spaces(entry, name, {path: None})  # pyright: ignore[reportArgumentType]
    else:
        inputs = {} if entry.domain is None else {path: partial(_space, entry, name, path, make())}
    return inputs[path]() if inputs else None


def domain_of_users(entry: LearnerEntry, claim: Guarantee, rounds: int) -> Domain:
    """Returns the domain of runs with `rounds` users who are drawn like an entry's users.

    For floating-point numbers in the privacy unit, the domain also has special values: numbers between the smallest and
    the largest drawn number; if the entry draws NaN, also other numbers, infinities and NaN.
    """
    keys = jax.random.split(jax.random.key(0), DRAWS)
    drawn = jax.vmap(entry.make_user)(keys)
    specials = [
        _special_numbers(np.asarray(leaf)) if in_unit(claim, path) else ()
        for path, leaf in jax.tree_util.tree_leaves_with_path(drawn)
    ]
    return replace_one_row(
        entry.make_user,
        count=rounds,
        specials=specials,
        unit=partial(map_units, claim, lambda first, second: second),
    )


def _learner_space(entry: LearnerEntry, name: str, path: str) -> Space:
    learner, neighbours = entry.make(), entry.make_neighbours()
    claim = learner.guarantee(**entry.values)
    rounds = max(num_rounds(neighbours[0]), min(entry.horizon, ROUNDS))
    domain = entry.make_domain() or domain_of_users(entry, claim, rounds)
    attack = moving_attack(learner, entry.values, neighbours, answer=entry.users_answer, path=path)
    return Space(attack, domain, with_place=True, code=partial(_code, entry, name, path))


def _space(entry: Entry, name: str, path: str, attack: Attack) -> Space:
    domain = entry.make_domain()
    assert domain is not None
    return Space(attack, domain, with_place=False, code=partial(_code, entry, name, path))


def _code(entry: Entry, name: str, path: str, first: Any, second: Any) -> str:
    arguments = [repr(name), "(first, second)", f"path={path!r}"]
    arguments += [f"values={_plain(entry.values)!r}"] if entry.values else []
    arguments += [f"sizes={_plain(entry.sizes)!r}"] if entry.sizes else []
    modules = imported_modules()
    setup = [f"registry.import_modules({modules!r})"] if modules else []
    return program((first, second), f"registry.attack({', '.join(arguments)})", setup)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts NumPy's numbers to Python's numbers, so that their text is code."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def _special_numbers(drawn: np.ndarray) -> tuple[float, ...]:
    """Returns special numbers in the range of the drawn numbers, such as its ends and its centre; none for integers.

    If a drawn number is NaN, there are also special numbers outside the range, infinities and NaN.
    """
    if not np.issubdtype(drawn.dtype, np.floating):
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    ends = [
        low,
        high,
        (low + high) / 2,
        *(float(np.nextafter(np.float32(x), np.float32(0))) for x in (1, -1, low, high)),
    ]
    if np.isnan(drawn).any():
        return (*(x for x in ends if not np.isnan(x)), *ANYTHING, *NO_NUMBERS)
    return tuple(x for x in (*ends, *ANYTHING) if low <= x <= high)
