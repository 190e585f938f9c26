"""Registry entries of `label_randomizer`."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import LocalRandomizer
from jaxdp.mechanisms import label_randomizer
from jaxdp.registry.distributions import label_distribution
from jaxdp.registry.mechanisms.local_randomizers._randomizers import entry

ORDER = 70  # position of the entries in lists

_BITS = (np.asarray(-7, np.int32), np.asarray(9, np.int32))


def _clip_label(data: jax.Array, num_labels: int) -> jax.Array:
    return jnp.clip(data, 0, num_labels - 1)


def _total_labels(
    randomizer: LocalRandomizer, key: jax.Array, params: Any, data: jax.Array, num_labels: int
) -> jax.Array:
    label = jnp.clip(data, 0, num_labels - 1)
    totals = label if num_labels == 2 else (jnp.arange(num_labels, dtype=label.dtype) == label).astype(label.dtype)
    assert randomizer.total is not None
    return randomizer.total(key, params, totals, jnp.ones_like(totals))


WARNER = "Warner (1965); Kairouz, Bonawitz & Ramage (2016), for K labels"
ENTRIES = {
    f"label_randomizer_{num_labels}": entry(
        f"reports one of {num_labels} labels by randomized response",
        label_randomizer,
        WARNER,
        _BITS,
        _clip_label,
        variant={},
        sizes={"num_labels": num_labels},
        total=partial(_total_labels, num_labels=num_labels),
        distribution=label_distribution,
    )
    for num_labels in (2, 4)
}
USES = {  # shown on pages of the site
    "label_randomizer": {
        "use": "Use it to report labels, with debiased estimates and totals.",
        "not": "For numbers from an interval use `scalar_randomizer`.",
    },
}
