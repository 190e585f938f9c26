"""An offline contextual bandit problem: learning policies from comparisons of a reference policy's actions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Problem, Sample, Scalar, factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.confidence import ConfidentEstimate
from jaxdp.estimation.constraints import radius_leaf
from jaxdp.estimation.metrics import l2_error
from jaxdp.estimation.policy import (
    MAX_STEPS,
    greedy_policy,
    per_state_pessimistic_policy,
    pessimistic_policy,
    relative_features,
    suboptimality,
)
from jaxdp.preferences import sample_comparisons
from jaxdp.preferences.data import clip_norm
from jaxdp.validation import check_at_least, check_count, check_number

POLICIES = ("greedy", "pessimistic", "pessimistic_per_state", "reference")
GAP_TOLERANCE = 1e-3  # in units of rewards, which lie between -radius and radius


@pytree_dataclass
class BanditParams:
    """Values that a sweep may vary.

    Attributes:
        radius: [] float > 0, finite, norm of the reward parameter.
        expertise: [] float >= 0, strength of the reference policy's preference for actions with high rewards; 0 is the
            uniform policy.
    """

    radius: Scalar
    expertise: Scalar


class Bandit(NamedTuple):
    """A bandit with linear rewards, and the policy that collected its data.

    Attributes:
        parameter: [dim] float, theta*.
        action_features: [num_states, num_actions, dim] float, |phi| <= 1.
        state_weights: [num_states] float, probabilities of the states (uniform).
        reference: [num_states, num_actions] float, the policy that collected the data.
    """

    parameter: jax.Array
    action_features: jax.Array
    state_weights: jax.Array
    reference: jax.Array


@factory
def offline_bandit(
    *, num_samples: int, dim: int, num_states: int = 20, num_actions: int = 10, max_steps: int = MAX_STEPS
) -> Problem:
    """Builds an offline bandit problem, in which policies are learned from comparisons of a reference policy's actions.

    Each seed draws a new bandit with linear rewards phi(s, a)^T theta*. The parameter theta* is uniform on the sphere
    of radius `radius`; features are drawn from N(0, I / dim), and rescaled to norm 1 if their norm is larger; states
    are uniform. Both actions of a comparison are drawn from the reference policy, with probabilities proportional to
    exp(expertise phi(s, a)^T theta*). The better the reference policy is, the less the data show about the actions that
    it avoids, and the larger are a greedy policy's errors about these actions. Features, states, actions and the
    reference policy are public; labels are private.

    Args:
        num_samples: number of comparisons, >= 1.
        dim: number of features, >= 1.
        num_states: number of states, >= 1.
        num_actions: number of actions in each state, >= 2.
        max_steps: maximum number of steps of the search for the pessimistic policy, >= 1; see `pessimistic_policy`,
            which may exceed it by up to 49 steps.

    Returns:
        A problem for estimators made by `with_confidence`. Its metrics are `suboptimality`, one float for each policy,
        and the scalars `covered` (whether theta* lies in the confidence set), `width` (of the set), `gap` (of the
        search for the pessimistic policy), `l2_error`, `certificate`, `steps` and `converged`. The policies are greedy,
        pessimistic (eq. (9)), pessimistic_per_state and reference. The two pessimistic policies use features relative
        to the reference policy, so they are pessimistic about the advantage over the reference policy. The problem's
        `params` take radius, as the estimators do, and expertise (default 2). If an estimate is NaN, the
        suboptimalities of the three learned policies are NaN.

    Raises:
        ValueError: if a count is out of range. The result's `params` raises this error if radius is not > 0 with a
            finite square, or expertise is not finite and >= 0.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 2 (data) and eq. (9).

    Deviations:
        The paper has no experiment with policies; this problem is new.
    """
    check_count("num_samples", num_samples)
    check_count("dim", dim)
    check_count("num_states", num_states)
    check_count("num_actions", num_actions, 2)
    check_count("max_steps", max_steps)

    def params(*, radius: float, expertise: float = 2.0) -> BanditParams:
        check_number("radius", radius)
        check_at_least("expertise", check_number("expertise", expertise), 0.0)
        return BanditParams(radius=radius_leaf(radius), expertise=scalar_leaf("expertise", expertise))

    def sample(key, params: BanditParams) -> Sample:
        key_bandit, key_states, key_actions, key_labels = jax.random.split(key, 4)
        bandit = draw_bandit(key_bandit, params)
        states = jax.random.randint(key_states, (num_samples,), 0, num_states)
        cumulative = jnp.cumsum(bandit.reference, axis=-1)[states]
        uniforms = jax.random.uniform(key_actions, (2, num_samples, 1), cumulative.dtype)
        actions = jnp.sum(uniforms > cumulative[None, :, :-1], axis=-1)
        chosen = bandit.action_features[states[None, :], actions]
        features = chosen[1] - chosen[0]
        margins = jnp.matmul(features, bandit.parameter, precision="highest")
        return Sample(features, sample_comparisons(key_labels, margins), bandit, {})

    def draw_bandit(key, params: BanditParams) -> Bandit:
        normals = jax.random.normal(key, (1 + num_states * num_actions, dim))  # one draw compiles faster than two
        direction, actions = normals[0], normals[1:].reshape(num_states, num_actions, dim)
        parameter = jnp.asarray(params.radius, direction.dtype) * direction / jnp.linalg.norm(direction)
        action_features = clip_norm(actions / dim**0.5, 1.0)
        rewards = jnp.matmul(action_features, parameter, precision="highest")
        return Bandit(
            parameter=parameter,
            action_features=action_features,
            state_weights=jnp.full(num_states, 1 / num_states, rewards.dtype),
            reference=jax.nn.softmax(jnp.asarray(params.expertise, rewards.dtype) * rewards, axis=-1),
        )

    def metrics(params: BanditParams, sample: Sample, estimate: ConfidentEstimate):
        del params
        bandit: Bandit = sample.truth
        relative = relative_features(bandit.action_features, bandit.reference)
        pessimistic = pessimistic_policy(
            relative, bandit.state_weights, estimate.confidence, max_steps=max_steps, tolerance=GAP_TOLERANCE
        )
        policies = jnp.stack(
            [
                greedy_policy(bandit.action_features, estimate.theta),
                pessimistic.policy,
                per_state_pessimistic_policy(relative, estimate.confidence),
                bandit.reference,
            ]
        )
        losses = jax.vmap(suboptimality, (0, None, None, None))(
            policies, bandit.action_features, bandit.state_weights, bandit.parameter
        )
        return {
            "suboptimality": losses,
            "covered": estimate.confidence.contains(bandit.parameter),
            "width": estimate.confidence.width,
            "gap": pessimistic.gap,
            "l2_error": l2_error(estimate.theta, bandit.parameter),
            "certificate": estimate.certificate,
            "steps": estimate.steps,
            "converged": estimate.converged,
        }

    scalars = ("covered", "width", "gap", "l2_error", "certificate", "steps", "converged")
    dims = {"suboptimality": ("policy",), **dict.fromkeys(scalars, ())}
    return Problem(params, sample, metrics, dims, {"policy": list(POLICIES)})
