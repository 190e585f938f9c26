"""Estimators of Bradley-Terry abilities that protect a whole ballot: its preferences and the set of items it ranks.

Features and labels are as in `Ballots.design`. Features are e_i - e_j for all pairs of items i < j, [num_pairs,
num_items] float. Labels are [num_ballots, num_pairs] integers: 2 if a ballot ranks i above j, 0 if it ranks j above i,
1 if it gives no preference (tied, or unknown because an item is unranked). y = label / 2 in {0, 1/2, 1}.

A ballot also reveals *which* items its voter ranked. So the private estimators choose the pairs that a voter answers
about without looking at the ballot, and take "no preference" as an answer, y = 1/2. Apart from noise and the random
pairs of `ballot_rr`, they minimise the sum over ballots and all pairs of log(1 + exp(x^T theta)) - y x^T theta. This
counts a missing preference as half a win for each item, and ranks items by their Borda scores, the sums of y over
opponents and ballots. `ballot_mle` uses only stated preferences; without ties and unranked items the objectives agree.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Estimator, Guarantee, Scalar, default_float, only, reusing_factory
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.full_batch import MAX_STEPS, full_batch_estimator
from jaxdp.estimation.label_noise import search_basis
from jaxdp.estimation.label_params import TOLERANCE, Params, make_params
from jaxdp.estimation.noisy_statistic import check_dim, noise_stddev
from jaxdp.estimation.objectives import Objective, statistic_objective
from jaxdp.estimation.public_weights import NOISES, check_weights
from jaxdp.mechanisms import analytic_gaussian, gaussian, k_norm, randomized_response, round_up
from jaxdp.mechanisms.least_budgets import check_k_norm
from jaxdp.mechanisms.numerical import MAX_DIM, vector_delta
from jaxdp.preferences import pair_features
from jaxdp.validation import check_choice, check_count, refuse_private

UNIT = "one ballot"


@pytree_dataclass
class CentralParams(Params):
    """Values that a sweep may vary; only K-norm noise uses `epsilon`.

    Attributes:
        noise_multiplier: [] float >= 0, Gaussian standard deviation / sensitivity; 0 at epsilon = inf, and for K-norm.
    """

    noise_multiplier: Scalar


@pytree_dataclass
class LocalParams(Params):
    """Values that a sweep may vary. `epsilon` is a voter's budget; at infinity voters report their ballots.

    Attributes:
        num_answers: [] int32 >= 1, number of pairs that a voter is asked about, each with the budget epsilon /
            num_answers; a number above the number of pairs counts as all pairs.
    """

    num_answers: Scalar


def ballot_sensitivity(num_items: int) -> float:
    """Returns the L2 sensitivity of S, the sum of y x over ballots and pairs, to one ballot: sqrt(m (m^2 - 1) / 3).

    Two opposite rankings without ties attain this bound; ties and unranked items are covered. The result is in float64.
    Proof: `docs/proofs/ballots.md`.

    Args:
        num_items: m >= 1.

    Raises:
        ValueError: if num_items < 1.

    Examples:
        >>> ballot_sensitivity(2) == math.sqrt(2), ballot_sensitivity(5) == math.sqrt(40)
        (True, True)
    """
    num_items = check_count("num_items", num_items)
    return math.sqrt(num_items * (num_items**2 - 1) / 3)


def _check_design(features: jax.Array | np.ndarray, labels: jax.Array | np.ndarray) -> tuple[int, int]:
    """Returns the numbers of ballots and items; raises a ValueError if the shapes do not fit `Ballots.design`."""
    num_items = features.shape[1]
    num_pairs = num_items * (num_items - 1) // 2
    if num_items < 2 or features.shape[0] != num_pairs or labels.shape[1:] != (num_pairs,) or not labels.shape[0]:
        raise ValueError(
            "features and labels must be [num_pairs, num_items] and [num_ballots, num_pairs], with all pairs of at "
            f"least two items, got {features.shape} and {labels.shape}"
        )
    return labels.shape[0], num_items


def check_ballots(features: ArrayLike, labels: ArrayLike, *, feature_norm: float = np.inf) -> None:
    """Checks on the host that features and labels have shapes and values that `Ballots.design` can return."""
    del feature_norm  # the features are fixed
    values, answers = np.asarray(features), np.asarray(labels)
    if values.ndim != 2 or answers.ndim != 2:
        raise ValueError(
            "features and labels must be [num_pairs, num_items] and [num_ballots, num_pairs], as `Ballots.design` "
            f"returns them, got shapes {values.shape} and {answers.shape}"
        )
    _check_design(values, answers)
    if not np.array_equal(values, pair_features(values.shape[1])):
        raise ValueError(
            f"features must be `pair_features` of all items, as `Ballots.design` returns them, got {values}"
        )
    refuse_private("labels", "in {0, 1, 2}", ~np.isin(answers, (0, 1, 2)))


def _ballot_estimator(*arguments, max_steps: int) -> Estimator:
    plain = full_batch_estimator(*arguments, zero_sum=True, optimizer=None, max_steps=max_steps)
    return plain._replace(check=check_ballots)


def _claim(
    trust_model: str, argument: str, epsilon: float, delta: float = 0.0, numerical_delta: float | None = None
) -> Guarantee:
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model=trust_model,
        privacy_unit=UNIT,
        argument="none: epsilon is infinite, and ballots are used as they are" if np.isinf(epsilon) else argument,
        numerical_delta=numerical_delta,
    )


@reusing_factory
def ballot_mle(*, max_steps: int = MAX_STEPS) -> Estimator:
    r"""Builds the non-private BTL maximum-likelihood estimator for ballots, a baseline for the private estimators.

    Every stated preference counts as one comparison; labels of 1 do not count. The estimate is as from `mle` on
    `Ballots.comparisons`, with the same option `unranked`.

    Args:
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta [num_items], with sum 0, from features and labels of `Ballots.design`; NaN if no ballot
        states a preference. Its `params` take radius (default inf) and tolerance (default 1e-5).

    Raises:
        ValueError: if max_steps < 1. The result's `params` raises this error if radius or tolerance is not > 0.
            `privatize` raises it if features and labels do not cover all pairs of items.

    Privacy:
        - None.

    Source:
        Zhu, Jiao & Jordan (2023), pairwise losses of rankings; Bradley & Terry (1952).

    Deviations:
        None.

    Math:
        If $n_{ij}$ ballots rank $i$ and $j$, and $w_{ij}$ of them rank $i$ higher, the estimate is

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B} \sum_{i < j} \Big( n_{ij} \ln(1 + e^{\theta_i - \theta_j}) -
        w_{ij} (\theta_i - \theta_j) \Big)
        $$
    """

    def params(*, radius: float = np.inf, tolerance: float = TOLERANCE) -> Params:
        return make_params(epsilon=np.inf, radius=radius, tolerance=tolerance)

    def claim() -> Guarantee:
        return _claim("central", "", np.inf)

    def privatize(key, params: Params, features, labels):
        del key, params
        _check_design(features, labels)
        return labels

    def objective(params: Params, features, report, scale) -> Objective:
        del params, scale
        wins = jnp.sum(report == 2, axis=0, dtype=jnp.int32).astype(features.dtype)
        losses = jnp.sum(report == 0, axis=0, dtype=jnp.int32).astype(features.dtype)
        stated = jnp.mean(wins + losses)
        return _weighted_objective(features, wins / stated, (wins + losses) / stated)

    return _ballot_estimator(params, claim, privatize, objective, max_steps=max_steps)


@reusing_factory
def ballot_objective_perturbation(
    *, weights: str = "none", noise: str = "gaussian", max_dim: int | None = None, max_steps: int = MAX_STEPS
) -> Estimator:
    r"""Builds a BTL estimator that protects ballots centrally, by noise on the sufficient statistic of the loss.

    Ballots enter the loss only through S, the sum of y x over ballots and all pairs, where x = e_i - e_j and y is
    half the label. S is released once with noise, and the estimator minimises the loss with the noisy S (see Math).

    Args:
        weights: "none" or "cut", as for `objective_perturbation`. Both give the same estimator here, since the features
            of all pairs of items have equal norms. `params` take no `cut`.
        noise: "gaussian", or "k_norm", which takes no delta.
        max_dim: maximum number of items; the claim allows for rounding errors up to this number. None means 4,096 with
            Gaussian noise, and 100 with K-norm noise.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator like `ballot_mle`, but its `params` also take epsilon and, for Gaussian noise, delta.

    Raises:
        ValueError: as `ballot_mle`; if weights or noise is unknown, or max_dim < 1. The result's `params` also raises
            this error if epsilon <= 0 or so small that K-norm noise would overflow integers (below about 2e-9 for 100
            items), or delta is outside (0, 1). `privatize` raises it if there are more than max_dim items, or more
            ballots than floats can count exactly (2^24 / (m - 1) in 32-bit mode).

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model; with K-norm noise, epsilon-DP.
        - Unit: one whole ballot, including which items it ranks; adjacency: replace one.
        - Sensitivity: Ballots enter only through S. The number of ballots and the items are public, and the features
          always cover all pairs of items. The L2 sensitivity is sqrt(m (m^2 - 1) / 3) for m items
          (`docs/proofs/ballots.md`). The noise is from the analytic Gaussian mechanism, or K-norm noise in the m - 1
          dimensions of vectors with sum zero, as S has sum zero. The estimate is post-processing. Labels
          outside [0, 2] are clipped.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 5.2 and Algorithm 2, for one label; K-norm noise: Hardt &
        Talwar (2010).

    Deviations:
        A whole ballot is protected; the paper protects one comparison. The noise is on the statistic, as in
        `objective_perturbation`. A missing preference counts as half a win for each item.

    Math:
        With $n$ ballots, the statistic of all pairs $x = e_i - e_j$ of the $m$ items is released as

        $$
        \tilde S = \sum_{b = 1}^{n} \sum_x y_{b, x} x + Z, \quad \Delta = \sqrt{\frac{m (m^2 - 1)}{3}}
        $$

        where the noise $Z$ is calibrated to the $L_2$ sensitivity $\Delta$, and the estimate is

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B}
        \frac{2}{m (m - 1)} \Big( \sum_x \ln(1 + e^{x^\top \theta}) -
        \frac{1}{n} \tilde S^\top \theta \Big)
        $$
    """
    check_weights(weights)
    is_gaussian = check_choice("noise", noise, NOISES) == "gaussian"
    limit = MAX_DIM[noise] if max_dim is None else check_count("max_dim", max_dim)

    def params(
        *, epsilon: float, delta: float = 0.0, radius: float = np.inf, tolerance: float = TOLERANCE
    ) -> CentralParams:
        point = make_params(epsilon=epsilon, radius=radius, tolerance=tolerance)
        multiplier = analytic_gaussian(epsilon, delta) if is_gaussian else 0.0
        if not is_gaussian:
            check_k_norm(epsilon, numbers=limit)
        return CentralParams(**vars(point), noise_multiplier=round_up(multiplier, default_float()))

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        argument = (
            "ballots enter only one sum, of y x over all pairs of items, at L2 sensitivity sqrt(m (m^2 - 1) / 3); the "
            f"sum is released once with {'Gaussian' if is_gaussian else 'K-norm'} noise, and the estimate is "
            f"post-processing; rounding is counted for at most {limit} items"
        )
        rounding = vector_delta(epsilon, delta if is_gaussian else None, numbers=limit)
        return _claim("central", argument, epsilon, delta, rounding)

    def privatize(key, params: CentralParams, features, labels):
        num_ballots, num_items = _check_design(features, labels)
        check_dim(num_items, limit, "labels", "items")
        design = pair_features(num_items).astype(np.int32)  # `features` might have a larger sensitivity
        largest = 2 ** (jnp.finfo(features.dtype).nmant + 1)
        if num_ballots * (num_items - 1) > largest:  # floats represent sums of 2 y - 1 exactly up to this number
            raise ValueError(
                f"labels must have at most {largest // (num_items - 1)} ballots in {features.dtype}, got {num_ballots}"
            )
        leads = jnp.sum(jnp.clip(labels, 0, 2).astype(jnp.int32) - 1, axis=0, dtype=jnp.int32) @ design
        sensitivity = round_up(ballot_sensitivity(num_items), features.dtype)
        halves = leads.astype(features.dtype) / 2  # exact; they sum to zero
        if is_gaussian:
            stddev = noise_stddev(params.noise_multiplier, sensitivity)
            noisy = gaussian(key, halves, stddev, l2_sensitivity=sensitivity)
        else:
            basis = search_basis(jnp.asarray(design, features.dtype), zero_sum=True)
            noisy = k_norm(key, halves, params.epsilon, sensitivity=sensitivity, basis=basis)
        return noisy / num_ballots + jnp.asarray(design.sum(0) / 2, features.dtype)

    def objective(params: CentralParams, features, report, scale) -> Objective:
        del params
        return statistic_objective(features, report / scale, jnp.zeros((), features.dtype))

    values = {"epsilon", "radius", "tolerance"} | ({"delta"} if is_gaussian else set())
    return _ballot_estimator(only(params, values), claim, privatize, objective, max_steps=max_steps)


# A voter gives k answers at u = epsilon / k each. The noise variance of the estimated statistic is proportional to
# u coth(u / 2)^2, which is least at sinh(u) = 2 u.
BUDGET_PER_ANSWER = 2.1773


@reusing_factory
def ballot_rr(*, max_steps: int = MAX_STEPS) -> Estimator:
    r"""Builds a BTL estimator that protects ballots locally; each voter answers about a few random pairs of items.

    A voter is asked about k consecutive pairs in the cyclic order of pairs, from a uniform starting pair that does not
    depend on the ballot. An answer is the item that the ballot ranks higher, or a fair coin if the ballot has no
    preference. The answer is reported by randomized response at epsilon / k. The estimator minimises the de-biased loss
    of the answers, in which a coin has the mean y = 1/2. k is max(1, round(epsilon / 2.1773)), or the number of pairs
    if that is smaller. This gives about the least noise: up to epsilon = 3.2 a voter is asked about one pair.

    Args:
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator like `ballot_mle`, but its `params` take epsilon as well. The report is [num_ballots, num_pairs]
        int8: -1 if a voter was not asked, 0 or 2 for an answer, and 1, only at epsilon = inf, for no preference.

    Raises:
        ValueError: as `ballot_mle`. The result's `params` also raises this error if epsilon is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one whole ballot, including which items it ranks; adjacency: replace one.
        - Why: k depends only on epsilon and the number of items, and the pairs are drawn without looking at the ballot.
          Given the pairs, answers are independent, and each is reported as the first item with probability p, 1 - p or
          1/2, p = sigmoid(epsilon / k). The probabilities under two ballots differ by a factor of at most e^(epsilon /
          k) for each answer, and e^epsilon for all k. (A draw among the pairs that a voter ranked would reveal these
          pairs.)

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (4)-(6), for one label; Warner (1965).

    Deviations:
        A whole ballot is protected; the paper protects one comparison. At epsilon = inf voters report their ballots, in
        which "no preference" is the report 1 and not a coin.

    Math:
        Each of a voter's $k$ answers is reported unchanged with probability

        $$
        p = \frac{1}{1 + e^{-\varepsilon / k}}, \quad k = \max(1, \mathrm{round}(\varepsilon / 2.1773))
        $$

        but $k$ is at most the number of pairs. With $n_x$ answers about the pair $x$, and $w_x$ their debiased sum,

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B}
        \sum_x \Big( n_x \ln(1 + e^{x^\top \theta}) - w_x x^\top \theta \Big)
        $$
    """

    def params(*, epsilon: float, radius: float = np.inf, tolerance: float = TOLERANCE) -> LocalParams:
        point = make_params(epsilon=epsilon, radius=radius, tolerance=tolerance)
        answers = round(min(epsilon / BUDGET_PER_ANSWER, float(np.iinfo(np.int32).max)))
        return LocalParams(**vars(point), num_answers=np.int32(max(1, answers)))

    def claim(epsilon: float) -> Guarantee:
        argument = (
            "k pairs of items are drawn independently of the ballot; the voter's answer to each, or a fair coin if the "
            "ballot gives none, leaves through randomized response at epsilon / k; the rest is post-processing"
        )
        return _claim("local", argument, epsilon)

    def budgets(params: LocalParams, num_pairs: int) -> tuple[jax.Array, jax.Array]:
        """Returns the number of pairs that a voter is asked about, and the epsilon of each answer, both []."""
        asked = jnp.clip(jnp.asarray(params.num_answers), 1, num_pairs)
        epsilon = jnp.asarray(params.epsilon)
        return asked, epsilon / asked.astype(epsilon.dtype)

    def privatize(key, params: LocalParams, features, labels):
        num_ballots, _ = _check_design(features, labels)
        num_pairs = labels.shape[1]
        key_pair, key_coin, key_response = jax.random.split(key, 3)
        asked, epsilon = budgets(params, num_pairs)
        start = jax.random.randint(key_pair, (num_ballots, 1), 0, num_pairs, jnp.int32)
        is_asked = (jnp.arange(num_pairs, dtype=jnp.int32)[None, :] - start) % num_pairs < asked
        coins = jax.random.bernoulli(key_coin, shape=labels.shape)
        answers = jnp.where(labels == 1, coins, labels > 1).astype(jnp.int32)
        reports = jnp.where(is_asked, 2 * randomized_response(key_response, answers, epsilon), -1)
        return jnp.where(jnp.isinf(epsilon), labels.astype(jnp.int8), reports.astype(jnp.int8))

    def objective(params: LocalParams, features, report, scale) -> Objective:
        del scale
        num_ballots, num_pairs = report.shape
        asked, epsilon = budgets(params, num_pairs)
        answers = jnp.sum(report >= 0, axis=0, dtype=jnp.int32)
        doubled = jnp.sum(jnp.maximum(report, 0), axis=0, dtype=jnp.int32)
        excess = (doubled - answers).astype(features.dtype) / 2  # reported wins above one half
        answers = answers.astype(features.dtype)
        wins = answers / 2 + excess / jnp.tanh(epsilon.astype(features.dtype) / 2)  # debiased, see `debias_labels`
        per_pair = num_ballots * asked.astype(features.dtype) / num_pairs
        return _weighted_objective(features, wins / per_pair, answers / per_pair)

    return _ballot_estimator(params, claim, privatize, objective, max_steps=max_steps)


def _weighted_objective(features: jax.Array, wins: jax.Array, weights: jax.Array) -> Objective:
    """Builds the objective: the mean over pairs x of weight * log(1 + exp(x^T theta)) - win * x^T theta.

    `wins` and `weights` are [num_pairs] float, and the mean weight is 1.
    """
    statistic = jnp.matmul(wins, features, precision="highest")
    return statistic_objective(features, statistic, jnp.zeros((), features.dtype), weights)
