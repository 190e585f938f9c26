"""The entry of `ebs_shuffle`."""

import numpy as np

from jaxdp import dueling, mechanisms
from jaxdp.audit import UserData
from jaxdp.registry.draws import change_answers
from jaxdp.registry.dueling._duels import duel_entry, ranked_arms
from jaxdp.registry.second import Second

ORDER = 480  # position of the entries in lists

# The first batch has twelve users per arm at a local budget of 1.24; the second batch does not end within the horizon.
VALUES = {"epsilon": 1.0, "delta": 1e-2, "failure_prob": 0.1, "confidence_multiplier": 0.07}
SECOND = {"epsilon": 0.6, "delta": 3e-2}  # at the second point


def one_batch(num_arms: int, **values: float) -> tuple[UserData, UserData]:
    """Returns users of the first phase for two runs: the first arm loses, or wins, the duel of the first user.

    The number of wins among the other users of the first arm's batch is chosen so that the count of reported wins
    reveals most about the first user's answer (no wins if the local budget is at most epsilon). All other arms win on
    the left, so that only the first arm may be dropped.
    """
    values = values or VALUES
    params = dueling.ebs_shuffle(num_arms=num_arms).params(**values)
    batch = int(params.passes[0, num_arms]) * num_arms
    local_epsilon, lost = float(params.local_epsilon[0, num_arms]), batch
    if local_epsilon > values["epsilon"]:
        lost = batch - mechanisms.shuffle_worst_ones(values["epsilon"], local_epsilon, batch)  # with the first user
    return _of_batch(num_arms, batch, lost)


def _of_batch(num_arms: int, batch: int, lost: int) -> tuple[UserData, UserData]:
    """Returns users of one phase for two runs, which differ in the first user.

    In the first run, the first arm loses the duels of `lost` of its users, the first user included. In the second run,
    it wins the first user's duel.
    """
    answers = np.ones((batch * num_arms, num_arms, num_arms), np.int32)
    answers[: lost * num_arms : num_arms, 0] = 0  # arms take turns on the left
    return change_answers(answers, 0, 1)


def _the_first_arm_loses(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of one phase for two runs: the first arm loses all duels on the left, and the other arms win.

    In the second run, the first arm wins the first user's duel. A batch in which all other users have the same answer
    is an extreme case for any accounting. All reports in the batches of other arms are of wins, so reports of the first
    arm's users would be easy to see there.
    """
    params = dueling.ebs_shuffle(num_arms=num_arms).params(**{**VALUES, **SECOND})
    batch = int(params.passes[0, num_arms]) * num_arms
    return _of_batch(num_arms, batch, batch)


ENTRIES = {
    "ebs_shuffle": duel_entry(
        summary="duels in phases, and after each drops arms with few ones in a shuffled batch of reports",
        source="Saha & Asi (2024), Algorithm 1, by shuffled randomized responses as in Cheu et al. (2019)",
        factory=dueling.ebs_shuffle,
        sizes={"num_arms": 2},
        values=VALUES,
        environment=ranked_arms,
        horizon=70,
        neighbours=one_batch,
        randomizes=True,
        second=Second(values=SECOND, neighbours=_the_first_arm_loses),
    ),
}
USES = {  # shown on pages of the site
    "ebs_shuffle": {
        "use": "Use it for Borda scores when a shuffler separates reports from persons, and δ > 0 is acceptable.",
        "not": "Batches must be full before anything is released; with few users, or pure privacy, use `ebs_local`.",
    },
}
