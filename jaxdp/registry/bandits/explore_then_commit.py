"""Registry entries of `explore_then_commit`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.audit.enumeration import Values, transcript_distribution
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import State
from jaxdp.numerics.fixed_point import UNITS
from jaxdp.registry.bandits._rewards import (
    HIGH,
    LOW,
    bandit_entry,
    bernoulli,
    draw_any,
    draw_binary,
    gaussian,
    one_reward_moves,
)
from jaxdp.registry.distributions import budget_of, clip_number, largest_with_laplace
from jaxdp.registry.second import Second

ORDER = 140  # position of the entries in lists


def _binary_neighbours(num_arms: int, explore_rounds: int) -> tuple[UserData, UserData]:
    return one_reward_moves(0, 1, num_arms, explore_rounds, np.int32)


def _bounded_neighbours(num_arms: int, explore_rounds: int) -> tuple[UserData, UserData]:
    return one_reward_moves(LOW, HIGH, num_arms, explore_rounds, float)


def _binary_beyond(num_arms: int, explore_rounds: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `2 * explore_rounds` rounds, half of them after exploration.

    The first arm pays 0 (but 1 in round one of the second run), other arms pay 1.
    """
    return one_reward_moves(0, 1, num_arms, 2 * explore_rounds, np.int32)


def _bounded_beyond(num_arms: int, explore_rounds: int) -> tuple[UserData, UserData]:
    return one_reward_moves(LOW, HIGH, num_arms, 2 * explore_rounds, float)


SOURCE = "standard; noise by Dwork & Roth (2014), Theorem 3.6"


def explore_then_commit_distribution(
    params: Any, data: UserData, *, num_arms: int, explore_rounds: int, rewards: str = "binary"
) -> OutputDistribution:
    """Returns the distribution of the adversary's view.

    Arms are explored in turn. The learner then commits to the arm with the largest total of rewards after Laplace noise
    of scale (high - low) / epsilon. Rewards are clipped to [low, high], which is [0, 1] for binary rewards; bounded
    rewards are also rounded to multiples of (high - low) / 2^20.
    """
    learner = bandits.explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds, rewards=rewards)
    is_binary = rewards == "binary"
    low, high = (0.0, 1.0) if is_binary else (float(params.low), float(params.high))

    def commits(params: Any, state: State, report: Any) -> Values | None:
        if state.public.round + 1 != explore_rounds:
            return None
        arm, reward = report
        fraction = (clip_number(float(reward), low, high) - low) / (high - low)
        is_played, sums = np.arange(num_arms) == arm, state.private.totals
        if is_binary:
            totals = sums + is_played * fraction
            ranges = totals
        else:
            units = np.asarray(sums.whole, np.int64) * UNITS + sums.part + is_played * round(fraction * UNITS)
            parts = {"whole": units // UNITS, "part": units % UNITS}
            totals = sums._replace(**{name: part.astype(sums.whole.dtype) for name, part in parts.items()})
            ranges = units / UNITS
        chances = largest_with_laplace(ranges * budget_of(params))
        private = state.private._replace(totals=totals)
        committed = [state.public._replace(round=state.public.round + 1, best_arm=best) for best in range(num_arms)]
        return [(State(private, public), chance) for public, chance in zip(committed, chances, strict=True)]

    claim = learner.guarantee(epsilon=budget_of(params))
    return transcript_distribution(learner, params, data, guarantee=claim, update_distribution=commits)


EXPLORE_THEN_COMMIT = bandit_entry(
    summary="plays binary arms in turn, then the arm with the largest total after Laplace noise",
    source=SOURCE,
    factory=bandits.explore_then_commit,
    draws_in_update=True,
    sizes={"num_arms": 3, "explore_rounds": 12},
    values={"epsilon": 1.0},
    environment=bernoulli,
    horizon=70,
    neighbours=_binary_neighbours,
    draw_user=draw_binary,
    distribution=explore_then_commit_distribution,
    second=Second({"explore_rounds": 6}, neighbours=_binary_beyond),
)
ENTRIES = {
    "explore_then_commit": EXPLORE_THEN_COMMIT,
    "explore_then_commit_bounded": replace(
        EXPLORE_THEN_COMMIT,
        summary="plays arms in turn, then the arm with the largest total of clipped rewards after Laplace noise",
        variant={"rewards": "bounded"},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        neighbours=_bounded_neighbours,
        draw_user=draw_any,
        second=Second({"explore_rounds": 6}, neighbours=_bounded_beyond),
    ),
}
USES = {  # shown on pages of the site
    "explore_then_commit": {
        "use": (
            "Use it as the simplest private bandit with a curator, and for horizons of 10^9 rounds: by counts, time "
            "does not depend on the horizon."
        ),
        "not": (
            "It needs a length of exploration that fits the unknown gap. `ucb_central` and "
            "`successive_elimination_central` find it from the data."
        ),
    },
}
