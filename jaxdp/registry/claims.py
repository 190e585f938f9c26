"""The registered claims, each with the attack on it."""

from collections.abc import Iterable

import jax

from jaxdp.audit import Attack, learner_attack
from jaxdp.registry.entries import EstimatorEntry
from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.validation import check_choice


def attacks(names: Iterable[str] | None = None) -> dict[str, Attack]:
    """The registered claims, each with the attack on it, at the entries' values and sizes.

    A mechanism is attacked through its release on its neighbours; a learner through its transcript, or one user's
    report; an estimator through its report and its estimate together, on two data sets that differ in one unit.

    Args:
        names: of mechanisms, learners and estimators; None is all, those of installed plugins included.

    Returns:
        Attacks by name, in the order asked for.

    Raises:
        ValueError: if a name is not registered.
    """
    load_plugins()
    known = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    chosen = known if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        check_choice("name", name, known)
    return {name: _attack(name) for name in chosen}


def _attack(name: str) -> Attack:
    if name in MECHANISMS:
        entry = MECHANISMS[name]
        made = entry.make()
        return Attack(
            made.release, made.params(**entry.values), entry.make_neighbours(), made.guarantee(**entry.values)
        )
    if name in LEARNERS:
        entry = LEARNERS[name]
        return learner_attack(entry.make(), entry.values, entry.make_neighbours(), answer=entry.users_answer)
    return _estimator_attack(ESTIMATORS[name])


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
