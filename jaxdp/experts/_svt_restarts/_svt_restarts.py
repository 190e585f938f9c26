"""Limited updates that restart when the sparse vector technique detects a change in the distribution of losses."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Guarantee,
    Learner,
    Scalar,
    State,
    default_float,
    factory,
    guarantee_for,
    leaf_rounded_down,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts import _limited_updates as selection
from jaxdp.experts._lane_kernels import keep_lane_layout
from jaxdp.experts._losses import UNIT, losses_interface, of_expert, units_of
from jaxdp.experts._svt_restarts import bulk
from jaxdp.experts._svt_restarts import windows as windows_of
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import all_of, selection_delta, sparse_vector_delta
from jaxdp.mechanisms.sparse_vector import LARGEST_TIMES, AboveThreshold, above_threshold_init, ask, grid_of, restart
from jaxdp.mechanisms.tape import is_open
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import any_lane
from jaxdp.numerics.lookup import nearest_entry
from jaxdp.numerics.rounding import round_product
from jaxdp.validation import check_choice, check_count, check_horizon, check_number, check_probability

SENSITIVITY = 2.0  # sensitivity of a window's regret: a replaced loss vector changes one summand, which is in [-1, 1]
SHARE = 0.5  # the fraction of epsilon for selections; the rest is for queries
# The indices of a round's keys. fold_in(key, i) equals split(key, 3)[i], and is computed where the key is used.
SELECTION, THRESHOLD, QUERY = range(3)


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        block_slack: [num_blocks] float; entry k is the regret per round that is attributed to chance in rounds 2^k to
            2^(k+1) - 1 of an epoch.
        slack_before: [num_blocks] float; entry k is the regret that is attributed to chance in all rounds before block
            k.
        window_slack: [] float; in a window of w rounds, an additional regret of sqrt(w) * window_slack is attributed to
            chance.
        margin: [] float; a restart requires that a window's regret exceeds the total regret attributed to chance by
            this margin.
    """

    epsilon: Scalar
    block_slack: np.ndarray
    slack_before: np.ndarray
    window_slack: Scalar
    margin: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        selection: private state of the limited updates.
        monitor: the current run of AboveThreshold.
        regrets: [num_experts] sums over the epoch of the losses of the plays minus the losses of each expert.
        allowed: [] the regret of the epoch that is attributed to chance, without `window_slack` terms; it depends only
            on public values.
        windows: the stored values of `regrets` and `allowed` at the times after which windows start.
    """

    selection: selection.Private
    monitor: AboveThreshold
    regrets: fixed_point.Sum
    allowed: fixed_point.Sum
    windows: windows_of.Memory


class Public(NamedTuple):
    """The released state.

    Attributes:
        round: [] integer, rounds played.
        selection: public state of the limited updates: rounds played in the epoch, and the current expert.
        restarts: [] int32, number of epochs that have ended.
    """

    round: jax.Array
    selection: selection.Public
    restarts: jax.Array


@factory
def svt_restarts(
    *, num_experts: int, horizon: int, windows: str = "dyadic", check_every: int = 1, noise: str = "exponential"
) -> Learner:
    r"""Plays `limited_updates`, and restarts it (a new epoch) when the regret in some window of rounds is too large.

    The regret of a window is the total loss of the plays in the window minus the total loss of the best expert in the
    window. The threshold of a window is the largest regret that chance explains with probability 1 - failure_prob, plus
    `margin`. Every check_every rounds, the sparse vector technique receives one query. The query is the largest excess
    of regret over threshold among the windows of this epoch that end in this round. After an answer "above", the next
    round starts a new epoch with a new run of the sparse vector technique. The first round of the new epoch still plays
    the expert of the old epoch.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        windows: the windows that a query covers, in addition to the whole epoch. "all": every window that starts in the
            round after a query. This needs memory for 2 N T / check_every integers, and N t / check_every operations
            for a query in round t. "dyadic": for each k, the windows that start after the last two queries with a
            number divisible by 2^k. This needs memory and time O(N log T), but restarts are later. With T = 1e5, N =
            10, failure_prob = 0.01 and a shift of gap 0.5 in the middle, the median delay of "dyadic" is 4,200 rounds
            at epsilon = 1 and 1,300 rounds at epsilon = 4. The median delay of "all" with check_every = 16 is 2,800 and
            1,000 rounds, respectively.
        check_every: a query takes place after every check_every rounds, counted from the first round of the run; >= 1.
            So every epoch except the first starts in the round after a query.
        noise: noise of the selections, as for `limited_updates`.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32). It supports blocks if check_every >= 3 and num_experts <= 341.

    Raises:
        ValueError: if num_experts < 2, horizon or check_every < 1, or windows or noise is not one of the names above.
            The result's `params` raises this error if epsilon is not > 0 or is so small that noise would overflow
            integers (below about 5e-10), failure_prob is not in (0, 1), or margin is not finite.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), a bound on the probability that at least once in `horizon` rounds an epoch ends
            although the distribution of losses has not changed since the epoch started.
        margin: finite, by default 1 + 32 * (ln C + ln(2 T / b)) / epsilon. Here C = T / check_every, rounded up, is the
            maximum number of queries, and b = failure_prob / 5. With a smaller margin, restarts are earlier, but
            failure_prob is not guaranteed. Privacy does not depend on failure_prob or margin.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's loss vector; adjacency: replace one.
        - Given a transcript, epochs are disjoint sets of rounds, and so are the blocks of an epoch. A loss vector is
          used by one selection (epsilon / 2, sensitivity 1) and by one run of AboveThreshold (epsilon / 2), which ends
          with its first answer "above". The selection and the run are interleaved. Both satisfy pure DP, so their costs
          add up as in sequential composition. The new epoch starts in the round after the answer "above".
        - A query has sensitivity 2. A window's regret is the maximum over experts of sums of differences of losses.
          Each difference is in [-1, 1], and a replaced loss vector changes one difference in each sum by at most 2. The
          plays are released, so they are fixed.
        - Slack: The privacy loss is at least epsilon / 8 below the claim for all sizes, because a run of AboveThreshold
          spends at most 3/4 of its budget. In the registry's example, the maximum privacy loss is 0.576 epsilon.
          Proof: `docs/proofs/svt_restarts.md`.
        - Released: the experts, and the rounds in which epochs end.
        - Private: all of `private`.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Algorithm 2 and Theorem 3.6.

    Deviations:
        * The sensitivity is 2. The paper uses 1, for which standard composition gives only 1.5 epsilon-DP.
        * A new epoch starts in the round after the answer "above". In the paper it starts with the round of the answer,
          so that the losses of this round enter two runs and may enter two selections.
        * There is one query for the largest excess over all windows, instead of one query for each window.
        * Thresholds include the factor log T that the paper's Theorem 3.1 omits. Their constants are different, and are
          derived in `docs/proofs/svt_restarts.md`.
        * The play of a round is chosen before its losses are seen.
        * Losses and the regret attributed to chance are rounded to multiples of 2^-20. Regrets, sums of windows and
          queries are integer numbers of this unit. Noise is drawn as in `noisy_min` and `above_threshold`.

    Math:
        After every check_every rounds a new epoch starts if

        $$
        q_t + \nu_t \ge \tau, \quad \nu_t \sim \mathrm{Laplace}(16 / \varepsilon), \quad
        \tau \sim \mathrm{Laplace}(8 / \varepsilon)
        $$

        with one $\tau$ for an epoch, and $q_t$ the largest excess of a window: its regret minus the regret that chance
        explains and minus the margin, by default

        $$
        \Lambda = 1 + \frac{32}{\varepsilon} ( \ln C + \ln(2 T / b) )
        $$

        for at most $C$ queries, and $b$ = failure_prob / 5.

    Examples:
        >>> import jaxdp
        >>> learner = svt_restarts(num_experts=3, horizon=3000, check_every=8)
        >>> shift = np.repeat([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]], 1500, axis=0)
        >>> run = jaxdp.simulator(learner, jaxdp.experts.loss_sequence(shift), horizon=3000, record={
        ...     "restarts": lambda snapshot: snapshot.public.restarts})
        >>> outputs = run(jax.random.key(0), run.params(epsilon=8.0, failure_prob=0.05))
        >>> outputs["restarts"].tolist()[-1], outputs["loss"].tolist()[-1] < 500
        (1, True)
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    check_every = check_count("check_every", check_every)
    check_choice("windows", windows, tuple(windows_of.KINDS))
    limited = selection.limited_updates(num_experts=num_experts, noise=noise)
    checks = -(-horizon // check_every)  # an upper bound on the number of queries
    limited_steps = selection.algorithm(num_experts=num_experts, noise=noise, binary=False)
    memory = windows_of.KINDS[windows](num_experts, checks, check_every)

    def params(*, epsilon: float, failure_prob: float = 0.01, margin: float | None = None) -> Params:
        check_laplace(epsilon, times=2 * LARGEST_TIMES)
        slack = Slack.of(num_experts, horizon, checks, epsilon, check_probability("failure_prob", failure_prob), noise)
        dtype = default_float()
        return Params(
            epsilon=leaf_rounded_down("epsilon", epsilon),
            block_slack=slack.block.astype(dtype),
            slack_before=slack.before.astype(dtype),
            window_slack=scalar_leaf("window_slack", slack.window),
            margin=scalar_leaf("margin", slack.margin if margin is None else check_number("margin", margin)),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit=UNIT,
            argument="each loss vector is in one selection and in one run of the sparse vector technique, of half "
            "the budget each",
            numerical_delta=all_of(selection_delta(num_experts, epsilon / 2), sparse_vector_delta(epsilon / 2)),
        )

    def init(key, params: Params) -> State:
        key_selection, key_monitor = jax.random.split(key)
        begin = limited.init(key_selection, selection_params(params))
        regrets = fixed_point.zero(num_experts)
        private = Private(begin.private, start(key_monitor, params), regrets, fixed_point.zero(), memory.empty())
        return State(private, Public(jnp.zeros_like(begin.public.round), begin.public, jnp.int32(0)))

    def selection_params(params: Params) -> selection.Params:
        return selection.Params(epsilon=SHARE * params.epsilon)

    def start(key, params: Params) -> AboveThreshold:
        return above_threshold_init(
            key, (1 - SHARE) * jnp.asarray(params.epsilon), threshold=0.0, sensitivity=SENSITIVITY
        )

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.selection.expert

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del key, params, public, context
        return action, units_of(feedback)  # central model: the curator sees the play and the losses themselves

    @in_64_bits
    def allowed_until(params: Params, round_: jax.Array) -> fixed_point.Sum:
        """Returns the regret attributed to chance in an epoch's first `round_` >= 1 rounds, without `window_slack`."""
        first = selection.highest_power(round_)
        block = (jnp.iinfo(round_.dtype).bits - 1) - jax.lax.clz(round_)
        of_block, before = (
            nearest_entry(jnp.asarray(table), block).astype(jnp.float64)
            for table in (params.block_slack, params.slack_before)
        )
        allowed = before + round_product(of_block * (round_ - first + 1).astype(jnp.float64))
        return windows_of.as_sum(windows_of.units(allowed), round_.dtype)

    def slack(params: Params, rounds: jax.Array) -> jax.Array:
        """Returns the excess ([...] float64) of regret over `allowed` in `rounds` rounds that causes a restart."""
        window_slack, margin = jnp.asarray(params.window_slack), jnp.asarray(params.margin).astype(jnp.float64)
        return round_product(window_slack * jnp.sqrt(rounds.astype(window_slack.dtype))).astype(jnp.float64) + margin

    def query_time(round_: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the number of queries in the first `round_` rounds, and whether the last of these rounds has one."""
        return round_ // check_every, round_ % check_every == 0

    def begin_round(key, params: Params, state: State) -> State:
        """Starts a run of the sparse vector technique in an epoch's first round; in any round, stores window sums."""
        private, public = state
        is_first = public.selection.round == 0

        def restart_monitor() -> AboveThreshold:
            return restart(is_first, start(jax.random.fold_in(key, THRESHOLD), params), private.monitor)

        monitor = branch(any_lane(is_first), restart_monitor, lambda: private.monitor)
        # A window's regret is the epoch's regret so far minus the stored regret before the window.
        windows_ = memory.remember(private.windows, private.regrets, private.allowed, *query_time(public.round))
        return State(private._replace(monitor=monitor, windows=windows_), public)

    def add_losses(state: State, expert: jax.Array, losses: jax.Array) -> bulk.Sums:
        """Adds the losses of rounds in which `expert` is played to the regrets and totals."""
        private, public = state
        is_first = public.selection.round == 0
        regrets = fixed_point.add(private.regrets, of_expert(losses, expert) - losses, restart=is_first)
        return bulk.Sums(regrets, limited_steps.add(State(private.selection, public.selection), losses))

    def advance(key, params: Params, state: State, sums: bulk.Sums, played: jax.Array) -> State:
        """Advances by `played` rounds of one expert after `add_losses`; makes a query if the last round has one."""
        private, public = state
        regrets, epoch_round, round_ = sums.regrets, public.selection.round, public.round + played
        # Line 6 of Algorithm 2 (see Source): Algorithm 1 continues with half of the budget.
        chosen = limited_steps.advance(
            lambda: jax.random.fold_in(key, SELECTION),
            selection_params(params),
            State(private.selection, public.selection),
            sums.totals,
            played,
        )
        allowed = allowed_until(params, epoch_round + played)
        begin = (public.round - epoch_round) // check_every
        time, asks = query_time(round_)

        of_window, grid = functools.partial(slack, params), grid_of(private.monitor)
        ending = memory.ending_at(of_window, time)
        run = private.monitor._replace(halted=private.monitor.halted | ~asks)  # lanes without a query give no answer

        def ask_query() -> tuple[jax.Array, jax.Array]:  # lines 8 and 9: one query, the largest excess over all windows
            largest = memory.largest(private.windows, regrets, allowed, of_window, ending, time, begin)
            query = windows_of.ranges_as_sum(largest, round_.dtype) if is_open() else largest
            above = ask(jax.random.fold_in(key, QUERY), run, query, grid)[1]
            return private.monitor.halted | above, above

        # XLA skips this only if no lane has a query in this round.
        halted, above = branch(any_lane(asks), ask_query, lambda: (private.monitor.halted, jnp.asarray(False)))
        monitor = private.monitor._replace(halted=halted)

        # Lines 10 to 12: a new epoch starts with the next round, so the number of rounds played in the epoch is reset
        # to 0.
        selected = chosen.public._replace(
            round=jnp.where(above, 0, chosen.public.round),
            expert=jnp.where(above, public.selection.expert, chosen.public.expert),
        )
        return keep_lane_layout(
            State(
                Private(chosen.private, monitor, regrets, allowed, private.windows),
                Public(round_, selected, public.restarts + above.astype(jnp.int32)),
            )
        )

    def update(key, params: Params, state: State, report) -> State:
        action, losses = report
        state = begin_round(key, params, state)
        return advance(key, params, state, add_losses(state, action, losses), jnp.ones_like(state.public.round))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=bulk.blocks(
            bulk.Algorithm(begin_round, add_losses, advance), num_experts=num_experts, check_every=check_every
        ),
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


class Slack(NamedTuple):
    """The regret that is attributed to chance, and the margin, in float64.

    Attributes:
        block: [num_blocks], the regret per round in block k of an epoch.
        before: [num_blocks], the regret in all blocks before block k.
        window: the factor of sqrt(w), for a window of w rounds.
        margin: the margin for the noise of the queries.
    """

    block: np.ndarray
    before: np.ndarray
    window: float
    margin: float

    @classmethod
    def of(
        cls, num_experts: int, horizon: int, checks: int, epsilon: float, failure_prob: float, noise: str
    ) -> "Slack":
        """Computes the thresholds that `docs/proofs/svt_restarts.md` derives."""
        event_prob = failure_prob / 5  # four events for the thresholds, and one for the noise of queries
        budget = SHARE * epsilon
        spread, tail = math.log(2 * num_experts * horizon / event_prob), math.log(num_experts * horizon / event_prob)
        reach = (4 if noise == "laplace" else 2) * tail / budget
        sizes = 2.0 ** np.arange(horizon.bit_length())
        selected_from = np.maximum(sizes / 2, 1)
        block = np.minimum(1.0, np.sqrt(2 * spread / selected_from) + reach / selected_from)
        block[0] = 1.0  # no losses were used to select the first round's expert
        before = np.concatenate([[0.0], np.cumsum(block * sizes)[:-1]])
        log_windows = math.log(2 / event_prob) + 2 * math.log(checks)
        window = math.sqrt(log_windows / 2) + math.sqrt((log_windows + math.log(num_experts)) / 2)
        accuracy = 8 * SENSITIVITY * (math.log(checks) + math.log(2 * horizon / event_prob)) / ((1 - SHARE) * epsilon)
        return cls(block, before, window, accuracy + 1)
