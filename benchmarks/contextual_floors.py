"""Floors of bandits with contexts: what a round of `linear_ucb` and of its relatives cannot do without.

A floor plays one tile on one core, with the learners' lanes, layout and kernels. A round has one hash for each of three
keys and one for the reward; contexts of words mixed from a key; two products of each context with a vector; the norm of
each context, by the triangular solve; the largest bound; the context played and its reward; and the moments of both,
with their noise, added to plain sums. The model is solved for as often as the learner solves for it. There are no ties,
no compensated sums, no clipping, no checks of numbers, and no sums of outcomes but one.

* Local noise has half a hash and half a pair of Box and Muller for each number.
* `generalized_linear` has two logistic functions, a step of descent, and the product of the report with the iterate.
* `linear_ucb_joint` feeds the counter that it has, with its exact noise, and reads the counter where it solves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import CPU
from benchmarks.programs import compile_call
from jaxdp.bandits.contextual._contexts import (
    LANES_LAST,
    context_distribution,
    directions,
    largest,
    make_contexts,
    products,
    select_context,
)
from jaxdp.bandits.contextual._linear_ucb_joint import joint_moments, joint_vector
from jaxdp.bandits.contextual._model import Model, ends_of_largest, initial_model, solve_model
from jaxdp.mechanisms import toeplitz_counter
from jaxdp.numerics.kernels import across_lanes, lanes_fast, own_kernel, separate_kernels
from jaxdp.numerics.lookup import entry
from jaxdp.numerics.packed_factor import inverse_norms
from jaxdp.numerics.small_linear_algebra import square_triangle, triangle_product
from jaxdp.random import fast_key, normal
from jaxdp.simulation.sweeps.lanes import COMPILER_OPTIONS

SHIFT, WIDTH, STDDEV, RATE = 200.0, 5.0, 0.1, 1e-3


def contextual_floor(kind: str, num_arms: int, dim: int, every: int) -> Callable[[int, int], Callable[[], Any]]:
    """Returns a floor: (horizon, tile) -> a call that plays one tile.

    `kind` is the name of a learner. The model is solved for after every `every`th round.
    """
    draw = context_distribution("cube", num_arms, dim)[2]
    num_outer = dim * (dim + 1) // 2

    def play_moments(keys: Any, theta: jax.Array, model: Model) -> Any:
        """Plays one round. Returns the context played, its mean reward, the gap to the best mean, and the reward."""
        contexts = make_contexts(draw, keys[0])
        parts = products(contexts, model.theta), model.width, inverse_norms(model.factor, contexts)
        arm = across_lanes(lambda parts: own_kernel(lambda *parts: ends_of_largest(*parts) % LANES_LAST, *parts))(parts)
        means = products(contexts, theta)
        if kind == "generalized_linear":
            means = lanes_fast(jax.nn.sigmoid(means))
        mean, uniform = entry(means, arm), jax.random.uniform(keys[1])
        return select_context(contexts, arm), largest(means) - mean, mean + uniform - 0.5

    def add_report(key: jax.Array, x: jax.Array, y: jax.Array, sums: Any, iterate: jax.Array) -> Any:
        """Adds a local report to the sums, and moves the iterate of descent."""
        noise = normal(key, num_outer + dim, lanes_fast=True)

        def add(sums: jax.Array, moments: jax.Array, noise: jax.Array) -> jax.Array:
            return sums + (moments + STDDEV * noise)

        outer, cross = sums
        if kind == "linear_ucb":
            outer = separate_kernels(add, outer, square_triangle(x), noise[:num_outer], layout=lanes_fast)
            return (outer, separate_kernels(add, cross, y * x, noise[num_outer:], layout=lanes_fast)), iterate
        report = separate_kernels(
            lambda moments, noise: moments + STDDEV * noise, square_triangle(x), noise[:num_outer], layout=lanes_fast
        )
        residual = jax.nn.sigmoid(jnp.sum(x * iterate)) - y
        moved = lanes_fast(iterate - RATE * (residual * x + STDDEV * noise[num_outer:]))
        iterate = lanes_fast(moved / jnp.maximum(1, jnp.sqrt(jnp.sum(moved * moved))))
        labelled = triangle_product(report, iterate)
        add_plain = partial(separate_kernels, lambda sums, more: sums + more, layout=lanes_fast)
        return (add_plain(outer, report), add_plain(cross, labelled)), iterate

    def compile_floor(horizon: int, tile: int) -> Callable[[], Any]:
        counter = toeplitz_counter(horizon=horizon)
        counter_params = counter.params(rho=1.0)

        def lane(key: jax.Array, seed: jax.Array) -> jax.Array:
            *roots, key_theta = jax.random.split(jax.random.fold_in(key, seed), 4)
            theta, nothing = directions(key_theta, (dim,)), jnp.zeros(dim)
            model = initial_model(nothing, jnp.float32(SHIFT), jnp.float32(WIDTH), jnp.int32(0))
            sums: Any = jnp.zeros(num_outer), nothing
            if kind == "linear_ucb_joint":
                sums = counter.init(key_theta, counter_params, (num_outer + dim,), dtype=jnp.float32)

            def play(round_: jax.Array, carried: Any) -> Any:
                total, model, sums, iterate = carried
                keys = [jax.random.fold_in(root, round_) for root in roots]
                x, gap, y = play_moments(keys, theta, model)
                if kind == "linear_ucb_joint":
                    sums = counter.feed(keys[2], counter_params, sums, joint_vector(x, y))
                else:
                    sums, iterate = add_report(keys[2], x, y, sums, iterate)

                def solve() -> Model:
                    moments = sums
                    if kind == "linear_ucb_joint":
                        moments = joint_moments(counter.read(counter_params, sums), dim)
                    return solve_model(*moments, jnp.float32(SHIFT), model.width, round_)

                model = solve() if every == 1 else jax.lax.cond(round_ % every == 0, solve, lambda: model)
                return total + gap, model, sums, iterate

            return jax.lax.fori_loop(0, horizon, play, (jnp.float32(0), model, sums, nothing))[0]

        key = fast_key(jax.random.key(0))
        seeds = jax.device_put(np.arange(tile, dtype=np.uint32), CPU)
        compiled, _ = compile_call(jax.vmap(lane, in_axes=(None, 0)), (key, seeds), COMPILER_OPTIONS["cpu"])
        return lambda: jax.block_until_ready(compiled(key, seeds))

    return compile_floor
