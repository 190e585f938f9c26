"""Relative upper confidence bounds from wins that a curator releases with noise, in blocks of doubling length."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Space, State, default_float, guarantee_for, pairs
from jaxdp.core.central import reveal_feedback
from jaxdp.dueling import _pair_blocks
from jaxdp.dueling._exploration import Params
from jaxdp.dueling._pair_blocks import Released
from jaxdp.dueling._rucb import blocks_kernels
from jaxdp.dueling._rucb.draws import UNMET, draw_left, draw_right, next_hypothesis
from jaxdp.dueling._rucb.kernels import MOST_ARMS
from jaxdp.random.threefry import two_uniforms


class Public(NamedTuple):
    """The releases so far, and values computed from them.

    Attributes:
        round: [] integer, rounds played.
        released: the noisy leads (wins minus losses) of pairs of arms, and values computed from the plays.
        hypothesis: [] int32, the hypothesised best arm, or -1 if there is none.
    """

    round: jax.Array
    released: Released
    hypothesis: jax.Array


def view(released: Released, hypothesis: jax.Array, spread: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns this round's champions ([num_arms] bool) and the hypothesised best arm (-1 if there is none)."""
    lead, weight, allowance = _pair_blocks.evidence(released, spread)
    # The bound is at least 1/2 if and only if (lead + allowance) / (2 N) >= -sqrt(spread / N), where N is the weight.
    raised = allowance + lead
    champions = jnp.all((raised >= 0) | (raised * raised <= 4 * spread * weight), axis=1)
    return champions, next_hypothesis(champions, hypothesis)


def duel(uniforms: jax.Array, released: Released, hypothesis: jax.Array, spread: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) of this round from two uniforms."""
    champions, hypothesis = view(released, hypothesis, spread)
    left = draw_left(uniforms[0], champions, hypothesis)
    # The evidence on each arm against the left arm. The bounds are on the probability that the arm wins, minus 1/2.
    lead, weight, allowance = (matrix[:, left] for matrix in _pair_blocks.evidence(released, spread))
    share = 1 / jnp.where(weight > 0, weight, 1)
    bounds = jnp.where(weight > 0, (allowance + lead) * share / 2 + jnp.sqrt(spread * share), UNMET)
    return jnp.stack([left, draw_right(uniforms[1], bounds, left)])


class Steps(NamedTuple):
    """The steps of a round that are computed from releases, in plain JAX or in `blocks_kernels`.

    Attributes:
        view: (released, hypothesis, spread) -> (champions as bools or as packed bits, hypothesis).
        duel: (uniforms, released, hypothesis, spread) -> pair of arms.
    """

    view: Callable[..., tuple[jax.Array, jax.Array]]
    duel: Callable[..., jax.Array]


PLAIN = Steps(view, duel)
KERNELS = Steps(blocks_kernels.view, blocks_kernels.duel)


def learner(num_arms: int) -> Learner:
    """Builds `rucb(release="blocks")`."""
    return learner_of(num_arms, KERNELS if num_arms <= MOST_ARMS else PLAIN)


def learner_of(num_arms: int, steps: Steps) -> Learner:
    """Builds the RUCB learner that uses noisy totals of blocks. `steps` contains the functions of a round."""

    def init(key, params: Params) -> State:
        del key, params
        private, released = _pair_blocks.no_duels(num_arms)
        return State(private, Public(private.wins[0, 0], released, jnp.int32(-1)))

    def spread(params: Params, public: Public) -> jax.Array:
        return params.exploration_rate * jnp.log((public.round + 1).astype(default_float()))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        return steps.duel(two_uniforms(key), public.released, public.hypothesis, spread(params, public))

    def update(key, params: Params, state: State, report) -> State:
        public = state.public
        _, hypothesis = steps.view(public.released, public.hypothesis, spread(params, public))
        private, released = _pair_blocks.count_duel(key, params.epsilon, state.private, public.released, report)
        return State(private, Public(public.round + 1, released, hypothesis))

    return Learner(
        params=_pair_blocks.params,
        guarantee=guarantee_for(_pair_blocks.params, _pair_blocks.claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
