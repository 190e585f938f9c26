"""Contract checks for each kind of algorithm: all its checks, which report together."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax

from jaxdp.core import Environment, Estimator, Guarantee, Learner
from jaxdp.testing.checks import run_checks
from jaxdp.testing.estimators import EstimatorPrograms
from jaxdp.testing.learners import NUM_LANES, LearnerPrograms
from jaxdp.testing.mechanisms import MechanismPrograms
from jaxdp.testing.programs import TOLERANCE


def check_estimator(
    estimator: Estimator,
    values: Mapping[str, float],
    features: jax.Array,
    labels: jax.Array,
    *,
    key: jax.Array,
    tolerance: float = TOLERANCE,
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> None:
    """Runs the checks of an estimator on one data set.

    - Arguments have the names that callers use. `params` and `guarantee` take the same values and refuse a bad epsilon.
    - jit = eager; vmap over seeds and epsilons = loop, with one trace for all epsilons.
    - No key is used twice in a function, and none is the same in every run, such as `jax.random.key(0)`.
    - At epsilon = inf the report does not depend on the key. A guarantee that claims something depends on epsilon.
    - If features are not declared public, the estimate depends on them through the report alone.

    It cannot determine whether the noise is large enough: noise of any scale passes. `jaxdp.audit.audit` attacks the
    claim.

    Args:
        estimator: to check.
        values: a grid point; `epsilon` is varied if it is among them.
        features: [num_samples, dim] float.
        labels: [num_samples] int32.
        key: of the checks.
        tolerance: between programs that should compute the same, relative and absolute.
        skip: names of checks to leave out, as `checks_of` has them.
        only: names of the checks to run; empty for all.

    Raises:
        AssertionError: if checks fail. It names each with its reason.
        ValueError: if a name is none of the checks.
    """
    programs = EstimatorPrograms(estimator, values, features, labels, key=key, tolerance=tolerance)
    run_checks(programs.checks(), skip=skip, only=only)


def check_learner(
    learner: Learner,
    environment: Environment,
    values: Mapping[str, float],
    *,
    horizon: int,
    key: jax.Array,
    tolerance: float = TOLERANCE,
    num_lanes: int = NUM_LANES,
    draws_in_update: bool = False,
    may_claim_less: bool = False,
    multiple: float = 1.0,
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> None:
    """Runs the checks of a learner on one environment.

    - Arguments have the names that callers use. `params` and `guarantee` take the same values and refuse a bad epsilon.
    - Shapes fit, states are stable; jit = eager; vmap over seeds and epsilons = loop, with one trace for all epsilons.
    - In single rounds no key is used twice in a function, and none is the same in every run.
    - At epsilon = inf neither `privatize` nor `update` depends on its key, in any round; for `update` see
      `draws_in_update`. A guarantee that claims something depends on epsilon.
    - Every play is one of the actions that the environment declares, by rounds, blocks and counts. Nine lanes are
      checked: three seeds at epsilon, at half of it and at infinity.
    - Blocks = rounds, bit for bit, also in released values, if both sides have blocks, and results do not depend on the
      checkpoints.
    - Counts play as many rounds up to each checkpoint, and outcomes, metrics and released values have the distribution
      of rounds, at epsilon and at smaller ones. `num_lanes` lanes are drawn.

    It cannot determine whether the noise is large enough: noise of any scale passes; `jaxdp.audit.grey_box` measures
    it. A difference in the distribution of counts must occur within the horizon, which should be longer than two
    blocks.

    Args:
        learner: to check.
        environment: that it plays.
        values: a grid point of both; `epsilon` is varied if it is among them.
        horizon: rounds to play, >= 2.
        key: of the checks.
        tolerance: between programs that should compute the same, relative and absolute.
        num_lanes: number of lanes of each engine whose distributions are compared, >= 1; 10,000 of them find noise of
            half the scale if it matters about as much as the data.
        draws_in_update: whether `update` draws the next play, also without privacy: from weights, or among equal
            scores. Then its key may, at epsilon = inf, decide integers of the public state, and nothing else: no float
            of it, and nothing private. The check does not test that these integers have the distribution of the
            non-private algorithm.
        may_claim_less: whether the guarantee may be a smaller epsilon than the one among the values, if the learner
            does not spend all of it.
        multiple: the guarantee's epsilon over the one among the values, not 1 for an algorithm whose published claim is
            too small.
        skip: names of checks to leave out, as `checks_of` has them.
        only: names of the checks to run; empty for all.

    Raises:
        AssertionError: if checks fail. It names each with its reason.
        ValueError: if a name is none of the checks.
    """
    programs = LearnerPrograms(
        learner,
        environment,
        values,
        horizon=horizon,
        key=key,
        tolerance=tolerance,
        num_lanes=num_lanes,
        draws_in_update=draws_in_update,
        may_claim_less=may_claim_less,
        multiple=multiple,
    )
    run_checks(programs.checks(), skip=skip, only=only)


def check_mechanism(
    params: Callable[..., Any],
    guarantee: Callable[..., Guarantee],
    release: Callable[[jax.Array, Any, jax.Array], jax.Array],
    values: Mapping[str, float],
    data: jax.Array,
    *,
    exact: Callable[[jax.Array], jax.Array] | None,
    key: jax.Array,
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> None:
    """Runs the checks of a mechanism on one input.

    Runs the checks of `check_estimator`. In addition, at epsilon = inf the release is `exact(data)`.

    Args:
        params: (**values) -> pytree.
        guarantee: (**values) -> Guarantee.
        release: (key, params, data) -> output.
        values: a grid point; `epsilon` is varied if it is among them.
        data: the input, arrays as the mechanism takes them ([...], of any dtype).
        exact: the mechanism without noise, or None.
        key: of the checks.
        skip: names of checks to leave out, as `checks_of` has them.
        only: names of the checks to run; empty for all.

    Raises:
        AssertionError: if checks fail. It names each with its reason.
        ValueError: if a name is none of the checks.
    """
    programs = MechanismPrograms(params, guarantee, release, values, [data], exact=exact, key=key)
    run_checks(programs.checks(), skip=skip, only=only)
