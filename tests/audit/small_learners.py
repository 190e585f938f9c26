"""Learners of a few lines, each with one property that an audit must see or must not."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData
from jaxdp.core import Guarantee, Learner, State
from jaxdp.mechanisms import above_threshold_init, above_threshold_step, gaussian, laplace


def guarantee(trust_model: str = "central", delta: float = 0.0) -> Callable[..., Guarantee]:
    def claim(*, epsilon: float) -> Guarantee:
        return Guarantee.approximate(
            epsilon, delta, trust_model=trust_model, privacy_unit="one round", argument="for tests"
        )

    return claim


def params(*, epsilon: float) -> Any:
    return np.asarray(epsilon, jax.dtypes.canonicalize_dtype(float))


def curator(update: Callable[..., State], state: Callable[[], State], claim=None, act=None) -> Learner:
    """Builds a learner with a curator to whom all is shown; it plays `act`, by default always 0."""
    return Learner(
        params=params,
        guarantee=claim or guarantee(),
        init=lambda key, params: state(),
        act=act or (lambda key, params, public, context: jnp.int32(0)),
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
    )


def pair_of_releases(*, reuse_key: bool, share: float = 0.5) -> Learner:
    """Releases both numbers of each user, each at a share of epsilon."""

    def update(key, params, state, report):
        first, second = (key, key) if reuse_key else jax.random.split(key)
        one = laplace(first, report[0], params * share, l1_sensitivity=1.0)
        other = laplace(second, report[1], params * share, l1_sensitivity=1.0)
        return State((), jnp.stack([one, other]))

    return curator(update, lambda: State((), jnp.zeros(2)))


def two_gaussians(noise_stddev: float, delta: float) -> Learner:
    """Releases both numbers of each user with Gaussian noise."""

    def update(key, params, state, report):
        keys = jax.random.split(key)
        noisy = [gaussian(k, x, noise_stddev, l2_sensitivity=1.0) for k, x in zip(keys, report, strict=True)]
        return State((), jnp.stack(noisy))

    return curator(update, lambda: State((), jnp.zeros(2)), guarantee(delta=delta))


def follows_itself(factor: float) -> Learner:
    """Adds noise to each user's number plus a multiple of the last release, which is public and costs nothing."""

    def update(key, params, state, report):
        value = report[0] + factor * state.public
        return State((), laplace(key, value, params, l1_sensitivity=1.0))

    return curator(update, lambda: State((), jnp.zeros(())))


def branches_on_data() -> Learner:
    """Releases only if the user's number is large, so that a release reveals it."""

    def update(key, params, state, report):
        noisy = jax.lax.cond(
            report[0] > 0.5,
            lambda: laplace(key, report[0], params, l1_sensitivity=1.0),
            lambda: state.public,
        )
        return State((), noisy)

    return curator(update, lambda: State((), jnp.zeros(())))


class Regret(NamedTuple):
    behind: jax.Array
    sparse: Any


def regret_query(*, num_experts: int, sensitivity: float) -> Learner:
    """Asks the restart test of private expert tracking: how far the played experts are behind the best one, against
    100.

    The experts played are released, and held fixed; here they take turns. One loss vector then moves the query by 2:
    the played expert's loss may go from 0 to 1 while the best one's goes from 1 to 0.
    """

    def act(key, params, public, context):
        return public[0]

    def init(key, params):
        sparse = above_threshold_init(key, params, threshold=100.0, sensitivity=sensitivity)
        return State(Regret(jnp.zeros(num_experts), sparse), (jnp.int32(0), jnp.asarray(False)))

    def update(key, params, state, report):
        expert, _ = state.public
        behind = state.private.behind + report[expert] - report
        sparse, above = above_threshold_step(key, state.private.sparse, behind.max())
        return State(Regret(behind, sparse), ((expert + 1) % num_experts, above))

    return curator(update, lambda: State((), ()), act=act)._replace(init=init)


def shows_its_context(trust_model: str) -> Learner:
    """Plays the user's own context, and releases nothing."""

    def update(key, params, state, report):
        return State((), ())

    return curator(
        update,
        lambda: State((), ()),
        guarantee(trust_model),
        act=lambda key, params, public, context: context,
    )


def stops_after(large: Callable[..., jax.Array]) -> Learner:
    """Plays and logs nothing but 0, until large(key, epsilon, number) is true of a user's number."""

    def update(key, params, state, report):
        return State((), large(key, params, report[0]))

    learner = curator(update, lambda: State((), jnp.asarray(False)))
    return learner._replace(done=lambda params, public: public)


def draw_corners(size: int) -> Callable[[jax.Array], UserData]:
    """Draws users with zeros and ones."""
    return lambda key: UserData(jax.random.bernoulli(key, shape=(size,)).astype(float))


def releases_of(release: Callable[..., Any], like: Any = 0.0, claim: Callable[..., Guarantee] | None = None) -> Learner:
    """Releases release(key, epsilon, report) after every round."""

    def update(key, params, state, report):
        return State((), release(key, params, report))

    return curator(update, lambda: State((), jax.tree.map(jnp.asarray, like)), claim)


def quieter(learner: Learner, factor: float, where: str) -> Learner:
    """Adds noise as for an epsilon that is so many times as large, in blocks or in counts alone."""

    def less(params):
        return dataclasses.replace(params, epsilon=jnp.asarray(params.epsilon) * factor)

    if where == "counts":
        counts = learner.counts
        assert counts is not None

        def update_counts(key, params, state, plan, report):
            return counts.update_counts(key, less(params), state, plan, report)

        return learner._replace(counts=counts._replace(update_counts=update_counts))
    (blocks,) = learner.blocks

    def update_block(keys, params, state, plan, report):
        return blocks.update_block(keys, less(params), state, plan, report)

    return learner._replace(blocks=(blocks._replace(update_block=update_block),))


def noisy_then_sign(*, reuse_key: bool) -> Learner:
    """Releases a number with noise, then the sign of the next one with noise; the noise may be the same.

    The second release reveals little about the first user, unless the second one was chosen by the first release.
    """

    def init(key, params):
        return State(jnp.zeros_like(jax.random.key_data(key)), (jnp.int32(0), jnp.zeros(())))

    def update(key, params, state, report):
        round_, _ = state.public
        if reuse_key:  # remembered from the first round
            key = jax.random.wrap_key_data(jnp.where(round_ == 0, jax.random.key_data(key), state.private))
        noisy = laplace(key, jnp.clip(report[0], -1, 1), params, l1_sensitivity=2.0)
        released = jnp.where(round_ == 0, noisy, jnp.where(noisy > 0, 1.0, -1.0))
        return State(jax.random.key_data(key), (round_ + 1, released))

    return curator(update, lambda: State((), ()))._replace(init=init)


def follows(key, history):
    """Sends -1 or 1, and then the number that cancels the sum except the first user's, if the noise is the same."""
    first = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
    return UserData(jnp.where(history.round == 0, first, -history.public[1][0])[None])


def claimed(trust_model: str, **about: Any) -> Guarantee:
    return Guarantee.pure(1.0, trust_model=trust_model, privacy_unit="one round", argument="for tests", **about)


def with_claim(learner: Learner, claim: Guarantee) -> Learner:
    return learner._replace(guarantee=lambda *, epsilon: claim)


def randomizes_the_report_alone() -> Learner:
    """Plays the user's context; the report has noise."""
    learner = shows_its_context("local")

    def privatize(key, params, public, context, action, feedback):
        return laplace(key, jnp.clip(feedback[0], 0, 1), params, l1_sensitivity=1.0)

    return learner._replace(privatize=privatize)
