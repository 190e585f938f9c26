"""The exponential mechanism on all past losses, which is applied once per batch of rounds."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee, Learner, Scalar, State, factory, guarantee_for, leaf_rounded_down, only
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts._losses import UNIT, losses_interface, reveal_units
from jaxdp.mechanisms import noisy_min, zcdp_rho
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.numerical import selection_delta
from jaxdp.numerics import fixed_point
from jaxdp.numerics.kernels import any_lane
from jaxdp.validation import check_choice, check_count, check_delta, check_epsilon, check_horizon

ACCOUNTING = ("pure", "zcdp")
CANDIDATES = 4096  # approximate maximum number of batch lengths that are tried


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        learning_rate: [] float > 0.
        batch: [] int32 (int64 in 64-bit mode) >= 1, number of rounds in a batch.
    """

    learning_rate: Scalar
    batch: Scalar


class Public(NamedTuple):
    """The released state.

    Attributes:
        round: [] integer, rounds played.
        expert: [] int32, the current expert.
    """

    round: jax.Array
    expert: jax.Array


@factory
def limited_updates_oblivious(*, num_experts: int, horizon: int, accounting: str = "pure") -> Learner:
    r"""Plays one expert in each batch; the expert is drawn with probability proportional to exp(-rate * total loss).

    The total loss is the loss in all earlier batches. The expert of the first batch is drawn uniformly.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 1.
        accounting: "pure" (from epsilon) or "zcdp" (zero-concentrated, from epsilon and delta).

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if num_experts < 2, horizon < 1, or accounting is not one of the names above. The result's `params`
            raises this error if epsilon is not > 0, delta is not in (0, 1), or batch is not an integer in [1, horizon].

    Values:
        epsilon: the privacy budget, > 0.
        delta: with accounting "zcdp", in (0, 1).
        batch: number of rounds in a batch, an integer in [1, horizon]. By default it minimises the regret bound among
            the lengths that are tried. The rate is the maximum that the budget allows, capped at the best non-private
            rate, sqrt(8 ln N / (batch * T)).

    Privacy:
        - Claim: epsilon-DP, or rho-zCDP for the rho of (epsilon, delta), in the central model.
        - Unit: one round's loss vector; adjacency: replace one.
        - The claim also holds for losses that depend on earlier plays.
        - A loss vector changes each later total by at most 1, and different totals may change in opposite directions. A
          selection by the exponential mechanism at this rate costs 2 rate in pure DP, or rate^2 / 2 in zCDP. All R =
          ceil(T / batch) - 1 selections may depend on the vector, so the rate is at most epsilon / (2 R), or sqrt(2 rho
          / R).
        - Slack: Let P be the larger one of the two probabilities that neighbouring data sets give to the R selected
          experts. The privacy loss of the selections is at most R ln(x + (1 - x) e^(2 rate)), where x = P^(1 / R). This
          bound approaches epsilon only as P goes to 0, and more slowly for larger R. Proof:
          `docs/proofs/selections.md`.
        - Released: the expert of each batch.
        - Private: the totals.

    Source:
        The exponential mechanism in batches: McSherry & Talwar (2007) and Freund & Schapire (1997). The learner is
        private lazy multiplicative weights with a new draw in every batch.

    Deviations:
        * The default batch minimises the regret bound (see Math) over at most about 4,096 integers in [1, T]. For pure
          DP the minimum is of order T^(2/3) (ln N)^(2/3) / epsilon^(1/3). The bound does not hold against an adaptive
          adversary, which can react to the expert of the current batch.
        * Losses are rounded to multiples of 2^-20, and then summed and compared as integers. Noise is drawn as in
          `noisy_min`.

    Math:
        After each batch of $m$ rounds, with $L_i$ the total loss of expert $i$ so far, an expert is drawn with

        $$
        P(i) \propto e^{-\eta L_i}, \quad
        \eta = \min\Big( \frac{\varepsilon}{2 n}, \; \sqrt{\frac{8 \ln N}{m T}} \Big)
        $$

        where $n = \lceil T / m \rceil - 1$ is the number of draws (R above). For "zcdp" the first term is
        $\sqrt{2 \rho / n}$. Against oblivious adversaries the expected regret is at most

        $$
        \frac{\ln N}{\eta} + \frac{\eta m T}{8}
        $$

    Examples:
        >>> import jaxdp
        >>> learner = limited_updates_oblivious(num_experts=10, horizon=10**6)
        >>> int(learner.params(epsilon=1.0).batch), int(learner.params(epsilon=math.inf).batch)
        (332, 1)
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    is_pure = check_choice("accounting", accounting, ACCOUNTING) == "pure"

    def params(*, epsilon: float, delta: float = 0.0, batch: int | None = None) -> Params:
        check_epsilon(epsilon)
        rho = 0.0 if is_pure else zcdp_rho(epsilon, check_delta(delta))

        def rate_of(lengths: np.ndarray) -> np.ndarray:
            updates = np.maximum(np.ceil(horizon / lengths) - 1, 1)
            allowed = epsilon / (2 * updates) if is_pure else np.sqrt(2 * rho / updates)
            return np.minimum(allowed, np.sqrt(8 * math.log(num_experts) / (lengths * horizon)))

        if batch is None:
            tried = np.unique(np.geomspace(1, horizon, CANDIDATES).astype(np.int64)).astype(np.float64)
            rates = rate_of(tried)
            batch = int(tried[np.argmin(math.log(num_experts) / rates + rates * tried * horizon / 8)])
        elif check_count("batch", batch) > horizon:
            raise ValueError(f"batch must be <= horizon={horizon}, got {batch}")
        rate = float(rate_of(np.asarray([batch], np.float64))[0])
        return Params(
            learning_rate=leaf_rounded_down("learning_rate", rate),
            batch=np.dtype(jnp.result_type(int)).type(int(batch)),
        )

    def claim(epsilon: float, batch: int | None, delta: float = 0.0) -> Guarantee:
        argument = "every loss vector is in the totals of all later batches; each batch selects by the exponential "
        leaves = params(epsilon=epsilon, delta=delta, batch=batch)
        updates = -(-horizon // int(leaves.batch))
        fields = {
            "trust_model": "central",
            "privacy_unit": UNIT,
            "argument": argument + "mechanism",
            "numerical_delta": selection_delta(num_experts, 2 * float(leaves.learning_rate), selections=updates),
        }
        return Guarantee.pure(epsilon, **fields) if is_pure else Guarantee.zcdp(zcdp_rho(epsilon, delta), **fields)

    def init(key, params: Params) -> State:
        del params
        expert = jax.random.randint(key, (), 0, num_experts, jnp.int32)
        return State(fixed_point.zero(num_experts), Public(jnp.zeros((), jnp.result_type(int)), expert))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.expert

    def update(key, params: Params, state: State, report) -> State:
        totals, round_ = fixed_point.add(state.private, report), state.public.round + 1
        due = (round_ % jnp.asarray(params.batch) == 0) & (round_ < horizon)

        def release() -> jax.Array:
            level = 2 * jnp.asarray(params.learning_rate)  # the budget of the exponential mechanism
            return jnp.where(due, noisy_min(key, totals, level, noise="gumbel"), state.public.expert)

        return State(totals, Public(round_, branch(any_lane(due), release, lambda: state.public.expert)))

    values = only(params, ("epsilon", "batch") if is_pure else ("epsilon", "delta", "batch"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_units,
        update=update,
        horizon=horizon,
        interface=losses_interface(num_experts),
    )
