"""Registry entries of `scalar_randomizer`."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.enumeration import as_outcome
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import default_float
from jaxdp.mechanisms import scalar_randomizer
from jaxdp.registry.distributions import budget_of, clip_number, two_ends
from jaxdp.registry.mechanisms.local_randomizers._randomizers import GAUSSIAN, HUGE, LAPLACE, entry

ORDER = 60  # position of the entries in lists


def scalar_distribution(params: Any, data: Any) -> OutputDistribution:
    """Returns the distribution of a report: one of two numbers, with the clipped number as the mean.

    Both numbers are at a distance of c times the interval's width from its centre, with c = (e^epsilon + 1) / (2
    (e^epsilon - 1)). For a number at an end of the interval, one report is e^epsilon times as likely as the other
    report.
    """
    low, high = float(params.low), float(params.high)
    value = clip_number(float(data), low, high)
    centre, reach = (low + high) / 2, (high - low) / (2 * math.tanh(budget_of(params) / 2))
    upper, lower = two_ends((value - low) / (high - low), budget_of(params))
    return {as_outcome(np.asarray(centre + reach)): upper, as_outcome(np.asarray(centre - reach)): lower}


# Clipping moves NaN to the lower end of the interval, and HUGE to the upper end: no clipped inputs are farther apart.
_SCALARS = (np.asarray(np.nan, np.float32), np.asarray(HUGE, np.float32))


def _clip_to_one(data: jax.Array) -> jax.Array:
    return jnp.where(data > -1, jnp.minimum(data, 1), -1).astype(default_float())


ENTRIES = {
    f"scalar_randomizer_{report}": entry(
        f"reports a number in an interval {text}",
        scalar_randomizer,
        source,
        _SCALARS,
        _clip_to_one,
        variant={"report": report},
        values={"low": -1.0, **other_values},
        grid={"low": (0.5, -3.0)},
        distribution=scalar_distribution if report == "rr" else None,
    )
    for report, text, source, other_values in (
        (
            "rr",
            "as one of two numbers, without bias",
            "Duchi, Jordan & Wainwright (2018), in one dimension",
            {},
        ),
        ("laplace", "with Laplace noise", LAPLACE, {}),
        ("gaussian", "with Gaussian noise", GAUSSIAN, {"delta": 1e-2}),
    )
}
USES = {  # shown on pages of the site
    "scalar_randomizer": {
        "use": (
            "Use it to report rewards or losses from an interval; local learners use it inside, and their argument "
            "`report` chooses its kind."
        ),
        "not": "Gaussian reports rarely pay at small δ: one bit has a smaller second moment.",
    },
}
