"""Phased elimination by effective Borda scores, from one shuffled batch for each arm and phase."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import CountPlan, Guarantee, Learner, default_float, factory, guarantee_for, leaf_rounded_down
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling._phases import (
    Public,
    empty_passes,
    largest_integer,
    of_phase,
    passes_of,
    phased_learner,
    phases_and_sizes,
)
from jaxdp.dueling._shuffled_batches import CALIBRATIONS, local_budget, smallest_batches
from jaxdp.dueling.reports import randomized_outcome, randomized_outcomes
from jaxdp.validation import (
    check_choice,
    check_delta,
    check_epsilon,
    check_num_arms,
    check_positive,
    check_probability,
)


@pytree_dataclass
class Params:
    """Traced values. Tables are [num_phases, num_arms + 1], for each phase and number of active arms.

    Attributes:
        passes: integer >= 1, the number of times that a phase plays all ordered pairs of active arms; the largest
            integer marks a phase that never ends.
        local_epsilon: float > 0, the privacy budget of a user's report; infinity means that the report is the outcome.
        margins: integer >= 0. An arm stays active if its number of ones is at most this much below the largest number.
    """

    passes: np.ndarray
    local_epsilon: np.ndarray
    margins: np.ndarray


@factory
def ebs_shuffle(*, num_arms: int, calibration: str = "tight") -> Learner:
    r"""Plays all pairs of active arms in phases; the server sees each arm's number of randomized wins after a phase.

    An arm's effective Borda score is its probability of beating a random active arm. Phase k = 1, 2, ... looks for arms
    with a score about D = 2^-k or more below the best score. Each of the S active arms is the left arm in n duels,
    equally often against each active arm (including itself). Each user reports the outcome by randomized response at a
    local budget eps0 >= epsilon. A shuffler collects the reports for each left arm, and releases them at the end of the
    phase in random order, so that they reveal only the number of ones. An arm is dropped if its debiased fraction of
    ones is more than D / 2 below the largest debiased fraction. The last remaining arm duels with itself.

    eps0(n) is the largest local budget in [epsilon, max(epsilon, 8)] with which a shuffled batch of n users is known to
    be (epsilon, delta)-DP; n is the smallest number for which debiased fractions are accurate enough (see Math).

    Args:
        num_arms: number of arms, >= 2.
        calibration: the method that computes eps0(n). "tight": by the exact divergence between the two distributions of
            the number of ones (`shuffle_local_epsilon`; for n > 10,000 see Deviations); eps0 = epsilon is always
            allowed. "bound": by the closed form of Feldman, McMillan & Talwar (`shuffle_local_epsilon_bound`).

    Returns:
        A learner with blocks and counts. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32,
        1 if the left arm wins, else 0 (clipped). Counts are for ordered pairs, in the order of a flattened matrix.

    Raises:
        ValueError: if num_arms < 2, the number of pairs exceeds the integer range, or calibration is unknown. The
            result's `params` raises this error if a value is out of range. For "bound", `params` also raises it if the
            condition of the closed form, epsilon <= log(n / (16 log(2 / delta))), fails for the smallest batch.

    Values:
        epsilon: the privacy budget, > 0.
        delta: in (0, 1).
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies n; then eps0 is computed for the resulting batches. With
            the value 1 the best arm is dropped with probability <= failure_prob, if the preferences have strong
            stochastic transitivity, as in DP-Dueling (Saha & Asi, 2024). A smaller value explores less; this does not
            change the privacy, but gives up the guarantee.

    Privacy:
        - Claim: (epsilon, delta)-DP in the shuffle model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Each user is in one batch: the left arm's batch of one phase. A batch of n users who report at eps0(n) is
          (epsilon, delta)-DP. Earlier releases determine which batch a user is in, so batches have different users and
          compose in parallel.
        - Released: `seen`, the number of ones of each arm, at the end of each phase. `active` is post-processing. An
          unfinished batch is never released.
        - Private: `wins`, which only the shuffler holds.
        - The claim's `batch` is the smallest batch of all phases. Its `local_epsilon` is the largest local budget,
          which is a user's guarantee against an adversary who sees reports before they are shuffled. Larger batches
          have larger local budgets.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 1, in a phased form, in the shuffle model of Cheu et al. (2019);
        Feldman, McMillan & Talwar (2021), Theorem 3.1, for "bound". By Hoeffding's inequality each debiased fraction is
        within D / 4 of its mean except with probability failure_prob / (2 S k^2). These probabilities sum to half of
        failure_prob / k^2 over all arms of a phase, and to less than failure_prob over all phases.

    Deviations:
        The phases correct the paper's analysis (see `ebs_phased`). The right arms come in a fixed order, not at random;
        this keeps the mean of a fraction of wins, and reduces its variance. For more than 10,000 users, "tight" uses
        the exact divergence of 10,000 users, an upper bound, or the closed form if it allows a larger budget. No local
        budget exceeds max(epsilon, 8): at 8 the factor c (see Math) is below 1.0007, so a larger budget gains almost
        nothing.

    Math:
        In phase $k$ let $\varepsilon_0$ be the local budget of a batch of $n$ users, and $\beta$ be `failure_prob`.
        $n$ is the least number, rounded up to a multiple of $S$, with

        $$
        c \sqrt{\frac{\ln(4 S k^2 / \beta)}{2 n}} \le \frac{D}{4}, \quad
        c = \frac{e^{\varepsilon_0} + 1}{e^{\varepsilon_0} - 1}
        $$

        Arm $i$ is dropped if its number of ones is more than $m$ below the largest number,

        $$
        m = \lfloor \frac{n D}{2 c} \rfloor
        $$

    Examples:
        >>> import jax, jaxdp
        >>> duels = jaxdp.dueling.utility_duels([2.0, 0.0, -1.0])
        >>> run = jaxdp.simulator(ebs_shuffle(num_arms=3), duels, horizon=10**6, engine="counts")
        >>> print(run.guarantee(epsilon=1.0, delta=1e-6)["learner"])
        (1, 1e-06)-DP, shuffle, one duel's outcome
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0, delta=1e-6))
        >>> outputs["best_duels"].item() > 995_000
        True
    """
    num_arms = check_num_arms(num_arms)
    check_choice("calibration", calibration, CALIBRATIONS)

    def load_of(phase: int, size: int, failure_prob: float) -> float:
        """Returns the number of duels of an arm, a float, for which the confidence radius is D / 4 if c = 1.

        This number is 8 x / D^2 with x = ln(4 S k^2 / failure_prob).
        """
        return 8 * (math.log(4 * size * phase**2) - math.log(failure_prob)) * 4.0**phase

    def params(
        *, epsilon: float, delta: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0
    ) -> Params:
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        loads = {which: load_of(*which, failure_prob) for which in phases_and_sizes(num_arms)}
        batches = smallest_batches(epsilon, delta, calibration, tuple(loads.values()))
        passes = empty_passes(num_arms)
        budgets = np.full(passes.shape, leaf_rounded_down("epsilon", epsilon), default_float())
        margins = np.zeros_like(passes)
        for (phase, size), load in loads.items():
            num_passes = passes_of(confidence_multiplier * batches[load], size)
            if size == 1 or num_passes is None:  # a single arm's reports are never released
                continue
            users = num_passes * size
            budget = leaf_rounded_down("epsilon", local_budget(epsilon, delta, users, calibration))
            passes[phase - 1, size], budgets[phase - 1, size] = num_passes, budget
            margins[phase - 1, size] = math.floor(users * 0.5**phase / 2 * math.tanh(float(budget) / 2))
        return Params(passes=passes, local_epsilon=budgets, margins=margins)

    def claim(epsilon: float, delta: float, failure_prob: float, confidence_multiplier: float) -> Guarantee:
        tables = params(
            epsilon=epsilon, delta=delta, failure_prob=failure_prob, confidence_multiplier=confidence_multiplier
        )
        ends = tables.passes < largest_integer()
        users = (tables.passes * np.arange(num_arms + 1))[ends]
        largest = float(tables.local_epsilon[ends].max(initial=epsilon))
        smallest = float(tables.local_epsilon[ends].min(initial=largest))
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="shuffle",
            privacy_unit="one duel's outcome",
            argument=f"each outcome is in one shuffled batch, of {users.min(initial=largest_integer())} users or more, "
            f"after randomized response at {smallest:.6g} to {largest:.6g}: more for larger batches",
            batch=int(users.min(initial=largest_integer())),
            local_epsilon=largest,
        )

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del context
        return randomized_outcome(key, of_phase(params.local_epsilon, public), action, feedback)

    def privatize_counts(key, params: Params, public: Public, plan: CountPlan, totals):
        return randomized_outcomes(key, of_phase(params.local_epsilon, public), plan.counts, totals)

    def release(key, params: Params, public: Public, wins: jax.Array) -> tuple[jax.Array, jax.Array]:
        del key  # `wins` are numbers of ones: a number does not show the order of reports
        behind = jnp.max(jnp.where(public.active, wins, 0)) - wins
        return behind <= of_phase(params.margins, public), jnp.where(public.active, wins, 0)

    return phased_learner(
        num_arms=num_arms,
        params=params,
        guarantee=guarantee_for(params, claim),
        privatize=privatize,
        privatize_counts=privatize_counts,
        release=release,
        nothing_seen=lambda: jnp.zeros(num_arms, jnp.result_type(int)),
    )
