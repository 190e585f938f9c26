"""Rows of optimal designs on the differences of normal arms: on the host, and lane by lane in a compiled program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Case, Work
from benchmarks.programs import compile_call
from benchmarks.row import Row
from jaxdp.design import g_optimal_differences, masked_difference_design

GAP = 0.1


def on_host(arms, dim):
    """Runs to a gap of 1e-3, in float64."""
    features = np.random.default_rng(0).normal(size=(arms, dim))
    works = {"jaxdp": Work(lambda: g_optimal_differences(features), 1)}
    return Case(works=works, size=f"{arms:,} arms, d = {dim}", unit="design")


def in_lanes(arms, dim, lanes):
    """Runs to a gap of 10% in float32, all lanes with arms of their own; beside one lane after the other."""
    one = functools.partial(masked_difference_design, gap=GAP)
    data = (
        jnp.asarray(np.random.default_rng(0).normal(size=(lanes, arms, dim)), jnp.float32),
        jnp.ones((lanes, arms), bool),
    )

    def work(function):
        compiled, compiling = compile_call(function, data)
        return Work(lambda: jax.block_until_ready(compiled(*data)), lanes, compiling=compiling)

    works = {
        "jaxdp": work(jax.vmap(one)),
        "lane after lane": work(lambda *data: jax.lax.map(lambda lane: one(*lane), data)),
    }

    def check():
        for name, made in works.items():
            design = made.call()
            if not np.all(np.asarray(design.value) <= np.asarray(design.rank) * (1 + GAP)):
                raise AssertionError(f"designs ({name}) must have a gap of at most {GAP}, got values {design.value}")

    return Case(works=works, size=f"{lanes} x {arms} arms, d = {dim}", unit="design", check=check)


ROWS = [
    *(
        Row(
            name=f"g_optimal_differences, {arms} arms",
            make=on_host,
            size={"arms": arms, "dim": dim},
            quick={"arms": 6, "dim": 2},
        )
        for arms, dim in ((50, 5), (200, 10), (500, 20), (2000, 10))
    ),
    *(
        Row(
            name=f"masked_difference_design, {arms} arms",
            make=in_lanes,
            size={"arms": arms, "dim": dim, "lanes": 64},
            quick={"arms": 6, "dim": 2, "lanes": 4},
        )
        for arms, dim in ((20, 2), (50, 5), (200, 10))
    ),
]
