"""Phased elimination by effective Borda scores, with one private release at the end of each phase."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee, Learner, Scalar, factory, guarantee_for, leaf_rounded_down
from jaxdp.core.central import reveal_feedback, reveal_totals
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling._phases import (
    Public,
    duels_of_each,
    empty_passes,
    passes_of,
    phased_learner,
    phases_and_sizes,
)
from jaxdp.mechanisms import noisy_leads
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.validation import check_choice, check_num_arms, check_positive, check_probability

CONSTANTS = ("tight", "split")


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        passes: [num_phases, num_arms + 1] integer >= 1, the number of times that a phase plays all ordered pairs of
            active arms, by phase and number of active arms; the largest integer marks a phase that never ends.
    """

    epsilon: Scalar
    passes: np.ndarray


@factory
def ebs_phased(*, num_arms: int, constants: str = "tight") -> Learner:
    r"""Plays all pairs of active arms in phases; after each phase, drops arms with a low noisy fraction of wins.

    An arm's effective Borda score is its probability of beating a random active arm. Phase k = 1, 2, ... looks for arms
    with a score about D = 2^-k or more below the best score. Each of the S active arms is the left arm in n duels,
    equally often against each active arm (including itself). Then Laplace(1 / epsilon) noise is added once to each
    arm's number of wins. An arm is dropped if its noisy fraction of wins is more than D / 2 below the largest noisy
    fraction. The last remaining arm duels with itself.

    Since an arm also duels with itself, an arm with score b against the other active arms has the score ((S - 1) b +
    1/2) / S here. This does not change the arms' order. The regret of `matrix_duels(regret="borda")` uses scores
    against all other arms, including dropped arms.

    Args:
        num_arms: number of arms, >= 2.
        constants: how n is chosen (see Math). Two terms bound the error of a fraction of wins. "tight": their sum is at
            most D / 4; "split": each is at most D / 8. For the same failure_prob, the n of "split" is 1 to 4 times as
            large (equal at D = 4 epsilon, and 4 times as large at epsilon = inf).

    Returns:
        A learner with blocks and counts. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32,
        1 if the left arm wins, else 0 (clipped). Counts are for ordered pairs, in the order of a flattened matrix.

    Raises:
        ValueError: if num_arms < 2, the number of pairs exceeds the integer range, or constants is unknown. The
            result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies n. With the value 1 the best arm is dropped with
            probability <= failure_prob, if the preferences have strong stochastic transitivity, as in DP-Dueling (Saha
            & Asi, 2024). A smaller value explores less; this does not change the privacy, but gives up the guarantee.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Sensitivity: a duel changes one count of one phase, the left arm's, by at most 1. The counts of a phase have
          L1 sensitivity 1, and are released once, each with Laplace(1 / epsilon) noise. Earlier releases determine the
          ends of phases, so phases have different users and compose in parallel.
        - Released: `active`, which is post-processing of the noisy counts.
        - Private: `wins`.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 1, in a phased form. With x as in Math, two errors are rare. A fraction
        of wins is farther than sqrt(x / (2 n)) from its mean with probability at most 2 exp(-x) (Hoeffding's
        inequality). The noise of a count exceeds x / epsilon in absolute value with probability at most exp(-x). Over
        all arms of phase k these probabilities sum to 3/8 of failure_prob / k^2, and over all phases to less than
        failure_prob. Without such an error each noisy fraction is within D / 4 of its mean, so the best arm is kept,
        and an arm with a score more than D below the best score is dropped.

    Deviations:
        The paper's analysis treats the scores of an active set as fixed although the set depends on the outcomes; the
        phases correct this. The right arms come in a fixed order, not at random; this keeps the mean of a fraction of
        wins, and reduces its variance. Noisy counts are compared by their leads (`noisy_leads`). Noise is integer, as
        in `laplace`.

    Math:
        After the $n$ duels of a phase, the number of wins $W_i$ of an active arm is released as

        $$
        \tilde W_i = W_i + Z_i, \quad Z_i \sim \mathrm{Laplace}(1 / \varepsilon)
        $$

        and arm $i$ is dropped if $\tilde W_i < \max_j \tilde W_j - n D / 2$. In phase $k$, with $S$ active arms and
        $D = 2^{-k}$, let $x = \ln(8 S k^2 / \beta)$, where $\beta$ is `failure_prob`. For "tight", $n$ is the least
        multiple of $S$ with

        $$
        \sqrt{\frac{x}{2 n}} + \frac{x}{\varepsilon n} \le \frac{D}{4}
        $$

        and for "split" the least multiple of $S$ that is at least

        $$
        N = \max\Big( \frac{32 x}{D^2}, \; \frac{8 x}{\varepsilon D} \Big)
        $$

        A `confidence_multiplier` multiplies the least real number $n$, or $N$, before it is rounded up to a multiple of
        $S$.

    Examples:
        >>> import jax, jaxdp
        >>> duels = jaxdp.dueling.utility_duels([2.0, 0.0, -1.0])
        >>> run = jaxdp.simulator(ebs_phased(num_arms=3), duels, horizon=10**6, engine="counts")
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["best_duels"].item() > 995_000
        True
    """
    num_arms = check_num_arms(num_arms)
    is_split = check_choice("constants", constants, CONSTANTS) == "split"

    def duels_of(phase: int, size: int, epsilon: float, failure_prob: float) -> float:
        gap, tail = 0.5**phase, math.log(8 * size * phase**2) - math.log(failure_prob)  # D, x
        if is_split:
            return max(32 * tail / gap**2, 8 * tail / gap / epsilon)
        root = 2 / gap * (math.sqrt(tail / 2) + math.sqrt(tail / 2 + tail * gap / epsilon))  # sqrt(n)
        return root * root  # not a power: Python raises an error for a power that is too large

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        leaf, passes = leaf_rounded_down("epsilon", check_laplace(epsilon, numbers=num_arms)), empty_passes(num_arms)
        for phase, size in phases_and_sizes(num_arms):
            duels = confidence_multiplier * duels_of(phase, size, epsilon, failure_prob)
            passes[phase - 1, size] = passes_of(duels, size) or passes[phase - 1, size]
        return Params(epsilon=leaf, passes=passes)

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one duel's outcome",
            argument="each outcome enters one count, released once by the Laplace mechanism at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def release(key, params: Params, public: Public, wins: jax.Array) -> tuple[jax.Array, tuple[()]]:
        leads = noisy_leads(key, wins, params.epsilon, l1_sensitivity=1.0, among=public.active)
        half_gap = jnp.exp2(-(public.phase + 2).astype(leads.dtype))  # D / 2 in phase k = public.phase + 1
        return -leads <= duels_of_each(params, public).astype(leads.dtype) * half_gap, ()

    return phased_learner(
        num_arms=num_arms,
        params=params,
        guarantee=guarantee_for(params, claim),
        privatize=reveal_feedback,
        privatize_counts=reveal_totals,
        release=release,
        nothing_seen=tuple,
    )
