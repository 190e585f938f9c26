"""Floors: programs that do only what a learner cannot do without. They show how fast it could be at most.

`python benchmarks/run.py --floors --clock processor ucb` measures a learner beside its floor and its peer. A floor
plays one tile on one core, with the learner's lanes, layout and kernels, and has in each round

* one Threefry hash for the key of each purpose, and one more for the draw of an expert and for a report's coin;
* losses of 0 or 1, or an arm's reward, of words mixed from a key;
* `counter_weights`: exact noise, which its claim needs: an integer an expert, from two hashes and two normal variates
  in float64, added to the counter's leaky sums of 64 bits, which are read; and exact totals of losses, in two words;
* `mirror_descent`: the private draw, the certainty that it releases, and the draw of the play from that;
* `limited_updates`: one key and the losses of a round, added to one sum, and neither selections nor noise;
* `svt_restarts`, questions 16 rounds apart: one key and the losses of a round, added to one sum; with each question
  its keys, its noise, and the largest sums of dyadic windows, once written and once read;
* `lazy_weights`, batches of 19: one key and the losses of a round, added to one sum; with each batch a coin, and one
  step of the filter, without powers of two and without a draw of a sequence;
* `explore_then_commit`: one key, and a reward of a word mixed from it, added to one sum; by blocks, 128 rounds at once;
* weights carried as floats: one exponential an expert (`tsallis_inf`: one reciprocal, `ucb`: one square root an arm);
* one sum and one draw by inversion (`ucb`: the largest).

It has no compensated sums, no smallest loss, no flow of weight, no change of the good expert, no sums of outcomes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import CPU
from benchmarks.programs import compile_call
from benchmarks.settings import ARMS, GAP, KEEP, OTHERS, SMALL
from jaxdp.bandits._means_kernels import first_largest
from jaxdp.experts._share_kernels import kernel
from jaxdp.experts._svt_restarts.windows_kernels import largest, replace_columns
from jaxdp.mechanisms.continual_counting.steps import add_steps, integers, normal_steps, numbers, zero_steps
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import lanes_fast, lanes_last, own_kernel, separate_kernels
from jaxdp.numerics.lookup import entry
from jaxdp.random import fast_key, index_from_uniform, uniform_from_key, weighted_index
from jaxdp.random.coins import coins_but_one
from jaxdp.simulation.sweeps.lanes import COMPILER_OPTIONS

RATE = 0.01  # small: weights that nothing brings back must not become denormal
STDDEV = 1.5 * 2**25  # of fresh noise, in steps


def losses_of(key: jax.Array, good: jax.Array, num: int) -> jax.Array:
    return coins_but_one(key, num, good, jnp.float32(OTHERS - GAP), jnp.float32(OTHERS))


def absorbed(weights: jax.Array, losses: jax.Array) -> jax.Array:
    return kernel(lambda weights, losses: weights * jnp.exp(-RATE * losses), weights, losses)


def weighted(keys, good, weights, state):
    """Plays one round: draws an expert by weight, draws losses, and updates each weight by one exponential.

    Returns the drawn index, the new weights, and `state` unchanged. `good` is the index of the best expert.
    """
    index = weighted_index(keys[0], weights)
    return index, absorbed(weights, losses_of(keys[1], good, len(weights))), state


def drawn_twice(keys, good, weights, state):
    """Plays one round with two draws: one by weight, which is released as the new state, and the play from the state.

    Returns the played index, the weights after the losses of the round, and the released vector.
    """
    num, drawn = len(weights), weighted_index(keys[2], weights)
    certain = kernel(lambda weights, drawn: (jnp.arange(num, dtype=jnp.int32) == drawn) * weights, weights, drawn)
    return weighted_index(keys[0], state), absorbed(weights, losses_of(keys[1], good, num)), certain


class Counted(NamedTuple):
    """The state of a counter: `sums` as in `ToeplitzState`, the exact total in two words, and the last noisy total."""

    sums: jax.Array
    total: fixed_point.Sum
    before: jax.Array


def counted(keys, good, weights, state):
    """Plays one round: draws an expert by weight, and updates weights by differences of noisy totals.

    Returns the drawn index, the new weights, and `state` with the losses of the round and fresh noise.
    """
    losses, index = losses_of(keys[1], good, len(weights)), weighted_index(keys[0], weights)

    def draw(key: jax.Array) -> jax.Array:
        return normal_steps(key, jnp.float64(STDDEV), weights.shape)

    def leak(sums: jax.Array, fresh: jax.Array) -> jax.Array:
        return add_steps(sums, (fresh * 2.0**12)[None] - jnp.round(1e-3 * numbers(sums)))

    def count(total: fixed_point.Sum, losses: jax.Array) -> fixed_point.Sum:
        part = total.part + losses.astype(jnp.int32) * fixed_point.UNITS
        return fixed_point.Sum(total.whole + (part >> fixed_point.BITS), part & (fixed_point.UNITS - 1))

    def read(total: fixed_point.Sum, sums: jax.Array) -> jax.Array:
        first, *leaky = (integers(each) for each in sums)
        noise = sum(0.1 * (each - first).astype(jnp.float64) for each in leaky) + first.astype(jnp.float64)
        exact = total.whole.astype(jnp.float64) + total.part.astype(jnp.float64) * (1 / fixed_point.UNITS)
        return (exact + jnp.round(noise * 2.0**-12) * (1e-3 / STDDEV)).astype(jnp.float32)

    sums = separate_kernels(in_64_bits(leak), state.sums, in_64_bits(draw)(keys[2]), layout=lanes_fast)
    total = separate_kernels(count, state.total, losses, layout=lanes_fast)
    noisy = separate_kernels(in_64_bits(read), total, sums, layout=lanes_fast)
    weights = kernel(
        lambda weights, *noisy: weights * jnp.exp(RATE * (noisy[1] - noisy[0])), weights, noisy, state.before
    )
    return index, weights, Counted(sums, total, noisy)


def counter_state(num: int, buffers: int) -> Counted:
    """Returns the counter's state before the first round, for this number of experts and of leaky sums."""
    return Counted(zero_steps((buffers, num)), fixed_point.zero(num), jnp.zeros(num, jnp.float32))


def heard(keys, arm, sums):
    """Draws a reward of `arm` and its randomized response; returns the arms' sums of reports with it added."""
    paid = uniform_from_key(keys[0]) < entry(jnp.asarray(SMALL), arm)
    said = jnp.where(jax.random.uniform(keys[1]) < np.float32(KEEP), paid, ~paid).astype(jnp.float32)
    return kernel(
        lambda sums, arm, said: sums + jnp.where(jnp.arange(ARMS, dtype=jnp.int32) == arm, said, 0), sums, arm, said
    )


def largest_bound(keys, good, sums, state):
    """Plays one round: the arm with the largest bound, one square root an arm; returns (arm, new sums, state)."""
    arm = first_largest(kernel(lambda sums: sums * jax.lax.rsqrt(sums), sums))
    return arm, heard(keys, arm, sums), state


def play_arm(keys, good, weights, means):
    """Plays the arm `good`; returns (its reward of 0 or 1, of one mixed word, and `weights` and `means` unchanged)."""
    return (uniform_from_key(keys[0]) < entry(means, good)).astype(jnp.int32), weights, means


def play_arm_block(keys, good, weights, means):
    """Plays the arm `good` in several rounds; returns (the sum of rewards, and `weights` and `means` unchanged)."""
    paid = jax.vmap(uniform_from_key)(keys[1]) < entry(means, good)
    return jnp.sum(paid, dtype=jnp.int32), weights, means


def reciprocal_weights(keys, good, sums, state):
    """Plays one round: an arm drawn by weights of one reciprocal an arm; returns (arm, new sums, state)."""
    arm = index_from_uniform(uniform_from_key(keys[2]), kernel(lambda sums: 1 / (sums * sums), sums))
    return arm, heard(keys, arm, sums), state


def several_losses(keys: jax.Array, good: jax.Array, num: int) -> jax.Array:
    return jax.vmap(lambda key: losses_of(key, good, num))(keys)


def added(keys, good, sums, state):
    """Adds the losses of several rounds to `sums`.

    Returns (whether the first sum is even, so that no sum is left out, the new sums, `state`).
    """

    def add(losses: jax.Array, sums: jax.Array) -> jax.Array:
        losses, sums = lanes_fast(losses), lanes_fast(sums)
        for each in losses:
            sums = sums + each
        return lanes_fast(sums)

    losses = several_losses(keys[1], good, len(sums))
    sums = lanes_fast(own_kernel(add, lanes_fast(losses), lanes_fast(sums)))
    return (sums[0] % 2 == 0).astype(jnp.int32), sums, state


def added_round(keys, good, sums, state):
    """Adds the losses of one round to `sums`; returns as `added` does."""
    sums = kernel(lambda sums, losses: sums + losses, sums, losses_of(keys[0], good, len(sums)))
    return (sums[0] % 2 == 0).astype(jnp.int32), sums, state


def asked(keys, good, sums, memory):
    """Adds losses of several rounds to `sums`, and compares the largest sum of a dyadic window with noise.

    Returns (whether it exceeds the noise, the new sums, the memory of earlier sums with the new ones in one column).
    """
    _, sums, _ = added(keys, good, sums, ())
    noise = jnp.log(uniform_from_key(keys[0])) + jnp.log(uniform_from_key(keys[2]))
    memory = replace_columns(jnp.arange(memory.shape[1]) == good, sums, memory)
    sums, memory = lanes_last(sums), lanes_last(memory)
    most = own_kernel(lambda sums, memory: lanes_last(largest(sums[:, None] - memory)), sums, memory)
    return (largest(lanes_last(most)) > noise).astype(jnp.int32), sums, memory


def filtered(keys, good, sums, rows):
    """Draws the losses of several rounds, takes one step of the filter over `rows` of switches, and flips a coin.

    Returns (the coin, `sums` unchanged, the new rows).
    """
    losses = several_losses(keys[1], good, len(sums))

    def stepped(losses: jax.Array, rows: jax.Array) -> jax.Array:
        losses, rows = lanes_fast(losses), lanes_fast(rows)
        total = losses[0]
        for each in losses[1:]:
            total = total + each
        kept = rows * jnp.exp(-RATE * total)
        masses = sum(kept[:, index] for index in range(kept.shape[1]))
        came = [1e-3 * (masses[row - 1] - kept[row - 1]) for row in range(1, len(kept))]
        return lanes_fast(jnp.stack([kept[0], *(kept[row] + came[row - 1] for row in range(1, len(kept)))]))

    rows = lanes_fast(own_kernel(stepped, lanes_fast(losses), lanes_fast(rows)))
    return (uniform_from_key(keys[0]) > rows[0, 0]).astype(jnp.int32), sums, rows


def learner_floor(
    step: Callable[..., Any],
    *,
    keys: int,
    size: int,
    state: Callable[[int], Any] | None = None,
    together: int = 1,
) -> Callable[[int, int], Callable[[], Any]]:
    """Returns a floor: (horizon, tile) -> a call that plays one tile.

    Args:
        step: (keys of a round, good expert or arm, weights, further state) -> (index, weights, further state).
        keys: how many purposes have a key in each round.
        size: experts or arms.
        state: horizon -> arrays that are carried beside weights; None for one number.
        together: rounds of a step; the second purpose has a key for each of them.
    """

    def compile_floor(horizon: int, tile: int) -> Callable[[], Any]:
        def lane(key, seed):
            roots = jax.random.split(jax.random.fold_in(key, seed), keys)

            def play(round_, carried):
                total, weights, rest = carried
                round_keys = [jax.random.fold_in(root, round_) for root in roots]
                if together > 1:
                    every = round_ * together + jnp.arange(together, dtype=jnp.int32)
                    round_keys[1] = jax.vmap(jax.random.fold_in, (None, 0))(roots[1], every)
                index, weights, rest = step(round_keys, (seed % size).astype(jnp.int32), weights, rest)
                return total + index, weights, rest

            rest = jnp.ones((), jnp.float32) if state is None else state(horizon)
            start = jnp.int32(0), jnp.ones(size, jnp.float32), rest
            return jax.lax.fori_loop(0, horizon // together, play, start)[0]

        key = fast_key(jax.random.key(0))
        seeds = jax.device_put(np.arange(tile, dtype=np.uint32), CPU)
        compiled, _ = compile_call(jax.vmap(lane, in_axes=(None, 0)), (key, seeds), COMPILER_OPTIONS["cpu"])
        return lambda: jax.block_until_ready(compiled(key, seeds))

    return compile_floor
