"""Runs all contract checks of an estimator, a learner or a mechanism."""

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

    - Arguments have the names that callers use. `params` and `guarantee` take the same values, with the same defaults;
      `params` rejects an invalid epsilon.
    - A compiled run has the same results as an eager run, and `jax.vmap` over seeds and epsilons has the same results
      as a loop. One trace serves all epsilons. The program suits a GPU (see below).
    - No key is used twice in a function, and none is the same in every run, such as `jax.random.key(0)`.
    - If the guarantee claims anything, it claims the epsilon of the values, or implies this epsilon at their delta. An
      approximate claim has at most the delta of the values, if they have a delta. At epsilon = inf the guarantee claims
      infinity, and the report does not depend on the key.
    - If features are not declared public, the estimate depends on them only through the report.

    A program suits a GPU if it lowers for CUDA, without operations that are slow, inexact or random there. The check
    reads the trace, and needs no GPU.

    The checks cannot determine whether the noise is large enough: noise of any scale passes. `jaxdp.audit.audit`
    attacks the claim.

    Args:
        estimator: the estimator to check.
        values: a grid point; if it has `epsilon`, other values of epsilon are checked, too.
        features: [num_samples, dim] float.
        labels: [num_samples] int32.
        key: key of the checks.
        tolerance: relative and absolute difference that is allowed between floats of programs that should compute the
            same values. All other results of these programs need only have equal shapes and dtypes.
        skip: names of checks to skip; `checks_of` lists all names.
        only: names of the checks to run; empty to run all.

    Raises:
        AssertionError: if checks fail. The message lists each failed check with the reason.
        ValueError: if skip or only is a string, or has a name that no check has; or if estimator is not an `Estimator`.
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

    - Arguments have the names that callers use. `params` and `guarantee` take the same values, with the same defaults;
      `params` rejects an invalid epsilon.
    - Shapes fit, and states keep their shapes and dtypes. A compiled round has the same results as an eager round (only
      round one of one lane is compared), and `jax.vmap` over seeds and epsilons has the same results as a loop. One
      trace serves all epsilons. The program suits a GPU (see `check_estimator`).
    - In single rounds no key is used twice in a function, and no key is the same in every run.
    - If the guarantee claims anything, it claims the epsilon of the values, or implies this epsilon at their delta (for
      exceptions see `may_claim_less` and `multiple`). An approximate claim has at most the delta of the values, if they
      have a delta and `multiple` is at most 1. At epsilon = inf neither `privatize` nor `update` depends on its
      key, in any round; for `update` see `draws_in_update`.
    - Every play, by rounds and blocks, is an action that the environment declares (or the learner, if the environment
      declares none), and no action has a negative count. This is checked in nine lanes: three seeds at epsilon, at
      epsilon / 2 and at infinity (three lanes if values have no epsilon).
    - If the learner and the environment have blocks (and `contexts`, if the environment has contexts), blocks give the
      same results as rounds, bit for bit, including released values, and results do not depend on the checkpoints. If
      blocks declare `ends`, the program that a GPU runs gives these results, too.
    - If the learner has counts and the environment has totals of feedback, counts play the right number of rounds up to
      each checkpoint (not checked for a learner that may stop). Each outcome, metric and released number has the same
      distribution with counts as with rounds, at epsilon, epsilon / 4, epsilon / 16 and infinity. For a released array
      of more than 16 numbers, only 16 of them and their mean are compared.

    The checks cannot determine whether the noise is large enough: noise of any scale passes. `jaxdp.audit.grey_box`
    measures the noise. The checks find a difference in the distribution of counts only if it occurs within the horizon,
    which should be longer than two blocks.

    Args:
        learner: the learner to check.
        environment: the environment that the learner plays.
        values: a grid point of the learner and the environment; if it has `epsilon`, other values of epsilon are
            checked, too.
        horizon: number of rounds to play, >= 2.
        key: key of the checks.
        tolerance: as for `check_estimator`; comparisons of distributions also ignore differences up to the tolerance.
        num_lanes: number of lanes for each engine and each epsilon in comparisons of distributions, >= 1. With 458
            lanes or more, correct counts fail with probability at most 1e-9. With 10,000 lanes the checks find counts
            with noise of half the scale, if noise matters about as much as the data.
        draws_in_update: whether `update` draws the next play even in the non-private case, from weights or among equal
            scores. At epsilon = inf the key of `update` may then decide integers of the public state, but no float of
            the public state and nothing in the private state. The checks do not test that these integers have the
            distribution of the non-private algorithm.
        may_claim_less: whether the guarantee may have a smaller epsilon than the values, because the learner does not
            spend all of the given epsilon.
        multiple: the guarantee's epsilon divided by the epsilon of the values. It differs from 1 if the published claim
            of an algorithm is too small.
        skip: names of checks to skip; `checks_of` lists all names.
        only: names of the checks to run; empty to run all.

    Raises:
        AssertionError: if checks fail. The message lists each failed check with the reason.
        ValueError: if skip or only is a string, or has a name that no check has; if learner or environment has another
            type, or they do not fit together (see `jaxdp.simulator`); or if horizon is not an integer >= 2, or
            num_lanes not an integer >= 1.
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

    These are the checks of `check_estimator` with a tolerance of 1e-6, except the checks of argument names, of equal
    values of `params` and `guarantee`, of features, and of reports at epsilon = inf. If values have `epsilon`, the
    guarantee must claim or imply it, and the release at epsilon = inf must equal `exact(data)`.

    Args:
        params: (**values) -> pytree.
        guarantee: (**values) -> Guarantee.
        release: (key, params, data) -> output.
        values: a grid point; if it has `epsilon`, other values of epsilon are checked, too.
        data: the input: an array or a pytree of arrays, of any shapes and dtypes.
        exact: data -> the output at epsilon = inf. None skips this check; it must be None if values have no `epsilon`.
        key: key of the checks.
        skip: names of checks to skip; `checks_of` lists all names.
        only: names of the checks to run; empty to run all.

    Raises:
        AssertionError: if checks fail. The message lists each failed check with the reason.
        ValueError: if skip or only is a string, or has a name that no check has; or if exact is given, but values have
            no epsilon.
    """
    programs = MechanismPrograms(params, guarantee, release, values, [data], exact=exact, key=key)
    run_checks(programs.checks(), skip=skip, only=only)
