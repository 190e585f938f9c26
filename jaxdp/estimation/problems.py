"""Problems for estimators: synthetic rewards, and users' comparisons and ballots.

The synthetic rewards follow DP-Reward (Chowdhury, Zhou & Natarajan, 2023).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Problem, Sample, Scalar, default_float, factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.metrics import l2_error, semi_norm_error
from jaxdp.estimation.plackett_luce import relative
from jaxdp.estimation.solver import Estimate
from jaxdp.preferences import (
    Ballots,
    ChoiceData,
    ComparisonTable,
    Link,
    RewardData,
    gaussian_choices,
    gaussian_comparisons,
    logistic,
)
from jaxdp.preferences.connected import check_connected
from jaxdp.validation import check_above, check_at_least, check_choice, check_count, check_number

KNOWLEDGE = ("radius", "feature_norm")


@pytree_dataclass
class GaussianParams:
    """Values that a sweep may vary.

    Attributes:
        ridge: [] float >= 0 and finite, the lambda of the semi-norm Sigma_D + lambda I.
        parameter_norm: [] float > 0, B, the maximum norm of the reward parameter; infinity if it is not rescaled.
    """

    ridge: Scalar
    parameter_norm: Scalar


@factory
def gaussian_rewards(
    *,
    num_samples: int,
    dim: int,
    link: Link = logistic,
    feature_norm: float | None = None,
    parameter_norm: float | None = None,
    zero_sum: bool = False,
    known: tuple[str, ...] = KNOWLEDGE,
) -> Problem:
    """Builds a problem of comparisons with Gaussian features and a Gaussian reward parameter, drawn for every seed.

    Args:
        num_samples: number of comparisons, >= 1.
        dim: number of features, >= 1.
        link: preference model F.
        feature_norm: L, the maximum norm of an action's features; features with a larger norm are rescaled to norm L.
            None leaves features unchanged, and L is then their largest norm.
        parameter_norm: B, the maximum norm of the parameter; a parameter with a larger norm is rescaled to norm B. None
            leaves the parameter unchanged. This is the default of the result's `params`, which take it, too.
        zero_sum: whether the parameter is centred.
        known: names of values that the problem passes to estimators: "radius" and "feature_norm". "radius" is the true
            parameter's norm, which no analyst knows; leave it out to compare with estimators that do not take a radius.
            "feature_norm" is L. If the argument `feature_norm` is a finite number, every estimator gets L. If it is
            None, L is computed from the features; estimators that keep features private then do not get L and need a
            value from the user. If it is infinite, no estimator gets L.

    Returns:
        A problem with metrics `l2_error`, `semi_norm_error`, `certificate`, `steps` and `converged`, each []. Its
        `params` take ridge (default 0), the lambda of the semi-norm, and parameter_norm (by default the argument, where
        None is infinity).

    Raises:
        ValueError: if a count is < 1, dim is 1 with zero_sum, a norm is not > 0, or `known` is a string or contains
            another name. The result's `params` raises this error if ridge is not finite and >= 0, or parameter_norm is
            not > 0.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6.

    Deviations:
        Features and the parameter can be rescaled, and the parameter can be centred.
    """
    check_count("num_samples", num_samples)
    check_count("dim", dim, 2 if zero_sum else 1)
    draw = partial(
        gaussian_comparisons,
        num_samples=num_samples,
        dim=dim,
        link=link,
        feature_norm=feature_norm,
        zero_sum=zero_sum,
    )
    return _reward_problem(draw, lambda features: features, known, feature_norm, parameter_norm)


@factory
def plackett_luce_rewards(
    *,
    num_samples: int,
    num_actions: int,
    dim: int,
    rankings: bool = False,
    feature_norm: float | None = None,
    parameter_norm: float | None = None,
    zero_sum: bool = False,
    known: tuple[str, ...] = KNOWLEDGE,
) -> Problem:
    """Builds a problem of choices among K actions with Gaussian features and parameter, drawn for every seed.

    Args:
        num_samples: number of choices, >= 1.
        num_actions: K, >= 2.
        dim: number of features, >= 1.
        rankings: whether labels rank all K actions instead of naming the best one.
        feature_norm: L, the maximum norm of an action's features; features with a larger norm are rescaled to norm L.
            None leaves features unchanged, and L is then their largest norm.
        parameter_norm: B, the maximum norm of the parameter; a parameter with a larger norm is rescaled to norm B. None
            leaves the parameter unchanged. This is the default of the result's `params`, which take it, too.
        zero_sum: whether the parameter is centred.
        known: names of values that the problem passes to estimators; see `gaussian_rewards`.

    Returns:
        A problem with the metrics of `gaussian_rewards`; the semi-norm uses the mean of x_jk x_jk^T over samples and
        pairs of actions, x_jk = phi_j - phi_k.

    Raises:
        ValueError: as `gaussian_rewards`, and if num_actions < 2.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (11), with the features of its section 6.

    Deviations:
        As `gaussian_rewards`.
    """
    check_count("num_samples", num_samples)
    check_count("num_actions", num_actions, 2)
    check_count("dim", dim, 2 if zero_sum else 1)
    draw = partial(
        gaussian_choices,
        num_samples=num_samples,
        num_actions=num_actions,
        dim=dim,
        rankings=rankings,
        feature_norm=feature_norm,
        zero_sum=zero_sum,
    )

    def differential(features):  # [num_samples * K, dim]; its second moment is the mean over pairs of actions
        scale = np.sqrt(2 * num_actions / (num_actions - 1)).astype(features.dtype)
        return (scale * relative(features)).reshape(-1, dim)

    return _reward_problem(draw, differential, known, feature_norm, parameter_norm)


def _reward_problem(
    draw: Callable[..., RewardData | ChoiceData],
    differential: Callable[[jax.Array], jax.Array],
    known: tuple[str, ...],
    feature_norm: float | None,
    parameter_norm: float | None,
) -> Problem:
    """Builds a problem with data sets `draw(key, parameter_norm=...)`.

    `known` and the norms are as for `gaussian_rewards`. `differential` maps features to [rows, dim] float for the
    semi-norm.
    """
    if isinstance(known, str):
        raise ValueError(f"known must be a tuple of names, got {known!r}")
    for name in known:
        check_choice("known", name, KNOWLEDGE)
    default_norm = np.inf if parameter_norm is None else check_above("parameter_norm", parameter_norm, 0.0)
    if feature_norm is not None and np.isinf(check_above("feature_norm", feature_norm, 0.0)):
        known = tuple(name for name in known if name != "feature_norm")
    feature_names = tuple(name for name in known if name == "feature_norm" and feature_norm is None)
    world_names = tuple(name for name in known if name not in feature_names)

    def params(*, ridge: float = 0.0, parameter_norm: float = default_norm) -> GaussianParams:
        return GaussianParams(
            ridge=scalar_leaf("ridge", check_number("ridge", check_at_least("ridge", ridge, 0.0))),
            parameter_norm=scalar_leaf("parameter_norm", check_above("parameter_norm", parameter_norm, 0.0)),
        )

    def sample(key, params: GaussianParams) -> Sample:
        data = draw(key, parameter_norm=params.parameter_norm)
        knowledge = {"radius": jnp.linalg.norm(data.parameter), "feature_norm": data.feature_norm}
        world, features = ({name: knowledge[name] for name in names} for names in (world_names, feature_names))
        return Sample(data.features, data.labels, data.parameter, world, features)

    def metrics(params: GaussianParams, sample: Sample, estimate: Estimate):
        ridge = jnp.asarray(params.ridge, sample.features.dtype)
        return {
            "l2_error": l2_error(estimate.theta, sample.truth),
            "semi_norm_error": semi_norm_error(estimate.theta, sample.truth, differential(sample.features), ridge),
            "certificate": estimate.certificate,
            "steps": estimate.steps,
            "converged": estimate.converged,
        }

    names = ("l2_error", "semi_norm_error", "certificate", "steps", "converged")
    return Problem(params, sample, metrics, dict.fromkeys(names, ()), {}, world_names, feature_names)


@pytree_dataclass
class TableParams:
    """The data: public features [num_rows, num_items] float, and private integer labels as estimators take them."""

    features: jax.Array | np.ndarray
    labels: jax.Array | np.ndarray


@factory
def comparison_table(table: ComparisonTable) -> Problem:
    """Builds a problem that ranks items from a user's comparisons; only the estimators' randomness varies over seeds.

    Args:
        table: the pairs that were compared, and the winners. Comparisons must connect all items.

    Returns:
        A problem with metrics `ability` ([item], the estimate, shifted to mean zero), `rank` ([item], 1 is best; equal
        abilities are ordered at random, and the rank of NaN is 0), and `certificate`, `steps` and `converged`, each [].

    Raises:
        ValueError: as `ComparisonTable.design`, and if items fall into groups that were never compared with one another
            (`comparison_groups`): the data cannot rank one group against another.
    """
    check_connected("table", table)
    return _ranking(*table.design(), table.items)


@factory
def ballot_election(ballots: Ballots, *, unranked: str = "unknown") -> Problem:
    """Builds a problem that ranks items from a user's ballots; only the estimators' randomness varies over seeds.

    The estimators must take whole ballots.

    Args:
        ballots: the rankings.
        unranked: how a ballot compares a ranked with an unranked item; see `Ballots.answers`.

    Returns:
        A problem with the metrics of `comparison_table`.

    Raises:
        ValueError: as `Ballots.design`; if no ballot puts an item above another; or if items fall into groups such that
            no ballot states a preference between items of different groups. The error names the groups, so only people
            who may see the ballots should build this problem.
    """
    features, labels = ballots.design(unranked=unranked)
    if np.all(labels == 1):
        raise ValueError("ballots must rank an item above another, got no ballot that does")
    advice = 'unranked="last" (--unranked last) counts unranked items as beaten; otherwise rank each group separately'
    check_connected("ballots", ballots.comparisons(unranked=unranked), advice)
    return _ranking(features, labels, ballots.items)


def _ranking(features: np.ndarray, labels: np.ndarray, items: tuple[str, ...]) -> Problem:
    """Builds the problem of ranking `items` from features and labels that every seed shares."""
    data = TableParams(features=features.astype(default_float()), labels=labels)

    def params() -> TableParams:
        return data  # all grid points share the arrays, so a sweep stores them once

    def sample(key, params: TableParams) -> Sample:
        tie_breaker = jax.random.permutation(key, len(items))
        return Sample(jnp.asarray(params.features), jnp.asarray(params.labels), tie_breaker, {})

    def metrics(params: TableParams, sample: Sample, estimate: Estimate):
        del params
        ability = estimate.theta - jnp.mean(estimate.theta)
        return {
            "ability": ability,
            "rank": jnp.where(jnp.isnan(ability), 0, jnp.argsort(jnp.lexsort((sample.truth, -ability))) + 1),
            "certificate": estimate.certificate,
            "steps": estimate.steps,
            "converged": estimate.converged,
        }

    dims = {"ability": ("item",), "rank": ("item",), "certificate": (), "steps": (), "converged": ()}
    return Problem(params, sample, metrics, dims, {"item": list(items)})
