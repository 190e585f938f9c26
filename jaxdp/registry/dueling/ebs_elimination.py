"""Registry entries of `ebs_elimination`."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.registry.draws import change_answers
from jaxdp.registry.dueling._duels import SAHA_ASI, duel_entry, ranked_arms
from jaxdp.registry.second import Second

ORDER = 420  # position of the entries in lists


def _the_first_duel_moves(num_arms: int, rounds: int) -> tuple[UserData, UserData]:
    """Returns users of two runs that differ in the first round: the left arm loses (first run) or wins (second run).

    Until an arm is dropped, arms take turns as the left arm, in a random order. After round one, the arm with the
    second turn loses its duels on the left, and all other arms win. So the arm with the second turn is dropped most
    often. If the right arm of the first duel is dropped and the left arm is not, the algorithm takes back the wins over
    the right arm, and so uses the first user's answer again.
    """
    lost = np.ones((rounds, num_arms, num_arms), np.int32)
    lost[1::num_arms] = lost[0] = 0
    return change_answers(lost, 0, 1)


def _with_both_uses(view: dict[str, Any]) -> dict[str, Any]:
    """Adds to a view the two numbers that use the first user's answer.

    Their position in the estimates depends on the random order of the arms. The first number is the estimate of the
    first duel's left arm, after the first step (a round or a block). The second number is the later change of this
    estimate if the first duel's right arm is dropped and the left arm is not, so that the answer is taken back;
    otherwise 0.
    """
    (left, right), public = view["action"][0], view["public"]
    rounds = jnp.arange(len(public.active))
    last = jnp.max(jnp.where(view["length"] > 0, rounds, 0)) if "length" in view else rounds[-1]
    estimates = jnp.sum(public.estimates[..., left], axis=1)
    is_taken_back = public.active[last, left] & ~public.active[last, right]
    change = jnp.where(is_taken_back, estimates[last] - estimates[0], 0)
    return {**view, "uses": jnp.stack([estimates[0], change])}


def _an_early_drop(num_arms: int) -> tuple[UserData, UserData]:
    return _the_first_duel_moves(num_arms, num_arms)


def _the_first_block_ends(num_arms: int, arity: int = 2) -> tuple[UserData, UserData]:
    """Returns users of the rounds until the first arm has been the left arm `arity` times."""
    return _the_first_duel_moves(num_arms, (arity - 1) * num_arms + 1)


def _later_drops(num_arms: int) -> tuple[UserData, UserData]:
    return _the_first_duel_moves(num_arms, 16)


# Counters have only leaves, and intervals are so narrow that the second duel may drop an arm: an outcome may then be in
# two leaves.
EBS_ELIMINATION = duel_entry(
    summary="drops arms after each duel, by private counters of wins",
    source=SAHA_ASI,
    reached=0.7,  # an outcome counts twice in one run of seven: the opponent is drawn, drops are noisy
    factory=dueling.ebs_elimination,
    sizes={"num_arms": 3, "horizon": 24},
    values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.01},
    environment=ranked_arms,
    neighbours=_an_early_drop,
    observe=_with_both_uses,
    second=Second(neighbours=_later_drops),
)
ENTRIES = {
    "ebs_elimination": EBS_ELIMINATION,
    # Blocks above the leaves have four entries. The first block ends with the first arm's fourth duel, in round ten.
    "ebs_elimination_gaussian": replace(
        EBS_ELIMINATION,
        summary="drops arms after each duel, by private counters of wins with Gaussian noise",
        reached=0.4,  # an outcome counts twice only in longer runs
        variant={"noise": "gaussian"},
        sizes={"num_arms": 3, "horizon": 12, "arity": 4},
        values={"epsilon": 1.0, "delta": 1e-3, "failure_prob": 0.1},
        neighbours=_the_first_block_ends,
        second=Second({"horizon": 16}, neighbours=_later_drops),
        horizon=12,
    ),
}
USES = {  # shown on pages of the site
    "ebs_elimination": {
        "use": "Use it for duels with a curator, Borda scores, and decisions after every duel, as in the source paper.",
        "not": "`ebs_phased` has fewer releases and is simpler.",
    },
}
