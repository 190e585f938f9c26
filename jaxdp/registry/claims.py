"""The registered claims, each with all the ways to attack it."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.audit import Attack, GreyBox, Target, grey_box_of_paths, learner_attack
from jaxdp.audit._grey_box import paths_of
from jaxdp.audit.adversary import num_rounds
from jaxdp.audit.exact import Law
from jaxdp.audit.sampling import output_size
from jaxdp.audit.targets import failure_note
from jaxdp.registry.entries import Entry, EstimatorEntry, LearnerEntry, Mechanism, MechanismEntry
from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import ESTIMATORS, LEARNERS, MECHANISMS, claim_of, entry_of
from jaxdp.registry.searching import points, spaces
from jaxdp.validation import check_choice

FEW_ROUNDS = 12  # of a grey box, which takes a tenth of a second for each


def attacks(names: Iterable[str] | None = None) -> dict[str, Target]:
    """The registered claims, each with all the ways to attack it, at the entries' values and sizes.

    A mechanism is attacked through its release on its neighbours, by all ways in which it is computed; a learner
    through its transcript, or one user's report, by all engines that it has, and by a grey box; an estimator through
    its report and its estimate together, on two data sets that differ in one unit. Where the exact law of outputs is
    known, it is told as well.

    Args:
        names: of mechanisms, learners and estimators; None is all, those of installed plugins included.

    Returns:
        Targets by name, in the order asked for. What an entry's fields do not allow is left out, with a note.

    Raises:
        ValueError: if a name is not registered.
    """
    load_plugins()
    known = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    chosen = known if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        check_choice("name", name, known)
    return {name: target(entry_of(name), name) for name in chosen}


def attack(
    name: str,
    neighbours: tuple[Any, Any],
    *,
    path: str | None = None,
    values: Mapping[str, float] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> Attack:
    """The attack on a registered claim between inputs of your own.

    Args:
        name: of a mechanism, learner or estimator.
        neighbours: two inputs, which differ in one privacy unit.
        path: by which outputs are computed, as the audit's table names it; None is the first one.
        values: those to change.
        sizes: those to change.

    Returns:
        The attack, for `jaxdp.audit.audit`.

    Raises:
        ValueError: if name is not registered, it has no such path, or what is changed does not fit.

    Examples:
        >>> import numpy as np
        >>> made = attack("laplace", (np.zeros(2, np.float32), np.float32([0, 1])), values={"epsilon": 0.5})
        >>> made.claim.epsilon
        0.5
    """
    load_plugins()
    check_choice("name", name, (*MECHANISMS, *LEARNERS, *ESTIMATORS))
    entry = entry_of(name).sized(**(sizes or {}))
    entry = dataclasses.replace(entry, neighbours=neighbours, values={**entry.values, **(values or {})})
    ways = paths(entry)
    return ways[next(iter(ways)) if path is None else check_choice("path", path, tuple(ways))]()


def target(entry: Entry, name: str = "") -> Target:
    """All the ways to attack an entry's claim. The name is for code that attacks inputs which a search found."""
    attacks, notes = {}, []
    for path, make in paths(entry).items():
        try:
            attacks[path] = make()
        except Exception as error:  # other paths and other entries can be attacked all the same
            notes.append(failure_note(path, error))
    box, second = _box(entry) if isinstance(entry, LearnerEntry) else None, None
    try:
        at = entry.at_second()
        second = None if at is None else dataclasses.replace(target(at, name), point=str(entry.second))
    except Exception as error:
        notes.append(failure_note(str(entry.second), error))
    if isinstance(entry, LearnerEntry) and box is None:
        notes.append("grey box: the entry has no draw_user")
    return Target(
        claim=claim_of(entry),
        attacks=attacks,
        laws=_laws(entry),
        grey_box=box,
        notes=tuple(notes),
        spaces=spaces(entry, name, attacks),
        points=points(entry, name, attacks, paths),
        reached=entry.reached,
        second=second,
    )


def paths(entry: Any) -> dict[str, Callable[[], Attack]]:
    """Functions that make the attacks on an entry, by path.

    They raise a ValueError where the entry's fields do not fit.
    """
    if isinstance(entry, LearnerEntry):
        return {path: partial(_learner_attack, entry, path) for path in paths_of(entry.make())}
    if isinstance(entry, MechanismEntry):
        return {path: partial(_attack, entry, release) for path, release in entry.make_releases().items()}
    return {"fit": partial(_estimator_attack, entry)}


def _box(entry: LearnerEntry) -> Callable[[jax.Array], GreyBox] | None:
    """A grey box of all paths, in as many rounds as neighbours need to reach all that they are used for."""
    if entry.draw_user is None:
        return None

    def box(key: jax.Array) -> GreyBox:
        rounds = max(num_rounds(entry.make_neighbours()[0]), min(entry.horizon, FEW_ROUNDS))
        return grey_box_of_paths(
            key, entry.make(), entry.values, entry.make_user, rounds=rounds, answer=entry.users_answer
        )

    return box


def _laws(entry: Any) -> Callable[[], tuple[Law, Law]] | None:
    law = entry.make_law()
    if law is None:
        return None

    def laws() -> tuple[Law, Law]:
        params, (first, second) = entry.make().params(**entry.values), entry.make_neighbours()
        return law(params, first), law(params, second)

    return laws


def _attack(entry: MechanismEntry, release: Any) -> Attack:
    made = entry.make()
    params, neighbours = made.params(**entry.values), entry.make_neighbours()
    return Attack(
        release, params, neighbours, made.guarantee(**entry.values), _exact(made, release, params, neighbours)
    )


def _exact(made: Mechanism, release: Any, params: Any, neighbours: Any) -> Callable[[Any], Any] | None:
    """What a way to compute the output makes without noise, if that is what the entry tells."""
    exact, data = made.exact, jax.tree.map(jnp.asarray, neighbours[0])
    if exact is None or output_size(lambda key, params, x: exact(x), None, data) != output_size(release, params, data):
        return None
    return exact


def _learner_attack(entry: LearnerEntry, path: str) -> Attack:
    return learner_attack(
        entry.make(),
        entry.values,
        entry.make_neighbours(),
        answer=entry.users_answer,
        path=path,
        draw_user=entry.make_user if entry.is_adaptive else None,
    )


def _estimator_attack(entry: EstimatorEntry) -> Attack:
    estimator = entry.make()

    def release(key, params, data):
        features, labels = data
        key_privatize, key_fit = jax.random.split(key)
        report = estimator.privatize(key_privatize, params, features, labels)
        estimate = estimator.fit(key_fit, params, features, report)
        return report, getattr(estimate, "theta", estimate)

    claim = estimator.guarantee(**entry.values)
    return Attack(release, estimator.params(**entry.values), entry.make_neighbours(), claim)
