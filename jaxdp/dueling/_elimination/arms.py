"""What elimination by effective Borda scores keeps of its arms: counters of wins, and intervals from them."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Scalar, default_float
from jaxdp.mechanisms import tape
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.noise import Noise
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.numerics.compensated import rounded
from jaxdp.numerics.kernels import own_kernel
from jaxdp.random import key_uniform

# What keys derived from a round's are for. Its leaf's noise comes from the key itself, whose bits are hashes of 0.
UPPER, REMOVED_LEAF, REMOVED_UPPER = range(1, 4)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        noise: of the counters' nodes.
        quantum: [] float, a power of two, to whose multiples noisy nodes are rounded.
        squared_radius: [num_arms + 1] float >= 0, by the number of active arms: sums of n wins are off by its root
            times sqrt(n).
        intercepts: [lines] float >= 0, of bounds on a counter's error, linear in the digits of its clock.
        slopes: [levels, lines] float >= 0.
    """

    epsilon: Scalar
    noise: Any
    quantum: Scalar
    squared_radius: np.ndarray
    intercepts: np.ndarray
    slopes: np.ndarray


class Private(NamedTuple):
    """What the curator knows.

    Attributes:
        wins: [num_arms, num_arms] integer, duels of the row's arm as the left one that it won against the column's.
        sums: [levels, num_arms] integer, what the blocks of each arm's counter add up to.
    """

    wins: jax.Array
    sums: jax.Array


class Public(NamedTuple):
    """What has been released, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        dropped: [num_arms] bool, those that the latest round dropped.
        plays: [num_arms, num_arms] integer, duels of the row's arm as the left one with the column's.
        digits: [levels, num_arms] int32, of the clocks of the arms' counters.
        estimates: [levels, num_arms] float, noisy sums of the blocks of each level.
    """

    active: jax.Array
    dropped: jax.Array
    plays: jax.Array
    digits: jax.Array
    estimates: jax.Array


class Trees(NamedTuple):
    """The shape of the arms' counters.

    Attributes:
        arity: children of a node.
        variances: [levels] of blocks' estimates in units of a node's.
        noise: of a node.
        name: of the noise, "laplace" or "gaussian".
    """

    arity: int
    variances: np.ndarray
    noise: Noise
    name: str

    @property
    def in_floats(self) -> bool:
        """Whether floats hold all sums exactly: shorter counters are then spared the care that large sums need."""
        return self.arity**self.levels <= 2 ** (jnp.finfo(default_float()).nmant + 1)

    @property
    def levels(self) -> int:
        """How many sizes of blocks there are, leaves included."""
        return len(self.variances)


def draw(trees: Trees, key: jax.Array, params: Params, shape: tuple[int, ...]) -> jax.Array:
    """Noise of nodes."""
    with tape.recording():  # what is noised is written by `_released`
        return trees.noise.add(key, params.noise, None, jnp.zeros(shape, default_float()))


def noisy(trees: Trees, params: Params, exact: jax.Array, noise: jax.Array) -> jax.Array:
    """Noisy sums of nodes on a lattice: post-processing.

    So sums of leaves do not depend on the order, and noise that programs round otherwise in its last bits is the same.
    Floats are outcomes, 0 or 1; integers may be large.
    """
    exact = exact.astype(noise.dtype) if trees.in_floats else exact
    return jnp.round(add_noise(exact, rounded(noise)) / params.quantum) * params.quantum


def feed(
    trees: Trees,
    keys: tuple[jax.Array, jax.Array],
    params: Params,
    nodes: tree.Nodes,
    entries: jax.Array,
    fed: jax.Array,
    *,
    shared: bool,
) -> tree.Nodes:
    """Feeds one entry to the counters of some arms.

    Args:
        trees: their shape.
        keys: of the leaves and of larger blocks.
        params: of the learner.
        nodes: the counters.
        entries: [num_arms] integers.
        fed: [num_arms] bool, public.
        shared: whether only one arm is fed, whose noise is drawn alone.
    """
    done = tree.ended(nodes, entries, fed, trees.arity)
    arms = (1,) if shared else entries.shape
    exact, noise = _released(trees, keys[0], params, done.sums[0], arms, 1)
    values = noisy(trees, params, exact, noise)[None]
    if trees.levels > 1:
        larger, shape = done.sums[1:], (trees.levels - 1, *arms)
        nothing = jnp.zeros(shape, values.dtype)
        sums, noise = jax.lax.cond(
            done.ends[1].any(),
            lambda: _released(trees, keys[1], params, larger, shape, len(larger)),
            lambda: (larger, nothing),
        )
        values = jnp.concatenate([values, noisy(trees, params, sums, noise)])
    combined = functools.partial(tree.combined, variances=trees.variances)
    # Estimates of larger blocks are made of smaller ones': fused, each would draw all arms' noise of both anew.
    estimates = combined(nodes, values) if shared else own_kernel(combined, nodes, values)
    return tree.advance(nodes, done, estimates)


def upper(estimates: jax.Array) -> jax.Array:
    """[num_arms] sums over the levels above the leaves, in one order."""
    total = jnp.zeros_like(estimates[0])
    for level in estimates[1:]:
        total = total + level
    return total


def noise_line(trees: Trees, params: Params, digits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What bounds a counter's error between two blocks of more than a leaf: its intercept and slope in leaves.

    Args:
        trees: their shape.
        params: of the learner.
        digits: [levels, num_arms] int32; leaves do not count.

    Returns:
        Two arrays [num_arms] float, those of the line that is lowest at half of the leaves.
    """
    float_ = params.intercepts.dtype
    counts, half = digits.astype(float_), jnp.asarray(trees.arity // 2, float_)
    lowest = chosen = steepness = jnp.full(counts.shape[1:], jnp.inf, float_)
    for line in range(len(params.intercepts)):  # written out: elementwise operations vectorise, reductions do not
        intercept, slope = params.intercepts[line], params.slopes[0, line]
        for level in range(1, trees.levels):
            intercept = intercept + counts[level] * params.slopes[level, line]  # exact: see `on_lattice`
        height = intercept + half * slope
        better = height < lowest
        chosen, steepness = jnp.where(better, intercept, chosen), jnp.where(better, slope, steepness)
        lowest = jnp.minimum(lowest, height)
    return chosen, steepness


def interval(
    squared_radius: jax.Array, estimates: jax.Array, played: jax.Array, noise_radius: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Bounds of effective Borda scores.

    Args:
        squared_radius: [] float, for the number of active arms.
        estimates: [..., num_arms] float, of wins.
        played: [..., num_arms] integers, duels that count.
        noise_radius: [..., num_arms] float, of the estimates.

    Returns:
        (low, high), each [..., num_arms]; infinite without duels.
    """
    n = played.astype(estimates.dtype)
    radius = jnp.sqrt(squared_radius * n) + noise_radius
    each = 1 / jnp.maximum(n, 1)
    low, high = (estimates - radius) * each, (estimates + radius) * each
    return jnp.where(played > 0, low, -jnp.inf), jnp.where(played > 0, high, jnp.inf)


def duels(public: Public) -> jax.Array:
    """[num_arms] duels of each arm as the left one with active arms."""
    return jnp.sum(jnp.where(public.active[None, :], public.plays, 0), axis=1, dtype=public.plays.dtype)


def opponents(keys: jax.Array, active: jax.Array) -> jax.Array:
    """[...] int32, one of the active arms at random for each key."""
    size = jnp.sum(active, dtype=jnp.int32)
    draws = jnp.vectorize(key_uniform, signature="()->()")(keys)
    places = (draws * size.astype(draws.dtype)).astype(jnp.int32)  # less than size, also in float32
    arm, up_to = jnp.zeros_like(places), jnp.zeros((), jnp.int32)
    for is_active in active:  # written out: no gather, and no cumulative sum, which cost more
        up_to = up_to + is_active.astype(jnp.int32)
        arm = arm + (up_to <= places).astype(jnp.int32)
    return arm


def remove(trees: Trees, key: jax.Array, params: Params, public: Public, private: Private) -> tree.Nodes:
    """The counters after the entry for what the latest round dropped: each arm's wins over it, with a minus."""
    nodes = tree.Nodes(public.digits, private.sums, public.estimates)
    lost = jnp.sum(jnp.where(public.dropped[None, :], private.wins, 0), axis=1, dtype=private.wins.dtype)
    keys = jax.random.fold_in(key, REMOVED_LEAF), jax.random.fold_in(key, REMOVED_UPPER)
    return feed(trees, keys, params, nodes, -lost, public.active, shared=False)


def _released(
    trees: Trees, key: jax.Array, params: Params, sums: jax.Array, shape: tuple[int, ...], nodes: int
) -> tuple[jax.Array, jax.Array]:
    """Exact sums as an auditor has them, and noise of a shape. An entry changes so many nodes by its change each."""
    noise, scale = draw(trees, key, params, shape), trees.noise.scale(params.noise, None)
    if trees.name == "laplace":
        entry = tape.Entry("laplace", sums, "l1", key, float(nodes), nodes / scale, noise=noise)
    else:
        entry = tape.Entry("gaussian", sums, "l2", key, float(nodes) ** 0.5, noise_stddev=scale, noise=noise)
    return tape.record(entry), noise
