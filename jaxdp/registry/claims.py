"""The registered claims, each with the attack on it."""

from collections.abc import Iterable

import jax

from jaxdp.audit import Attack, learner_attack
from jaxdp.registry.estimators import ESTIMATORS
from jaxdp.registry.learners import LEARNERS
from jaxdp.registry.mechanisms import MECHANISMS
from jaxdp.validation import check_choice


def attacks(names: Iterable[str] | None = None) -> dict[str, Attack]:
    """The registered claims, each with the attack on it, at the entries' values.

    A mechanism is attacked through its release on its neighbours; a learner through its transcript, or one user's
    report; an estimator through its report and its estimate together, on two data sets that differ in one unit.

    Args:
        names: of mechanisms, learners and estimators; None is all.

    Returns:
        Attacks by name, in the order asked for.

    Raises:
        ValueError: if a name is not registered.
    """
    known = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    chosen = known if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        check_choice("name", name, known)
    return {name: _attack(name) for name in chosen}


def _attack(name: str) -> Attack:
    if name in MECHANISMS:
        entry = MECHANISMS[name]
        return Attack(entry.release, entry.params(**entry.values), entry.neighbours, entry.guarantee(**entry.values))
    if name in LEARNERS:
        entry = LEARNERS[name]
        return learner_attack(entry.make(), entry.values, entry.neighbours, answer=entry.answer)
    entry = ESTIMATORS[name]
    estimator = entry.make()

    def release(key, params, data):
        features, labels = data
        key_privatize, key_fit = jax.random.split(key)
        report = estimator.privatize(key_privatize, params, features, labels)
        return report, estimator.fit(key_fit, params, features, report).theta

    return Attack(release, estimator.params(**entry.values), entry.neighbours, estimator.guarantee(**entry.values))
