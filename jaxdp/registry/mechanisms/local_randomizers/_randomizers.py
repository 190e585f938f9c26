"""Common parts of the entries of local randomizers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Domain, replace_one_row
from jaxdp.audit.domains import ANYTHING, NO_NUMBERS
from jaxdp.core import LocalRandomizer
from jaxdp.registry.distributions import label_distribution
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.mechanisms._releases import RELEASED, at_sizes

HUGE = 2.0**100  # its square overflows in 32-bit floats


def entry(
    summary: str,
    factory: Callable[..., LocalRandomizer],
    source: str,
    neighbours: Any,
    clipped: Callable[..., jax.Array],
    *,
    variant: Mapping[str, Any],
    sizes: Mapping[str, Any] | None = None,
    report: Callable[..., Any] | None = None,
    total: Callable[..., Any] | None = None,
    values: Mapping[str, float] | None = None,
    distribution: Callable[..., Any] | None = None,
    grid: Mapping[str, tuple[float, ...]] | None = None,
    reached: float | None = None,
) -> MechanismEntry:
    """Makes the entry of a local randomizer; `params`, `guarantee` and all releases make the randomizer at each call.

    `clipped` maps a user's data to the exact report at epsilon = inf. `report` draws a report, by default by the
    randomizer's `report`. If the randomizer can draw totals of reports, `total` draws such a total for a single user.
    Data are labels if `distribution` is `label_distribution`, otherwise float32 arrays with the shape of the first
    neighbour.
    """
    sizes = sizes or {}
    make = partial(factory, **variant)
    report = report or _report

    return MechanismEntry(
        summary=summary,
        family="local randomizers",
        source=source,
        proof="proved",
        factory=factory,
        variant=variant,
        sizes=sizes,
        values={"epsilon": 0.5, **(values or {})},
        params=at_sizes(make, sizes, lambda randomizer, **values: randomizer.params(**values)),
        guarantee=at_sizes(make, sizes, lambda randomizer, **values: randomizer.guarantee(**values)),
        release=at_sizes(make, sizes, report, *RELEASED),
        others={"total": at_sizes(make, sizes, total, *RELEASED)} if total else {},
        neighbours=neighbours,
        domain=_any_label if distribution is label_distribution else partial(_anything, np.shape(neighbours[0])),
        grid={"epsilon": (0.1, 4.0), **(grid or {})},
        exact=clipped,
        distribution=distribution,
        reached=reached,
    )


def _report(randomizer: LocalRandomizer, key: jax.Array, params: Any, data: Any) -> Any:
    return randomizer.report(key, params, data)


def _anything(shape: tuple[int, ...]) -> Domain:
    """Returns the domain of float32 arrays of this shape; entries may be any numbers, infinities and NaN included."""

    def draw(key: jax.Array) -> jax.Array:
        return 3 * jax.random.normal(key, shape, np.float32)

    return replace_one_row(draw, specials=[(*ANYTHING, *NO_NUMBERS, HUGE, -HUGE, 0.999, 1.001)])


def _any_label(num_labels: int) -> Domain:
    """Returns the domain of int32 labels, including integers outside [0, num_labels), which a randomizer clips."""
    return replace_one_row(
        lambda key: jax.random.randint(key, (), -2, num_labels + 2, jnp.int32), specials=[(-7, 9, 2**30)]
    )


LAPLACE, GAUSSIAN = "Dwork & Roth (2014), Theorem 3.6", "Balle & Wang (2018), Theorem 8"
