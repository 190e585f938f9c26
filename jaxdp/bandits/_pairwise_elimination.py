"""Identifies the best arm from randomized bits, by tests that pair the users of one arm with the users of another."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from jaxdp.bandits._best_arm import mean, num_active, rank, reports_of, sweep_counts
from jaxdp.bandits._reports import feedback_privatizer
from jaxdp.core import Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_at_least, check_count, check_number, check_probability

NUM_SLOPES = 20  # slopes are halved, so gaps down to a millionth of the largest gap are tested equally well
LARGEST_SLOPE = 3.0


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `pairwise_elimination` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer of the reports.
        slopes: [NUM_SLOPES] float > 0, the values l in the e-value.
        worse_costs: [NUM_SLOPES] float, log cosh(l). In tests that an arm is worse, each discordant pair subtracts this
            number from the exponent of slope l.
        near_costs: [NUM_SLOPES] float, the corresponding numbers in tests that an arm is worse by at most the
            tolerance.
        threshold: [] float; a test rejects if the logarithm of the e-value is at least this number.
    """

    randomizer: Any
    slopes: np.ndarray
    worse_costs: np.ndarray
    near_costs: np.ndarray
    threshold: Scalar


class Public(NamedTuple):
    """Public state: sums of the reports, and the arms that remain.

    Attributes:
        active: [num_arms] bool, the arms that remain.
        sweeps: [] integer, number of completed sweeps. Each sweep plays every active arm once.
        turn: [] int32, number of active arms that have been played in the current sweep.
        sums: [num_arms] integer, sums of each arm's reports.
        begin: [] integer, number of sweeps that were completed before the current batch. A batch consists of the sweeps
            between two tests.
        sums_before: [num_arms] integer, sums of each arm's reports before the current batch.
        discordant: [num_arms, num_arms] float; for every two arms, the number of pairs of users with different reports.
            For each batch, this is the mean over all ways to pair the batch's users of the two arms.
        near: [num_arms] bool, the arms that tests have shown to be at most the tolerance worse than every other active
            arm.
        tie_word: [] uint32, a random word that determines how the recommendation breaks ties between arms.
    """

    active: jax.Array
    sweeps: jax.Array
    turn: jax.Array
    sums: jax.Array
    begin: jax.Array
    sums_before: jax.Array
    discordant: jax.Array
    near: jax.Array
    tie_word: jax.Array


@factory
def pairwise_elimination(*, num_arms: int) -> Learner:
    r"""Plays the remaining arms in turn, and drops an arm once pairs of users show that this arm is worse than another.

    The k-th users of two arms form a pair. A pair is discordant if its two reports differ, and the arm with the report
    1 wins it. If two arms have equal means, each of them wins a discordant pair with probability 1/2, for every mean
    and every epsilon. So the test needs to know neither a variance nor a gap. An arm is dropped once another active
    arm's e-value against it (see Math) is at least (num_arms - 1) / failure_prob, or with a tolerance at least twice
    this number. Tests take place after 1, 2, ..., 200 sweeps over the active arms, and then whenever the number of
    sweeps has grown by about 1%. The order of users between two tests does not matter, because the test uses the mean
    number of discordant pairs over all ways to pair these users.

    With a tolerance w > 0, the learner also stops once the tests show that some active arm is at most w worse than
    every other active arm. Without a tolerance it may never stop if several arms are equally good.

    Args:
        num_arms: number of arms K, >= 2.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}) that plays and recommends arms ([] int32). It may
        stop before the horizon. The probability that it stops and recommends an arm that is worse than the best arm
        (with a tolerance w: by more than w) is at most failure_prob. Before it stops, for example at a horizon that is
        too short, its recommendation is only a guess. It supports counts. Use `engine="counts"` for long runs, because
        this engine needs only one step from one test to the next.

    Raises:
        ValueError: if num_arms < 2. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        tolerance: w in [0, 1), by default 0: the maximum accepted difference between the best arm's mean reward and the
            recommended arm's mean reward.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once, by randomized response. Everything else, including the stopping
          time, is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports and a random word for ties.

    Source:
        Wald (1947), "Sequential Analysis", chapter 6, for tests of pairs. `docs/proofs/pairs.md` proves the test.

    Deviations:
        Wald tests one pair of arms. The reports, the mean over the slopes $l_k$ and the union bound over pairs of arms
        are ours.

    Math:
        Let $D$ be the number of discordant pairs of users of the arms $i$ and $j$, as a mean over the ways to pair
        them, and let $S$ be the sum of the reports of arm $j$ minus the sum of the reports of arm $i$. Arm $i$ is
        dropped once the e-value

        $$
        \frac{1}{20} \sum_{k=1}^{20} \frac{\exp(l_k S)}{\cosh(l_k)^D} \ge \frac{K - 1}{\beta}
        $$

        for an active arm $j$, where $l_k = \min(\varepsilon, 3) / 2^{k - 1}$, and $\beta$ is `failure_prob`; with a
        tolerance, once it is at least $2 (K - 1) / \beta$.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9, 0.5])
        >>> run = jaxdp.simulator(pairwise_elimination(num_arms=3), bandit, horizon=100_000, engine="counts")
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["correct"].tolist(), outputs["censored"].tolist()
        ([True], False)
    """
    num_arms = check_count("num_arms", num_arms, 2)
    reports = reports_of("rr", "binary", num_arms)
    arm_indices = jnp.arange(num_arms, dtype=jnp.int32)

    def params(*, epsilon: float, failure_prob: float = 0.05, tolerance: float = 0.0) -> Params:
        check_probability("failure_prob", failure_prob)
        if check_at_least("tolerance", check_number("tolerance", tolerance), 0.0) >= 1:
            raise ValueError(f"tolerance must be < 1, got {tolerance}")
        randomizer = reports.params(epsilon=epsilon)
        slopes = min(epsilon, LARGEST_SLOPE) * 0.5 ** np.arange(NUM_SLOPES)
        # If an arm is worse by more than w, the better arm wins a discordant pair with at least the probability
        # `share`.
        share = 1 / (1 + math.exp(-4 * tolerance * math.tanh(epsilon / 2)))
        tests = (num_arms - 1) * (1 if tolerance == 0 else 2)
        dtype = default_float()
        return Params(
            randomizer=randomizer,
            slopes=slopes.astype(dtype),
            worse_costs=_log_mean_exp(slopes, 0.5).astype(dtype),
            near_costs=_log_mean_exp(slopes, share).astype(dtype),
            threshold=scalar_leaf("log((K - 1) / failure_prob)", math.log(tests) - math.log(failure_prob)),
        )

    def init(key, params: Params) -> State:
        del params
        zero, sums = jnp.zeros((), jnp.result_type(int)), jnp.zeros(num_arms, jnp.result_type(int))
        discordant = jnp.zeros((num_arms, num_arms), default_float())
        active, none = jnp.ones(num_arms, bool), jnp.zeros(num_arms, bool)
        return State((), Public(active, zero, jnp.int32(0), sums, zero, sums, discordant, none, own_word(key)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return jnp.argmax(public.active & (rank(public) == public.turn)).astype(jnp.int32)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (action, reported) = state.public, report
        is_over = public.turn + 1 == num_active(public)
        public = public._replace(
            sweeps=public.sweeps + is_over.astype(public.sweeps.dtype),
            turn=jnp.where(is_over, 0, public.turn + 1),
            sums=reports.add(public.sums, arm_indices == action, reported),
        )
        return State((), test(params, public, is_over))

    def batch_size(public: Public) -> jax.Array:
        return jnp.maximum(public.begin // 100, 1)

    def sweeps_ahead(params: Params, public: Public) -> jax.Array:
        del params
        return public.begin + batch_size(public) - public.sweeps

    def test(params: Params, public: Public, is_over: jax.Array) -> Public:
        """Tests all pairs of active arms and drops arms, if a batch has ended; returns the new public state."""
        size = batch_size(public)
        is_end = is_over & (public.sweeps - public.begin == size)
        ones, num_users = (public.sums - public.sums_before).astype(default_float()), size.astype(default_float())
        zero_share = 1 - ones / num_users
        discordant = public.discordant + ones[:, None] * zero_share[None, :] + zero_share[:, None] * ones[None, :]
        # leads[x, y] is the lead of arm y over arm x
        leads = (public.sums[None, :] - public.sums[:, None]).astype(default_float())
        is_pair = public.active[:, None] & public.active[None, :] & (arm_indices[:, None] != arm_indices[None, :])
        is_worse = is_pair & (_log_e_value(params.slopes, params.worse_costs, leads, discordant) >= params.threshold)
        is_near = ~is_pair | (_log_e_value(params.slopes, params.near_costs, leads, discordant) >= params.threshold)
        active = public.active & ~jnp.any(is_worse, axis=1)
        after = public._replace(
            active=active,
            begin=public.sweeps,
            sums_before=public.sums,
            discordant=discordant,
            near=active & jnp.all(is_near, axis=0),
        )
        return jax.tree.map(lambda tested, untested: jnp.where(is_end, tested, untested), after, public)

    def done(params: Params, public: Public) -> jax.Array:
        del params
        return (num_active(public) == 1) | jnp.any(public.near)

    def recommend(params: Params, public: Public) -> jax.Array:
        del params
        ahead = rank(public) < public.turn  # these arms have one more report
        means = mean(public.sums, public.sweeps + ahead.astype(public.sweeps.dtype))
        candidates = jnp.where(jnp.any(public.near), public.near, public.active)
        means = jnp.where(candidates, means, -jnp.inf)
        return ties.largest(means, ties.ranks(public.tie_word, num_arms))

    values = only(params, ("epsilon", "failure_prob", "tolerance"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, reports.claim),
        init=init,
        act=act,
        privatize=feedback_privatizer(reports.report, "randomizer"),
        update=update,
        done=done,
        recommend=recommend,
        counts=sweep_counts(reports, sweeps_ahead, test),
        interface=reports.interface,
        min_horizon=num_arms + 1,
    )


def _log_mean_exp(slopes: np.ndarray, share: float) -> np.ndarray:
    """Returns log E[e^(l s)] for each slope l, where s is -1 with probability `share`, and 1 otherwise."""
    return slopes + np.log1p(share * np.expm1(-2 * slopes))


def _log_e_value(slopes: ArrayLike, costs: ArrayLike, leads: jax.Array, discordant: jax.Array) -> jax.Array:
    """Returns the logarithm of the mean over slopes l of exp(l S - cost D), where S is `leads` and D is `discordant`.

    `leads`, `discordant` and the result are [num_arms, num_arms] float, with one number for each pair of arms.
    """
    slopes, costs = jnp.asarray(slopes)[None, None], jnp.asarray(costs)[None, None]
    powers = leads[..., None] * slopes - discordant[..., None] * costs
    return logsumexp(powers, axis=-1) - math.log(NUM_SLOPES)
