"""How XLA on CPU groups operations into loops; values are the same either way."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.platforms import by_platform
from jaxdp.numerics.private_jax import custom_vmap, keep_argmax_layout, mark_inlineable, order_axes

WRITTEN_OUT = 16
LARGE = 1024  # entries of one lane's array: a step reads a part of a larger one, which should be contiguous


def noinline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function as a kernel of its own on CPU, so that its values are computed once.

    XLA on CPU would fuse operations that it counts as cheap (a hash, a drawn index) into each consumer of the values,
    and each would compute them again. In JAX 0.10 lax.optimization_barrier does not prevent this, as it is removed
    before fusion. A call that must not be inlined does.
    """

    @functools.wraps(function)
    def inside(*arguments):
        with mark_inlineable(True):  # functions of jax.numpy are calls, too: jnp.where, jnp.clip
            return function(*arguments)

    def call(*arguments):
        with mark_inlineable(False):
            return jax.jit(inside)(*arguments)

    return call


def own_kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls function(*arguments) as a kernel of its own on CPU, and directly on other devices."""
    return by_platform(*arguments, cpu=noinline(function), default=function)


@jax.custom_jvp
def avoid_xla_tiling(values: jax.Array) -> jax.Array:
    """Returns the values unchanged, for the result of a kernel of elementwise operations, or within one.

    XLA on CPU (jaxlib 0.10) cuts some kernels into tiles of sixteen numbers, which it copies back and forth: kernels
    with nothing but elementwise operations on floats and signed integers, and no constant. That is several times slower
    than its loops. Two operations on unsigned words, which LLVM removes again, prevent it. Call this inside
    `own_kernel`, before `lanes_last`.
    """
    if values.dtype not in (jnp.float32, jnp.int32):
        return values
    one = np.uint32(1)
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    return jax.lax.bitcast_convert_type((words ^ one) ^ one, values.dtype)


avoid_xla_tiling.defjvps(lambda tangent, _, values: tangent)


def lanes_last(values: jax.Array, longest: int = WRITTEN_OUT) -> jax.Array:
    """Returns the values [n, ...] unchanged; on CPU lanes of `jax.vmap` become the fast axis if n <= longest.

    XLA stores the axis of lanes as the slow one, and a loop over lanes then reads with a stride of n values. A
    simulation loop's carried state keeps the layout that its body gives it. If `jax.vmap` is nested, the outer one's
    axis has the lanes, as in blocks, whose inner one is over rounds: a number here is an array of rounds there, and is
    laid out, too. Call this on the arguments inside `own_kernel` as well: a kernel does not inherit the layout.
    """
    if values.ndim > 0 and len(values) > longest:
        return values
    return by_platform(values, cpu=_put_lanes_last(0), default=lambda values: values)


def lanes_last_if_small(values: jax.Array) -> jax.Array:
    """Applies `lanes_last`; an array of more than `LARGE` entries keeps its lanes apart.

    For a loop's carried state. In a long memory each lane reads at its own index, and writes few entries: with lanes as
    the fast axis each entry would be in another line of the cache.
    """
    return lanes_last(values) if values.size <= LARGE else values


def lanes_fast(values: jax.Array) -> jax.Array:
    """Applies `lanes_last` for any length."""
    return lanes_last(values, len(values)) if values.ndim else values


def separate_kernels(function: Callable[..., Any], *inputs: Any) -> Any:
    """Calls function(*inputs) with a separate kernel for each array of the result on CPU, with `lanes_last`.

    XLA on CPU stores values that two results share. Here each result computes them again: for a few operations, which
    cost less than storing.

    Args:
        function: of pytrees of arrays, elementwise, or along axes other than that of the lanes.
        inputs: its arguments.

    Returns:
        The function's result.
    """
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*inputs)
    input_leaves, structure = jax.tree.flatten(inputs)

    def one(index: int) -> jax.Array:
        used = _inputs_of_result(traced.jaxpr, index)

        def inside(*some: jax.Array) -> jax.Array:
            with jax.enable_x64(True):  # inputs may have 64 bits in a program of 32
                leaves = [jnp.zeros(jnp.shape(leaf), jnp.asarray(leaf).dtype) for leaf in input_leaves]
            for position, leaf in zip(used, some, strict=True):
                leaves[position] = lanes_last(leaf)
            results = function(*jax.tree.unflatten(structure, leaves))
            return lanes_last(avoid_xla_tiling(jax.tree.leaves(results)[index]))

        return lanes_last(own_kernel(inside, *(lanes_last(input_leaves[position]) for position in used)))

    leaves, result_structure = jax.tree.flatten(shapes)
    return jax.tree.unflatten(result_structure, [one(index) for index in range(len(leaves))])


def _inputs_of_result(jaxpr: Any, index: int) -> list[int]:
    """Returns the indices of a result's inputs: XLA would choose a layout for other inputs, and copy them."""
    needed = {id(jaxpr.outvars[index])}
    for step in reversed(jaxpr.eqns):
        if any(id(variable) in needed for variable in step.outvars):
            needed.update(map(id, step.invars))
    return [position for position, variable in enumerate(jaxpr.invars) if id(variable) in needed]


@functools.cache
def _put_lanes_last(num_axes: int) -> Callable[[jax.Array], jax.Array]:
    """Returns the identity that makes the first of `num_axes` leading axes, made by `jax.vmap`, the fast one."""

    @custom_vmap
    def place(values: jax.Array) -> jax.Array:
        if num_axes == 0 or values.ndim == 1:
            return values
        axes = range(values.ndim)
        if values.ndim == num_axes:  # a number of each lane
            values = keep_argmax_layout(values)
        return order_axes(values, (*axes[1:], 0))

    @place.def_vmap
    def _(axis_size: int, in_batched: list[bool], values: jax.Array) -> tuple[jax.Array, bool]:
        del axis_size
        return _put_lanes_last(num_axes + in_batched[0])(values), in_batched[0]

    return place


def lanes_slow(values: jax.Array) -> jax.Array:
    """Returns the values unchanged; on CPU with the last axis as the fast one and lanes as the slow one.

    If an axis has length 1, XLA may choose another order of axes. It is the same in memory, but XLA copies.
    """
    return by_platform(values, cpu=_in_order, default=lambda values: values)


@custom_vmap
def _in_order(values: jax.Array) -> jax.Array:
    return order_axes(values, range(values.ndim))


@_in_order.def_vmap
def _(axis_size: int, in_batched: list[bool], values: jax.Array) -> tuple[jax.Array, bool]:
    del axis_size
    return _in_order(values), in_batched[0]


def tree_reduce(operation: Callable[[Any, Any], Any], values: jax.Array) -> jax.Array:
    """Combines the values [n], n >= 1, into one by an associative operation, such as `jnp.minimum`: [].

    Halves are combined until few values remain, and those one after the other: elementwise operations that XLA on CPU
    vectorises over lanes, where its reductions of short arrays are slow loops.
    """
    while len(values) > WRITTEN_OUT:
        half = len(values) // 2
        odd_value = values[2 * half :]
        values = operation(values[:half], values[half : 2 * half])
        if len(odd_value):
            values = values.at[0].set(operation(values[0], odd_value[0]))
    result = values[0]
    for index in range(1, len(values)):
        result = operation(result, values[index])
    return result


def pairwise_reduce(operation: Callable[[Any, Any], Any], terms: list[jax.Array]) -> jax.Array:
    """Combines arrays as `tree_reduce` does, in the same order.

    `tree_reduce` slices one array, which XLA on CPU stores first; here it computes each array where it is combined.
    """
    while len(terms) > WRITTEN_OUT:
        half = len(terms) // 2
        odd_term = terms[2 * half :]
        terms = [operation(a, b) for a, b in zip(terms[:half], terms[half : 2 * half], strict=True)]
        if odd_term:
            terms[0] = operation(terms[0], odd_term[0])
    return functools.reduce(operation, terms)


def batch_over_lanes(single: Callable[[Any], Any], many: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Builds a function of one lane that under `jax.vmap`, also a nested one, processes all lanes at once.

    Args:
        single: of a pytree of a lane's arrays.
        many: the same for arrays with a leading axis of lanes; so have its results.

    Returns:
        A function of a pytree of a lane's arrays.
    """

    def widen_all(axis_size: int, in_batched: Any, inputs: Any) -> Any:
        def widen(leaf: Any, batched: bool) -> Any:
            return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *jnp.shape(leaf)))

        return jax.tree.map(widen, inputs, in_batched)

    one, all_ = custom_vmap(single), custom_vmap(many)

    @one.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        outputs = all_(widen_all(axis_size, in_batched[0], inputs))
        return outputs, jax.tree.map(lambda _: True, outputs)

    @all_.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        inputs = widen_all(axis_size, in_batched[0], inputs)
        merged = all_(jax.tree.map(lambda leaf: leaf.reshape(axis_size * leaf.shape[1], *leaf.shape[2:]), inputs))
        outputs = jax.tree.map(lambda leaf: leaf.reshape(axis_size, len(leaf) // axis_size, *leaf.shape[1:]), merged)
        return outputs, jax.tree.map(lambda _: True, outputs)

    return one


def call_across_lanes(function: Callable[..., jax.Array], longest: int, *inputs: Any) -> jax.Array:
    """Calls function(*inputs) as a kernel of its own on CPU that writes lanes as the fast axis.

    `across_lanes` then reads the result without a copy; an array that a layout constraint has placed would need one.

    Args:
        function: of a lane's pytrees; returns an array [n, ...].
        longest: arrays with larger n keep lanes apart.
        inputs: its arguments.
    """
    if jax.eval_shape(function, *inputs).shape[0] > longest:
        return own_kernel(function, *inputs)

    def inside(*inputs: Any) -> jax.Array:
        return lanes_slow(jnp.moveaxis(jax.vmap(function)(*inputs), 0, -1))  # the last axis is that of lanes here

    one, many = functools.partial(own_kernel, function), functools.partial(own_kernel, inside)
    return batch_over_lanes(lambda inputs: one(*inputs), lambda inputs: jnp.moveaxis(many(*inputs), -1, 0))(inputs)


@custom_vmap
def any_lane(flag: jax.Array) -> jax.Array:
    """Returns whether the flag, [] bool, is set in any lane of a (nested) batch: for loops that lanes leave at once."""
    return flag


@any_lane.def_vmap
def _(axis_size: int, in_batched: list[bool], flag: jax.Array) -> tuple[jax.Array, bool]:
    del axis_size
    return any_lane(flag.any(axis=0) if in_batched[0] else flag), False


def across_lanes(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Converts a function over many lanes to one of a single lane that processes all lanes of `jax.vmap` at once.

    XLA on CPU vectorises the last axis; if a lane's arrays are short, that has to be the lanes' axis.

    Args:
        function: of a pytree whose arrays have the lanes on their last axis; so have its results.

    Returns:
        A function of a pytree of a lane's arrays.
    """

    def single(inputs: Any) -> Any:
        outputs = function(jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], inputs))
        return jax.tree.map(lambda leaf: leaf[..., 0], outputs)

    def many(inputs: Any) -> Any:
        outputs = function(jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), inputs))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), outputs)

    return batch_over_lanes(single, many)
