"""Greedy and pessimistic policies for linear contextual bandits from an estimated reward, and their suboptimality.

A policy over finitely many states is an array of probabilities, [num_states, num_actions] float with rows that sum to
one; a deterministic policy has a single 1 in each row. Rewards phi(s, a)^T theta are linear in public features.

Comparisons determine only differences of rewards. So compute pessimistic values from features relative to a reference
policy (`relative_features`). Otherwise pessimism also penalises the uncertainty of the part that all actions share.

A policy is post-processing of an estimate: states, features and the confidence set's shape and width do not depend on
the labels.

All functions raise a ValueError if shapes are wrong; only `check_states` checks the values of arrays, on the host. The
other functions accept traced arrays.

Equation (9) is in DP-Reward (Chowdhury, Zhou & Natarajan, 2023). |v|_{shape^-1} is sqrt(v^T shape^-1 v).
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.estimation.confidence import ConfidenceSet
from jaxdp.numerics.eigen import eigh
from jaxdp.validation import check_count, check_finite, check_within

MAX_STEPS = 500  # default maximum number of steps of the search
STEPS_PER_CHECK = 50  # steps between two evaluations of the gap
TOLERANCE = 1e-4  # default gap at which the search stops, in the units of rewards
LARGEST_ENUMERATION = 10**6


class PessimisticPolicy(NamedTuple):
    """A policy, its value (expected reward under the worst parameter), and a bound on the gap to the largest value.

    Attributes:
        policy: [num_states, num_actions] float, probabilities.
        value: [] float, the policy's expected reward under the worst parameter of the confidence set.
        gap: [] float >= 0 up to rounding: no policy's value is larger than value + gap. From `best_of_policies`, this
            holds only for the given policies.
        steps: [] int32, number of steps of the search; from `best_of_policies`, the number of policies.
    """

    policy: jax.Array
    value: jax.Array
    gap: jax.Array
    steps: jax.Array


def check_states(action_features: ArrayLike, state_weights: ArrayLike) -> None:
    """Checks the features and weights of states on the host.

    Args:
        action_features: [num_states, num_actions, dim].
        state_weights: [num_states].

    Raises:
        ValueError: if shapes are wrong, a feature is NaN or infinite, a weight is not in [0, 1], or the sum of the
            weights differs from one by more than 1e-5.
    """
    features = check_finite("action_features", action_features)
    _check_shape(features)
    weights = check_within("state_weights", state_weights, 0.0, 1.0)
    if weights.shape != features.shape[:1]:
        raise ValueError(f"state_weights must have shape [num_states] = {features.shape[:1]}, got {weights.shape}")
    if not abs(weights.sum(dtype=float) - 1) <= 1e-5:  # weights may be float32
        raise ValueError(f"state_weights must sum to 1, got {weights.sum(dtype=float)}")


def relative_features(action_features: jax.Array, reference: jax.Array) -> jax.Array:
    """Subtracts each state's mean features under a reference policy: rewards become advantages over this policy.

    Differences within a state do not change, so the greedy policy does not change either. The value of a policy becomes
    its advantage over the reference, which depends only on differences of rewards. The advantage of the reference
    policy is 0, without uncertainty.

    Args:
        action_features: [num_states, num_actions, dim] float.
        reference: [num_states, num_actions] float, a policy, for example the policy that collected the data.

    Returns:
        [num_states, num_actions, dim] float.

    Source:
        Zhu, Jiao & Jordan (2023), Algorithm 1, with the reference vector v = E phi(s, reference(s)).
    """
    _check_shape(action_features, reference=reference)
    return action_features - jnp.einsum("sa,sad->sd", reference, action_features, precision="highest")[:, None, :]


def greedy_policy(action_features: jax.Array, theta: jax.Array) -> jax.Array:
    """Returns the policy that plays in state s the first action a with the largest phi(s, a)^T theta.

    Args:
        action_features: [num_states, num_actions, dim] float.
        theta: [dim] float.

    Returns:
        [num_states, num_actions] float, a deterministic policy; NaN in states with a score that is not finite.

    Raises:
        ValueError: if shapes are wrong.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 4.3.
    """
    return _largest(_scores(action_features, theta))


def per_state_pessimistic_policy(action_features: jax.Array, confidence: ConfidenceSet) -> jax.Array:
    """Returns the policy argmax_a phi(s, a)^T center - width |phi(s, a)|_{shape^-1}.

    Each state has a separate worst parameter. This is the usual lower confidence bound. It adds up the worst cases of
    all states, which perhaps no single parameter attains together. So it is at least as pessimistic as eq. (9), where
    one worst parameter applies to all states.

    Args:
        action_features: [num_states, num_actions, dim] float.
        confidence: confidence set for theta; a set that is not finite, or not positive definite, gives NaN.

    Returns:
        A policy as from `greedy_policy`. At width = 0 both policies are equal if features are finite, and shape is
        finite and positive definite.

    Source:
        Jin, Yang & Wang (2021), for a single round.

    Deviations:
        The policy does not subtract a reference; use `relative_features` for this.
    """
    scores, penalties = _scores_and_penalties(action_features, confidence)
    norms = jnp.linalg.norm(penalties, axis=-1)
    return _largest(scores - confidence.width * norms)


def pessimistic_value(
    policy: jax.Array, action_features: jax.Array, state_weights: jax.Array, confidence: ConfidenceSet
) -> jax.Array:
    """Returns the minimum expected reward of a policy over the confidence set: f^T center - width |f|_{shape^-1}.

    f = E_s phi(s, policy(s)) is the mean feature vector. The infimum in eq. (9) is over one parameter for all states.

    Args:
        policy: [num_states, num_actions] float.
        action_features: [num_states, num_actions, dim] float.
        state_weights: [num_states] float >= 0 with sum one, rho.
        confidence: the confidence set for theta.

    Returns:
        [] float.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (9).

    Deviations:
        The set is the whole ellipsoid. The paper intersects it with Theta_B; the infimum over the intersection is at
        least as large, so the value here is still a lower bound.
    """
    _check_shape(action_features, policy=policy, state_weights=state_weights)
    scores, penalties = _scores_and_penalties(action_features, confidence)
    return _value(policy, state_weights, scores, penalties, confidence.width)


def best_of_policies(
    policies: jax.Array | np.ndarray,
    action_features: jax.Array,
    state_weights: jax.Array,
    confidence: ConfidenceSet,
) -> PessimisticPolicy:
    """Returns the policy with the largest pessimistic value, as in eq. (9), among the given policies.

    The maximum over these policies is exact.

    Args:
        policies: [num_policies, num_states, num_actions] float; `every_policy` returns all deterministic policies.
        action_features: [num_states, num_actions, dim] float.
        state_weights: [num_states] float >= 0 with sum one, rho.
        confidence: the confidence set for theta.

    Returns:
        The first best policy, with gap 0 (among these policies) and steps = num_policies. Policy, value and gap are NaN
        if a value is NaN or the best value is infinite.
    """
    _check_shape(action_features, policies=policies, state_weights=state_weights)
    scores, penalties = _scores_and_penalties(action_features, confidence)
    policies = jnp.asarray(policies)  # NumPy arrays cannot be indexed by traced arrays
    values = jax.vmap(lambda policy: _value(policy, state_weights, scores, penalties, confidence.width))(policies)
    best = jnp.argmax(values)
    failure = jnp.where(jnp.isfinite(values[best]), 0, jnp.nan).astype(values.dtype)  # adding it makes results NaN
    return PessimisticPolicy(policies[best] + failure, values[best] + failure, failure, jnp.int32(len(policies)))


def every_policy(num_states: int, num_actions: int) -> np.ndarray:
    """Returns all deterministic policies, [num_actions ** num_states, num_states, num_actions] float.

    Raises:
        ValueError: if a count is < 1, or there are more than a million policies.
    """
    check_count("num_states", num_states)
    check_count("num_actions", num_actions)
    if num_actions**num_states > LARGEST_ENUMERATION:
        raise ValueError(
            f"num_actions ** num_states must be at most {LARGEST_ENUMERATION}, got {num_actions} ** {num_states}"
        )
    actions = np.asarray(list(itertools.product(range(num_actions), repeat=num_states)))
    return np.eye(num_actions, dtype=default_float())[actions]


def pessimistic_policy(
    action_features: jax.Array,
    state_weights: jax.Array,
    confidence: ConfidenceSet,
    *,
    max_steps: int = MAX_STEPS,
    tolerance: ArrayLike = TOLERANCE,
) -> PessimisticPolicy:
    """Approximates the policy of eq. (9), which maximises the expected reward under the worst parameter of the set.

    Maximises E_s phi(s, pi(s))^T center - width |E_s phi(s, pi(s))|_{shape^-1} over policies that may randomise. This
    objective is concave, and by the minimax theorem its maximum equals the minimum over the set of sum_s rho_s max_a
    phi(s, a)^T theta. A primal-dual iteration improves both sides at once; their difference, the gap, certifies the
    result. Some optimal policy randomises in at most dim states, so deterministic policies lose little if there are
    many states.

    Args:
        action_features: [num_states, num_actions, dim] float.
        state_weights: [num_states] float >= 0 with sum one, rho.
        confidence: confidence set for theta. Width 0 gives the greedy policy. If the set is not finite, or its shape is
            not positive definite, the policy, value and gap are NaN.
        max_steps: maximum number of steps, >= 1; the search checks this limit only every 50 steps, so it may exceed the
            limit by up to 49 steps.
        tolerance: [] float > 0, gap at which the search stops, in the units of rewards.

    Returns:
        The best policy that the search found (it starts from the greedy policy), its value, its gap, and the steps.

    Raises:
        ValueError: if max_steps < 1, or shapes are wrong.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (9); Zhu, Jiao & Jordan (2023), Algorithm 1; Chambolle & Pock
        (2011), Algorithm 1, with ergodic averages.

    Deviations:
        Policies may randomise. (The paper's policies are maps from states to actions; their maximum is hard to compute,
        and not larger.) The set is not intersected with Theta_B (see `pessimistic_value`). Use `best_of_policies` for
        the maximum over deterministic policies in small problems, and `per_state_pessimistic_policy` for the usual
        lower confidence bound.
    """
    check_count("max_steps", max_steps)
    _check_shape(action_features, state_weights=state_weights)
    scores, penalties = _scores_and_penalties(action_features, confidence)
    width, rank = confidence.width, penalties.shape[-1]
    root = jnp.sqrt(state_weights)[:, None, None] * penalties
    gram = jnp.einsum("sad,sae->de", root, root, precision="highest")
    norm = jnp.sqrt(jnp.maximum(eigh(gram).values[-1], jnp.finfo(scores.dtype).tiny))
    # Policies differ by about 1, parameters by the width. A policy's step is not multiplied by the state's weight, so
    # that rare states converge as fast as frequent ones.
    policy_step, shift_step = 1 / (norm * jnp.where(width > 0, width, 1)), width / norm

    class Search(NamedTuple):
        policy: jax.Array
        shift: jax.Array  # parameter = center + shape^(-1/2) shift, |shift| <= width
        policy_sum: jax.Array
        shift_sum: jax.Array
        best: PessimisticPolicy
        bound: jax.Array  # least dual value so far

    def mean_penalty(policy):
        return jnp.einsum("s,sa,sad->d", state_weights, policy, penalties, precision="highest")

    def shifted_scores(shift):
        return scores + jnp.matmul(penalties, shift, precision="highest")

    def dual_value(shift):
        return state_weights @ jnp.max(shifted_scores(shift), axis=-1)

    def record_best(search: Search, steps: jax.Array) -> Search:
        count = (steps + 1).astype(scores.dtype)  # includes the start
        policies = jnp.stack([search.policy, search.policy_sum / count])
        shifts = jnp.stack([search.shift, search.shift_sum / count])
        values = jax.vmap(lambda policy: _value(policy, state_weights, scores, penalties, width))(policies)
        bound = jnp.minimum(search.bound, jnp.min(jax.vmap(dual_value)(shifts)))
        better = jnp.max(values) > search.best.value
        best = PessimisticPolicy(
            policy=jnp.where(better, policies[jnp.argmax(values)], search.best.policy),
            value=jnp.where(better, jnp.max(values), search.best.value),
            gap=search.best.gap,
            steps=steps,
        )
        return search._replace(best=best._replace(gap=bound - best.value), bound=bound)

    def step(search: Search, _: None) -> tuple[Search, None]:
        policy = _project_on_simplex(search.policy + policy_step * shifted_scores(search.shift))
        shift = search.shift - shift_step * mean_penalty(2 * policy - search.policy)
        length = jnp.linalg.norm(shift)
        shift = shift * jnp.where(length > width, width / jnp.where(length > width, length, 1), 1)
        moved = {"policy_sum": search.policy_sum + policy, "shift_sum": search.shift_sum + shift}
        return search._replace(policy=policy, shift=shift, **moved), None

    def is_unfinished(search: Search) -> jax.Array:
        return (search.best.gap > tolerance) & (search.best.steps < max_steps)

    def run_steps(search: Search) -> Search:
        steps = search.best.steps + min(STEPS_PER_CHECK, max_steps)
        return record_best(jax.lax.scan(step, search, None, length=min(STEPS_PER_CHECK, max_steps))[0], steps)

    start, origin = _largest(scores), jnp.zeros(rank, scores.dtype)
    value, bound = _value(start, state_weights, scores, penalties, width), state_weights @ jnp.max(scores, axis=-1)
    # If the set is not finite, value and gap become NaN, and the search does not start.
    value = jnp.where(jnp.isfinite(value), value, jnp.nan)
    first = PessimisticPolicy(start, value, bound - value, jnp.int32(0))
    best = jax.lax.while_loop(is_unfinished, run_steps, Search(start, origin, start, origin, first, bound)).best
    return best._replace(policy=jnp.where(jnp.isnan(best.value), jnp.nan, best.policy))


def suboptimality(
    policy: jax.Array, action_features: jax.Array, state_weights: jax.Array, parameter: jax.Array
) -> jax.Array:
    """Returns the loss relative to the best policy: E_s [max_a phi(s, a)^T theta* - phi(s, policy(s))^T theta*].

    Args:
        policy: [num_states, num_actions] float.
        action_features: [num_states, num_actions, dim] float.
        state_weights: [num_states] float >= 0 with sum one, rho.
        parameter: [dim] float, theta*.

    Returns:
        [] float >= 0 (up to rounding of a policy's probabilities), in the units of rewards.
    """
    _check_shape(action_features, policy=policy, state_weights=state_weights)
    rewards = _scores(action_features, parameter)
    losses = jnp.max(rewards, axis=-1, keepdims=True) - rewards
    return state_weights @ jnp.sum(policy * losses, axis=-1)


def _value(policy, state_weights, scores, penalties, width) -> jax.Array:
    """Returns the minimum expected reward ([] float) of a policy over a confidence set of this width.

    `scores` and `penalties` are from `_scores_and_penalties`.
    """
    weighted = state_weights[:, None] * policy
    mean = jnp.einsum("sa,sad->d", weighted, penalties, precision="highest")
    return jnp.sum(weighted * scores) - width * jnp.linalg.norm(mean)


def _scores_and_penalties(action_features: jax.Array, confidence: ConfidenceSet) -> tuple[jax.Array, jax.Array]:
    """Returns each action's score phi^T center, and its penalty: the vector shape^(-1/2) phi of norm |phi|_{shape^-1}.

    They are [num_states, num_actions] and [num_states, num_actions, rank] float.
    """
    return _scores(action_features, confidence.center), confidence.whitened(action_features)


def _scores(action_features: jax.Array, theta: jax.Array) -> jax.Array:
    _check_shape(action_features)
    if theta.shape != action_features.shape[-1:]:
        raise ValueError(
            f"action_features must have shape [num_states, num_actions, dim] with [dim] = {theta.shape}, the shape of "
            f"the parameter, got {action_features.shape}"
        )
    return jnp.matmul(action_features, theta, precision="highest")


def _largest(scores: jax.Array) -> jax.Array:
    """Returns one-hot rows at the first largest score; NaN if a score is not finite, so that failures are visible."""
    chosen = jax.nn.one_hot(jnp.argmax(scores, axis=-1), scores.shape[-1], dtype=scores.dtype)
    return jnp.where(jnp.all(jnp.isfinite(scores), axis=-1, keepdims=True), chosen, jnp.nan)


def _project_on_simplex(rows: jax.Array) -> jax.Array:
    """Projects each row onto the simplex: max(row - t, 0), with t = max_k (sum of the k largest entries - 1) / k."""
    among = rows[..., None, :] >= rows[..., :, None]  # compares all pairs, since sorting many short rows is slow
    totals = jnp.sum(jnp.where(among, rows[..., None, :], 0), axis=-1)
    threshold = jnp.max((totals - 1) / jnp.sum(among, axis=-1).astype(rows.dtype), axis=-1, keepdims=True)
    return jnp.maximum(rows - threshold, 0)


def _check_shape(action_features: jax.Array | np.ndarray, **arrays: jax.Array | np.ndarray) -> None:
    """Checks the shapes of action_features, of `state_weights` and of policies, which are passed by name."""
    shape = action_features.shape
    if len(shape) != 3 or 0 in shape:
        raise ValueError(f"action_features must have shape [num_states, num_actions, dim], all >= 1, got {shape}")
    for name, array in arrays.items():
        expected = shape[:1] if name == "state_weights" else shape[:2]
        if np.shape(array)[-len(expected) :] != expected or np.ndim(array) != len(expected) + (name == "policies"):
            raise ValueError(f"{name} must have shape {expected} as action_features, got {np.shape(array)}")
