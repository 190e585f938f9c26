"""A bandit with means that change over time and gaps that stay the same."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.bandits.environments import bandit_of, gap_outcome, instance_leaves, means_vector
from jaxdp.core import Environment, Scalar, Space, factory, repeat_outcome, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.gaps import ROUNDING, unit_instance
from jaxdp.numerics.lookup import entry
from jaxdp.validation import check_within

GROWTH = 1.6


@pytree_dataclass
class DriftingParams:
    """The environment's parameters, which JAX traces.

    Attributes:
        means: [num_arms] float in [0, 1], the arms' mean rewards in phases 0, 2, 4, ...
        gaps: [num_arms] float >= 0, the largest mean minus each arm's mean.
        drift: [] float >= 0, the amount by which all means are lower in phases 1, 3, 5, ...
    """

    means: np.ndarray
    gaps: np.ndarray
    drift: Scalar


@factory
def drifting_bandit(means: ArrayLike, *, drift: float | None = None) -> Environment:
    """Rewards of 0 or 1; all means fall and rise together (a stochastically constrained adversary).

    Phases become longer over time: phase j starts in round 1.6^j (rounded up). In every second phase all means are
    lower by `drift`. Gaps and the best arm stay the same. But an arm's mean reward differs between phases, so learners
    that average all rewards of an arm are misled. A single uniform number per round determines the rewards of all arms.

    Args:
        means: [num_arms] in [0, 1], the means in the phases without drift.
        drift: default of the value `drift` (see Values); if None, the default is the smallest mean.

    Returns:
        An environment for actions in [0, num_arms) and rewards ([] int32 in {0, 1}). It supports blocks. Outcomes and
        recommendations are as for `bernoulli_bandit`. The world is the number of rounds played.

    Raises:
        ValueError: if means are not a vector of at least two numbers in [0, 1]. The result's `params` raises this error
            if a value is out of range or results in a mean outside [0, 1], or if `gap` is given and all means are
            equal.

    Values:
        drift: in [0, the smallest mean]; by default the argument `drift`.
        gap: > 0, the difference between the largest mean and the next lower mean; by default the difference in `means`.
            All gaps are rescaled in proportion. The largest mean stays the same unless `best_mean` is given.
        best_mean: in [0, 1], the largest mean, by default the largest of `means`. Means are `best_mean` minus the gaps.

    Source:
        Zimmert & Seldin (2021), section 6, where means also alternate in phases of growing length.

    Deviations:
        In float32 the uniform number is a multiple of 2^-23, and so are probabilities.

    Examples:
        >>> import jax, jaxdp
        >>> world = drifting_bandit([0.9, 0.8])
        >>> run = jaxdp.simulator(jaxdp.bandits.tsallis_inf(num_arms=2), world, horizon=100)
        >>> bool(run(jax.random.key(0), run.params(epsilon=1.0, drift=0.5))["pseudo_regret"][-1] < 10)
        True
    """
    base_means, default = means_vector(check_within("means", means, 0.0, 1.0)), drift
    integer = jnp.result_type(int)
    largest = int(jnp.iinfo(integer).max)
    starts = np.unique(np.ceil(GROWTH ** np.arange(np.log(largest) / np.log(GROWTH))).astype(np.int64))

    def params(
        *, drift: float | None = default, gap: float | None = None, best_mean: float | None = None
    ) -> DriftingParams:
        exact, gaps = unit_instance(base_means, gap, best_mean)
        least = float(exact.min())
        if drift is None:
            drift = least
        if not 0 <= drift <= least + ROUNDING:
            raise ValueError(f"drift must be in [0, {least:.4g}], the smallest mean, got {drift}")
        means, gaps = instance_leaves(exact, gaps)
        return DriftingParams(means=means, gaps=gaps, drift=scalar_leaf("drift", float(min(drift, least))))

    def feedback(key, params: DriftingParams, round_, action):
        phase = sum((round_ + 1 >= int(start)).astype(jnp.int32) for start in starts[1:])
        mean = entry(jnp.asarray(params.means), action)
        mean = mean - jnp.where(jnp.asarray(phase) % 2 == 1, params.drift, 0)
        uniform = jax.random.uniform(key, dtype=mean.dtype)
        return round_ + 1, (uniform < mean).astype(jnp.int32), gap_outcome(params, action)

    def block(keys, params: DriftingParams, round_, contexts: None, actions):
        del contexts
        rounds = round_ + jnp.arange(len(keys), dtype=integer)
        return jax.vmap(lambda key, round_number, action: feedback(key, params, round_number, action))(
            keys, rounds, actions
        )

    def unheard(params: DriftingParams, round_, action, rounds):
        return round_ + rounds, repeat_outcome(gap_outcome(params, action), rounds)

    environment = bandit_of(len(base_means), params, feedback, None, Space("integers", (), 0, 1))
    return environment._replace(
        init=lambda key, params: jnp.zeros((), integer),
        block=block,
        means=lambda params: np.stack([params.means, params.means - params.drift]),
        unheard=unheard,
    )
