"""Entries with one mistake each, and their right twins: `python -m jaxdp audit NAME --with tests.privacy.planted`.

Twins of those on one path only are the registered `explore_then_commit` and `tree_counter`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, full_information
from jaxdp.bandits import explore_then_commit
from jaxdp.core import Environment, Guarantee, Learner
from jaxdp.mechanisms import gaussian
from jaxdp.registry import LEARNERS, MECHANISMS, LearnerEntry, MechanismEntry, register
from tests.audit import small_learners as small

COMMIT, TREE = LEARNERS["explore_then_commit"], MECHANISMS["tree_counter"]


def no_environment() -> Environment:
    """Returns no environment: learners of tests need none to be attacked."""
    raise NotImplementedError


def learner_entry(factory: Callable[..., Learner], **about: Any) -> LearnerEntry:
    return LearnerEntry(
        summary="for tests",
        factory=factory,
        environment=no_environment,
        values={"epsilon": 1.0},
        horizon=2,
        users_answer=full_information,
        **about,
    )


def gaussian_entry(share: float) -> MechanismEntry:
    """Builds the Gaussian mechanism with a claim of so much of its rho."""

    def guarantee(*, rho: float) -> Guarantee:
        return Guarantee.zcdp(share * rho, trust_model="central", privacy_unit="one count", argument="for tests")

    return MechanismEntry(
        summary="for tests",
        params=lambda *, rho: np.asarray(1 / math.sqrt(2 * rho), np.float32),
        guarantee=guarantee,
        release=lambda key, noise_stddev, data: gaussian(key, data, noise_stddev),
        values={"rho": 0.1},
        neighbours=(np.zeros(1, np.float32), np.ones(1, np.float32)),
    )


def counts_without_noise(*, num_arms: int, explore_rounds: int) -> Learner:
    learner = explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds)
    return small.quieter(learner, math.inf, "counts")


def half_the_noise_in_blocks(*, num_arms: int, explore_rounds: int) -> Learner:
    learner = explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds)
    return small.quieter(learner, 2.0, "blocks")


def half_the_noise_in_feed(key, params, data, *, horizon, arity):
    less = dataclasses.replace(params, epsilon=2 * params.epsilon)
    return TREE.others["feed"](key, less, data, horizon=horizon, arity=arity)


def logs(*adversary_view: str) -> Callable[[], Learner]:
    """Plays the user's own context, and noises the report; so much is logged."""
    return lambda: small.with_claim(
        small.randomizes_the_report_alone(), small.claimed("local", adversary_view=adversary_view)
    )


def both_move() -> tuple[UserData, UserData]:
    first, second = (UserData(np.asarray([[float(x)]]), np.asarray([x], np.int32)) for x in (0, 1))
    return first, second


def draw_both(key) -> UserData:
    bit = jax.random.bernoulli(key).astype(jnp.int32)
    return UserData(bit.astype(float)[None], bit)


def reacting(*, reuse_key: bool) -> LearnerEntry:
    return learner_entry(
        lambda: small.noisy_then_sign(reuse_key=reuse_key),
        neighbours=lambda: (UserData(np.asarray([[-1.0], [1.0]])), UserData(np.asarray([[1.0], [1.0]]))),
        draw_user=small.follows,
    )


register("rho_claimed_half", gaussian_entry(0.5))
register("rho_claimed_half_right", gaussian_entry(1.0))
register("counts_without_noise", dataclasses.replace(COMMIT, factory=counts_without_noise))
register("half_the_noise_in_blocks", dataclasses.replace(COMMIT, factory=half_the_noise_in_blocks))
register("half_the_noise_in_feed", dataclasses.replace(TREE, others={"feed": half_the_noise_in_feed}))
register("play_is_logged", learner_entry(logs("report", "action"), neighbours=both_move, draw_user=draw_both))
register("play_is_logged_right", learner_entry(logs("report", "public"), neighbours=both_move, draw_user=draw_both))
register("key_reused_after_a_release", reacting(reuse_key=True))
register("key_reused_after_a_release_right", reacting(reuse_key=False))
