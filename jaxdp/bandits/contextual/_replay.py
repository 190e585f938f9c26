"""Replay of logged data: estimates how a learner would have done on rounds that another policy played."""

import inspect
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits.contextual._context_sequence import stored_contexts
from jaxdp.bandits.contextual._uniform_log import NonuniformLogWarning, nonuniformity
from jaxdp.core import Environment, Guarantee, Interface, Learner, Space, State, arms, factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.sequences import kept_numbers, shown_numbers
from jaxdp.validation import check_finite, refuse_private

MATCHED = Space("integers", (), 0, 1)


class LoggedFeedback(NamedTuple):
    """The feedback of a logged round.

    Attributes:
        reward: [] float, the reward of the logged action; zero if the learner chose another action.
        matched: [] int32, 1 if the action is the logged one, else 0.
    """

    reward: Any
    matched: Any


class LoggedReport(NamedTuple):
    """The report of a round to the curator of an evaluation.

    Attributes:
        report: of the learner.
        matched: [] int32, 1 if the round counts, else 0.
    """

    report: Any
    matched: jax.Array


@pytree_dataclass
class LoggedParams:
    """The log.

    Attributes:
        contexts: [horizon, num_arms, dim], in the stored type.
        actions: [horizon] integers in [0, num_arms), the arms that were played.
        rewards: [horizon], in the stored type, the rewards of these arms.
    """

    contexts: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray


@factory
def logged_contexts(contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> Environment:
    """Logged data, for evaluation by replay: a round counts if the learner plays the logged arm.

    Use it with learners from `on_logged`. If logged actions were drawn uniformly and rounds are independent, the rounds
    that count have the same distribution as if the learner had played that many rounds itself: `reward` over `matched`
    is an unbiased estimate of its reward per round. Otherwise the estimate is biased, and can exceed the reward of any
    policy. A `RuntimeWarning` is given if tests (of counts by arm, and of arms against contexts) refute uniform play at
    a p-value below 1e-6. A log that passes them may still not be uniform.

    Args:
        contexts: [horizon, num_arms, dim] finite, of norm at most 1 up to rounding. Stored as by `context_sequence`.
        actions: [horizon] whole numbers in [0, num_arms), the arms that were played.
        rewards: [horizon] finite, the rewards of these arms.

    Returns:
        An environment for at most `horizon` rounds, actions in [0, num_arms), contexts ([num_arms, dim] float) and
        `LoggedFeedback`. Outcomes: `matched`, the number of rounds that count; `reward`, their total reward. An action
        outside [0, num_arms) never matches, and makes `reward` NaN.

    Raises:
        ValueError: if an argument is not such an array, or needs more memory than the device has free.

    Source:
        Li, Chu, Langford & Schapire (2010), section 4; Li, Chu, Langford & Wang (2011), Theorem 1.

    Deviations:
        The stream ends with the log, so the number of rounds that count is random.
    """
    stored = stored_contexts(contexts)
    horizon, num_arms, dim = stored.shape
    logged_arms = check_finite("actions", actions, is_private=True)
    if logged_arms.shape != (horizon,) or not np.issubdtype(logged_arms.dtype, np.integer):
        raise ValueError(
            f"actions must be [{horizon}] integers, as contexts, got {logged_arms.dtype} {list(logged_arms.shape)}"
        )
    refuse_private("actions", f"in [0, {num_arms})", (logged_arms < 0) | (logged_arms >= num_arms))
    stored_rewards = kept_numbers("rewards", rewards, ("horizon",))
    if stored_rewards.shape != (horizon,):
        raise ValueError(f"rewards must be [{horizon}], as contexts, got shape {stored_rewards.shape}")
    if reason := nonuniformity(stored, logged_arms):
        sentence = f"logged arms were not drawn uniformly ({reason}), so that replay says nothing about learners"
        warnings.warn(sentence, NonuniformLogWarning, stacklevel=3)
    small = logged_arms.astype(np.min_scalar_type(num_arms))
    small.flags.writeable = False
    params = LoggedParams(contexts=stored, actions=small, rewards=stored_rewards)  # one object for all runs

    def context(key, params: LoggedParams, world) -> jax.Array:
        del key
        return shown_numbers(params.contexts, world)

    def feedback(key, params: LoggedParams, world, action):
        del key
        logged = jnp.asarray(params.actions)[jnp.clip(world, 0, horizon - 1)].astype(jnp.int32)
        is_arm = (action >= 0) & (action < num_arms)
        matched = (action == logged) & (world < horizon)
        reward = jnp.where(matched, shown_numbers(params.rewards, world), 0)
        answer = LoggedFeedback(reward, matched.astype(jnp.int32))
        return world + 1, answer, {"matched": matched, "reward": jnp.where(is_arm, reward, jnp.nan)}

    return Environment(
        params=lambda: params,
        init=lambda key, params: jnp.zeros((), jnp.result_type(int)),
        context=context,
        feedback=feedback,
        interface=Interface(
            arms(num_arms), LoggedFeedback(Space("numbers"), MATCHED), Space("numbers", (num_arms, dim), -1.0, 1.0)
        ),
        horizon=horizon,
    )


@factory
def on_logged(learner: Learner) -> Learner:
    """A contextual learner for evaluation on logged data: it learns only from rounds that match the log.

    Args:
        learner: for actions that are arms, contexts, and rewards.

    Returns:
        A learner for `logged_contexts`, without blocks. A round that does not match leaves its state unchanged.

    Raises:
        ValueError: if learner is not a `Learner`, has no interface with contexts, or is for logged data already.

    Values:
        The values of the learner.

    Privacy:
        - None.
        - Whether a round counts depends on the arm that the learner would play for the user's context, and so does the
          model after it. Only the holder of the log should run or see an evaluation.
        - Each report that is used is as private as a report of the learner.

    Source:
        Li, Chu, Langford & Schapire (2010), section 4.

    Deviations:
        None.
    """
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be a Learner, got {type(learner).__name__}")
    interface = learner.interface
    if interface is None or interface.context is None:
        raise ValueError("learner must declare an interface with contexts, got None")

    if isinstance(interface.feedback, LoggedFeedback):
        raise ValueError("learner must not be for logged data already, got one by `on_logged`")

    def guarantee(**values: Any) -> Guarantee:
        claim = learner.guarantee(**values)
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
        return jax.tree.map(lambda new, old: jnp.where(report.matched == 1, new, old), after, state)

    return learner._replace(
        guarantee=guarantee,
        privatize=privatize,
        update=update,
        blocks=(),
        counts=None,
        interface=interface._replace(feedback=LoggedFeedback(interface.feedback, MATCHED)),
    )
