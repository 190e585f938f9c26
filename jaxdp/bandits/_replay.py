"""Replay of logged data: estimates a learner's reward from rounds that another policy played."""

import dataclasses
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits._uniform_log import NonuniformLogWarning, nonuniformity
from jaxdp.core import Environment, Guarantee, Interface, Learner, Space, State, arms, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.sequences import shown_numbers
from jaxdp.validation import warn_caller

MATCHED = Space("integers", (), 0, 1)
# The seed of the rejection sampling for tests of propensities. It is an unusual number, so that no simulated log is
# likely to have been made with the same seed.
TEST_SEED = 0x6C6F67


class LoggedFeedback(NamedTuple):
    """The feedback of a logged round.

    A round counts if the action is the logged action and, if propensities are given, rejection sampling accepts the
    round.

    Attributes:
        reward: [] float (integer if rewards are binary), the reward of the logged action; zero if the round does not
            count.
        matched: [] int32, 1 if the round counts, else 0.
    """

    reward: Any
    matched: Any


class LoggedReport(NamedTuple):
    """The report of a logged round.

    Attributes:
        report: the report of the learner.
        matched: [] int32, 1 if the round counts (see `LoggedFeedback`), else 0.
    """

    report: Any
    matched: jax.Array


@pytree_dataclass
class LoggedParams:
    """The log.

    Attributes:
        contexts: [horizon, num_arms, dim], in the stored dtype; None without contexts.
        actions: [horizon] integers in [0, num_arms), the arms that were played.
        rewards: [horizon], in the stored dtype, the rewards of these arms.
        coins: [horizon] float in (0, 1], the probability that rejection sampling accepts each round; None if all rounds
            are accepted.
    """

    contexts: np.ndarray | None
    actions: np.ndarray
    rewards: np.ndarray
    coins: np.ndarray | None


def logged_environment(
    contexts: np.ndarray | None,
    logged_arms: np.ndarray,
    rewards: np.ndarray,
    coins: np.ndarray | None,
    *,
    num_arms: int,
    reward_space: Space,
) -> Environment:
    """Returns the environment that replays a log; warns if tests refute that arms are uniform in the accepted rounds.

    Args:
        contexts: [horizon, num_arms, dim], in the stored dtype; None without contexts.
        logged_arms: [horizon] integers in [0, num_arms).
        rewards: [horizon], in the stored dtype.
        coins: [horizon] float in (0, 1], the probability that each round is accepted; None if all rounds are accepted.
        num_arms: number of arms.
        reward_space: the space of rewards.
    """
    horizon = len(logged_arms)
    _warn_nonuniform(contexts, logged_arms, coins, num_arms)
    stored_arms = logged_arms.astype(np.min_scalar_type(num_arms))
    stored_arms.flags.writeable = False
    # All runs share this object.
    params = LoggedParams(contexts=contexts, actions=stored_arms, rewards=rewards, coins=coins)

    def context(key, params: LoggedParams, world) -> jax.Array:
        del key
        assert params.contexts is not None
        return shown_numbers(params.contexts, world)

    def feedback(key, params: LoggedParams, world, action):
        row = jnp.clip(world, 0, horizon - 1)
        matched = (action == jnp.asarray(params.actions)[row].astype(jnp.int32)) & (world < horizon)
        coin = None if params.coins is None else jnp.asarray(params.coins)[row]
        if coin is not None:
            matched = matched & (jax.random.uniform(key, dtype=coin.dtype) < coin)
        reward = jnp.where(matched, shown_numbers(params.rewards, world), 0)
        fed_back = reward.astype(jnp.int32) if reward_space.kind == "integers" else reward
        is_arm = (action >= 0) & (action < num_arms)
        outcome_reward = jnp.where(is_arm, reward, jnp.nan)
        outcome = {"matched": matched, "reward": outcome_reward, "squared_reward": jnp.square(outcome_reward)}
        if coin is not None:
            # The probability that this round counts in another lane that plays the same arm.
            shares = jnp.where(matched, coin, 0)
            outcome |= {f"shared_{name}": shares * value.astype(shares.dtype) for name, value in outcome.items()}
        return world + 1, LoggedFeedback(fed_back, matched.astype(jnp.int32)), outcome

    return Environment(
        params=lambda: params,
        init=lambda key, params: jnp.zeros((), jnp.result_type(int)),
        context=None if contexts is None else context,
        feedback=feedback,
        interface=Interface(
            arms(num_arms),
            LoggedFeedback(reward_space, MATCHED),
            None if contexts is None else Space("numbers", contexts.shape[1:], -1.0, 1.0),
        ),
        horizon=horizon,
    )


def _warn_nonuniform(
    contexts: np.ndarray | None, logged_arms: np.ndarray, coins: np.ndarray | None, num_arms: int
) -> None:
    """Warns if tests refute that arms are uniform in the log (with `coins`, in the rounds that are accepted)."""
    kept_contexts, kept_arms = contexts, logged_arms
    if coins is not None and (coins < 1).any():
        is_kept = np.random.default_rng(TEST_SEED).random(len(coins)) < coins
        kept_arms = logged_arms[is_kept]
        kept_contexts = None if contexts is None else contexts[is_kept]
    reason = nonuniformity(kept_contexts, kept_arms, num_arms)
    if reason and coins is None:
        warn_caller(
            f"logged arms were not drawn uniformly ({reason}), so replay is biased; give the propensities of the "
            "logging policy",
            NonuniformLogWarning,
        )
    elif reason:
        warn_caller(
            f"logged arms were not drawn with these propensities (arms of kept rounds are not uniform: {reason}), so "
            "replay is biased; check the propensities",
            NonuniformLogWarning,
        )


@factory
def on_logged(learner: Learner) -> Learner:
    """Adapts a learner to evaluation on logged data: the adapted learner learns only from rounds that count.

    Args:
        learner: a learner that plays arms and receives rewards, with or without contexts.

    Returns:
        A learner for `jaxdp.bandits.contextual.logged_contexts` or, without contexts, `jaxdp.bandits.logged_rewards`.
        It supports neither blocks nor counts. A round that does not count leaves the learner's state unchanged.

    Raises:
        ValueError: if learner is not a `Learner`, has no interface, or is for logged data already.

    Values:
        The values of the learner.

    Privacy:
        - Logged arms, propensities, contexts and the random numbers of rejection sampling are public.
        - Without contexts: the claim of the learner, if this claim is in the central or local model and its adversary
          sees the actions; otherwise none. Whether a round counts is determined by public values: the arm that the
          learner plays, the logged arm, and the random number of rejection sampling.
        - With contexts: None. Contextual learners also protect a user's context. But whether a round counts depends on
          the arm that the learner plays for this context, and the next model depends on whether the round counts. Only
          the holder of the log should run or see such an evaluation. Each report that the evaluation uses is as private
          as the learner's report.
        - Outcomes, such as the rewards of rounds that count, are not private.

    Source:
        Li, Chu, Langford & Schapire (2010), section 4.

    Deviations:
        None.
    """
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be a Learner, got {type(learner).__name__}")
    interface = learner.interface
    if interface is None:
        raise ValueError("learner must declare an interface, got None")
    if isinstance(interface.feedback, LoggedFeedback):
        raise ValueError("learner must not be for logged data already, got one by `on_logged`")

    def guarantee(**values: Any) -> Guarantee:
        claim = learner.guarantee(**values)
        if interface.context is None and claim.trust_model in ("central", "local") and "action" in claim.adversary_view:
            return dataclasses.replace(
                claim, argument=f"{claim.argument}; whether a logged round counts follows from public values"
            )
        return Guarantee.none(
            trust_model=claim.trust_model,
            privacy_unit=claim.privacy_unit,
            argument="whether a logged round counts depends on the action, which depends on the user's context",
        )

    guarantee.__signature__ = inspect.signature(learner.guarantee)  # pyright: ignore[reportFunctionMemberAccess]

    def privatize(key, params, public, context, action, feedback: LoggedFeedback) -> LoggedReport:
        report = learner.privatize(key, params, public, context, action, feedback.reward)
        return LoggedReport(report, feedback.matched)

    def update(key, params, state: State, report: LoggedReport) -> State:
        after = learner.update(key, params, state, report.report)
        return jax.tree.map(lambda changed, previous: jnp.where(report.matched == 1, changed, previous), after, state)

    return learner._replace(
        guarantee=guarantee,
        privatize=privatize,
        update=update,
        blocks=(),
        counts=None,
        clip=None,
        interface=interface._replace(feedback=LoggedFeedback(interface.feedback, MATCHED)),
    )
