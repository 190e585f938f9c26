"""Words of random bits against `jax.random`, on the same cores in one run.

Run as `python benchmarks/bench_random.py`; under `taskset -c 0` for the figures of one core.
"""

import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.timing import interleaved, machine

LANES, STEPS, WORDS = 256, 200, 64
CALL_WORDS = 4_000_000  # in one timed call at the least, to outweigh the clock and the dispatch
REPEATS = 7


def one_key(size):
    return lambda keys: jax.random.bits(keys[0], (size,), jnp.uint32)


def many_keys(size):
    return jax.vmap(lambda key: jax.random.bits(key, (size,), jnp.uint32))


@jax.vmap
def loop(key):
    """A simulation's use of keys: each step folds in its number, splits, and draws."""

    def step(t, words):
        _, draw = jax.random.split(jax.random.fold_in(key, t))
        return words ^ jax.random.bits(draw, (WORDS,), jnp.uint32)

    return jax.lax.fori_loop(0, STEPS, step, jnp.zeros(WORDS, jnp.uint32))


CASES = {
    "one key, 10^6 words": (one_key(10**6), 10**6),
    "one key, 10^7 words": (one_key(10**7), 10**7),
    f"{LANES} keys, 64 words each": (many_keys(64), LANES * 64),
    f"{LANES} keys, 512 words each": (many_keys(512), LANES * 512),
    f"{LANES} keys, 4096 words each": (many_keys(4096), LANES * 4096),
    f"{LANES} lanes, {STEPS} steps: fold_in, split, {WORDS} words": (loop, LANES * STEPS * WORDS),
}


def repeated(function, keys, calls):
    compiled = jax.jit(function).lower(keys).compile()

    def run():
        for _ in range(calls):
            jax.block_until_ready(compiled(keys))

    return run


def core_seconds(function):
    """CPU time over all cores, of the fastest of some calls, which another process's load moves less; cores in use."""
    used = []
    for _ in range(REPEATS):
        start_wall, start = time.perf_counter(), time.process_time()
        function()
        seconds = time.process_time() - start
        used.append((seconds, seconds / (time.perf_counter() - start_wall)))
    return min(used)


def bench_words():
    cores = len(os.sched_getaffinity(0))
    print(f"bits, ns a word, on {cores} cores: wall time, then CPU time over all cores (cores in use)")
    print(f"  {'':<50}{'jaxdp':>21}{'jax.random':>21}{'ratio':>15}")
    for name, (function, words) in CASES.items():
        calls = -(-CALL_WORDS // words)
        keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), LANES)
        runs = {
            "jaxdp": repeated(function, jaxdp.random.fast(keys), calls),
            "jax.random": repeated(function, keys, calls),
        }
        wall, cells, cpu = interleaved(REPEATS, runs), "", {}
        for run, call in runs.items():
            cpu[run], in_use = core_seconds(call)
            nanoseconds = (1e9 * seconds / (calls * words) for seconds in (wall[run], cpu[run]))
            cells += "{:8.2f}{:7.2f} ({:3.1f})".format(*nanoseconds, in_use)
        ratios = [seconds["jax.random"] / seconds["jaxdp"] for seconds in (wall, cpu)]
        print(f"  {name:<50}{cells}   {ratios[0]:5.2f}x {ratios[1]:5.2f}x")


if __name__ == "__main__":
    print(machine())
    bench_words()
