"""Computes confidence intervals of the mean reward in a replay of a log."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from jaxdp.stats.arrays import check_array, means, student_quantile
from jaxdp.validation import check_probability, warn_caller

TOTALS = ("matched", "reward", "squared_reward")


def replay_interval(totals: xr.Dataset, over: str = "seed", *, confidence: float = 0.95) -> xr.Dataset:
    """Computes the mean reward of the matched rounds of a replay, with a confidence interval over rounds and seeds.

    All seeds replay the same rounds of a log, so the sampling error of the rounds is common to all seeds. The variance
    of this common error is added to the variance of the mean over seeds. With propensities, each seed accepts or
    rejects rounds by its own random draws (rejection sampling), so two seeds share only some rounds. In this case, the
    estimate of the common error weights each matched round by the probability that another seed also accepts it. This
    estimate is computed as if all seeds played the same arms; if they play different arms, the interval is wider than
    needed. With one seed the interval covers only the sampling error of the rounds, so it is too narrow unless seeds
    hardly differ.

    Args:
        totals: a Dataset, such as results of `jaxdp.sweep`, with the outcomes of `logged_contexts` or
            `logged_rewards`, and independent repetitions along `over`.
        over: the dimension of seeds.
        confidence: confidence of each interval, in (0, 1).

    Returns:
        A Dataset without `over`, in float64, with `mean`, `low`, `high` and `effective_sample_size`. The effective
        sample size is the number of independent rounds that would give a mean with the same sampling error. It is at
        least the mean number of matched rounds. All results are NaN if a seed has no matched round. `low`, `high` and
        `effective_sample_size` are NaN if a seed has only one matched round, or if another outcome of a seed is NaN.

    Warns:
        RuntimeWarning: if there is only one seed. Means of different seeds may differ by more than the sampling error
            of the rounds, because learners with different seeds may learn from different rounds. If the mean reward is
            more than 289 standard deviations (6.7 million in 64 bits) from 0, because the variance may then be inexact.

    Raises:
        ValueError: if totals are not a Dataset, or lack an outcome or the dimension `over`; or if confidence is outside
            (0, 1).

    Examples:
        >>> sums = {"matched": [400.0, 420.0], "reward": [200.0, 200.0], "squared_reward": [200.0, 200.0]}
        >>> interval = replay_interval(xr.Dataset({name: ("seed", values) for name, values in sums.items()}))
        >>> print(f"{interval['mean']:.3f}")
        0.488
    """
    check_probability("confidence", confidence)
    if not isinstance(totals, xr.Dataset):
        raise ValueError(f"totals must be an xarray Dataset, got {type(totals).__name__}")
    if missing := [name for name in TOTALS if name not in totals]:
        raise ValueError(f"totals must have the outcomes of a replay, got none named {', '.join(missing)}")
    names = [*TOTALS, *(f"shared_{name}" for name in TOTALS if f"shared_{name}" in totals)]
    for name in names:
        check_array(name, totals[name], over)
    errors = replay_errors(totals[names])
    played = totals.matched.astype(np.float64)
    mean, _, count = means(errors.reward, over)
    if count < 2:
        warn_caller(
            "one seed does not show how seeds differ: the interval covers only the error of rounds", RuntimeWarning
        )
    half = replay_half_width(errors, played, over, confidence)
    size = replay_sample_size(errors, played, over)
    return xr.Dataset({"mean": mean, "low": mean - half, "high": mean + half, "effective_sample_size": size})


def replay_sample_size(errors: xr.Dataset, played: xr.DataArray, over: str) -> xr.DataArray:
    """Returns the number of independent rounds that give a mean with the same sampling error as the mean over seeds.

    `errors` is a result of `replay_errors`, and `played` is each seed's number of matched rounds.
    """
    separate, shared = (errors[name].mean(over, skipna=False) ** 2 for name in ("round_error", "shared_error"))
    rounds = played.mean(over, skipna=False)
    size = rounds * separate / (shared + (separate - shared) / errors.sizes[over])
    return size.where(separate != 0, rounds)  # if all rewards are equal, all errors are 0


def replay_errors(totals: xr.Dataset) -> xr.Dataset:
    """Returns each seed's mean `reward` with its standard error `round_error`.

    The result also has `shared_error`, the part of the standard error that is common to all seeds.
    """
    digits, totals = totals.squared_reward.dtype, totals.astype(np.float64)
    played = totals.matched
    reward = totals.reward / played.where(played > 0)
    rounds_if_several = played.where(played > 1)
    spread = totals.squared_reward / played - reward**2
    is_binary = totals.squared_reward == totals.reward  # sums of 0 and 1, or of integers, are exact
    resolution = np.finfo(digits).eps if digits.kind == "f" else 0.0
    if ((spread != 0) & ~is_binary & (abs(spread) < 100 * resolution * reward**2)).any():
        warn_caller(
            f"rewards differ so little beside their mean that sums in {digits} may not show their variance: intervals "
            "may be inexact; subtract a public constant from the rewards, or compute totals in 64 bits",
            RuntimeWarning,
        )
    variance = spread.clip(0) * played / (rounds_if_several - 1)
    round_error = shared_error = (variance / played) ** 0.5
    if "shared_matched" in totals:
        squares = totals.shared_squared_reward - 2 * reward * totals.shared_reward
        squares = (squares + reward**2 * totals.shared_matched).clip(0)
        shared_error = np.minimum((squares * played / (rounds_if_several - 1)) ** 0.5 / played, round_error)
    return xr.Dataset({"reward": reward, "round_error": round_error, "shared_error": shared_error})


def replay_half_width(errors: xr.Dataset, played: xr.DataArray, over: str, confidence: float) -> xr.DataArray:
    """Returns the half width of the interval for the mean reward over seeds.

    `errors` is a result of `replay_errors`, and `played` is each seed's number of matched rounds. `over` is the
    dimension of seeds. With one seed, the interval covers only the sampling error of the rounds.
    """
    probability, count = (1 + confidence) / 2, errors.sizes[over]
    rounds = played.mean(over, skipna=False)
    quantile: Any = xr.apply_ufunc(stdtrit, (rounds - 1).where(rounds > 1), probability)
    if count < 2:
        return quantile * errors.round_error.mean(over, skipna=False)
    seed_half = student_quantile(probability, count) * means(errors.reward, over).error
    return ((quantile * errors.shared_error.mean(over, skipna=False)) ** 2 + seed_half**2) ** 0.5
