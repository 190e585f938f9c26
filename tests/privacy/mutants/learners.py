"""Mistakes of learners that are no algorithm's own."""

import numpy as np

from jaxdp.audit import UserData, full_information, learner_attack
from tests.audit.small_learners import pair_of_releases
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def reused_key() -> Case:
    """Adds noise to two numbers with the round's one key: their difference is exact."""
    users = UserData(np.asarray([[0.0, 1.0]])), UserData(np.asarray([[1.0, 0.0]]))
    wrong, right = (
        learner_attack(pair_of_releases(reuse_key=r), VALUES, users, answer=full_information) for r in (True, False)
    )
    return Case(wrong=wrong, right=(right,), trials=4_000)


CASES = {
    "a learner that uses its round's key twice": reused_key,
}
