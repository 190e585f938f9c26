"""The registered claims, each with the attack on it."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack, learner_attack
from jaxdp.registry.estimators import ESTIMATORS
from jaxdp.registry.learners import LEARNERS
from jaxdp.registry.mechanisms import MECHANISMS
from jaxdp.validation import check_choice

# Two records, of which the longer one's label changes: the noise is for the longest, and nothing else hides it.
_ATTACKED_FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]])
_ATTACKED_LABELS = (np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32))


def attacks(names: Iterable[str] | None = None) -> dict[str, Attack]:
    """The registered claims, each with the attack on it, at the entries' values.

    A mechanism is attacked through its release on its neighbours; a learner through its transcript, or one user's
    report; an estimator through its report and its estimate together, on two records one of whose labels changes.

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

    def release(key, params, labels):
        features = jnp.asarray(_ATTACKED_FEATURES, jax.dtypes.canonicalize_dtype(float))
        key_privatize, key_fit = jax.random.split(key)
        report = estimator.privatize(key_privatize, params, features, labels)
        return report, estimator.fit(key_fit, params, features, report).theta

    return Attack(release, estimator.params(**entry.values), _ATTACKED_LABELS, estimator.guarantee(**entry.values))
