"""Rows of random bits beside `jax.random`, which gives the same bits."""

import jax
import jax.numpy as jnp

import jaxdp
from benchmarks.measure import Case, Work
from benchmarks.programs import compile_call
from benchmarks.row import Row

CALL_WORDS = 4_000_000  # in one timed call at the least, to outweigh the clock and the dispatch


def case(draw, words, lanes, at_least=CALL_WORDS):
    calls = -(-at_least // words)
    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), lanes)

    def work(keys):
        compiled, compiling = compile_call(draw, (keys,))
        return Work(
            lambda: [jax.block_until_ready(compiled(keys)) for _ in range(calls)], calls * words, compiling=compiling
        )

    return Case(
        works={"jaxdp": work(jaxdp.random.fast_key(keys)), "jax.random": work(keys)},
        size=f"{calls} x {words:,}",
        unit="word",
    )


def one_key(size, **about):
    return case(lambda keys: jax.random.bits(keys[0], (size,), jnp.uint32), size, 1, **about)


def many_keys(size, lanes, **about):
    return case(jax.vmap(lambda key: jax.random.bits(key, (size,), jnp.uint32)), lanes * size, lanes, **about)


def in_a_loop(size, steps, lanes, **about):
    """Uses keys as a simulation does: each step folds in its number, splits, and draws."""

    @jax.vmap
    def loop(key):
        def step(t, words):
            _, draw = jax.random.split(jax.random.fold_in(key, t))
            return words ^ jax.random.bits(draw, (size,), jnp.uint32)

        return jax.lax.fori_loop(0, steps, step, jnp.zeros(size, jnp.uint32))

    return case(loop, lanes * steps * size, lanes, **about)


QUICK = {"at_least": 1, "size": 8}
ROWS = [
    *(Row(name=f"words, one key, {size:,}", make=one_key, size={"size": size}, quick=QUICK) for size in (10**6, 10**7)),
    *(
        Row(name=f"words, 256 keys, {size:,} each", make=many_keys, size={"size": size, "lanes": 256}, quick=QUICK)
        for size in (64, 512, 4096)
    ),
    Row(
        name="words, fold_in, split and 64 in a loop",
        make=in_a_loop,
        size={"size": 64, "steps": 200, "lanes": 256},
        quick={**QUICK, "steps": 2},
    ),
]
