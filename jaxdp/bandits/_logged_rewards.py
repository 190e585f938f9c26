"""Logged rounds without contexts, for evaluation by replay."""

from numpy.typing import ArrayLike

from jaxdp.bandits._propensities import check_actions, coin_probabilities
from jaxdp.bandits._replay import logged_environment
from jaxdp.core import Environment, Space, factory
from jaxdp.sequences import kept_numbers
from jaxdp.validation import check_count, check_flag, refuse_private


@factory
def logged_rewards(
    actions: ArrayLike,
    rewards: ArrayLike,
    *,
    num_arms: int,
    propensities: ArrayLike | None = None,
    min_propensity: float | None = None,
    binary: bool = False,
) -> Environment:
    """Logged arms and rewards, for evaluation by replay: a round counts if the learner chooses the logged arm.

    Use it with learners from `on_logged`. If propensities are given, a round counts only if rejection sampling also
    accepts it. The acceptance probability and the estimates are as for `jaxdp.bandits.contextual.logged_contexts`,
    without contexts. With propensities, replay is unbiased even if the logging policy saw contexts that the log does
    not contain.

    Args:
        actions: [horizon] integers in [0, num_arms), the arms that were played.
        rewards: [horizon] finite, the rewards of these arms; learners clip them to their own bounds.
        num_arms: number of arms, >= 2.
        propensities: [horizon, num_arms] or [horizon], as for `logged_contexts`; None for uniform arms.
        min_propensity: as for `logged_contexts`.
        binary: whether rewards are 0 or 1 and are passed to the learner as integers.

    Returns:
        An environment for at most `horizon` rounds. Actions are in [0, num_arms), and feedback is `LoggedFeedback`.
        Outcomes are as for `logged_contexts`.

    Raises:
        ValueError: if an argument is not as described above, or needs more memory than the device has free.

    Source:
        Li, Chu, Langford & Schapire (2010), section 4; see `logged_contexts`.

    Deviations:
        The stream ends with the log, so the number of rounds that count is random; see `logged_contexts`.

    Examples:
        >>> import jax, jaxdp
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> actions = (rng.random(2000) < 0.2).astype(int)  # arm 1 was played in a fifth of the rounds
        >>> clicks = (rng.random(2000) < np.where(actions == 1, 0.8, 0.3)).astype(int)
        >>> log = logged_rewards(actions, clicks, num_arms=2, propensities=[[0.8, 0.2]] * 2000, binary=True)
        >>> learner = jaxdp.bandits.on_logged(jaxdp.bandits.thompson(num_arms=2))
        >>> run = jaxdp.simulator(learner, log, horizon=2000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=4.0))
        >>> float(outputs["reward"][-1]) / int(outputs["matched"][-1]) > 0.6
        True
    """
    check_count("num_arms", num_arms, 2)
    stored_rewards = kept_numbers("rewards", rewards, ("horizon",))
    if check_flag("binary", binary):
        refuse_private("rewards", "0 or 1 if binary", (stored_rewards != 0) & (stored_rewards != 1))
    logged_arms = check_actions(actions, len(stored_rewards), num_arms, like="rewards")
    coins = coin_probabilities(propensities, min_propensity, logged_arms, num_arms)
    space = Space("integers", (), 0, 1) if binary else Space("numbers")
    return logged_environment(None, logged_arms, stored_rewards, coins, num_arms=num_arms, reward_space=space)
