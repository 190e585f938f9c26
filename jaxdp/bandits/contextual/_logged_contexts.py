"""Logged rounds with contexts, for evaluation by replay."""

from numpy.typing import ArrayLike

from jaxdp.bandits._propensities import check_actions, coin_probabilities
from jaxdp.bandits._replay import logged_environment
from jaxdp.bandits.contextual._context_sequence import stored_contexts
from jaxdp.core import Environment, Space, factory
from jaxdp.sequences import kept_numbers


@factory
def logged_contexts(
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    *,
    propensities: ArrayLike | None = None,
    min_propensity: float | None = None,
) -> Environment:
    """Logged data for evaluation by replay: a round counts if the learner chooses the logged arm and a coin accepts it.

    Use it with learners from `on_logged`. Suppose that rounds are independent, and that logged arms were drawn with the
    given propensities. Then the rounds that count have the same distribution as the same number of rounds that the
    learner plays itself, and `reward` divided by `matched` estimates the learner's reward per round.
    `jaxdp.stats.replay_interval` computes a confidence interval.

    The coin implements rejection sampling: it accepts a round with probability c / p, where p is the propensity of the
    logged arm, and c is the smallest propensity of any arm in any round. So each round counts with probability c. Coins
    are public, and each lane draws its own coins. If arms are uniform, the coin accepts every round.

    Without propensities, logged arms must have been drawn uniformly. Otherwise the estimate is biased, and can exceed
    the reward of any policy. The function warns (`RuntimeWarning`) if a test of the numbers of rounds by arm, or a test
    of arms against contexts, refutes uniform arms with a p-value below 1e-6. With propensities, the tests use only
    accepted rounds. A log that passes the tests may still not be uniform.

    Args:
        contexts: [horizon, num_arms, dim] finite, of norm at most 1 up to rounding. The array is stored as in
            `context_sequence`.
        actions: [horizon] integers in [0, num_arms), the arms that were played.
        rewards: [horizon] finite, the rewards of these arms.
        propensities: [horizon, num_arms] in (0, 1], the probabilities with which the logging policy chose each arm,
            given everything that this policy saw; a round's propensities sum to 1. Or [horizon], the propensities of
            the logged arms only. None for uniform arms.
        min_propensity: c, in (0, 1], at most the propensity of any arm in any round. By default it is the smallest
            entry of propensities. It must be given if propensities are [horizon]. With a smaller c, replay is also
            unbiased, but fewer rounds count.

    Returns:
        An environment for at most `horizon` rounds, with actions in [0, num_arms), contexts ([num_arms, dim] float) and
        `LoggedFeedback`. Outcomes: `matched`, the number of rounds that count; `reward`, their total reward;
        `squared_reward`, the sum of their squared rewards. With propensities there are also `shared_matched`,
        `shared_reward` and `shared_squared_reward`, for confidence intervals. They are the same sums, with each round
        weighted by its coin's probability. An action outside [0, num_arms) never matches, and makes the sums of rewards
        and of squared rewards NaN.

    Raises:
        ValueError: if an argument is not as described above, or needs more memory than is free on the device.

    Source:
        Li, Chu, Langford & Schapire (2010), section 4; Li, Chu, Langford & Wang (2011), Theorem 1. With propensities
        the coin is rejection sampling of uniform arms: Dudík, Erhan, Langford & Li (2012), section 4.

    Deviations:
        The stream ends with the log, so the number of rounds that count is random. By default c is the smallest
        propensity in the log; the logging policy could have had smaller ones.
    """
    stored = stored_contexts(contexts)
    horizon, num_arms, _ = stored.shape
    logged_arms = check_actions(actions, horizon, num_arms, like="contexts")
    stored_rewards = kept_numbers("rewards", rewards, ("horizon",))
    if stored_rewards.shape != (horizon,):
        raise ValueError(f"rewards must be [{horizon}], as contexts, got shape {stored_rewards.shape}")
    coins = coin_probabilities(propensities, min_propensity, logged_arms, num_arms)
    return logged_environment(
        stored, logged_arms, stored_rewards, coins, num_arms=num_arms, reward_space=Space("numbers")
    )
