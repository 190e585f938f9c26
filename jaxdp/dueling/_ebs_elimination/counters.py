"""The arms' counters of wins: trees with noisy nodes, the counters' entries, and bounds on the counters' errors."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.dueling._ebs_elimination.arms import Params, Private, Public
from jaxdp.mechanisms import tape
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.noise import LaplaceParams, Noise
from jaxdp.mechanisms.lattice import lattice_gaussian, lattice_laplace
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.numerics.kernels import own_kernel

# The draw for a leaf uses the round's key; each other draw in the round folds its tag into this key.
UPPER, REMOVED_LEAF, REMOVED_UPPER = range(1, 4)


class Trees(NamedTuple):
    """The shape and the noise of the arms' counters.

    Attributes:
        arity: number of children of a node.
        variances: [levels], variances of the blocks' estimates, divided by the variance of a node's noise.
        noise: the noise of a node.
        name: the noise's name, "laplace" or "gaussian".
    """

    arity: int
    variances: np.ndarray
    noise: Noise
    name: str

    @property
    def in_floats(self) -> bool:
        """Whether default floats represent all sums exactly. If not, `add_noise` adds noise to the integer sums."""
        return self.arity**self.levels <= 2 ** (jnp.finfo(default_float()).nmant + 1)

    @property
    def levels(self) -> int:
        """The number of levels of a tree, including the leaves."""
        return len(self.variances)


def draw(key: jax.Array, params: Params, shape: tuple[int, ...]) -> jax.Array:
    """Draws the noise of nodes, as integers of the default dtype in units of min(1, quantum)."""
    noise = params.noise
    if isinstance(noise, LaplaceParams):
        return lattice_laplace(key, shape, params.quantum, noise.epsilon, noise.l1_sensitivity)
    return lattice_gaussian(key, shape, params.quantum, noise.noise_stddev, noise.l2_sensitivity)


def add_rounded_noise(trees: Trees, params: Params, exact: jax.Array, noise: jax.Array) -> jax.Array:
    """Adds noise from `draw` to the exact integer sums of nodes, and rounds the result to a lattice.

    The rounding is post-processing of an exact sum of integers. Sums of numbers on the lattice are exact up to 2^24
    multiples of the quantum in float32 (2^53 in float64). Up to there, programs that add in different orders agree.
    """
    quantum = jnp.asarray(params.quantum)
    fine = noise.astype(quantum.dtype) * jnp.minimum(quantum, 1)  # exact if the quantum is at most 1
    integers = exact.astype(noise.dtype)
    half = (integers & noise) + ((integers ^ noise) >> 1)  # half of the sum, rounded down, without overflow
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
    """Adds an integer entry to the counter of each arm for which `fed` ([num_arms] bool, public) is True.

    keys[0] is for the noise of leaves, keys[1] for the noise of larger blocks. If `shared`, only one arm's counter
    receives an entry, and noise is drawn for this counter only.
    """
    done = tree.ending_blocks(nodes, entries, fed, trees.arity)
    arms = (1,) if shared else entries.shape
    exact, noise = _record_and_draw(trees, keys[0], params, done.sums[0], arms, 1)
    values = add_rounded_noise(trees, params, exact, noise)[None]
    if trees.levels > 1:
        larger, shape = done.sums[1:], (trees.levels - 1, *arms)
        nothing = jnp.zeros(shape, jnp.result_type(int))
        sums, noise = branch(
            done.ends[1].any(),
            lambda: _record_and_draw(trees, keys[1], params, larger, shape, len(larger)),
            lambda: (larger, nothing),
        )
        values = jnp.concatenate([values, add_rounded_noise(trees, params, sums, noise)])
    combined = functools.partial(tree.combine_estimates, variances=trees.variances)
    # Estimates of larger blocks use estimates of smaller blocks. In one fused kernel, XLA would draw the noise of the
    # smaller blocks again.
    estimates = combined(nodes, values) if shared else own_kernel(combined, nodes, values)
    return tree.advance(nodes, done, estimates)


def remove(trees: Trees, key: jax.Array, params: Params, public: Public, private: Private) -> tree.Nodes:
    """Subtracts, in each active arm's counter, the arm's wins over the arms that the latest round dropped."""
    nodes = tree.Nodes(public.digits, private.sums, public.estimates)
    removed_wins = jnp.sum(jnp.where(public.dropped[None, :], private.wins, 0), axis=1, dtype=private.wins.dtype)
    keys = jax.random.fold_in(key, REMOVED_LEAF), jax.random.fold_in(key, REMOVED_UPPER)
    return feed(trees, keys, params, nodes, -removed_wins, public.active, shared=False)


def sum_upper_levels(estimates: jax.Array) -> jax.Array:
    """Sums the estimates of the levels above the leaves, in a fixed order. The result is [num_arms] float."""
    total = jnp.zeros_like(estimates[0])
    for level in estimates[1:]:
        total = total + level
    return total


def estimated_wins(estimates: jax.Array) -> jax.Array:
    """Returns the counters' estimates of the wins, [num_arms] float."""
    return sum_upper_levels(estimates) + estimates[0]


def noise_line(trees: Trees, params: Params, digits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns a line that bounds each counter's error: (intercept, slope per leaf), [num_arms] float each.

    The line holds until the counter's next inner node ends. The digits are [levels, num_arms]; the digits of leaves are
    not used.
    """
    # This is the line that is lowest when half of the leaves under the next inner node have been added.
    intercepts, slopes = jnp.asarray(params.intercepts), jnp.asarray(params.slopes)
    counts = digits.astype(intercepts.dtype)
    above = jnp.sum(slopes[1:, :, None] * counts[1:, None, :], axis=0)  # [lines, num_arms], exact: see `on_lattice`
    intercepts = intercepts[:, None] + above
    lowest = jnp.argmin(intercepts + jnp.asarray(trees.arity // 2, intercepts.dtype) * slopes[0][:, None], axis=0)
    return jnp.take_along_axis(intercepts, lowest[None], axis=0)[0], slopes[0][lowest]


def _record_and_draw(
    trees: Trees, key: jax.Array, params: Params, sums: jax.Array, shape: tuple[int, ...], nodes: int
) -> tuple[jax.Array, jax.Array]:
    """Records exact sums on an auditor's tape, and draws their noise; an entry changes at most `nodes` of the sums."""
    noise, scale = draw(key, params, shape), trees.noise.scale(params.noise, None)
    size = noise.astype(scale.dtype) * jnp.minimum(params.quantum, 1)
    ratio = jnp.where(scale > 0, size / scale, 0)  # at epsilon = inf the scale is zero
    if trees.name == "laplace":
        entry = tape.Entry("laplace", sums, "l1", key, float(nodes), nodes / scale, noise=ratio, distribution="laplace")
    else:
        moved = float(nodes) ** 0.5
        entry = tape.Entry("gaussian", sums, "l2", key, moved, noise_stddev=scale, noise=ratio, distribution="normal")
    return tape.record(entry), noise
