"""Dueling bandits that a curator plays by wins of pairs, released in doubling blocks."""

import numpy as np

from jaxdp import dueling
from jaxdp.audit import Users, by_pair
from jaxdp.registry.dueling import draw_duels, one_good_arm
from jaxdp.registry.entries import LearnerEntry


def _a_user_changes(num_arms: int, rounds: int, user: int) -> tuple[Users, Users]:
    """The lower arm of a pair wins always, or all but once: users of all rounds, who differ in one."""
    always = np.tile(np.triu(np.ones((num_arms, num_arms), np.int32)), (rounds, 1, 1))
    once = always.copy()
    once[user] = 1 - once[user]
    return Users(always), Users(once)


def _a_later_duel(num_arms: int) -> tuple[Users, Users]:
    """The third user: of two arms the first in the block of rounds three and four. The next block ends in round 8.

    What is known after round 4 is used again then, if it is not counted from zero.
    """
    return _a_user_changes(num_arms, 8, 2)


def _the_first_duel(num_arms: int) -> tuple[Users, Users]:
    """The first user, whose duel is a block of its own, unless an arm was to duel with itself; then comes the next."""
    return _a_user_changes(num_arms, 6, 0)


DUELING_BLOCKS = {
    "rucb_blocks": LearnerEntry(
        family="dueling",
        summary="duels the likely champion with its strongest rival, by Laplace-noised wins in doubling blocks",
        source="Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1, by doubling blocks of Azize & Basu (2022)",
        proof="proved",
        factory=dueling.rucb,
        variant={"release": "blocks"},
        sizes={"num_arms": 2},
        values={"epsilon": 1.0},
        environment=one_good_arm,
        horizon=12,
        neighbours=_a_later_duel,
        draw_user=draw_duels,
        users_answer=by_pair,
    ),
    "double_thompson_blocks": LearnerEntry(
        family="dueling",
        summary="draws both arms of a duel from posteriors of Laplace-noised wins in doubling blocks",
        source="Wu & Liu (2016), Algorithm 1 (D-TS), by doubling blocks of Azize & Basu (2022)",
        proof="proved",
        factory=dueling.double_thompson,
        variant={"release": "blocks"},
        sizes={"num_arms": 2},
        values={"epsilon": 0.5},
        environment=one_good_arm,
        horizon=8,
        neighbours=_the_first_duel,
        draw_user=draw_duels,
        users_answer=by_pair,
    ),
}
