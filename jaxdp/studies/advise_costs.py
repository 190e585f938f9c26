"""Estimated times of the candidates of `advise`, and the engines and numbers of rounds that follow from them."""

import math
from collections.abc import Mapping, Sequence

from jaxdp.core import Estimator, Learner

Sizes = Mapping[str, int]  # number of arms or experts, and dimension, by the names in `Problem.sizes`

SECONDS_OF_COMPILING = 2.0  # time of tracing and compiling a program, while others are compiled
SECONDS_OF_A_CANDIDATE = 10.0  # limit on the time of a candidate's rounds on one core
FEWEST_ROUNDS = 5000
FEW_ROUNDS = 10**6  # counts and blocks save at most a second or two of these, but compile for seconds longer


def scaled_rounds(sizes: Sizes, lanes: int, horizon: int) -> float:
    """Returns the number of rounds, in all lanes together, with ten arms and dimension 5 that take about as long."""
    return lanes * horizon * max(1.0, sizes.get("num_arms", 0) / 10) * max(1.0, sizes.get("dim", 0) / 5)


def engine_of(algorithm: Learner | Estimator, rounds: float = math.inf) -> str:
    """Returns a learner's engine ("counts", "blocks", "heard rounds" or "rounds"), or "labels" for an estimator.

    `rounds` is the result of `scaled_rounds`. Rounds and blocks have equal results, and counts have results of the same
    distribution.
    """
    if isinstance(algorithm, Estimator):
        return "labels"
    if algorithm.reports and algorithm.best_action:
        return "heard rounds"
    if rounds <= FEW_ROUNDS:
        return "rounds"
    return "counts" if algorithm.counts else "blocks" if algorithm.blocks else "rounds"


def seconds_of_arms(learner: Learner, sizes: Sizes, *, rounds: float = 500e-9) -> float:
    """Returns the approximate time in seconds, on one core, per lane-round.

    With at most ten arms, the time is 0 by counts, 60 ns by blocks, and `rounds` by rounds or heard rounds. With more
    arms, it is proportional to their number.
    """
    return {"counts": 0.0, "blocks": 60e-9}.get(engine_of(learner), rounds) * max(1.0, sizes["num_arms"] / 10)


def seconds_of_duels(learner: Learner, sizes: Sizes) -> float:
    """Returns the approximate time in seconds, on one core, per lane-round.

    Every round of `rucb` and `double_thompson` computes bounds of all pairs of arms, also in blocks, and
    `double_thompson` draws from the posteriors of all pairs. `ebs_elimination` feeds counters with every block.
    """
    arms, made_by = max(1.0, sizes["num_arms"] / 10), str(learner.made_by)  # a learner for a person names its learner
    if "double_thompson(" in made_by:
        return 3e-6 * arms**2
    if "ebs_elimination(" in made_by:
        return (1.5e-6 if "gaussian" in made_by else 400e-9) * arms
    return 600e-9 * arms if "rucb(" in made_by else seconds_of_arms(learner, sizes)


def seconds_of_contexts(learner: Learner, sizes: Sizes) -> float:
    """Returns the approximate time in seconds, on one core, per lane-round."""
    del learner
    return 400e-9 * max(0.5, sizes["num_arms"] * sizes["dim"] / 100)


def seconds_of_labels(estimator: Estimator, sizes: Sizes) -> float:
    """Returns the approximate time in seconds, on one core, per label of a lane."""
    del estimator
    return 200e-9 * max(1.0, sizes["dim"] / 5)


def affordable(seconds: Sequence[float], horizon: int, lanes: int, limit: float, fewest: int = FEWEST_ROUNDS) -> int:
    """Returns the number of rounds, up to `horizon`, that every candidate plays in `lanes` lanes within a time limit.

    `seconds` has each candidate's seconds per lane-round on one core, and `limit` is in seconds, too. A result
    strictly between `fewest` and `horizon` is 1, 2 or 5 times a power of ten. The result is at least the smaller of
    these two numbers, even if this exceeds the limit.
    """
    slowest = max(seconds) * lanes
    if slowest * horizon <= limit:
        return horizon
    most = max(limit / slowest, fewest)
    scale = 10 ** math.floor(math.log10(most))
    return min(horizon, max(fewest, scale * next(step for step in (5, 2, 1) if step * scale <= most)))
