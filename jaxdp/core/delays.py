"""Environments with late feedback: after a public number of rounds, or in batches."""

from typing import Any

import numpy as np

from jaxdp.core.environment import Delays, Environment
from jaxdp.core.made_by import factory
from jaxdp.validation import check_count

LONGEST = 2**20  # rounds: reports on their way are stored in each lane


@factory
def delayed(world: Environment, delays: Any) -> Environment:
    """Returns an environment in which the learner hears each round's feedback some rounds later.

    Delays are public. If the delay depends on the feedback, as with conversions, which come late because they are 1,
    then arrival times reveal the feedback before any noise. Wait for a fixed window instead: `delayed(world, w)`, where
    a reward is 1 if the conversion comes within w rounds.

    A learner may assume that its next report is about its own last action, so each report waits until the learner asks
    for its action: the learner's action is repeated until a report about this action has arrived, which then is the
    learner's next report. Reports about other actions are kept until the learner chooses these actions. Each report is
    used at most once, so the claim for a round is the learner's. If feedback is the same for all actions, as losses of
    experts are, every report is used when it arrives.

    Args:
        world: for bandits with arms, duels or experts, without contexts other than visits. A learner by `per_person`
            counts a visit when the person comes, not when the report arrives.
        delays: a whole number in [0, 2^20], or [horizon] such integers, in which reports may overtake others. Feedback
            that arrives after the last round is never heard.

    Returns:
        An environment for learners with claims in the local or central model. It is played round by round, at most as
        many rounds as there are delays. With delay 0 results do not change by a bit.

    Raises:
        ValueError: if world is not an environment with an interface, or its feedback is late already; if delays are
            functions, or not such numbers.

    Source:
        Joulani, Gyorgy & Szepesvari (2013), QPM-D; for experts, every report in the order of arrival.

    Deviations:
        While a learner waits, it repeats the action itself, also if it draws actions at random. In the local model a
        device makes its report when it plays, not when the learner asks for it.

    Examples:
        >>> import jaxdp
        >>> world = jaxdp.delayed(jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), 10)
        >>> run = jaxdp.simulator(jaxdp.bandits.ucb(num_arms=2), world, horizon=100)
    """
    if callable(delays):
        raise ValueError(
            "delays must be public numbers, got a function: a delay that depends on the feedback reveals it; wait for "
            "a fixed window, delayed(world, window), and count what has not come by then as 0"
        )
    table = np.asarray(delays)
    if table.dtype.kind not in "iu" or table.ndim > 1 or not table.size:
        raise ValueError(
            f"delays must be a whole number, or a vector of them, got {table.dtype} of shape {table.shape}"
        )
    if table.min() < 0 or table.max() > LONGEST:
        raise ValueError(f"delays must be in [0, 2^20], got {table.min()} to {table.max()}")
    if table.ndim == 0:
        return _late(world, Delays(lambda horizon: np.full(horizon, int(table)), f"a delay of {table} rounds"), None)
    text = f"{len(table)} delays of {table.min()} to {table.max()} rounds"
    return _late(world, Delays(lambda horizon: table[:horizon].astype(np.int64), text), len(table))


@factory
def batched(world: Environment, size: int) -> Environment:
    """Returns an environment in which the learner hears feedback after every `size` rounds, all of a batch at once.

    An incomplete last batch is not heard. In all else it is as `delayed`.

    Args:
        world: as for `delayed`.
        size: rounds in a batch, in [1, 2^20]; with 1 results do not change by a bit.

    Returns:
        An environment as `delayed` returns.

    Raises:
        ValueError: if world or size is not as described.
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
