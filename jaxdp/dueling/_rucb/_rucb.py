"""Relative upper confidence bounds from randomized reports of users. The module `blocks` uses noisy totals instead.

The steps of Algorithm 1 of Zoghi, Whiteson, Munos & de Rijke (2014) for release="local":

* The wins w_ij are `Public.wins`; `count_report` adds a report. alpha is exploration_rate.
* `view` compares the upper bounds u_ij with 1/2; `duel` computes the bounds of all arms against the left arm.
* C, the arms that may beat all others, is `champions`. B, which contains at most one arm of C, is `hypothesis`;
  `next_hypothesis` derives B from C and the previous B.
* `draw_left` draws a_c from C; `draw_right` finds a_d, the arm that may beat a_c most easily.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Space, State, default_float, factory, guarantee_for, pairs
from jaxdp.dueling._exploration import Params, params
from jaxdp.dueling._rucb import blocks, kernels
from jaxdp.dueling._rucb.draws import UNMET, draw_left, draw_right, next_hypothesis
from jaxdp.dueling.reports import best_pair, count_report, local_claim, report_outcome
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_choice, check_num_arms

RELEASES = ("local", "blocks")


class Public(NamedTuple):
    """The reports so far, and values computed from them.

    Attributes:
        round: [] integer, rounds played.
        wins: [num_arms, num_arms] integer, number of duels that the row's arm is reported to have won against the
            column's arm.
        hypothesis: [] int32, the hypothesised best arm, or -1 if there is none.
    """

    round: jax.Array
    wins: jax.Array
    hypothesis: jax.Array


def view(wins: jax.Array, hypothesis: jax.Array, spread: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns this round's champions ([num_arms] bool) and the hypothesised best arm (-1 if there is none)."""
    # Counts are subtracted as integers: float32 would lose the difference of large counts.
    lead, duels = (wins - wins.T).astype(spread.dtype), (wins + wins.T).astype(spread.dtype)
    # With N duels the bound is at least 1/2 if and only if lead / (2 N) >= -sqrt(spread / N).
    champions = jnp.all((lead >= 0) | (lead * lead <= 4 * spread * duels), axis=1)
    return champions, next_hypothesis(champions, hypothesis)


def duel(uniforms: jax.Array, wins: jax.Array, hypothesis: jax.Array, spread: jax.Array, unmet: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) of this round from two uniforms.

    `spread` is exploration_rate ln t. `unmet` is (2 - 1/2) / c, the bound of two arms that have not met, minus 1/2,
    divided by the factor c of `rucb`.
    """
    # All bounds are computed as (bound - 1/2) / c.
    champions, hypothesis = view(wins, hypothesis, spread)
    left = draw_left(uniforms[0], champions, hypothesis)
    won, lost = wins[:, left], wins[left]  # each arm's wins and losses against the left arm
    lead, duels = (won - lost).astype(spread.dtype), (won + lost).astype(spread.dtype)
    share = 1 / jnp.maximum(duels, 1)
    bounds = jnp.where(duels > 0, lead * share / 2 + jnp.sqrt(spread * share), unmet)
    return jnp.stack([left, draw_right(uniforms[1], bounds, left)])


class Steps(NamedTuple):
    """The steps of a round that are computed from reports, in plain JAX or in `kernels`.

    Attributes:
        view: (wins, hypothesis, spread) -> (champions as bools or as packed bits, hypothesis).
        duel: (uniforms, wins, hypothesis, spread, unmet) -> pair of arms.
        count_duel: (wins, report) -> wins.
    """

    view: Callable[..., tuple[jax.Array, jax.Array]]
    duel: Callable[..., jax.Array]
    count_duel: Callable[..., jax.Array]


PLAIN = Steps(view, duel, count_report)
KERNELS = Steps(kernels.view, kernels.duel, kernels.count_duel)


@factory
def rucb(*, num_arms: int, release: str = "local") -> Learner:
    r"""Plays an arm that may beat all others against the arm that may beat it most easily (RUCB).

    Let P[i, j] be the probability that arm i beats arm j. In round t, arm i is a champion if its upper bounds on P[i,
    j] are at least 1/2 for all j. An arm that is the only champion becomes the hypothesis. It stays the hypothesis as
    long as it is a champion.

    * The left arm is the hypothesis if it is the only champion. If there are other champions, the left arm is the
      hypothesis with probability 1/2, and each other champion with equal probability. Without a hypothesis the left arm
      is a uniformly random champion, and without a champion a uniformly random arm.
    * The right arm has the largest bound against the left arm. It may be the left arm itself, with the bound 1/2. Ties
      are broken at random among the other arms.

    A bound is 2 if nothing is known about a pair, and 1/2 for i = j. Otherwise (see Math) the bound is computed from

    * "local": the debiased fraction of reported wins;
    * "blocks": noisy totals of wins. When a pair has had 1, 2, 4, 8, ... duels, the wins since its last release are
      released with Laplace(1 / epsilon) noise. The bound is below P[i, j] with probability at most t^(-2
      exploration_rate), by Chernoff's bound for outcomes and noise together.

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
        - Sensitivity, "blocks": given the earlier releases and the random draws of arms, the pair of a duel and the
          duel's index among the pair's duels are fixed. So an outcome changes one total of wins, by at most 1, and this
          total is released once with Laplace(1 / epsilon) noise. Blocks have different users, so they compose in
          parallel.
        - Released: all reports ("local"), or the noisy totals, `released` ("blocks").
        - Private: no part of the state ("local"), or the exact wins in each pair's latest block ("blocks").

    Source:
        Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1; at epsilon = inf, "local" is this algorithm. Asi & Saha
        (2025), "Optimal Rates for Private Stochastic Dueling Bandits", for privatized responses. Boucheron, Lugosi &
        Massart (2013), Section 2.4, for the bound on sums of sub-gamma variables, such as Laplace variables.

    Deviations:
        "local": all bounds minus 1/2 are divided by their common factor c, which changes no decision. "blocks": at
        epsilon = inf there is no noise, but bounds still use only the wins of finished blocks. A pair without a release
        has the bound 2, which Zoghi et al. give to a pair that has not met. Noise is integer, as in `laplace`.

    Math:
        With "local", an outcome is reported unchanged with probability $p$. Let $N_{ij}$ be the number of duels of arms
        $i$ and $j$ so far, $r_{ij}$ the fraction of them that $i$ is reported to have won, and $\hat p_{ij}$ the
        debiased fraction:

        $$
        p = \frac{1}{1 + e^{-\varepsilon}}, \quad \hat p_{ij} = \frac{1}{2} + c \Big( r_{ij} - \frac{1}{2} \Big)
        $$

        The upper bounds are

        $$
        u_{ij} = \hat p_{ij} + c \sqrt{\frac{\alpha \ln t}{N_{ij}}}, \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        where $\alpha$ is `exploration_rate`. An arm $i$ is a champion if $u_{ij} \ge 1/2$ for all $j$. Let $C$ be the
        set of champions, and $h$ the hypothesis. If $h$ and another arm are in $C$, the left arm $a$ has the
        distribution

        $$
        P(a = h) = \frac{1}{2}, \quad P(a = i) = \frac{1}{2 (|C| - 1)}
        $$

        for the other $i$ in $C$. If $C$ has one arm, it is $a$. Without a hypothesis $a$ is uniform in $C$, or among
        all arms if $C$ is empty. Against $a$ the right arm is

        $$
        \operatorname{argmax}_j u_{ja}
        $$

        For "blocks", the number $X$ of wins of $i$ in a block of $n$ duels is released, for one order of the pair, as

        $$
        X + Z, \quad Z \sim \mathrm{Laplace}(1 / \varepsilon)
        $$

        For the other order the wins are $n - X - Z$. With the weight $w$ of a block, $\tilde W_{ij}$ the sum of $w$
        times the noisy wins over the pair's blocks, and $N_{ij}$ the sum of $w n$,

        $$
        u_{ij} = \frac{\tilde W_{ij}}{N_{ij}} + \sqrt{\frac{\alpha \ln t}{N_{ij}}} +
        \frac{2 w_{ij} \alpha \ln t}{\varepsilon N_{ij}}, \quad w_{ij} = \frac{n_{ij}}{n_{ij} + 8 / \varepsilon^2}
        $$

        where $n_{ij}$ is the number of duels of the pair's last block. The weights $w$ minimise a bound on the variance
        of the fraction of wins.
    """
    num_arms = check_num_arms(num_arms)
    if check_choice("release", release, RELEASES) == "blocks":
        return blocks.learner(num_arms)
    return _learner(num_arms, KERNELS if num_arms <= kernels.MOST_ARMS else PLAIN)


def _learner(num_arms: int, steps: Steps) -> Learner:
    """Builds RUCB from `steps`, the steps of a round."""

    def init(key, params: Params) -> State:
        del key, params
        wins = jnp.zeros((num_arms, num_arms), jnp.result_type(int))
        return State((), Public(wins[0, 0], wins, jnp.int32(-1)))

    def spread(params: Params, public: Public) -> jax.Array:
        return params.exploration_rate * jnp.log((public.round + 1).astype(default_float()))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        unmet = UNMET * jnp.tanh(params.epsilon / 2)
        return steps.duel(two_uniforms(key), public.wins, public.hypothesis, spread(params, public), unmet)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public = state.public
        # The hypothesis that `act` used, from the wins before this report.
        _, hypothesis = steps.view(public.wins, public.hypothesis, spread(params, public))
        return State((), Public(public.round + 1, steps.count_duel(public.wins, report), hypothesis))

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
