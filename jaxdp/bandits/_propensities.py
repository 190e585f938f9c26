"""Propensities of a log: the probabilities with which the logging policy chose its arms."""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.validation import check_finite, check_number, refuse_private

SUM_ERROR = 1e-3  # tolerance for the sum of a round's propensities; these may be float16
RULE = "propensities must be in (0, 1]"


def check_actions(actions: ArrayLike, horizon: int, num_arms: int, *, like: str) -> np.ndarray:
    """Checks logged arms, and returns them as an array [horizon].

    Args:
        actions: [horizon] integers in [0, num_arms).
        horizon: number of rounds.
        num_arms: number of arms.
        like: name of the argument that determines the horizon, for error messages.

    Raises:
        ValueError: if the shape, dtype or range of actions is wrong. The message shows no action, because a log may be
            private.
    """
    logged_arms = check_finite("actions", actions, is_private=True)
    if logged_arms.shape != (horizon,) or not np.issubdtype(logged_arms.dtype, np.integer):
        raise ValueError(
            f"actions must be [{horizon}] integers, as {like}, got {logged_arms.dtype} {list(logged_arms.shape)}"
        )
    refuse_private("actions", f"in [0, {num_arms})", (logged_arms < 0) | (logged_arms >= num_arms))
    return logged_arms


def check_propensities(propensities: ArrayLike, logged_arms: np.ndarray, num_arms: int) -> np.ndarray:
    """Checks propensities, and returns them as float64; error messages show them, because they are public.

    Args:
        propensities: [horizon, num_arms] in [0, 1], each row with the sum 1; or [horizon], the propensities of the
            logged arms only. Propensities of logged arms must be positive.
        logged_arms: [horizon] integers in [0, num_arms).
        num_arms: number of arms.

    Raises:
        ValueError: if propensities are not as described above; sums may differ from 1 by at most `SUM_ERROR`.
    """
    array, horizon = check_finite("propensities", propensities), len(logged_arms)
    if array.shape not in ((horizon, num_arms), (horizon,)):
        raise ValueError(
            f"propensities must be [{horizon}, {num_arms}], of every arm, or [{horizon}], of the logged arms, got "
            f"shape {array.shape}"
        )
    wide = array.astype(np.float64)
    _refuse_entries(RULE, wide, (wide < 0) | (wide > 1))
    logged = select_logged(wide, logged_arms)
    _refuse_entries(f"{RULE} for a logged arm", logged, logged <= 0)
    if wide.ndim == 2:
        sums = wide.sum(axis=1)
        _refuse_entries("propensities of a round must sum to 1", sums, np.abs(sums - 1) > SUM_ERROR)
    return wide


def select_logged(propensities: np.ndarray, logged_arms: np.ndarray) -> np.ndarray:
    """Returns the propensities of the logged arms, [horizon]."""
    return propensities if propensities.ndim == 1 else propensities[np.arange(len(logged_arms)), logged_arms]


def coin_probabilities(
    propensities: ArrayLike | None, min_propensity: float | None, logged_arms: np.ndarray, num_arms: int
) -> np.ndarray | None:
    """Returns the probability that rejection sampling accepts each logged round in a replay.

    A round with the logged arm a is accepted with probability c / p(a), where c is at most the propensity of any arm in
    any round. Given everything that the logging policy saw, each arm is then logged and accepted with probability c. A
    different c in each round would bias replay towards rounds with larger c.

    Args:
        propensities: as for `check_propensities`; None for uniform arms.
        min_propensity: c. None means the smallest entry of propensities, which must then be [horizon, num_arms].
        logged_arms: [horizon] integers in [0, num_arms).
        num_arms: number of arms.

    Returns:
        [horizon] default float in (0, 1]; None without propensities, because all rounds are then accepted.

    Raises:
        ValueError: if propensities are not valid (see `check_propensities`) or 0 for some arm; if min_propensity is
            outside (0, 1], is larger than some propensity, is given without propensities, or is missing although
            propensities are [horizon]; if a coin would be < 2^-23 (2^-52 in 64-bit mode).
    """
    if propensities is None:
        if min_propensity is not None:
            raise ValueError(f"min_propensity must be None without propensities, got {min_propensity}")
        return None
    checked = check_propensities(propensities, logged_arms, num_arms)
    _refuse_entries(f"{RULE} for every arm, as a learner may play each of them", checked, checked <= 0)
    smallest = float(checked.min())
    if min_propensity is None:
        if checked.ndim == 1:
            raise ValueError(
                "min_propensity must be given if propensities contain only logged arms, got None: it is the smallest "
                "propensity of any arm in any round"
            )
        min_propensity = smallest
    if not 0 < check_number("min_propensity", min_propensity) <= smallest:
        raise ValueError(
            f"min_propensity must be > 0 and at most {smallest:g}, the smallest propensity, as a larger value biases "
            f"replay, got {min_propensity:g}"
        )
    coins, step = min_propensity / select_logged(checked, logged_arms), np.finfo(default_float()).eps
    if coins.min() < step:  # a random number of this type is a multiple of its eps
        raise ValueError(
            f"min_propensity must be at least {step:g} times each logged arm's propensity, got {min_propensity:g}: "
            f"{default_float()} cannot represent smaller probabilities of acceptance"
        )
    return coins.astype(default_float())


def _refuse_entries(rule: str, values: np.ndarray, is_wrong: np.ndarray) -> None:
    """Raises a ValueError with the rule and the first wrong entry, if any entry is wrong."""
    if is_wrong.any():
        index = tuple(np.argwhere(is_wrong)[0].tolist())
        raise ValueError(f"{rule}, got {values[index]:g} at index {index}")
