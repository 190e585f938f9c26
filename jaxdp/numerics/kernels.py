"""Controls how XLA on CPU groups operations into loops and orders axes in memory.

The module also has reductions and rules for `jax.vmap`. The fast axis of an array is its contiguous axis in memory.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.platforms import by_platform, trace_once_a_platform
from jaxdp.numerics.private_jax import custom_vmap, keep_argmax_layout, mark_inlineable, order_axes

MAX_UNROLLED = 16  # arrays of at most this length are unrolled and have lanes as the fast axis
LARGE = 1024  # a lane's array with more entries should be contiguous, because each step uses only a part of the array
FEWEST = 32  # with fewer lanes, an array of more than 16 entries should be contiguous, as vectors would not be full


def noinline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function as a separate kernel on CPU, so that the function's values are computed only once.

    XLA on CPU fuses operations that it considers cheap (a hash, a drawn index) into each consumer of their values, so
    that each consumer recomputes the values. lax.optimization_barrier does not prevent this, because JAX 0.10 removes
    the barrier before fusion. A call that must not be inlined prevents the recomputation.
    """

    @functools.wraps(function)
    def inside(*arguments):
        with mark_inlineable(True):  # functions of jax.numpy, such as jnp.where and jnp.clip, are calls, too
            return function(*arguments)

    def call(*arguments):
        with mark_inlineable(False):
            return jax.jit(inside)(*arguments)

    return call


def own_kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls function(*arguments) as a separate kernel on CPU, and directly on other devices."""
    return by_platform(*arguments, cpu=noinline(function), default=function)


@jax.custom_jvp
def avoid_xla_tiling(values: jax.Array) -> jax.Array:
    """Returns the values unchanged, and prevents XLA from tiling a kernel with elementwise operations.

    If a kernel has only elementwise operations on floats and signed integers, and no constant, XLA on CPU (jaxlib 0.10)
    divides the arrays into tiles of sixteen numbers, and copies the tiles. This is several times slower than loops. Two
    operations on unsigned words, for float32 and int32 only, prevent tiling; LLVM then removes them. Call this function
    on the result inside `own_kernel`, before `lanes_last`.
    """
    if values.dtype not in (jnp.float32, jnp.int32):
        return values
    one = np.uint32(1)
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    return jax.lax.bitcast_convert_type((words ^ one) ^ one, values.dtype)


avoid_xla_tiling.defjvps(lambda tangent, _, values: tangent)


def lanes_last(values: jax.Array, longest: int = MAX_UNROLLED) -> jax.Array:
    """Returns the values [n, ...] unchanged. On CPU, lanes of `jax.vmap` become the fast axis if n <= longest.

    Lanes are the batch axis of `jax.vmap`. By default XLA stores lanes as the slow axis, so a loop over lanes reads
    with a stride of n values. The state of a simulation loop keeps the layout that the loop's body produces. In a
    nested `jax.vmap` only the outer batch axis counts as lanes and becomes the fast axis. In blocks, for example, the
    inner batch axis runs over rounds, and one scalar per round becomes an array [lanes, rounds] with lanes as the fast
    axis. Inside `own_kernel`, call this function also on the arguments, because a kernel does not inherit the layout.
    """
    if values.ndim > 0 and len(values) > longest:
        return values
    return by_platform(values, cpu=_put_lanes_last(0), default=lambda values: values)


def lanes_last_if_small(values: jax.Array) -> jax.Array:
    """Applies `lanes_last` to arrays of at most `LARGE` entries. Use it for the state of a loop.

    In a larger array, each lane reads and writes only a few entries, at different indices in each lane. If lanes were
    the fast axis, each of these entries would be in a separate cache line.
    """
    return lanes_last(values) if values.size <= LARGE else values


def lanes_last_if_many(values: jax.Array) -> jax.Array:
    """Makes lanes the fast axis of arrays of at most `LARGE` entries, and returns the values unchanged.

    For more than 16 entries, at least `FEWEST` lanes are required. `lanes_last` decides for arrays of more than `LARGE`
    entries.
    """
    if values.size <= MAX_UNROLLED or values.size > LARGE:
        return lanes_last(values)
    return by_platform(values, cpu=_put_lanes_last(0, FEWEST), default=lambda values: values)


def lanes_fast(values: jax.Array) -> jax.Array:
    """Applies `lanes_last` to arrays [n, ...] of any length n, and returns a scalar unchanged."""
    return lanes_last(values, len(values)) if values.ndim else values


def separate_kernels(
    function: Callable[..., Any], *inputs: Any, layout: Callable[[jax.Array], jax.Array] = lanes_last
) -> Any:
    """Calls function(*inputs). On CPU, a separate kernel computes each array of the result, with this layout.

    XLA on CPU stores values that two results share. With this function, each result recomputes these values, which is
    faster if the values need only a few operations. `function` takes pytrees of arrays, and must not combine lanes.
    """
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*inputs)
    input_leaves, structure = jax.tree.flatten(inputs)

    def compute_result(index: int) -> jax.Array:
        input_indices = _inputs_of_result(traced.jaxpr, index)

        def inside(*used_leaves: jax.Array) -> jax.Array:
            with jax.enable_x64(True):  # inputs may have 64 bits in a 32-bit program
                leaves = [jnp.zeros(jnp.shape(leaf), jnp.asarray(leaf).dtype) for leaf in input_leaves]
            for position, leaf in zip(input_indices, used_leaves, strict=True):
                leaves[position] = layout(leaf)
            results = function(*jax.tree.unflatten(structure, leaves))
            return layout(avoid_xla_tiling(jax.tree.leaves(results)[index]))

        return layout(own_kernel(inside, *(layout(input_leaves[position]) for position in input_indices)))

    leaves, result_structure = jax.tree.flatten(shapes)
    return jax.tree.unflatten(result_structure, [compute_result(index) for index in range(len(leaves))])


def _inputs_of_result(jaxpr: Any, index: int) -> list[int]:
    """Returns the indices of the inputs on which a result depends."""
    # Only these are passed to the result's kernel, because XLA would also copy unused inputs to the kernel's layout.
    needed = {id(jaxpr.outvars[index])}
    for step in reversed(jaxpr.eqns):
        if any(id(variable) in needed for variable in step.outvars):
            needed.update(map(id, step.invars))
    return [position for position, variable in enumerate(jaxpr.invars) if id(variable) in needed]


@functools.cache
def _put_lanes_last(num_axes: int, fewest: int = 0) -> Callable[[jax.Array], jax.Array]:
    """Returns an identity function that makes the first of `num_axes` batch axes of `jax.vmap` the fast axis.

    If there are fewer than `fewest` lanes on this axis, the last axis is the fast axis.
    """

    @custom_vmap
    def put_last(values: jax.Array) -> jax.Array:
        if num_axes == 0 or values.ndim == 1:
            return values
        axes = range(values.ndim)
        if len(values) < fewest:
            return order_axes(values, axes)
        if values.ndim == num_axes:  # one number in each lane
            values = keep_argmax_layout(values)
        return order_axes(values, (*axes[1:], 0))

    @put_last.def_vmap
    def _(axis_size: int, in_batched: list[bool], values: jax.Array) -> tuple[jax.Array, bool]:
        del axis_size
        return _put_lanes_last(num_axes + in_batched[0], fewest)(values), in_batched[0]

    return jax.jit(put_last, inline=True)  # traced once for each shape


def lanes_slow(values: jax.Array) -> jax.Array:
    """Returns the values unchanged. On CPU, the last axis becomes the fast axis and lanes become the slow axis.

    Otherwise XLA may choose another order of the axes if an axis has length 1, and then copy the array, although both
    orders are the same in memory.
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
    """Combines values [n], n >= 1, into one value [] by an associative and commutative operation.

    An example is `jnp.minimum`. Halves are combined until few values remain, which are then combined sequentially. XLA
    on CPU vectorises these elementwise operations over lanes, but computes reductions of short arrays in slow loops.
    """
    while len(values) > MAX_UNROLLED:
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

    `tree_reduce` slices one array, which XLA on CPU must store first. With a list, XLA computes each array when needed.
    """
    while len(terms) > MAX_UNROLLED:
        half = len(terms) // 2
        odd_term = terms[2 * half :]
        terms = [operation(a, b) for a, b in zip(terms[:half], terms[half : 2 * half], strict=True)]
        if odd_term:
            terms[0] = operation(terms[0], odd_term[0])
    return functools.reduce(operation, terms)


def batch_over_lanes(single: Callable[[Any], Any], all_at_once: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `single`, which under `jax.vmap` (also nested) calls `all_at_once` once for all lanes.

    Args:
        single: function of a pytree of one lane's arrays.
        all_at_once: the same function for arrays and results with a leading axis of lanes.
    """

    def widen_all(axis_size: int, in_batched: Any, inputs: Any) -> Any:
        def widen(leaf: Any, batched: bool) -> Any:
            return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *jnp.shape(leaf)))

        return jax.tree.map(widen, inputs, in_batched)

    one_lane, all_lanes = custom_vmap(single), custom_vmap(trace_once_a_platform(all_at_once))

    @one_lane.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        outputs = all_lanes(widen_all(axis_size, in_batched[0], inputs))
        return outputs, jax.tree.map(lambda _: True, outputs)

    @all_lanes.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        inputs = widen_all(axis_size, in_batched[0], inputs)
        merged = all_lanes(jax.tree.map(lambda leaf: leaf.reshape(axis_size * leaf.shape[1], *leaf.shape[2:]), inputs))
        outputs = jax.tree.map(lambda leaf: leaf.reshape(axis_size, len(leaf) // axis_size, *leaf.shape[1:]), merged)
        return outputs, jax.tree.map(lambda _: True, outputs)

    return one_lane


def call_across_lanes(function: Callable[..., jax.Array], longest: int, *inputs: Any) -> jax.Array:
    """Calls function(*inputs) as a separate kernel on CPU, which writes lanes as the fast axis.

    `across_lanes` then reads the result without a copy. With a layout constraint, XLA would copy the result.

    Args:
        function: function of one lane's pytrees, which returns an array [n, ...].
        longest: lanes become the fast axis only for n <= longest.
        inputs: arguments of the function.
    """
    if jax.eval_shape(function, *inputs).shape[0] > longest:
        return own_kernel(function, *inputs)

    def inside(*inputs: Any) -> jax.Array:
        return lanes_slow(jnp.moveaxis(jax.vmap(function)(*inputs), 0, -1))  # lanes are on the last axis here

    one_lane, all_lanes = functools.partial(own_kernel, function), functools.partial(own_kernel, inside)
    return batch_over_lanes(lambda inputs: one_lane(*inputs), lambda inputs: jnp.moveaxis(all_lanes(*inputs), -1, 0))(
        inputs
    )


@custom_vmap
def any_lane(flag: jax.Array) -> jax.Array:
    """Returns whether the flag ([] bool) is true in any lane of a (possibly nested) `jax.vmap`.

    The result is the same in all lanes, so `jax.vmap` does not convert a `lax.cond` on the result to a selection.
    """
    return flag


@any_lane.def_vmap
def _(axis_size: int, in_batched: list[bool], flag: jax.Array) -> tuple[jax.Array, bool]:
    del axis_size
    return any_lane(flag.any(axis=0) if in_batched[0] else flag), False


def across_lanes(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function of one lane's arrays. Under `jax.vmap`, this function calls `function` once for all lanes.

    XLA on CPU vectorises the last axis. If each lane's arrays are short, lanes should therefore be on the last axis.

    Args:
        function: function of a pytree of arrays with lanes on the last axis. Results must also have lanes on the last
            axis.
    """

    def single(inputs: Any) -> Any:
        outputs = function(jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], inputs))
        return jax.tree.map(lambda leaf: leaf[..., 0], outputs)

    def batched(inputs: Any) -> Any:
        outputs = function(jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), inputs))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), outputs)

    return batch_over_lanes(single, batched)
