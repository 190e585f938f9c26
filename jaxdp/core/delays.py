"""Environments with delayed feedback, which arrives a public number of rounds later, or in batches."""

from typing import Any

import numpy as np

from jaxdp.core.environment import Delays, Environment
from jaxdp.core.made_by import factory
from jaxdp.validation import check_count

LONGEST = 2**20  # maximum delay in rounds, because each lane stores the reports that have not arrived yet


@factory
def delayed(world: Environment, delays: Any) -> Environment:
    """Returns an environment in which the learner receives each round's feedback some rounds later.

    Delays are public, and must not depend on the feedback, because they would reveal it before any noise is added. For
    example, a report that is sent as soon as a user converts shows that the reward is 1. Wait for a fixed window
    instead: `delayed(world, w)`, where a reward is 1 if the conversion comes within w rounds.

    A learner may assume that its next report is about its last action. So the environment repeats the learner's action
    until a report about this action has arrived, and passes this report to the learner. Reports about other actions are
    stored until the learner chooses these actions. Each report is used at most once, so the learner's claim for a round
    still holds. If feedback is the same for all actions (as losses of experts are), every report is used when it
    arrives.

    Args:
        world: an environment for bandits with arms, duels or experts, without contexts other than visits. A learner
            made by `per_person` counts a visit when the person comes, not when the report arrives.
        delays: number of rounds, an integer in [0, 2^20], or a vector of such integers, [horizon]. A round's report may
            arrive before the report of an earlier round. The learner never receives feedback that arrives after the
            last round.

    Returns:
        An environment for learners with claims in the local or central model. It is played round by round. If `delays`
        is a vector, the number of rounds is at most its length. With delay 0, results equal the results of `world`, bit
        for bit.

    Raises:
        ValueError: if world is not an environment with an interface, or its feedback is already delayed; if delays is a
            function, or is neither an integer in [0, 2^20] nor a vector of such integers.

    Source:
        Joulani, Gyorgy & Szepesvari (2013), QPM-D. For experts, every report is used, in the order of arrival.

    Deviations:
        While a learner waits, the environment repeats the learner's last action, even if the learner draws actions at
        random. In the local model a device makes its report when it plays, not when the learner receives the report.

    Examples:
        >>> import jaxdp
        >>> world = jaxdp.delayed(jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), 10)
        >>> run = jaxdp.simulator(jaxdp.bandits.ucb(num_arms=2), world, horizon=100)
    """
    if callable(delays):
        raise ValueError(
            "delays must be public numbers, got a function: a delay that depends on the feedback reveals the feedback; "
            "wait for a fixed window, delayed(world, window), and count feedback that has not come by then as 0"
        )
    table = np.array(delays)  # a copy: the caller's array may change before a run reads it
    if table.dtype.kind not in "iu" or table.ndim > 1 or not table.size:
        raise ValueError(f"delays must be an integer, or a vector of them, got {table.dtype} of shape {table.shape}")
    if table.min() < 0 or table.max() > LONGEST:
        raise ValueError(f"delays must be in [0, 2^20], got {table.min()} to {table.max()}")
    if table.ndim == 0:
        return _late(world, Delays(lambda horizon: np.full(horizon, int(table)), f"a delay of {table} rounds"), None)
    text = f"{len(table)} delays of {table.min()} to {table.max()} rounds"
    return _late(world, Delays(lambda horizon: table[:horizon].astype(np.int64), text), len(table))


@factory
def batched(world: Environment, size: int) -> Environment:
    """Returns an environment that delivers the feedback of `size` rounds together, after the last of them.

    The learner never receives the feedback of an incomplete last batch.

    Args:
        world: as for `delayed`.
        size: number of rounds in a batch, in [1, 2^20]. With size 1, results equal the results of `world`, bit for bit.

    Returns:
        An environment like the result of `delayed`.

    Raises:
        ValueError: if `delayed` would reject the world, or if size is not an integer in [1, 2^20].
    """
    check_count("size", size, maximum=LONGEST)
    return _late(world, Delays(lambda horizon: size - 1 - np.arange(horizon) % size, f"batches of {size} rounds"), None)


def _late(world: Environment, delays: Delays, most_rounds: int | None) -> Environment:
    if not isinstance(world, Environment) or world.interface is None:
        raise ValueError(f"world must be an Environment with an interface, got {world!r}")
    if world.delays is not None:
        raise ValueError(f"world must have feedback without delays, got {world.delays!r}")
    limits = [limit for limit in (world.horizon, most_rounds) if limit is not None]
    return world._replace(
        block=None, feedback_totals=None, contexts=None, unheard=None, delays=delays, horizon=min(limits, default=None)
    )
