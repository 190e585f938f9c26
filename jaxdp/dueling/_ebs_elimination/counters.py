"""The arms' counters of wins: trees with noisy nodes, their entries, and bounds on their errors."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.dueling._ebs_elimination.arms import Params, Private, Public
from jaxdp.mechanisms import tape
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.noise import LaplaceParams, Noise
from jaxdp.mechanisms.lattice import lattice_gaussian, lattice_laplace
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.numerics.kernels import own_kernel

# Tags folded into the round's key, one per further draw. The leaf uses the untagged key.
UPPER, REMOVED_LEAF, REMOVED_UPPER = range(1, 4)


class Trees(NamedTuple):
    """The shape of the arms' counters.

    Attributes:
        arity: children of a node.
        variances: [levels], of blocks' estimates in units of a node's variance.
        noise: of a node.
        name: of the noise, "laplace" or "gaussian".
    """

    arity: int
    variances: np.ndarray
    noise: Noise
    name: str

    @property
    def in_floats(self) -> bool:
        """Whether floats hold all sums exactly, so that the precautions for large sums can be skipped."""
        return self.arity**self.levels <= 2 ** (jnp.finfo(default_float()).nmant + 1)

    @property
    def levels(self) -> int:
        """The number of block sizes, leaves included."""
        return len(self.variances)


def draw(trees: Trees, key: jax.Array, params: Params, shape: tuple[int, ...]) -> jax.Array:
    """Draws noise of nodes: integers of the default type, in units of min(1, the lattice's quantum)."""
    noise = params.noise
    if isinstance(noise, LaplaceParams):
        return lattice_laplace(key, shape, params.quantum, noise.epsilon, noise.l1_sensitivity)
    return lattice_gaussian(key, shape, params.quantum, noise.noise_stddev, noise.l2_sensitivity)


def noisy(trees: Trees, params: Params, exact: jax.Array, noise: jax.Array) -> jax.Array:
    """Returns noisy sums of nodes, rounded to a lattice: post-processing of exact sums of integers.

    Sums of leaves therefore do not depend on the order, and programs with different rounding agree.

    Args:
        trees: their shape.
        params: of the learner.
        exact: [...] floats that are outcomes, 0 or 1, or integers, which may be large.
        noise: [...] integers of `draw`.
    """
    quantum = jnp.asarray(params.quantum)
    fine = noise.astype(quantum.dtype) * jnp.minimum(quantum, 1)  # exact where the quantum is at most 1
    integers = exact.astype(noise.dtype)
    half = (integers & noise) + ((integers ^ noise) >> 1)  # half of their sum, rounded down, without overflow
    small = exact.astype(fine.dtype) + fine if trees.in_floats else add_noise(integers, fine)
    noisy = jnp.where(quantum > 1, 2 * half.astype(fine.dtype), small)
    return jnp.round(noisy / quantum) * quantum


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
        fed: [num_arms] bool, public: the arms with counters that get an entry.
        shared: whether only one arm is fed, and only its noise is drawn.
    """
    done = tree.ending_blocks(nodes, entries, fed, trees.arity)
    arms = (1,) if shared else entries.shape
    exact, noise = _record_and_draw(trees, keys[0], params, done.sums[0], arms, 1)
    values = noisy(trees, params, exact, noise)[None]
    if trees.levels > 1:
        larger, shape = done.sums[1:], (trees.levels - 1, *arms)
        nothing = jnp.zeros(shape, jnp.result_type(int))
        sums, noise = jax.lax.cond(
            done.ends[1].any(),
            lambda: _record_and_draw(trees, keys[1], params, larger, shape, len(larger)),
            lambda: (larger, nothing),
        )
        values = jnp.concatenate([values, noisy(trees, params, sums, noise)])
    combined = functools.partial(tree.combine_estimates, variances=trees.variances)
    # Estimates of larger blocks use those of smaller blocks: fused, each would draw all arms' noise of both again.
    estimates = combined(nodes, values) if shared else own_kernel(combined, nodes, values)
    return tree.advance(nodes, done, estimates)


def remove(trees: Trees, key: jax.Array, params: Params, public: Public, private: Private) -> tree.Nodes:
    """Feeds the entry for the arms that the latest round dropped: each arm's wins over them, negated."""
    nodes = tree.Nodes(public.digits, private.sums, public.estimates)
    lost = jnp.sum(jnp.where(public.dropped[None, :], private.wins, 0), axis=1, dtype=private.wins.dtype)
    keys = jax.random.fold_in(key, REMOVED_LEAF), jax.random.fold_in(key, REMOVED_UPPER)
    return feed(trees, keys, params, nodes, -lost, public.active, shared=False)


def upper(estimates: jax.Array) -> jax.Array:
    """Sums over the levels above the leaves, in a fixed order: [num_arms]."""
    total = jnp.zeros_like(estimates[0])
    for level in estimates[1:]:
        total = total + level
    return total


def estimated_wins(estimates: jax.Array) -> jax.Array:
    """Returns the counters' estimates of the wins, [num_arms] float."""
    return upper(estimates) + estimates[0]


def noise_line(trees: Trees, params: Params, digits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the bound on a counter's error between two ends of inner nodes, as intercept and slope in leaves.

    Args:
        trees: their shape.
        params: of the learner.
        digits: [levels, num_arms] int32; leaves do not count.

    Returns:
        Two arrays [num_arms] float, of the line that is lowest at half of the leaves.
    """
    intercepts, slopes = jnp.asarray(params.intercepts), jnp.asarray(params.slopes)
    counts = digits.astype(intercepts.dtype)
    above = jnp.sum(slopes[1:, :, None] * counts[1:, None, :], axis=0)  # [lines, num_arms], exact: see `on_lattice`
    intercepts = intercepts[:, None] + above
    lowest = jnp.argmin(intercepts + jnp.asarray(trees.arity // 2, intercepts.dtype) * slopes[0][:, None], axis=0)
    return jnp.take_along_axis(intercepts, lowest[None], axis=0)[0], slopes[0][lowest]


def _record_and_draw(
    trees: Trees, key: jax.Array, params: Params, sums: jax.Array, shape: tuple[int, ...], nodes: int
) -> tuple[jax.Array, jax.Array]:
    """Records exact sums on an auditor's tape, and draws noise. An entry changes `nodes` nodes, each by its change."""
    noise, scale = draw(trees, key, params, shape), trees.noise.scale(params.noise, None)
    units = noise.astype(scale.dtype) * jnp.minimum(params.quantum, 1)
    unit = jnp.where(scale > 0, units / scale, 0)  # the scale is zero if nothing is private
    if trees.name == "laplace":
        entry = tape.Entry("laplace", sums, "l1", key, float(nodes), nodes / scale, noise=unit, distribution="laplace")
    else:
        moved = float(nodes) ** 0.5
        entry = tape.Entry("gaussian", sums, "l2", key, moved, noise_stddev=scale, noise=unit, distribution="normal")
    return tape.record(entry), noise
