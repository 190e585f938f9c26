"""Double Thompson sampling from wins that a curator releases with noise, in blocks of doubling length."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Space, State, default_float, guarantee_for, pairs
from jaxdp.core.central import reveal_feedback
from jaxdp.dueling import _pair_blocks
from jaxdp.dueling._double_thompson.draws import draw_left, draw_right
from jaxdp.dueling._exploration import Params
from jaxdp.dueling._pair_blocks import Evidence, Released
from jaxdp.random import fast_key


class Public(NamedTuple):
    """The releases so far.

    Attributes:
        round: [] integer, rounds played.
        released: the noisy leads (wins minus losses) of pairs of arms, and values computed from the plays.
    """

    round: jax.Array
    released: Released


def posterior(evidence: Evidence) -> tuple[jax.Array, jax.Array]:
    """Returns both parameters (>= 1) of the Beta posterior of each pair, [num_arms, num_arms] float each.

    Entry [i, j] is for the probability that arm i wins a duel against arm j.
    """
    share = jnp.clip(0.5 + evidence.lead / (2 * jnp.where(evidence.weight > 0, evidence.weight, 1)), 0, 1)
    return 1 + evidence.weight * share, 1 + evidence.weight * (1 - share)


def num_beaten(evidence: Evidence, spread: jax.Array) -> jax.Array:
    """Counts the arms that each arm may beat ([num_arms] int32), as `_double_thompson.num_beaten` does."""
    # An arm may beat another arm if lead / (2 N) + sqrt(spread / N) + allowance / (2 N) > 0, where N is the weight.
    upper_lead = evidence.lead + evidence.allowance
    may_beat = (upper_lead > 0) | (upper_lead * upper_lead < 4 * spread * evidence.weight) | (evidence.weight == 0)
    return jnp.sum(may_beat, axis=1, dtype=jnp.int32)


def uncertain_against(left: jax.Array, evidence: Evidence, spread: jax.Array) -> jax.Array:
    """Returns, for each arm, whether its lower bound against the left arm is at most 1/2.

    The result is [num_arms] bool.
    """
    lead, weight, allowance = (matrix[:, left] for matrix in evidence)
    lower_lead = lead - allowance
    return (lower_lead <= 0) | (lower_lead * lower_lead <= 4 * spread * weight)


def learner(num_arms: int) -> Learner:
    """Builds `double_thompson(release="blocks")`."""

    def init(key, params: Params) -> State:
        del key, params
        private, released = _pair_blocks.no_duels(num_arms)
        return State(private, Public(private.wins[0, 0], released))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        key_first, key_ties, key_second = jax.random.split(fast_key(key), 3)
        spread = params.exploration_rate * jnp.log((public.round + 1).astype(default_float()))
        evidence = _pair_blocks.evidence(public.released, spread)
        first, second = posterior(evidence)
        left = draw_left(key_first, key_ties, first, num_beaten(evidence, spread))
        uncertain = uncertain_against(left, evidence, spread)
        return jnp.stack([left, draw_right(key_second, left, first[:, left], second[:, left], uncertain)])

    def update(key, params: Params, state: State, report) -> State:
        public = state.public
        private, released = _pair_blocks.count_duel(key, params.epsilon, state.private, public.released, report)
        return State(private, Public(public.round + 1, released))

    return Learner(
        params=_pair_blocks.params,
        guarantee=guarantee_for(_pair_blocks.params, _pair_blocks.claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
