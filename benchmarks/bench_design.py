"""Optimal designs: on the host for many arms, and lane by lane in a compiled program; compile time apart.

Run as `python benchmarks/bench_design.py`, with `host` or `masked` to measure only that.
"""

import functools
import resource
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.timing import best_of, machine
from jaxdp.design import g_optimal_differences, masked_difference_design

HOST = ((50, 5), (200, 10), (500, 20), (2000, 10))  # arms, dimensions
MASKED = ((20, 2), (50, 5), (200, 10))
LANES, GAP, REPEATS = 64, 0.1, 5


def bench_host() -> None:
    """To a gap of 1e-3, in float64; the memory is the most that the process has held."""
    for num_arms, dim in HOST:
        arms = np.random.default_rng(0).normal(size=(num_arms, dim))
        design = g_optimal_differences(arms)
        seconds = best_of(2, lambda arms=arms: g_optimal_differences(arms))
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"differences of {num_arms} arms, d = {dim}: {seconds:.3f} s, gap {design.gap:.1e}, "
            f"{len(design.weights)} pairs; {held:.2f} GiB held by the process",
            flush=True,
        )


def bench_masked() -> None:
    """To a gap of 10% in float32: a lane's share of the time of all, which have arms of their own."""
    one = functools.partial(masked_difference_design, gap=GAP)
    for num_arms, dim in MASKED:
        arms = jnp.asarray(np.random.default_rng(0).normal(size=(LANES, num_arms, dim)), jnp.float32)
        active = jnp.ones((LANES, num_arms), bool)
        for how, over in (("one after the other", by_map(one)), ("vmapped", jax.vmap(one))):
            start = time.perf_counter()
            compiled = jax.jit(over).lower(arms, active).compile()
            compile_seconds = time.perf_counter() - start
            found = compiled(arms, active)
            if not np.all(np.asarray(found.value) <= np.asarray(found.rank) * (1 + GAP)):
                raise AssertionError(f"designs must have a gap of at most {GAP}, got values {found.value}")
            seconds = best_of(REPEATS, lambda run=compiled, data=(arms, active): jax.block_until_ready(run(*data)))
            support = np.sum(np.asarray(found.weights) > 0, axis=1).mean()
            print(
                f"{num_arms} arms, d = {dim}, {LANES} lanes {how}: {1e3 * seconds / LANES:.3f} ms a lane, "
                f"{support:.0f} pairs, compiled in {compile_seconds:.1f} s",
                flush=True,
            )


def by_map(one):
    return lambda arms, active: jax.lax.map(lambda lane: one(*lane), (arms, active))


BENCHMARKS = {"host": bench_host, "masked": bench_masked}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
