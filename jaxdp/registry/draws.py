"""Numbers and users for tiny problems with any number of arms or experts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData


def spread(low: float, high: float, count: int) -> list[float]:
    """Returns `count` evenly spaced numbers from low to high, rounded to six decimals.

    Examples:
        >>> spread(0.1, 0.9, 5)
        [0.1, 0.3, 0.5, 0.7, 0.9]
    """
    return np.linspace(low, high, count).round(6).tolist()


def either(key: jax.Array, low: float, high: float, size: int, dtype: Any) -> jax.Array:
    """Draws [size] numbers of a dtype, each equal to low or high with probability 1/2."""
    return jnp.where(jax.random.bernoulli(key, shape=(size,)), high, low).astype(dtype)


def change_answers(answers: np.ndarray, where: Any, value: Any) -> tuple[UserData, UserData]:
    """Returns users of two runs: with these answers, and with `value` in place of `answers[where]`."""
    changed = answers.copy()
    changed[where] = value
    return UserData(answers), UserData(changed)
