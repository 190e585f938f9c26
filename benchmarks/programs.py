"""Programs that benchmarks time: tiles of lanes as a sweep runs them, plain programs, and what operations cost."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from benchmarks.measure import CPU, REPEATS, take_turns
from jaxdp.core import Environment, Learner
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.schedule import Lanes, Runner

Call = Callable[[], Any]


def compile_lanes(run: jaxdp.Run, device: Any, lanes: int, tile: int, params: Any) -> tuple[Call, float]:
    """Returns a call that runs all lanes as a sweep does, and the seconds to trace and compile it."""
    start = time.perf_counter()
    compiled = Program(run, jax.random.key(0), [params], tile, [device]).compile()
    seconds = time.perf_counter() - start
    everything = chunks((), (lanes,), (lanes,))

    def call() -> dict[str, np.ndarray]:
        ((_, outputs),) = Runner(compiled, Lanes(lanes, lanes)).chunks(everything, advance=lambda count: None)
        return outputs

    return call, seconds


def compile_tiles(function: Callable[..., Any], arguments: Sequence[Any], tile: int) -> tuple[Call, float]:
    """Returns a call of a jitted function over tiles of the arguments' leading axis, and the seconds to compile it.

    As many tiles run at a time as there are cores, as in a sweep.
    """
    size = jax.tree.leaves(arguments[0])[0].shape[0]
    tiles = [tuple(each[start : start + tile] for each in arguments) for start in range(0, size, tile)]
    jax.block_until_ready(tiles)
    compiled, seconds = compile_call(function, tiles[0])
    pool = ThreadPoolExecutor(os.cpu_count())
    return lambda: list(pool.map(lambda each: jax.block_until_ready(compiled(*each)), tiles)), seconds


def compile_call(
    function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any] | None = None
) -> tuple[Callable[..., Any], float]:
    """Returns a compiled function, and the seconds to trace and compile it with the compiler's options."""
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile(options)
    return compiled, time.perf_counter() - start


def compile_plain(learner: Learner, world: Environment, horizon: int, lanes: int, params: Any, outcomes: Any) -> Call:
    """Returns a call of `jit(vmap(run))` by rounds, with JAX's own keys."""
    run = jaxdp.simulator(learner._replace(horizon=None), world, horizon, engine="rounds", outcomes=outcomes)
    keys = jax.random.split(jax.random.key(0), lanes)
    program, _ = compile_call(jax.vmap(run, (0, None)), (keys, params))
    return lambda: jax.block_until_ready(program(keys, params))


def operations(learner: Learner, environment: Environment, params: Any, lanes: int = 16) -> float:
    """Returns the operations of a lane's plain round, as XLA's cost analysis counts them.

    It is an estimate: operations on integers, as of random words, and transcendental ones count as one each, and a
    loop's body counts once.
    """
    learner_params, env_params = params["learner"], params["environment"]

    def begin(key: jax.Array) -> Any:
        return learner.init(key, learner_params), environment.init(key, env_params)

    def play(key: jax.Array, state: Any, world: Any) -> Any:
        key_context, key_feedback = jax.random.split(jax.random.fold_in(key, 0))
        key_act, key_report, key_update = jax.random.split(jax.random.fold_in(key, 1), 3)
        context = environment.context(key_context, env_params, world) if environment.context else None
        action = learner.act(key_act, learner_params, state.public, context)
        world, feedback, outcome = environment.feedback(key_feedback, env_params, world, action)
        report = learner.privatize(key_report, learner_params, state.public, context, action, feedback)
        return learner.update(key_update, learner_params, state, report), world, outcome

    keys = jax.random.split(jaxdp.random.key(0), lanes)
    state, world = jax.eval_shape(jax.vmap(begin), keys)
    costs = jax.jit(jax.vmap(play)).lower(keys, state, world).compile().cost_analysis()
    costs = (costs[0] if isinstance(costs, list) else costs) or {}
    return (costs.get("flops", 0.0) + costs.get("transcendentals", 0.0)) / lanes


@cache
def rate() -> float:
    """Measures the float32 additions and multiplications of one core in a second, on data in its nearest cache."""
    steps, size, terms = 20_000, 2048, 16

    def many(x: jax.Array) -> jax.Array:
        def step(_: Any, x: jax.Array) -> jax.Array:
            for term in range(terms):
                x = x * jnp.float32(0.999 - term * 1e-3) + jnp.float32(0.5)
            return x

        return jax.lax.fori_loop(0, steps, step, x)

    x = jax.device_put(np.ones(size, np.float32), CPU)
    program, _ = compile_call(many, (x,))
    seconds = take_turns({"": lambda: jax.block_until_ready(program(x))}, REPEATS)[""].wall
    return 2 * terms * steps * size / statistics.median(seconds)
