"""The entry of `ebs_shuffle`."""

import numpy as np

from jaxdp import dueling, mechanisms
from jaxdp.audit import UserData
from jaxdp.registry.dueling._duels import duel_entry, ranked_arms
from jaxdp.registry.second import Second

ORDER = 480  # in lists

# A first batch of twelve users per arm at a budget of 1.24, and a second one that the horizon does not end.
VALUES = {"epsilon": 1.0, "delta": 1e-2, "failure_prob": 0.1, "confidence_multiplier": 0.07}


LARGER = {"epsilon": 1.2}  # at a second point


def one_batch(num_arms: int, **values: float) -> tuple[UserData, UserData]:
    """Returns users for the duels of the first phase. The first arm loses the first user's duel, or wins it.

    Of the other users of that arm's batch as many report a win as reveal most of the first user's answer. The other
    arms always win on the left, so that the first arm is dropped for it, if any.

    Args:
        num_arms: number of arms.
        **values: of the learner; by default the entry's.
    """
    values = values or VALUES
    params = dueling.ebs_shuffle(num_arms=num_arms).params(**values)
    batch = int(params.passes[0, num_arms]) * num_arms
    local_epsilon, lost = float(params.local_epsilon[0, num_arms]), batch
    if local_epsilon > values["epsilon"]:
        lost = batch - mechanisms.shuffle_worst_ones(values["epsilon"], local_epsilon, batch)  # with the first user
    return _of_batch(num_arms, batch, lost)


def _of_batch(num_arms: int, batch: int, lost: int) -> tuple[UserData, UserData]:
    """Returns users for the first arm's batch, in which `lost` users, including the first, report that it lost."""
    answers = np.ones((batch * num_arms, num_arms, num_arms), np.int32)
    answers[: lost * num_arms : num_arms, 0] = 0  # arms take turns on the left
    won = answers.copy()
    won[0] = 1
    return UserData(answers), UserData(won)


def _all_others_say_won(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of one batch in which all others report that the arm won, which is extreme for any accounting."""
    params = dueling.ebs_shuffle(num_arms=num_arms).params(**{**VALUES, **LARGER})
    return _of_batch(num_arms, int(params.passes[0, num_arms]) * num_arms, 1)


ENTRIES = {
    "ebs_shuffle": duel_entry(
        summary="duels in phases, after which arms with few ones in a shuffled batch of reports are dropped",
        source="Saha & Asi (2024), Algorithm 1, by shuffled randomized responses as in Cheu et al. (2019)",
        factory=dueling.ebs_shuffle,
        sizes={"num_arms": 2},
        values=VALUES,
        environment=ranked_arms,
        horizon=70,
        neighbours=one_batch,
        randomizes=True,
        second=Second(values=LARGER, neighbours=_all_others_say_won),
    ),
}
