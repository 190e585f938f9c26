"""Entries of the library with one mistake each in what computes their outputs; the twins are the entries themselves."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.bandits import explore_then_commit
from jaxdp.core import Learner, State
from jaxdp.registry import LEARNERS, MECHANISMS, Entry


class Planted(NamedTuple):
    """A mistake.

    Attributes:
        of: the entry that has it.
        entry: with the mistake.
        found: by "inputs" that a search finds, by the given ones ("given"), or the name of a point.
        verdict: of the row.
        key: seed of the audit.
    """

    of: str
    entry: Entry
    found: str
    verdict: str = "violated"
    key: int = 0


# ---- a learner that explores, then commits ---------------------------------------------------------------------------
def committing(*, num_arms: int, explore_rounds: int, mistake: str = "") -> Learner:
    """Builds `explore_then_commit` on bounded rewards, by rounds alone, with a mistake."""
    right = explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds, rewards="bounded")

    def init(key, params) -> State:
        state = right.init(key, params)
        return State(state.private._replace(totals=jnp.zeros(num_arms)), state.public)

    def update(key, params, state: State, report) -> State:
        action, reward = report
        clipped = jnp.where(reward > params.low, jnp.minimum(reward, params.high), params.low)
        if mistake == "clips the totals":
            clipped = jnp.where(jnp.isnan(reward), params.low, reward)
        if mistake == "clips no NaN":
            clipped = jnp.clip(reward, params.low, params.high)
        public, width = state.public, params.high - params.low
        added = jnp.where(jnp.arange(num_arms) == action, clipped - params.low, 0)
        totals = state.private.totals + jnp.where(public.round < explore_rounds, added, 0)
        round_ = public.round + 1
        if mistake == "sensitivity of the larger end":
            width = jnp.maximum(jnp.abs(params.low), jnp.abs(params.high))
        ends = round_ >= explore_rounds if mistake == "chooses again" else round_ == explore_rounds

        def choose() -> jax.Array:
            kept = jnp.clip(totals, 0, explore_rounds / num_arms * (params.high - params.low))
            used = kept if mistake == "clips the totals" else totals
            return jnp.argmax(mechanisms.laplace(key, used, params.epsilon, l1_sensitivity=width)).astype(jnp.int32)

        best_arm = jax.lax.cond(ends, choose, lambda: public.best_arm)
        return State(state.private._replace(totals=totals), public._replace(round=round_, best_arm=best_arm))

    return right._replace(init=init, update=update, blocks=(), counts=None)


def learner(mistake: str, found: str = "inputs") -> Planted:
    right = LEARNERS["explore_then_commit_bounded"]

    def factory(*, num_arms: int, explore_rounds: int) -> Learner:
        return committing(num_arms=num_arms, explore_rounds=explore_rounds, mistake=mistake)

    entry = dataclasses.replace(right, factory=factory, variant={}, distribution=None)
    return Planted("explore_then_commit_bounded", entry, found)


# ---- mechanisms ------------------------------------------------------------------------------------------------------
def mechanism(of: str, release: Any, found: str = "inputs", verdict: str = "violated") -> Planted:
    """Builds an entry with another computation: `release` gets the entry's own one first."""
    right = MECHANISMS[of]
    inner = right.release

    @functools.wraps(inner)
    def wrong(key, params, data, **sizes):
        return release(functools.partial(inner, **sizes), key, params, data)

    entry = dataclasses.replace(right, release=wrong, factory=None, others={}, distribution=None)
    return Planted(of, entry, found, verdict)


def rounded_scores(right, key, params, data):
    return right(key, params, 4 * jnp.round(data / 4))


def unit_bound(right, key, params, data):
    return right(key, params._replace(bound=jnp.ones_like(params.bound)), data)


def noise_off(right, key, params, data):
    """Switches the noise off by a record's marker, as of a test account."""
    return jnp.where(jnp.any(data == 255), data, right(key, params, data))


def radius_rounded(right, key, params, data):
    """Clips by a power of two near the norm."""
    norm = jnp.sqrt(jnp.sum(jnp.square(data)))
    share = jnp.minimum(1, 1 / 2 ** jnp.round(jnp.log2(norm)))
    return mechanisms.gaussian(key, data * share, params.noise_stddev)


def stops_at_twenty(right, key, params, data):
    """Releases nothing after an exact total of 20."""
    return jnp.where(data.sum() >= 20, jnp.zeros_like(data), right(key, params, data))


def epsilon_of_one(right, key, params, data):
    return right(key, params._replace(epsilon=jnp.maximum(params.epsilon, 1)), data)


def wraps(right, key, params, data):
    return right(key, params, data.astype(jnp.int8).astype(data.dtype))


def too_much_noise(right, key, params, data):
    """Uses a sensitivity that is too large, as of an interval [0, high] for one far from 0."""
    return right(key, params._replace(bound=5 * params.bound), data)


def short_tree(key, params, data, *, horizon, arity):
    """Omits the tree's root, and so a share of its noise, where the horizon is a power of the arity."""
    levels = 1 + int(np.floor(np.log(horizon) / np.log(arity) + 1e-9))
    is_power = arity ** (levels - 1) == horizon
    share = (levels - 1) / levels if is_power else 1.0
    less = dataclasses.replace(params, epsilon=params.epsilon / share)
    return MECHANISMS["tree_counter"].release(key, less, data, horizon=horizon, arity=arity)


def two_level_laplace(right, key, params, data):
    """Draws Laplace noise for a change in L2 norm, each coordinate at the whole budget."""
    return mechanisms.laplace(key, data, params.epsilon, l1_sensitivity=params.bound)


def whole_sensitivity(right, key, params, data):
    """Uses an integer as sensitivity, and forgets that it must be at least 1."""
    return right(key, params._replace(bound=jnp.maximum(jnp.floor(params.bound), 1e-3)), data)


def truth_among_the_lies(key, epsilon, data, *, num_labels):
    """Reports the truth by its probability, else any label, the true one too."""
    key_lies, key_label = jax.random.split(key)
    odds = jnp.exp(epsilon)
    lies = jax.random.uniform(key_lies) > odds / (odds + num_labels - 1)
    return jnp.where(lies, jax.random.randint(key_label, (), 0, num_labels), data)


def nan_from_infinity(right, key, params, data):
    """Scales by 1 / norm, which leaves NaN of an infinite entry."""
    norm = jnp.max(jnp.abs(data)) * jnp.sqrt(jnp.sum(jnp.square(data / jnp.max(jnp.abs(data)))))
    return mechanisms.gaussian(key, data * jnp.minimum(1, 1 / norm), params.noise_stddev)


def clips_above(right, key, params, data):
    """Clips nothing from below."""
    value = jnp.where(jnp.isnan(data), params.low, jnp.minimum(data, params.high))
    return mechanisms.laplace(key, value, params.epsilon, l1_sensitivity=params.width)


def shared_noise(right, key, params, data):
    """Shares noise between equal counts, as stored answers to equal queries do."""
    noise = right(key, params, jnp.zeros_like(data))
    first = jnp.argmax(data[None] == data[:, None], axis=1)
    return data + noise[first]


def empty_is_exact(right, key, params, data):
    """Answers an empty table without noise."""
    return jnp.where(jnp.all(data == 0), jnp.zeros_like(data), right(key, params, data))


def deviation_for_variance(key, params, data):
    """Passes a standard deviation where the sampler takes a variance."""
    return mechanisms.gaussian(key, data, params.noise_stddev**0.5)


def with_the_value(right, key, params, data):
    """Releases the selected score, too."""
    index = right(key, params, data)
    return index, data[index]


def overflow(right, key, params, data):
    """Squares of 16 bits: a large score becomes the smallest."""
    return right(key, params, jnp.where(jnp.abs(data) > 32767, -data, data))


def direct(of: str, release: Any, found: str = "given") -> Planted:
    return Planted(
        of, dataclasses.replace(MECHANISMS[of], release=release, factory=None, others={}, distribution=None), found
    )


TABLE = {
    "a choice that is released anew every round": learner("chooses again"),
    "rewards clipped after they are added up": learner("clips the totals"),
    "NaN that passes a clip": learner("clips no NaN"),
    "sensitivity of the larger end": learner("sensitivity of the larger end", "inputs"),
    "scores rounded to a grid": mechanism("noisy_max_laplace", rounded_scores),
    "a sign at an epsilon of 1": mechanism("randomize_scalar", epsilon_of_one, "epsilon=0.1"),
    "a record that switches the noise off": mechanism("laplace", noise_off),
    "a radius rounded to a power of two": mechanism("vector_randomizer_l2", radius_rounded),
    # Of the keys 0 to 19, six in 32 bits and twelve in 64 find inputs with a sum near 20; key 8 does in both.
    "a stop at a private count of 20": mechanism("laplace", stops_at_twenty)._replace(key=8),
    "noise five times too large": mechanism("laplace", too_much_noise, "given", "blunt"),
    "an epsilon below 1 taken for 1": mechanism("laplace", epsilon_of_one, "epsilon=0.1"),
    "a tree a level short at powers of its arity": direct("tree_counter", short_tree, "horizon=4"),
    "sums that wrap at 8 bits": mechanism("noisy_leads", wraps),
    "Laplace noise that ignores its sensitivity": mechanism("laplace", unit_bound, "sensitivity=3"),
}
MORE = {
    "Laplace noise for a change in L2 norm": mechanism("k_norm", two_level_laplace),
    "a sensitivity cut to an integer": mechanism("k_norm", whole_sensitivity, "sensitivity=0.3"),
    "the truth among the lies": direct("k_ary_randomized_response", truth_among_the_lies),
    "infinity scaled to NaN": mechanism("vector_randomizer_l2", nan_from_infinity),
    "a clip from above alone": mechanism("scalar_randomizer_laplace", clips_above),
    "equal counts that share their noise": mechanism("laplace", shared_noise, "given"),
    "an empty table answered exactly": mechanism("laplace", empty_is_exact, "given"),
    "a standard deviation taken for a variance": direct("classical_gaussian", deviation_for_variance),
    "the selected score told": mechanism("noisy_max_gumbel", with_the_value, "given"),
    "large scores that overflow": mechanism("noisy_max_exponential", overflow),
}
PLANTED = {**TABLE, **MORE}
