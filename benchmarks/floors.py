"""How fast learners could be at most, by programs that do only what a learner cannot do without.

Run as `python benchmarks/floors.py`, with the names of learners to measure only those. For each learner three programs
take turns on one core: the learner's own, its floor, and its Numba peer; of each the least processor time counts, so
that other work on the machine does not matter. "At most" is the peer's time over the floor's.

A floor has the same lanes, tile, layout and kernels as the learner, and in each round

* one Threefry hash for the key of each purpose, and one more for the draw of an expert and for a report's coin;
* losses of 0 or 1, or an arm's reward, of words mixed from a key;
* `counter_weights`: a normal variate an expert, two of a hash, added to the counter's leaky sums, which are read;
* `mirror_descent`: the private draw, the certainty that it releases, and the draw of the play from that;
* `svt_restarts`, questions 16 rounds apart: one key and the losses of a round, added to one sum; with each question
  its keys, its noise, and the largest sums of dyadic windows, once written and once read;
* `lazy_weights`, batches of 19: one key and the losses of a round, added to one sum; with each batch a coin, and one
  step of the filter, without powers of two and without a draw of a sequence;
* weights carried as floats: one exponential an expert (`tsallis_inf`: one reciprocal, `ucb`: one square root an arm);
* one sum and one draw by inversion (`ucb`: the largest).

It has no compensated sums, no smallest loss, no flow of weight, no change of the good expert, no sums of outcomes.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.bench_bandits import ARMS, KEEP, MEANS
from benchmarks.bench_experts import DELTA, EPSILON, GAP, OTHERS, ROUNDS, SHIFTS, TILE, odds_and_futures
from benchmarks.bench_experts import MEANS as EXPERT_MEANS
from benchmarks.peers import numba_bandits, numba_experts, numba_lazy
from benchmarks.timing import machine
from jaxdp.bandits._means_kernels import first_largest
from jaxdp.experts import classes
from jaxdp.experts._share_kernels import kernel
from jaxdp.experts._svt_restarts.windows_kernels import largest, replace_columns
from jaxdp.mechanisms.continual_counting.buffers import find_buffers
from jaxdp.numerics.kernels import WRITTEN_OUT, lanes_fast, lanes_last, own_kernel
from jaxdp.numerics.lookup import entry
from jaxdp.random import fast, index_at, key_uniform, normals, weighted_index
from jaxdp.random.coins import coins_but_one
from jaxdp.simulation.sweeps.lanes import COMPILER_OPTIONS, Program

REPEATS = 7
SMALL = MEANS.astype(np.float32)
ARM_ROUNDS, ARM_TILE = 3000, 528
BATCH, EVERY = 19, 16  # rounds
BY_BLOCKS = {"lazy_weights": (2000, 528), "svt_restarts": (20_000, 264)}  # horizon, tile
RATE = 0.01  # small: weights that nothing brings back must not become denormal
Call = Callable[[], Any]


class Case(NamedTuple):
    """A learner, and what its floor has.

    Attributes:
        learner: by the number of experts and the horizon.
        values: of its params.
        peer: fills the regrets of lanes; by number, horizon and the learner's params.
        step: (keys of a round, good expert or arm, weights, further state) -> (index, weights, further state).
        keys: how many purposes have a key in each round.
        state: (number, horizon) -> shape of what is carried beside weights.
        together: rounds of a step; the second purpose has a key for each of them.
    """

    learner: Callable[[int, int], jaxdp.core.Learner]
    values: dict[str, float]
    peer: Callable[[int, int, Any, np.ndarray], None]
    step: Callable[..., Any]
    keys: int
    state: Callable[[int, int], tuple[int, ...]] = lambda num, horizon: ()
    together: int = 1


def losses_of(key: jax.Array, good: jax.Array, num: int) -> jax.Array:
    return coins_but_one(key, num, good, jnp.float32(OTHERS - GAP), jnp.float32(OTHERS))


def absorbed(weights: jax.Array, losses: jax.Array) -> jax.Array:
    return kernel(lambda weights, losses: weights * jnp.exp(-RATE * losses), weights, losses)


def weighted(keys, good, weights, state):
    """Losses, one exponential an expert, a draw."""
    index = weighted_index(keys[0], weights)
    return index, absorbed(weights, losses_of(keys[1], good, len(weights))), state


def drawn_twice(keys, good, weights, state):
    """`weighted`, and a second draw, which is what is private; its certainty is released, and drawn from."""
    num, drawn = len(weights), weighted_index(keys[2], weights)
    certain = kernel(lambda weights, drawn: (jnp.arange(num, dtype=jnp.int32) == drawn) * weights, weights, drawn)
    return weighted_index(keys[0], state), absorbed(weights, losses_of(keys[1], good, num)), certain


def counted(keys, good, weights, state):
    """`weighted` on losses with the increments of a counter's noise: its leaky sums, fed and read."""
    num = len(weights)
    apply = kernel if num <= WRITTEN_OUT else lambda function, *inputs: function(*inputs)
    sums = apply(lambda sums, noise: sums + (noise[None] - 1e-3 * sums), state, normals(keys[2], num))
    losses, index = losses_of(keys[1], good, num), weighted_index(keys[0], weights)
    noisy = apply(lambda losses, sums: losses + sum(1e-4 * each for each in sums), losses, sums)
    return index, absorbed(weights, noisy), sums


def heard(keys, arm, sums):
    """A reward, its report by randomized response, and the sums of reports after it."""
    paid = key_uniform(keys[0]) < entry(jnp.asarray(SMALL), arm)
    said = jnp.where(jax.random.uniform(keys[1]) < np.float32(KEEP), paid, ~paid).astype(jnp.float32)
    return kernel(
        lambda sums, arm, said: sums + jnp.where(jnp.arange(ARMS, dtype=jnp.int32) == arm, said, 0), sums, arm, said
    )


def largest_bound(keys, good, sums, state):
    """One square root an arm, the largest bound, a report."""
    arm = first_largest(kernel(lambda sums: sums * jax.lax.rsqrt(sums), sums))
    return arm, heard(keys, arm, sums), state


def reciprocal_weights(keys, good, sums, state):
    """One reciprocal an arm, a draw, a report."""
    arm = index_at(key_uniform(keys[2]), kernel(lambda sums: 1 / (sums * sums), sums))
    return arm, heard(keys, arm, sums), state


def several_losses(keys: jax.Array, good: jax.Array, num: int) -> jax.Array:
    return jax.vmap(lambda key: losses_of(key, good, num))(keys)


def asked(keys, good, sums, memory):
    """Losses of some rounds, added; a question about all dyadic windows."""
    losses = several_losses(keys[1], good, len(sums))

    def added(losses: jax.Array, sums: jax.Array) -> jax.Array:
        losses, sums = lanes_fast(losses), lanes_fast(sums)
        for each in losses:
            sums = sums + each
        return lanes_fast(sums)

    sums = lanes_fast(own_kernel(added, lanes_fast(losses), lanes_fast(sums)))
    noise = jnp.log(key_uniform(keys[0])) + jnp.log(key_uniform(keys[2]))
    memory = replace_columns(jnp.arange(memory.shape[1]) == good, sums, memory)
    sums, memory = lanes_last(sums), lanes_last(memory)
    most = own_kernel(lambda sums, memory: lanes_last(largest(sums[:, None] - memory)), sums, memory)
    return (largest(lanes_last(most)) > noise).astype(jnp.int32), sums, memory


def filtered(keys, good, sums, rows):
    """Losses of some rounds, added; one step of the filter over rows of switches, and a coin."""
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
    return (key_uniform(keys[0]) > rows[0, 0]).astype(jnp.int32), sums, rows


def floor_program(case: Case, num: int, horizon: int, tile: int) -> Call:
    def lane(key, seed):
        roots = jax.random.split(jax.random.fold_in(key, seed), case.keys)

        def step(round_, carried):
            total, weights, state = carried
            keys = [jax.random.fold_in(root, round_) for root in roots]
            if case.together > 1:
                every = round_ * case.together + jnp.arange(case.together, dtype=jnp.int32)
                keys[1] = jax.vmap(jax.random.fold_in, (None, 0))(roots[1], every)
            index, weights, state = case.step(keys, (seed % num).astype(jnp.int32), weights, state)
            return total + index, weights, state

        state = jnp.ones(case.state(num, horizon), jnp.float32)
        start = jnp.int32(0), jnp.ones(num, jnp.float32), state
        return jax.lax.fori_loop(0, horizon // case.together, step, start)[0]

    seeds = jnp.arange(tile, dtype=jnp.uint32)
    program = jax.jit(jax.vmap(lane, in_axes=(None, 0)))
    compiled = program.lower(fast(jax.random.key(0)), seeds).compile(COMPILER_OPTIONS["cpu"])
    return lambda: jax.block_until_ready(compiled(fast(jax.random.key(0)), seeds))


def own_program(run, params, tile: int) -> Call:
    found = Program(run, jax.random.key(0), [params], tile, jax.devices("cpu")[:1]).compile().tiles[0]
    return lambda: jax.block_until_ready(found(np.zeros(tile, np.uint32), np.arange(tile, dtype=np.uint32)))


def least(calls: dict[str, Call]) -> dict[str, float]:
    """Seconds of processor time, the least of some calls in turn."""
    best = dict.fromkeys(calls, float("inf"))
    for repeat in range(REPEATS + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            if repeat:  # the first one warms up
                best[name] = min(best[name], time.process_time() - start)
    return best


def measure(name: str, num: int, horizon: int, tile: int, world: Any) -> None:
    case = CASES[name]
    learner = case.learner(num, horizon)
    engine = "blocks" if case.together > 1 and learner.blocks else "rounds"
    run = jaxdp.simulator(learner, world, horizon, engine=engine, outcomes=["pseudo_regret"])
    params, regret = run.params(**case.values), np.zeros(tile)
    calls = {
        "jaxdp": own_program(run, params, tile),
        "floor": floor_program(case, num, horizon, tile),
        "Numba": lambda: case.peer(num, horizon, params["learner"], regret),
    }
    took = {who: seconds * 1e9 / (tile * horizon) for who, seconds in least(calls).items()}
    times = "  ".join(f"{who} {each:7.1f} ns" for who, each in took.items())
    ratio, most = (took["Numba"] / took[who] for who in ("jaxdp", "floor"))
    print(f"{name:<16}{num:5}  {times}  ratio {ratio:5.2f}x, at most {most:5.2f}x", flush=True)


def _peer(function: Callable[..., None], *others: str) -> Callable[[int, int, Any, np.ndarray], None]:
    def peer(num: int, horizon: int, params: Any, regret: np.ndarray) -> None:
        found = {"learning": float(params.learning_rate), "switch": SHIFTS / (horizon - 1)}
        rates = [found[other] for other in others]
        more = []
        if function is numba_experts.counter_weights:
            more = [float(params.counter.noise_stddev), *(each.astype(np.float32) for each in find_buffers(horizon))]
        function(num, EXPERT_MEANS, -(-horizon // (SHIFTS + 1)), horizon, *rates, *more, regret)

    return peer


def _hedge(num: int, horizon: int) -> jaxdp.core.Learner:
    return jaxdp.experts.hedge(num_experts=num, horizon=horizon)


def _counter(num: int, horizon: int) -> jaxdp.core.Learner:
    sequences = classes.markov(switch_rate=SHIFTS / (horizon - 1))
    return jaxdp.experts.counter_weights(num_experts=num, horizon=horizon, sequences=sequences, num_switches=SHIFTS)


def _leaky(num: int, horizon: int) -> tuple[int, int]:
    return len(find_buffers(horizon)[0]), num


def _shifting(factory: Callable[..., jaxdp.core.Learner]) -> Callable[[int, int], jaxdp.core.Learner]:
    return lambda num, horizon: factory(num_experts=num, horizon=horizon, num_switches=SHIFTS)


def _lazy(num: int, horizon: int) -> jaxdp.core.Learner:
    sequences = classes.switching(num_switches=SHIFTS)
    return jaxdp.experts.lazy_weights(num_experts=num, horizon=horizon, sequences=sequences, together=BATCH)


def _lazy_peer(num: int, horizon: int, params: Any, regret: np.ndarray) -> None:
    tables = odds_and_futures(num, -(-horizon // BATCH))
    about = float(params.learning_rate), float(params.fake_switch_prob), BATCH, int(params.budget)
    numba_lazy.lazy_switching(num, EXPERT_MEANS, -(-horizon // (SHIFTS + 1)), horizon, *about, *tables, regret)


def _restarts(num: int, horizon: int) -> jaxdp.core.Learner:
    return jaxdp.experts.svt_restarts(num_experts=num, horizon=horizon, check_every=EVERY)


def _restarts_peer(num: int, horizon: int, params: Any, regret: np.ndarray) -> None:
    slack = params.block_slack, params.slack_before, float(params.window_slack), np.float32(params.margin)
    levels = (-(-horizon // EVERY)).bit_length()
    numba_experts.svt_restarts(
        *(num, EXPERT_MEANS, -(-horizon // (SHIFTS + 1)), horizon, 8.0, EVERY, *slack, levels),
        *(regret, np.zeros(len(regret))),
    )


SHARE_PEER = _peer(numba_experts.fixed_share, "learning", "switch")
PRIVATE = {"epsilon": EPSILON, "delta": DELTA}
CASES = {
    "hedge": Case(_hedge, {}, _peer(numba_experts.hedge, "learning"), weighted, 2),
    "fixed_share": Case(_shifting(jaxdp.experts.fixed_share), {}, SHARE_PEER, weighted, 2),
    "mirror_descent": Case(
        _shifting(jaxdp.experts.mirror_descent), PRIVATE, SHARE_PEER, drawn_twice, 3, lambda num, horizon: (num,)
    ),
    "counter_weights": Case(
        _counter, PRIVATE, _peer(numba_experts.counter_weights, "learning", "switch"), counted, 3, _leaky
    ),
    "lazy_weights": Case(
        *(_lazy, {"epsilon": 4.0, "delta": DELTA, "batch": BATCH}, _lazy_peer, filtered, 2),
        *(lambda num, horizon: (SHIFTS + 1, num), BATCH),
    ),
    "svt_restarts": Case(
        *(_restarts, {"epsilon": 8.0}, _restarts_peer, asked, 3),
        *(lambda num, horizon: (num, (-(-horizon // EVERY)).bit_length()), EVERY),
    ),
    "ucb": Case(
        lambda num, horizon: jaxdp.bandits.ucb(num_arms=num),
        {"epsilon": EPSILON},
        lambda num, horizon, params, regret: numba_bandits.ucb(SMALL, KEEP, 4.0, horizon, regret),
        largest_bound,
        2,
    ),
    "tsallis_inf": Case(
        lambda num, horizon: jaxdp.bandits.tsallis_inf(num_arms=num),
        {"epsilon": EPSILON},
        lambda num, horizon, params, regret: numba_bandits.tsallis_inf(SMALL, KEEP, True, True, horizon, regret),
        reciprocal_weights,
        3,
    ),
}


def main() -> None:
    numba.set_num_threads(1)
    print(f"{machine()}; a round of a lane, processor time")
    for name in sys.argv[1:] or CASES:
        if name in ("ucb", "tsallis_inf"):
            measure(name, ARMS, ARM_ROUNDS, ARM_TILE, jaxdp.bandits.bernoulli_bandit(MEANS))
            continue
        sizes = [(10, *BY_BLOCKS[name])] if name in BY_BLOCKS else [(num, ROUNDS[num], TILE[num]) for num in ROUNDS]
        for num, horizon, tile in sizes:
            world = jaxdp.experts.shifting_losses(num_experts=num, horizon=horizon, num_shifts=SHIFTS, gap=GAP)
            measure(name, num, horizon, tile, world)


if __name__ == "__main__":
    main()
