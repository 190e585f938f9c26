"""Plays an expert until the sparse vector technique rejects it, then draws the next by the exponential mechanism."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import bdtr

from jaxdp.core import Guarantee, Learner, Scalar, State, factory, guarantee_for, leaf_rounded_down, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._losses import UNIT, losses_interface, of_expert, units_in_kernel
from jaxdp.mechanisms import noisy_min, zcdp_rho
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import all_of, selection_delta, sparse_vector_delta
from jaxdp.mechanisms.some_lanes import in_flagged_lanes
from jaxdp.mechanisms.sparse_vector import LARGEST_TIMES, AboveThreshold, above_threshold_init, ask, grid_of
from jaxdp.numerics import fixed_point
from jaxdp.numerics.kernels import any_lane
from jaxdp.validation import (
    check_at_least,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_horizon,
    check_number,
    check_probability,
)

ACCOUNTING = ("pure", "zcdp")
# While one expert is played, the logarithm of the sum of weights decreases by at least this with probability >= 1/2.
DROP = -math.log(0.5 + 0.5 / math.e)


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        monitor_epsilon: [] float > 0, the budget of AboveThreshold; a run costs only half of this budget (see Privacy
            in `svt_lazy`). At infinity, comparisons are exact.
        learning_rate: [] float > 0, the rate of the exponential mechanism.
        threshold: [] float. An expert is replaced one round after its noisy loss since its selection reaches the noisy
            threshold.
        max_switches: [] int32, maximum number of selections, in [1, T].
    """

    monitor_epsilon: Scalar
    learning_rate: Scalar
    threshold: Scalar
    max_switches: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        totals: [num_experts] sums of all past losses.
        expert_loss: [] sum of the current expert's losses since its selection.
        monitor: the current run of AboveThreshold. From a selection until the end of the next round, `expert_loss` and
            `monitor` still belong to the previous expert.
    """

    totals: fixed_point.Sum
    expert_loss: fixed_point.Sum
    monitor: AboveThreshold


class Public(NamedTuple):
    """The released state.

    Attributes:
        expert: [] int32, the current expert.
        switches: [] int32, number of selections so far.
        played: [] integer, number of rounds since the last selection; -1 before a round that ends with a selection.
    """

    expert: jax.Array
    switches: jax.Array
    played: jax.Array


@factory
def svt_lazy(*, num_experts: int, horizon: int, accounting: str = "pure") -> Learner:
    r"""Plays an expert until its loss is too large, then draws the next expert by the exponential mechanism.

    After each round, the sparse vector technique compares the expert's total loss since its selection with a threshold.
    After an answer "above", the expert is played for one more round. At the end of this round, the next expert is drawn
    with probability proportional to exp(-rate * total loss). There are at most K such draws. The first expert is drawn
    uniformly. The learner is designed for loss sequences in which some expert has a small total loss.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        accounting: "pure" (from epsilon) or "zcdp" (zero-concentrated, from epsilon and delta).

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if num_experts < 2, horizon < 1, or accounting is not one of the names above. The result's `params`
            raises this error if a value is out of range, epsilon is so small that noise would overflow integers (below
            about 5e-10 for "pure"), or the default of max_switches is 2^31 or more.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with accounting "zcdp", in (0, 1).
        best_loss: >= 0 and finite, by default 0: a bound on the total loss of the best expert, which must be known in
            advance.
        failure_prob: in (0, 1), by default 0.01.
        max_switches: K in [1, 2^31), by default the minimum of T and the smallest number for which the bound on the
            loss is proved (see Deviations).
        threshold: finite, by default as in Math. Privacy does not depend on `threshold`, `best_loss` or `failure_prob`.

    Privacy:
        - Claim: epsilon-DP, or rho-zCDP for the rho of (epsilon, delta), in the central model.
        - Unit: one round's loss vector; adjacency: replace one.
        - The claim also holds for losses that depend on earlier plays.
        - Given a transcript, a loss vector enters at most one run of AboveThreshold. In this run, the vector changes
          all queries from its round on by the same d in [-1, 1], and no earlier query. So the run costs only half of
          its budget. For "pure", the budget is epsilon, and the run is (epsilon / 2)-DP. For "zcdp", the budget is 2
          sqrt(rho), and the run is sqrt(rho)-DP, which implies (rho / 2)-zCDP.
        - A loss vector changes each total by at most 1, in either direction, and K selections may depend on it. Each
          selection costs 2 rate in pure DP, or rate^2 / 2 in zCDP, and the rate is at most epsilon / (4 K) or sqrt(rho
          / K). After K selections, losses are no longer used.
        - Slack: In pure DP, the privacy losses of a run of AboveThreshold and of the selections approach their bounds
          only for outcomes with probabilities approaching 0. For the registry's pair of inputs, the maximum privacy
          loss is 0.971 epsilon.
        - Proofs: `docs/proofs/svt_lazy.md`.
        - Released: the experts, and the rounds in which the expert changes.
        - Private: all of `private`.

    Source:
        The structure follows Asi, Feldman, Koren & Talwar (2023), "Near-Optimal Algorithms for Private Online
        Optimization in the Realizable Regime"; the accounting, the threshold and the number of switches are derived
        here.

    Deviations:
        * The rate is at most 1. For the default threshold, let a = threshold - 1 / rate, which bounds the error that
          the noise of queries causes. With the default K and against oblivious adversaries, the total loss is at most K
          * (1 / rate + 2 a + 2) with probability 1 - 2 * failure_prob (see `docs/proofs/svt_lazy.md`).
        * A selection takes place one round after the answer "above", so that the time of the selection is public before
          its noise is drawn.
        * Losses are rounded to multiples of 2^-20. Sums, comparisons and queries use integers. Noise is drawn as in
          `noisy_min` and `above_threshold`.

    Math:
        Let $\ell_t$ be the total loss of the current expert since its selection. For "pure", the expert is replaced
        one round after the first round $t$ with

        $$
        \ell_t + \nu_t \ge \tau + Z, \quad \nu_t \sim \mathrm{Laplace}(4 / \varepsilon), \quad
        Z \sim \mathrm{Laplace}(2 / \varepsilon)
        $$

        The next expert is drawn; expert $i$, with the total loss $L_i$, has the probability

        $$
        P(i) \propto e^{-\eta L_i}, \quad \eta = \min\Big( 1, \; \frac{\varepsilon}{4 K} \Big), \quad
        \tau = \frac{1}{\eta} + \frac{8}{\varepsilon} \Big( \ln T + \ln \frac{2 (K + 1)}{\beta} \Big)
        $$

        where $\tau$ is the default threshold, and $\beta$ is `failure_prob`. For "zcdp", $\varepsilon$ in the noise and
        in $\tau$ is $2 \sqrt{\rho}$, and $\eta = \min(1, \sqrt{\rho / K})$.

    Examples:
        >>> import jaxdp
        >>> losses = np.zeros((4000, 8)); losses[:, 1:] = 1.0
        >>> learner = svt_lazy(num_experts=8, horizon=4000)
        >>> run = jaxdp.simulator(learner, jaxdp.experts.loss_sequence(losses), horizon=4000)
        >>> run(jax.random.key(0), run.params(epsilon=math.inf))["regret"].tolist()[-1] < 100
        True
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    is_pure = check_choice("accounting", accounting, ACCOUNTING) == "pure"

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        best_loss: float = 0.0,
        failure_prob: float = 0.01,
        max_switches: int | None = None,
        threshold: float | None = None,
    ) -> Params:
        check_epsilon(epsilon)
        check_number("best_loss", check_at_least("best_loss", best_loss, 0.0))
        check_probability("failure_prob", failure_prob)
        rho = 0.0 if is_pure else zcdp_rho(epsilon, check_delta(delta))

        def rate_of(switches: int) -> float:
            return min(1.0, epsilon / (4 * switches) if is_pure else math.sqrt(rho / switches))

        def enough(switches: int) -> bool:
            halves = (math.log(num_experts) + rate_of(switches) * best_loss) / DROP
            return float(bdtr(min(math.floor(halves), switches), switches, 0.5)) <= failure_prob

        # The budget of AboveThreshold; a run costs half of this budget.
        budget = epsilon if is_pure else 2 * math.sqrt(rho)
        check_laplace(budget, times=2 * LARGEST_TIMES)
        switches = _least(enough, horizon) if max_switches is None else check_count("max_switches", max_switches)
        rate = rate_of(switches)
        accuracy = 8 * (math.log(horizon) + math.log(2 * (switches + 1) / failure_prob)) / budget
        level = 1 / rate + accuracy if threshold is None else check_number("threshold", threshold)
        return Params(
            monitor_epsilon=leaf_rounded_down("epsilon", budget),
            learning_rate=leaf_rounded_down("learning_rate", rate),
            threshold=scalar_leaf("threshold", level),
            max_switches=np.int32(check_count("max_switches", min(switches, horizon), maximum=2**31 - 1)),
        )

    def claim(
        epsilon: float, best_loss: float, failure_prob: float, max_switches: int | None, delta: float = 0.0
    ) -> Guarantee:
        unit = UNIT
        argument = (
            "each loss vector is in one run of the sparse vector technique, and in a limited number of selections"
        )
        values = {"best_loss": best_loss, "failure_prob": failure_prob, "max_switches": max_switches}
        leaves = params(epsilon=epsilon, delta=delta, **values)
        monitored, selections = float(leaves.monitor_epsilon), int(leaves.max_switches)
        added = all_of(
            selection_delta(num_experts, 2 * float(leaves.learning_rate), selections=selections),
            sparse_vector_delta(monitored),  # a bound for both shifts; this run needs only one
        )
        fields = {"trust_model": "central", "privacy_unit": unit, "argument": argument, "numerical_delta": added}
        return Guarantee.pure(epsilon, **fields) if is_pure else Guarantee.zcdp(zcdp_rho(epsilon, delta), **fields)

    def start(key, epsilon: Scalar, threshold: Scalar) -> AboveThreshold:
        monitor_run = above_threshold_init(key, jnp.asarray(epsilon), threshold=jnp.asarray(threshold))
        # An auditor's tape records half of the budget as the cost of a run (see Privacy in `svt_lazy`).
        return monitor_run._replace(epsilon=monitor_run.epsilon / 2)

    def init(key, params: Params) -> State:
        key_expert, key_monitor = jax.random.split(key)
        private = Private(
            fixed_point.zero(num_experts),
            fixed_point.zero(),
            start(key_monitor, params.monitor_epsilon, params.threshold),
        )
        expert = jax.random.randint(key_expert, (), 0, num_experts, jnp.int32)
        return State(private, Public(expert, jnp.int32(0), jnp.zeros((), jnp.result_type(int))))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.expert

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del key, params, public, context
        # Central model: the curator sees the play and the losses themselves. Losses are rounded once for both sums.
        return action, units_in_kernel(feedback)

    def update(key, params: Params, state: State, report) -> State:
        key_threshold, key_query, key_select = jax.random.split(key, 3)
        action, losses = report
        private, public = state
        is_new_run, selects = public.played == 0, public.played < 0
        watches = ~selects & (public.switches < jnp.asarray(params.max_switches))

        threshold = in_flagged_lanes(
            is_new_run,
            lambda *inputs: start(*inputs).noisy_threshold,
            private.monitor.noisy_threshold,
            key_threshold,
            params.monitor_epsilon,
            params.threshold,
        )
        monitor = private.monitor._replace(noisy_threshold=threshold, halted=private.monitor.halted & ~is_new_run)
        expert_loss = fixed_point.add(private.expert_loss, of_expert(losses, action), restart=is_new_run)
        totals = fixed_point.add(private.totals, losses)

        grid = grid_of(monitor)

        def ask_query() -> tuple[jax.Array, jax.Array]:
            asked, above = ask(key_query, monitor, expert_loss, grid)
            return jnp.where(watches, asked.halted, monitor.halted), above & watches

        halted, above = branch(any_lane(watches), ask_query, lambda: (monitor.halted, jnp.asarray(False)))
        monitor = monitor._replace(halted=halted)

        def select(key: jax.Array, totals: fixed_point.Sum, learning_rate: jax.Array) -> jax.Array:
            # the budget of the exponential mechanism is twice the rate
            return noisy_min(key, totals, 2 * learning_rate, noise="gumbel")

        rate = jnp.asarray(params.learning_rate)
        expert = in_flagged_lanes(selects, select, public.expert, key_select, totals, rate)
        played = jnp.where(selects, 0, jnp.where(above, -1, public.played + 1))
        return State(
            Private(totals, expert_loss, monitor),
            Public(expert, public.switches + selects.astype(jnp.int32), played.astype(public.played.dtype)),
        )

    values = only(
        params, ("epsilon", *(() if is_pure else ("delta",)), "best_loss", "failure_prob", "max_switches", "threshold")
    )
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )


def _least(enough, largest: int) -> int:
    """Returns the smallest number in [1, largest] such that the monotone `enough` is true; `largest` if none is."""
    low, high = 1, largest
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
