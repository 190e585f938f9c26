"""Mean rewards that differ between people."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.core import Visits
from jaxdp.core.visited import ParamsOfPerson
from jaxdp.validation import check_at_least, check_number


def means_of_person(
    taste: float, visits: Visits | None, limits: Callable[[Any], tuple[Any, Any]]
) -> ParamsOfPerson | None:
    """Returns (key, params, person) -> params with the means of one person; None if all people have the same means.

    Args:
        taste: standard deviation of a person's means, before they are clipped.
        visits: the schedule of visits; None if the environment has no people.
        limits: params -> (low, high), the interval to which means are clipped.

    Raises:
        ValueError: if taste is not finite and >= 0, or is given without visits.
    """
    check_at_least("taste", check_number("taste", taste), 0.0)
    if taste == 0:
        return None
    if visits is None:
        raise ValueError(f"taste must be 0 without visits, got {taste}")

    def of_person(key: jax.Array, params: Any, person: jax.Array) -> Any:
        noise = jax.random.normal(jax.random.fold_in(key, person), params.means.shape, params.means.dtype)
        return dataclasses.replace(params, means=jnp.clip(params.means + taste * noise, *limits(params)))

    return of_person
