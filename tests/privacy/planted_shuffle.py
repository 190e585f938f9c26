"""Shuffled batches with a planted mistake, each beside a right twin, for `python -m jaxdp audit NAME --with` this."""

import dataclasses

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.mechanisms import randomized_response, shuffled_ones
from jaxdp.registry import MECHANISMS
from jaxdp.registry.mechanisms.shuffle import shuffled_reports

RIGHT = MECHANISMS["shuffled_randomized_response"]


def reports_in_order(key, local_epsilon, data):
    """Returns the reports of the users, the first user's first."""
    return randomized_response(key, data, local_epsilon)


def ones_in_parts(key, local_epsilon, data, *, parts):
    """Splits the users into several batches, each shuffled by itself; the server sees the ones of each."""
    keys, rows = jax.random.split(key, parts), data.reshape(parts, -1)
    return jnp.stack(
        [
            shuffled_ones(part, row.sum(dtype=row.dtype), local_epsilon, batch=row.size)
            for part, row in zip(keys, rows, strict=True)
        ]
    )


def reports_in_parts(key, local_epsilon, data, *, parts):
    """Returns the same, as the reports that the server gets."""
    keys, rows = jax.random.split(key, parts), data.reshape(parts, -1)
    return jnp.concatenate([shuffled_reports(part, local_epsilon, row) for part, row in zip(keys, rows, strict=True)])


def planted(release, **more):
    sizes = {**RIGHT.sizes, **more}
    others = {"reports": reports_in_parts} if more else {}
    return dataclasses.replace(
        RIGHT, factory=None, exact=None, distribution=None, release=release, others=others, sizes=sizes
    )


jaxdp.register("keeps_the_order", planted(reports_in_order))
jaxdp.register("keeps_the_order_right", planted(shuffled_reports))
jaxdp.register("half_the_batch", planted(ones_in_parts, parts=2))
jaxdp.register("half_the_batch_right", planted(ones_in_parts, parts=1))
