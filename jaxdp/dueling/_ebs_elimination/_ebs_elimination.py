"""Elimination by effective Borda scores from private counters of wins, in single rounds as in DP-Dueling.

The source, and "the paper" in this package, is DP-Dueling (Saha & Asi, 2024), Algorithm 1.

* `arms` and `counters` have the steps; `calibration` sets the noise and the widths of the bounds.
* `kernels` has hand-optimised forms of some steps.
* `blocks` plays many rounds at once, with the arithmetic in `sweeps`. Its results equal the results of single rounds
  bit for bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Space,
    State,
    default_float,
    factory,
    guarantee_for,
    only,
    pairs,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.dueling._ebs_elimination import arms as arms
from jaxdp.dueling._ebs_elimination import counters as counters
from jaxdp.dueling._ebs_elimination import kernels as kernels
from jaxdp.dueling._ebs_elimination.arms import Params, Private, Public
from jaxdp.dueling._ebs_elimination.blocks import elimination_blocks
from jaxdp.dueling._ebs_elimination.calibration import Sizes, calibrate
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.arity import level_variances, num_digits
from jaxdp.mechanisms.continual_counting.noise import node_noise
from jaxdp.mechanisms.numerical import gaussian_rho, laplace_delta, normal_delta
from jaxdp.validation import check_choice, check_count, check_horizon, check_num_arms

CONSTANTS = ("tight", "paper")
NOISES = ("laplace", "gaussian")


class Steps(NamedTuple):
    """The steps of a round that have two implementations, in plain JAX and in `kernels`.

    Attributes:
        opponent: (key, active) -> right arm.
        noise_line: (trees, params, digits) -> (intercept, slope) of a bound on each counter's error.
    """

    opponent: Callable[..., jax.Array]
    noise_line: Callable[..., tuple[jax.Array, jax.Array]]


PLAIN = Steps(arms.opponent, counters.noise_line)
KERNELS = Steps(kernels.opponents, kernels.noise_line)


@factory
def ebs_elimination(
    *, num_arms: int, horizon: int, constants: str = "tight", noise: str = "laplace", arity: int | None = None
) -> Learner:
    r"""Plays the least-played active arm against a random active arm; drops arms with low noisy counts of wins.

    Each arm has a counter, which receives the outcome of every duel with this arm on the left. The counter's estimate
    gives bounds on the arm's fraction of wins. After each round, an arm is dropped if its upper bound is below another
    arm's lower bound (see Math). Duels with dropped arms then no longer count: the counter of every remaining arm
    receives minus the number of this arm's wins over the dropped arms. The last remaining arm duels with itself. Least
    played means the fewest duels on the left against active arms; a random order of the arms, fixed for the run, breaks
    ties.

    Args:
        num_arms: number of arms K, >= 2.
        horizon: rounds T, >= 1.
        constants: the radius r of the bounds on an arm's score.
            "tight": n r = c sqrt(n x / 2) plus a bound on the error of the arm's counter, for an arm with n duels, with
            c and x of `docs/proofs/ebs_elimination.md`. That page proves the bounds at all times simultaneously; each
            of the two terms fails with probability at most failure_prob / 2. Counters are trees that combine nodes
            (`tree_counter`). "paper": the radius in Math, with trees that do not combine nodes, and that are binary
            unless `arity` is given; for Laplace noise only.
        noise: the noise of the counters, "laplace" or "gaussian".
        arity: the arity of the counters' trees, >= 2; None means the best arity for the horizon, or 2 with the paper's
            constants.

    Returns:
        A learner with blocks. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32, 1 if the
        left arm wins, else 0 (clipped).

    Raises:
        ValueError: if an argument is out of its range, or constants="paper" is combined with Gaussian noise. The
            result's `params` raises this error if a value is out of range, or if JAX's integers or floats cannot
            represent the noise or the bounds.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian noise, in (0, 1).
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies r. With the value 1 and tight constants, the best arm is
            dropped with probability <= failure_prob, if this arm has the largest effective Borda score in every set
            that contains it; for example, if preferences have strong stochastic transitivity, as in the paper. A
            smaller value drops arms sooner; this does not change the privacy, but gives up the guarantee.

    Privacy:
        - Claim: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: an outcome enters only the left arm's counter, at most twice: once itself, and later its
          negative. So the counters of all arms together have L1 sensitivity 2, and L2 sensitivity sqrt(2), since the
          signs are opposite. With Laplace noise each entry is counted with budget epsilon / 2. Earlier releases
          determine which counters receive an entry in which round, and so the counters' clocks (numbers of entries).
        - Slack: none in transcripts, which can spend all of epsilon. An outcome enters twice, and can spend more than
          epsilon / 2, only if the right arm of its duel is dropped while the left arm stays. If the left arm had no
          other duel than the removed one, the released estimates can spend all of epsilon only in the limit of rare
          outcomes; see `docs/proofs/ebs_elimination.md`.
        - Released: the counters' estimates; everything else is post-processing.
        - Private: `wins`, `sums`.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 1.

    Deviations:
        * The printed algorithm adds entries to counters only after wins, so clocks depend on the outcomes, which breaks
          privacy; here every duel adds an entry.
        * When an arm is dropped, the printed algorithm adds -1 to a counter; here the number of wins over the dropped
          arms is subtracted.
        * A counter's budget is epsilon / 2 instead of epsilon / 4, because an outcome is in one counter, not two.
        * The printed radius has log(log(K / delta)) where a union bound over rounds gives log(K T / delta), as in Math.
          Its noise term is Lemma 1 at the budget epsilon / 4. If this lemma holds (for T of about 16 or more), the term
          is twice as large as these counters need. The radius's first term is proved for fixed sets. It covers all sets
          that may become active if 2^(K - 1) failure_prob <= K T.
        * One entry in each remaining arm's counter removes the wins over all arms that are dropped together. Scores are
          compared after every round; scores that a removal changes are compared in the next round.
        * Noisy nodes are rounded to a lattice of about 2^-12 of the noise's scale (2^-12 if the scale is at most 1),
          which is post-processing. Noise is integer, as in `laplace`.

    Math:
        Let $w_i$ be the counter's estimate of the wins of arm $i$ in its $n_i$ duels as the left arm against active
        arms. After each round arm $i$ is dropped if

        $$
        \frac{w_i}{n_i} + r_i < \max_j \Big( \frac{w_j}{n_j} - r_j \Big)
        $$

        With the paper's constants the radius is

        $$
        r_i = \sqrt{\frac{1}{n_i} \ln \frac{K T}{\beta}} + \frac{16 \ln(K T / \beta) \ln(T)^{2.5}}{\varepsilon n_i}
        $$

        where $\beta$ is `failure_prob`; a `confidence_multiplier` multiplies $r_i$. A counter receives at most $T + K$
        entries. An entry is in $m$ nodes of the tree, one on each level, where $m$ is the number of digits of $T + K$
        in the base of the arity. Every node has the noise

        $$
        Z \sim \mathrm{Laplace}(b), \quad b = \frac{2 m}{\varepsilon}
        $$

        with which an entry costs $\varepsilon / 2$. Gaussian noise is calibrated to the $L_2$ sensitivity
        $\sqrt{2 m}$.

    Examples:
        >>> import jax, jaxdp
        >>> duels = jaxdp.dueling.utility_duels([2.0, 0.0, -1.0])
        >>> learner = ebs_elimination(num_arms=3, horizon=20_000)
        >>> run = jaxdp.simulator(learner, duels, horizon=20_000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=4.0))
        >>> outputs["best_duels"].item() > 10_000
        True
    """
    num_arms, horizon = check_num_arms(num_arms), check_horizon(horizon, spare=1)
    entries = check_horizon(horizon + num_arms, name="horizon + num_arms", spare=1)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"
    is_gaussian = check_choice("noise", noise, NOISES) == "gaussian"
    if is_paper and is_gaussian:
        raise ValueError("constants must be 'tight' with Gaussian noise, got 'paper'")
    if arity is None:
        arity = 2 if is_paper else best_arity(entries, noise=noise)
    arity = check_count("arity", arity, 2)
    levels = num_digits(entries, arity)
    steps = KERNELS  # these kernels serve any number of arms; tests compare them with PLAIN
    trees = Trees(arity, level_variances(arity, levels, not is_paper), node_noise(noise, levels), noise)

    sizes = Sizes(num_arms, horizon, entries, is_paper)

    def params(
        *, epsilon: float, delta: float = 0.0, failure_prob: float = 0.05, confidence_multiplier: float = 1.0
    ) -> Params:
        return calibrate(
            trees,
            sizes,
            epsilon=epsilon,
            delta=delta,
            failure_prob=failure_prob,
            confidence_multiplier=confidence_multiplier,
        )

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        if trees.name == "gaussian":
            added = normal_delta(2 * levels, rho=gaussian_rho(epsilon, delta))
        else:
            added = laplace_delta(epsilon / (2 * levels), releases=2 * levels)
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="central",
            privacy_unit="one duel's outcome",
            argument="each outcome enters one continual counter at most twice, with opposite signs",
            numerical_delta=added,
        )

    def init(key, params: Params) -> State:
        del params
        integer, no_arms = jnp.result_type(int), jnp.zeros(num_arms, bool)
        pairs_, nodes = jnp.zeros((num_arms, num_arms), integer), jnp.zeros((levels, num_arms), integer)
        digits, estimates = nodes.astype(jnp.int32), nodes.astype(default_float())
        public = Public(~no_arms, no_arms, pairs_, digits, estimates, arms.random_turns(key, num_arms))
        return State(Private(pairs_, nodes), public)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return jnp.stack([arms.least_played(public), steps.opponent(key, public.active)])

    def bounds(params: Params, public: Public) -> tuple[jax.Array, jax.Array]:
        """Returns lower and upper bounds (the paper's LCB and UCB) on effective Borda scores, [num_arms] float each."""
        intercept, slope = steps.noise_line(trees, params, public.digits)
        return arms.interval(
            jnp.asarray(params.squared_radius)[jnp.sum(public.active, dtype=jnp.int32)],
            counters.estimated_wins(public.estimates),
            arms.duels(public),
            intercept + slope * public.digits[0].astype(slope.dtype),
        )

    def play(key, params: Params, state: State, report) -> State:
        public, private = state.public, state.private
        action, response = report
        won = jnp.clip(response, 0, 1).astype(private.wins.dtype)
        indices = jnp.arange(num_arms, dtype=action.dtype)
        left = indices == action[0]
        pair = left[:, None] & (indices == action[1])[None, :]
        # The counters: wins over dropped arms are removed, and the left arm's counter gets the outcome.
        nodes = branch(
            public.dropped.any(),
            lambda: counters.remove(trees, key, params, public, private),
            lambda: tree.Nodes(public.digits, private.sums, public.estimates),
        )
        keys = key, jax.random.fold_in(key, counters.UPPER)
        nodes = counters.feed(trees, keys, params, nodes, jnp.where(left, won, 0), left, shared=True)
        plays = public.plays + pair.astype(public.plays.dtype)
        public = public._replace(plays=plays, digits=nodes.digits, estimates=nodes.estimates)
        # Arms with a UCB below another arm's LCB are dropped.
        low, high = bounds(params, public)
        dropped = arms.is_beaten(public.active, low, high)
        public = public._replace(active=public.active & ~dropped, dropped=dropped)
        return State(Private(private.wins + jnp.where(pair, won, 0), nodes.sums), public)

    def update(key, params: Params, state: State, report) -> State:
        return branch(
            jnp.sum(state.public.active, dtype=jnp.int32) > 1,
            lambda: play(key, params, state, report),
            lambda: state,
        )

    names = ("epsilon", "delta", "failure_prob", "confidence_multiplier")
    values = only(params, names if is_gaussian else [name for name in names if name != "delta"])
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        blocks=elimination_blocks(trees, num_arms),
        horizon=horizon,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
