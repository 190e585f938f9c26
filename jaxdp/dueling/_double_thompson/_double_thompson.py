"""Double Thompson sampling from randomized reports of users. The module `blocks` uses noisy totals instead.

The steps of Algorithm 1 of Wu & Liu (2016) for release="local":

* The wins B_ij are `Public.wins`; `count_report` adds a report. alpha is exploration_rate, and t is the next round.
* Phase 1: `may_beat` compares the upper bounds u_ij with 1/2, and `num_beaten` counts, for each arm, the bounds above
  1/2. `draw_left` draws theta^(1) from Beta distributions with the parameters of `posterior`, and finds a^(1).
* Phase 2: `is_uncertain` compares the lower bounds l_i, on the probabilities of beating a^(1), with 1/2; `draw_right`
  draws theta^(2), and finds a^(2).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Scalar, Space, State, default_float, factory, guarantee_for, pairs
from jaxdp.dueling._double_thompson import blocks
from jaxdp.dueling._double_thompson.draws import draw_left, draw_right, may_beat
from jaxdp.dueling._exploration import Params, params
from jaxdp.dueling.reports import best_pair, count_report, local_claim, report_outcome
from jaxdp.numerics.kernels import own_kernel
from jaxdp.random import fast_key
from jaxdp.validation import check_choice, check_num_arms

RELEASES = ("local", "blocks")


class Public(NamedTuple):
    """The reports so far.

    Attributes:
        round: [] integer, rounds played.
        wins: [num_arms, num_arms] integer, number of duels that the row's arm is reported to have won against the
            column's arm.
    """

    round: jax.Array
    wins: jax.Array


def num_beaten(wins: jax.Array, spread: jax.Array) -> jax.Array:
    """Counts, for each arm, the arms (itself included) that it may beat according to upper bounds, [num_arms] int32.

    `wins` is `Public.wins`, and `spread` is exploration_rate ln t.
    """
    return jnp.sum(may_beat(wins, wins.T, spread), axis=1, dtype=jnp.int32)


def is_uncertain(won: jax.Array, lost: jax.Array, spread: jax.Array) -> jax.Array:
    """Returns whether lower bounds on win probabilities are at most 1/2, given the numbers of duels won and lost.

    `spread` is exploration_rate ln t. Without duels the result is True.
    """
    lead, duels = won - lost, won + lost
    # With N duels, the lower bound is at most 1/2 if and only if lead / (2 N) <= sqrt(spread / N).
    return (lead <= 0) | (lead * lead <= 4 * spread * duels) | (duels == 0)


def posterior(won: jax.Array, lost: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns the first parameter of the Beta posterior of a win probability, [...] float >= 1.

    Args:
        won: [...] float, number of duels reported as won.
        lost: [...] float, number of duels reported as lost. Swap `won` and `lost` to get the second parameter.
        epsilon: privacy budget of a report.
    """
    duels, bias = won + lost, jnp.tanh(epsilon / 2)  # bias is 1 / c
    share = 0.5 + (won - lost) / (2 * bias * jnp.maximum(duels, 1))
    return 1 + bias * bias * duels * jnp.clip(share, 0, 1)


@factory
def double_thompson(*, num_arms: int, release: str = "local") -> Learner:
    r"""Draws two arms from the posterior: an arm that beats the most others, and an arm likely to beat it (D-TS).

    * Let P[i, j] be the probability that arm i beats arm j. An arm i is a candidate for the left arm if its upper
      bounds on P[i, j] exceed 1/2 for the largest number of arms j. The left arm is the candidate that beats the most
      arms in a draw from the posterior of all pairs; ties are broken at random.
    * Candidates for the right arm are the left arm itself, which wins with probability 1/2, and each arm for which the
      lower bound on its probability of beating the left arm is at most 1/2. The right arm is the candidate with the
      largest probability of beating the left arm in a second draw.

    Bounds and posteriors are computed from the debiased fraction of reported wins ("local", see Math), or from noisy
    totals of wins in doubling blocks ("blocks"; bounds are as in `rucb(release="blocks")`).

    Args:
        num_arms: number of arms, >= 2.
        release: "local" (each user randomizes the outcome) or "blocks" (a curator releases noisy totals).

    Returns:
        A learner. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32, 1 if the left arm wins,
        else 0 (clipped).

    Raises:
        ValueError: if num_arms < 2, the number of pairs exceeds the integer range, or release is unknown. The result's
            `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        exploration_rate: > 1/2, by default 0.51: alpha in the bounds (see Math).

    Privacy:
        - Claim: epsilon-DP, in the local model ("local") or the central model ("blocks").
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity, "local": an outcome leaves the user's device once, by randomized response; everything else is
          post-processing.
        - Sensitivity, "blocks": an outcome changes one total of a pair's wins, by at most 1, and this total is released
          once with Laplace(1 / epsilon) noise; blocks compose in parallel, as for `rucb`.
        - Released: all reports ("local"), or the noisy totals in the public state's `released` ("blocks").
        - Private: no part of the state ("local"), or the exact wins in each pair's latest block ("blocks").

    Source:
        Wu & Liu (2016), Algorithm 1 (D-TS). At epsilon = inf, "local" is this algorithm.

    Deviations:
        *The posterior is a heuristic under privacy*; no regret bound is known.

        * "local": if an arm wins with probability 1/2, a debiased report has c^2 times the variance of the outcome, so
          N reports are worth about N / c^2 outcomes.
        * "blocks": if an arm wins with probability 1/2, a block's noisy fraction of wins has the variance of the
          fraction among n^2 / (n + 8 / epsilon^2) exact outcomes. But the noise has longer tails than a Beta
          distribution. At epsilon = inf there is no noise, but posteriors still change only at the end of a block.
          Noise is integer, as in `laplace`.

    Math:
        Before round $t$, let $r_{ij}$ be the fraction of the $N_{ij}$ duels of arms $i$ and $j$ that arm $i$ is
        reported to have won, and let $\hat p_{ij} = 1/2 + c (r_{ij} - 1/2)$ be the debiased fraction. The bounds for
        "local" are

        $$
        \hat p_{ij} \pm c \sqrt{\frac{\alpha \ln t}{N_{ij}}}, \quad c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        where $\alpha$ is `exploration_rate`. With $s = \hat p_{ij}$, clipped to $[0, 1]$, and $N = N_{ij}$, a draw from
        the posterior is

        $$
        \theta_{ij} \sim \mathrm{Beta}(1 + a, 1 + b), \quad a = \frac{s N}{c^2}, \quad b = \frac{(1 - s) N}{c^2}
        $$

        For "blocks", the total of wins $X$ in a block of $n$ duels is released as $X + Z$. The block has the weight
        $w$, and adds $w n$ to $N$:

        $$
        Z \sim \mathrm{Laplace}(1 / \varepsilon), \quad w = \frac{n}{n + 8 / \varepsilon^2}
        $$

        There $a = s N$ and $b = (1 - s) N$, with $s$ the sum of all $w (X + Z)$ divided by $N$, clipped to $[0, 1]$.
    """
    num_arms = check_num_arms(num_arms)
    if check_choice("release", release, RELEASES) == "blocks":
        return blocks.learner(num_arms)

    def init(key, params: Params) -> State:
        del key, params
        integer = jnp.result_type(int)
        return State((), Public(jnp.zeros((), integer), jnp.zeros((num_arms, num_arms), integer)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        key_first, key_ties, key_second = jax.random.split(fast_key(key), 3)
        float_ = default_float()
        spread = params.exploration_rate * jnp.log((public.round + 1).astype(float_))
        wins = public.wins.astype(float_)

        shapes = own_kernel(lambda wins: posterior(wins, wins.T, params.epsilon), wins)
        left = draw_left(key_first, key_ties, shapes, num_beaten(wins, spread))

        won, lost = public.wins[:, left].astype(float_), public.wins[left].astype(float_)
        win_shapes, loss_shapes = posterior(won, lost, params.epsilon), posterior(lost, won, params.epsilon)
        right = draw_right(key_second, left, win_shapes, loss_shapes, is_uncertain(won, lost, spread))
        return jnp.stack([left, right])

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        public = state.public
        return State((), Public(public.round + 1, count_report(public.wins, report)))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, local_claim),
        init=init,
        act=act,
        privatize=report_outcome,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
        best_action=lambda params, public: best_pair(public.wins),
    )
