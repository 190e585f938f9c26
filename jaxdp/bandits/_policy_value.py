"""Estimates the value of a fixed policy from rounds that another policy played."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from jaxdp.bandits._propensities import SUM_ERROR, check_actions, check_propensities, select_logged
from jaxdp.validation import check_choice, check_finite, check_probability, check_within, warn_caller

METHODS = ("ips", "snips", "dr")
FOLDS = 5
RIDGE = 1.0
FEW = 50  # effective sample size below which a warning is given
SMALLEST, LARGEST = 1e-100, 1e100  # squares of numbers in this range, times squared weights, are far from float limits
MOST_WEIGHT = 1e40


class PolicyValue(NamedTuple):
    """An estimate of a policy's mean reward per round.

    Attributes:
        mean: the estimate; with several policies, the mean over them.
        stderr: the standard error of the estimate, from the variance over rounds and, with several policies, over
            policies.
        interval: (low, high), the confidence interval, which is computed from Student's t distribution.
        effective_sample_size: (sum of weights)^2 / (sum of squared weights). About this number of rounds, played by the
            policy itself, would be as informative. With several policies, the mean over them.
    """

    mean: float
    stderr: float
    interval: tuple[float, float]
    effective_sample_size: float


def evaluate_policy(
    policy: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike,
    *,
    method: str = "dr",
    contexts: ArrayLike | None = None,
    predictions: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PolicyValue:
    """Estimates the mean reward of a fixed policy from logged rounds.

    Let w be policy / propensity of the logged arm, r the reward, and q(a) a prediction of arm a's reward. The methods
    are

    * "ips": the mean of w r, unbiased;
    * "snips": the sum of w r divided by the sum of w. Adding a constant to all rewards adds this constant to the
      estimate. The estimate is asymptotically unbiased;
    * "dr", doubly robust: the mean of sum_a policy(a) q(a) + w (r - q(logged arm)). It is unbiased for any q that does
      not depend on the reward of the same round. Its variance is small if q is accurate.

    The policy must not have learned from these rounds, because it would be fitted to their rewards. Split the log,
    learn on one part and evaluate on the other part. The function cannot check this. For a learner that learns during
    the evaluation, use replay (`logged_contexts`).

    Args:
        policy: [horizon, num_arms] in [0, 1], with at least two rounds and arms: the probability with which the policy
            would play each arm in each round; a round's probabilities sum to 1. Or [num_seeds, horizon, num_arms]:
            policies of independent seeds, for example of a private learner that was run several times.
        actions: [horizon] integers in [0, num_arms), the arms that were played.
        rewards: [horizon] finite, the rewards of these arms.
        propensities: [horizon, num_arms] or [horizon], as for `logged_contexts`, except that the propensity of an arm
            that was not logged may be 0 if the policy's probability is also 0.
        method: "ips", "snips" or "dr".
        contexts: [horizon, num_arms, dim] finite, for "dr" without predictions. Predictions then come from a ridge
            regression for each arm, with penalty 1 and an intercept, which is fitted on the other folds. The fold of
            round t is t modulo 5. Without contexts, the prediction is the arm's mean reward in the other folds. For an
            arm that the other folds do not contain, it is the mean of all their rewards.
        predictions: [horizon, num_arms] finite, your own q for "dr". It must not be fitted to these rounds.
        confidence: confidence level of the interval, in (0, 1).

    Returns:
        The estimate. Rounds are assumed to be independent, and all policies are evaluated on the same rounds. The
        variance of the estimate is the sum of two terms: the variance over rounds (for several policies, the covariance
        of two policies' means over rounds), and the variance between policies divided by their number.

    Warns:
        RuntimeWarning: if the effective sample size is below 50. Few rounds then dominate the estimate. The interval
            assumes that means are approximately normal, so its coverage can then be below the stated confidence.

    Raises:
        ValueError: if an argument is not as described above; if the policy plays an arm of propensity 0; for "snips",
            if the policy never plays a logged arm; if method is unknown; if contexts or predictions are given but
            would not be used; or if numbers are so large or small that their squares would overflow or vanish.

    Privacy:
        - None: the estimate is computed from the exact rewards.

    Source:
        Horvitz & Thompson (1952); Swaminathan & Joachims (2015), "The self-normalized estimator for counterfactual
        learning"; Dudík, Langford & Li (2011), "Doubly robust policy evaluation and learning", with folds as in
        Chernozhukov et al. (2018).

    Deviations:
        None.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> actions = (rng.random(4000) < 0.2).astype(int)
        >>> clicks = (rng.random(4000) < np.where(actions == 1, 0.8, 0.3)).astype(int)
        >>> always_one = np.tile([0.0, 1.0], (4000, 1))
        >>> value = evaluate_policy(always_one, actions, clicks, np.tile([0.8, 0.2], (4000, 1)), method="snips")
        >>> low, high = value.interval
        >>> low < 0.8 < high, high - low < 0.1
        (True, True)
    """
    check_choice("method", method, METHODS)
    check_probability("confidence", confidence)
    policies, logged_arms, logged_rewards, weights = _check_log(policy, actions, rewards, propensities)
    horizon, num_arms = policies.shape[1:]
    if method != "dr" and (contexts is not None or predictions is not None):
        raise ValueError(f"contexts and predictions must be None, except for method 'dr', got them for {method!r}")
    sizes = weights.sum(axis=1) ** 2 / np.maximum((weights**2).sum(axis=1), np.finfo(float).tiny)
    if method == "dr":
        scores = _predictions(contexts, predictions, logged_arms, logged_rewards, num_arms)
        errors = logged_rewards - scores[np.arange(horizon), logged_arms]
        terms = np.einsum("sta,ta->st", policies, scores) + weights * errors
    elif method == "ips":
        terms = weights * logged_rewards
    else:
        totals = weights.sum(axis=1, keepdims=True)
        if not (totals > 0).all():
            raise ValueError(f"policy must play a logged arm in some round for method 'snips', got none in {horizon}")
        ratio = (weights * logged_rewards).sum(axis=1, keepdims=True) / totals
        terms = ratio + weights * (logged_rewards - ratio) * horizon / totals  # first-order expansion of the ratio
    size = float(sizes.mean())
    if size < FEW:
        warn_caller(
            f"effective sample size is {size:.1f} of {horizon} rounds, below {FEW}: few rounds decide the estimate, "
            "and its interval is too narrow",
            RuntimeWarning,
        )
    return _summary(terms, size, confidence)


def _check_log(
    policy: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Checks a log; returns policies [num_seeds, horizon, num_arms], arms, rewards, weights [num_seeds, horizon]."""
    array = check_within("policy", policy, 0.0, 1.0)
    if array.ndim not in (2, 3) or array.shape[-2] < 2 or array.shape[-1] < 2 or not array.size:
        raise ValueError(
            "policy must be [horizon, num_arms] or [num_seeds, horizon, num_arms], with at least two rounds and arms, "
            f"got shape {array.shape}"
        )
    policies = array.astype(np.float64).reshape(-1, *array.shape[-2:])
    sums = policies.sum(axis=2)
    if (np.abs(sums - 1) > SUM_ERROR).any():
        worst = sums.flat[np.argmax(np.abs(sums - 1))]
        raise ValueError(f"policy must have probabilities with the sum 1 in each round, got {worst:g}")
    horizon, num_arms = policies.shape[1:]
    logged_arms = check_actions(actions, horizon, num_arms, like="policy")
    logged_rewards = check_finite("rewards", rewards, is_private=True).astype(np.float64)
    if logged_rewards.shape != (horizon,):
        raise ValueError(f"rewards must be [{horizon}], as policy, got shape {logged_rewards.shape}")
    _check_size("rewards", logged_rewards)
    checked_propensities = check_propensities(propensities, logged_arms, num_arms)
    if (
        checked_propensities.ndim == 2
        and (excluded := ((checked_propensities == 0) & (policies > 0)).any(axis=0)).any()
    ):
        index = tuple(np.argwhere(excluded)[0].tolist())
        raise ValueError(
            f"propensities must be > 0 for each arm that the policy plays, whose reward is unknown otherwise, got 0 at "
            f"index {index}"
        )
    logged_propensities = select_logged(checked_propensities, logged_arms)
    if (least := logged_propensities.min()) < 1 / MOST_WEIGHT:
        raise ValueError(f"propensities must be at least {1 / MOST_WEIGHT:g} for each logged arm, got {least:g}")
    weights = policies[:, np.arange(horizon), logged_arms] / logged_propensities
    return policies, logged_arms, logged_rewards, weights


def _predictions(
    contexts: ArrayLike | None,
    predictions: ArrayLike | None,
    logged_arms: np.ndarray,
    rewards: np.ndarray,
    num_arms: int,
) -> np.ndarray:
    """Returns the predicted reward of every arm in every round, [horizon, num_arms].

    The result is `predictions` if they are given. Otherwise predictions come from regressions on contexts in the other
    folds; without contexts they are each arm's mean reward in the other folds. If an arm does not occur in the other
    folds, its prediction is the mean of all rewards in the other folds.
    """
    horizon = len(rewards)
    if predictions is not None:
        if contexts is not None:
            raise ValueError("contexts must be None with predictions, which replace the regression, got both")
        scores = check_finite("predictions", predictions).astype(np.float64)
        if scores.shape != (horizon, num_arms):
            raise ValueError(f"predictions must be [{horizon}, {num_arms}], as policy, got shape {scores.shape}")
        _check_size("predictions", scores)
        return scores
    features = np.zeros((horizon, num_arms, 0))
    if contexts is not None:
        features = check_finite("contexts", contexts).astype(np.float64)
        if features.ndim != 3 or features.shape[:2] != (horizon, num_arms):
            raise ValueError(f"contexts must be [{horizon}, {num_arms}, dim], as policy, got shape {features.shape}")
        _check_size("contexts", features)
    fold_of_round = np.arange(horizon) % FOLDS
    scores = np.empty((horizon, num_arms))
    for fold in range(FOLDS):
        is_inside = fold_of_round == fold
        for arm in range(num_arms):
            is_used = ~is_inside & (logged_arms == arm)
            if not is_used.any():
                scores[is_inside, arm] = rewards[~is_inside].mean()
                continue
            rows, targets = features[is_used, arm], rewards[is_used]
            center = rows.mean(axis=0)
            moments = (rows - center).T @ (rows - center) + RIDGE * np.eye(rows.shape[1])
            slopes = np.linalg.solve(moments, (rows - center).T @ (targets - targets.mean()))
            scores[is_inside, arm] = targets.mean() + (features[is_inside, arm] - center) @ slopes
    return scores


def _check_size(name: str, values: np.ndarray) -> None:
    """Checks that squares neither overflow nor vanish; the error shows no value, because rewards are private."""
    largest = np.abs(values).max(initial=0.0)
    if largest and not SMALLEST <= largest <= LARGEST:
        raise ValueError(
            f"{name} must have a largest absolute entry of 0 or in [{SMALLEST:g}, {LARGEST:g}], got a "
            f"{'smaller' if largest < SMALLEST else 'larger'} one: multiply {name} by a constant"
        )


def _summary(terms: np.ndarray, size: float, confidence: float) -> PolicyValue:
    """Returns the mean of `terms` ([num_seeds, horizon]) with its interval; `size` is the effective sample size."""
    num_seeds, horizon = terms.shape
    policy_variance = float(terms.var(axis=1, ddof=1).mean() / horizon)  # variance over rounds of one policy's mean
    seed_variance, round_variance = 0.0, policy_variance
    if num_seeds > 1:
        mean_policy_variance = float(terms.mean(axis=0).var(ddof=1) / horizon)
        # mean_policy_variance = round_variance + (policy_variance - round_variance) / num_seeds
        round_variance = max((num_seeds * mean_policy_variance - policy_variance) / (num_seeds - 1), 0.0)
        seed_variance = float(terms.mean(axis=1).var(ddof=1) / num_seeds)
    round_quantile, seed_quantile = (
        stdtrit(max(degrees, 1), (1 + confidence) / 2) for degrees in (size - 1, num_seeds - 1)
    )
    half_width = float(np.sqrt(round_quantile**2 * round_variance + seed_quantile**2 * seed_variance))
    mean = float(terms.mean())
    return PolicyValue(
        mean, float(np.sqrt(round_variance + seed_variance)), (mean - half_width, mean + half_width), size
    )
