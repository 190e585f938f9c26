"""Attacks on the claims of registered algorithms."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.audit import Attack, GreyBox, Target, grey_box_of_paths, learner_attack
from jaxdp.audit._grey_box import paths_of
from jaxdp.audit.adversary import num_rounds
from jaxdp.audit.exact import OutputDistribution
from jaxdp.audit.sampling import output_size
from jaxdp.audit.targets import failure_note
from jaxdp.registry.entries import Entry, EstimatorEntry, LearnerEntry, Mechanism, MechanismEntry
from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import ESTIMATORS, LEARNERS, MECHANISMS, claim_of, entry_of
from jaxdp.registry.searching import points, spaces
from jaxdp.validation import check_choice

# Rounds of a grey box (a tenth of a second each), unless the horizon is shorter or the entry's neighbours need more.
FEW_ROUNDS = 12


def attacks(names: Iterable[str] | None = None) -> dict[str, Target]:
    """Returns the registered claims with all attacks on them, at the entries' values and sizes.

    * The output of a mechanism is its release; every implementation is attacked.
    * The output of a learner is the adversary's view of its transcript, or one user's report; every way to play the
      learner (rounds, blocks, counts) is attacked. A grey-box audit also inspects the learner's recorded releases.
    * The output of an estimator is its report and its estimate (only `theta`, if the estimate has this field), on two
      data sets that differ in one privacy unit.

    If the exact output distributions are known, the target has these distributions. The target also has the entry's
    further points to attack, from `grid`, `other_sizes` and `second`.

    Args:
        names: names of mechanisms, learners and estimators; None means all names, including the names of installed
            plugins.

    Returns:
        Targets keyed by name, in the order of `names`. If an entry's fields do not allow an attack, a note says so.

    Raises:
        ValueError: if a name is not registered.
    """
    return {name: target(entry_of(name), name) for name in select_names(names)}


def select_names(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Returns the given names without duplicates, or all names for None; raises ValueError for an unknown name."""
    load_plugins()
    registered = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    selected = registered if names is None else tuple(dict.fromkeys(names))
    for name in selected:
        check_choice("name", name, registered)
    return selected


def attack(
    name: str,
    neighbours: tuple[Any, Any],
    *,
    path: str | None = None,
    values: Mapping[str, float] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> Attack:
    """Returns the attack on a registered claim between two inputs that you choose.

    Args:
        name: name of a mechanism, learner or estimator.
        neighbours: two inputs that differ in one privacy unit.
        path: how outputs are computed, as in the column PATH of an audit; None means the first path.
        values: the values to change.
        sizes: the sizes to change.

    Returns:
        The attack, for `jaxdp.audit.audit`.

    Raises:
        ValueError: if name is not registered, the entry lacks the path, the algorithm has no value or size of a given
            name, or a changed value or size does not fit.

    Examples:
        >>> import numpy as np
        >>> made = attack("laplace", (np.zeros(2, np.float32), np.float32([0, 1])), values={"epsilon": 0.5})
        >>> made.guarantee.epsilon
        0.5
    """
    load_plugins()
    entry = entry_of(name).sized(**(sizes or {}))
    entry = dataclasses.replace(entry, neighbours=neighbours, values={**entry.values, **(values or {})})
    claim_of(entry)  # raises an error that names values which do not fit
    ways = paths(entry)
    return ways[next(iter(ways)) if path is None else check_choice("path", path, tuple(ways))]()


def target(entry: Entry, name: str = "") -> Target:
    """Collects all attacks on an entry's claim; `name` goes into the code that repeats an attack found by a search."""
    attacks, notes = {}, []
    for path, make in paths(entry).items():
        try:
            attacks[path] = make()
        except Exception as error:  # other paths and other entries can still be attacked
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
        guarantee=claim_of(entry),
        attacks=attacks,
        distributions=_distributions(entry),
        grey_box=box,
        notes=tuple(notes),
        spaces=spaces(entry, name, attacks),
        points=points(entry, name, attacks, paths),
        reached=entry.reached,
        second=second,
    )


def paths(entry: Any) -> dict[str, Callable[[], Attack]]:
    """Returns functions that make an entry's attacks, by path; they raise an error if the attack is impossible."""
    if isinstance(entry, LearnerEntry):
        return {path: partial(_learner_attack, entry, path) for path in paths_of(entry.make())}
    if isinstance(entry, MechanismEntry):
        return {path: partial(_attack, entry, release) for path, release in entry.make_releases().items()}
    return {"fit": partial(_estimator_attack, entry)}


def _box(entry: LearnerEntry) -> Callable[[jax.Array], GreyBox] | None:
    """Returns a function that audits all paths by a grey box; None if the entry has no `draw_user`.

    The audit plays at least as many rounds as the entry's neighbours have.
    """
    if entry.draw_user is None:
        return None

    def box(key: jax.Array) -> GreyBox:
        rounds = max(num_rounds(entry.make_neighbours()[0]), min(entry.horizon, FEW_ROUNDS))
        return grey_box_of_paths(
            key, entry.make(), entry.values, entry.make_user, rounds=rounds, answer=entry.users_answer
        )

    return box


def _distributions(entry: Any) -> Callable[[], tuple[OutputDistribution, OutputDistribution]] | None:
    distribution = entry.make_distribution()
    if distribution is None:
        return None

    def distributions() -> tuple[OutputDistribution, OutputDistribution]:
        params, (first, second) = entry.make().params(**entry.values), entry.make_neighbours()
        return distribution(params, first), distribution(params, second)

    return distributions


def _attack(entry: MechanismEntry, release: Any) -> Attack:
    mechanism = entry.make()
    params, neighbours = mechanism.params(**entry.values), entry.make_neighbours()
    return Attack(
        release, params, neighbours, mechanism.guarantee(**entry.values), _exact(mechanism, release, params, neighbours)
    )


def _exact(mechanism: Mechanism, release: Any, params: Any, neighbours: Any) -> Callable[[Any], Any] | None:
    """Returns the mechanism's function `exact`, or None if its outputs have another size than the release's outputs."""
    exact, data = mechanism.exact, jax.tree.map(jnp.asarray, neighbours[0])
    if exact is None or output_size(lambda key, params, x: exact(x), None, data) != output_size(release, params, data):
        return None
    return exact


def _learner_attack(entry: LearnerEntry, path: str) -> Attack:
    return learner_attack(
        entry.make(),
        entry.values,
        entry.make_neighbours(),
        answer=entry.users_answer,
        observe=entry.observe,
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
