"""Moves operations into the branches that use them, so that rounds without a release compute nothing for it."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal, Var, jaxpr_as_fun

from jaxdp.numerics.private_jax import PLAIN
from jaxdp.random.threefry import IMPLEMENTATION

# A user of a variable: the index of an operation, and the branch that uses the variable if the operation is a `cond`.
User = tuple[int, int]
NO_BRANCH = -1
KEYS = ("random_fold_in", "random_split", "random_unwrap", "random_wrap")
SHAPES = ("broadcast_in_dim", "concatenate", "dynamic_slice", "gather", "iota", "reshape", "slice", "squeeze")
SELECTIONS = ("and", "clamp", "eq", "ge", "gt", "le", "lt", "max", "min", "ne", "not", "or", "select_n", "xor")
WORDS = ("bitcast_convert_type", "convert_element_type", "shift_left", "shift_right_arithmetic", "shift_right_logical")
MOVABLE = frozenset((*KEYS, *SHAPES, *SELECTIONS, *WORDS))
ARITHMETIC = frozenset(("add", "mul", "sub"))  # may move only if their outputs are integers or uniform variates
OUTPUT = (-1, NO_BRANCH)  # the variable is an output of the program


def with_operations_in_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the same results, with operations inside the branches of `lax.cond` that use them.

    XLA does not move operations into branches. A learner that releases rarely would otherwise compute a hash for its
    key in every round, and a learner that reads only some rewards would draw all of them.

    Only operations on values that depend on a Threefry key among the arguments are moved, because other values may be
    the same for all lanes, or large. Under `jax.vmap`, a branch would compute such values once for each lane. Only
    operations that give the same bits in any kernel are moved, so results do not change in any bit. Sums and products
    of floats stay where they are, because XLA may compute a product and a sum of one kernel with a single rounding.
    With JAXDP_PLAIN=1, the function itself is returned.
    """
    if PLAIN:
        return function

    def call(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)

        def flat_function(*leaves: Any) -> Any:
            return function(*jax.tree.unflatten(structure, leaves))

        traced, shapes = jax.make_jaxpr(flat_function, return_shape=True)(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(move_into_branches(traced))(*leaves))

    return call


def move_into_branches(traced: Any) -> Any:
    """Moves operations of a closed jaxpr into the only branch that uses their random values, if `_may_move` allows."""
    program = inline(traced.jaxpr)
    random_values = _random_values(program)
    origins = {variable: operation for operation in program.eqns for variable in operation.outvars}
    operations = dict(enumerate(program.eqns))
    users: dict[Any, set[User]] = {variable: {OUTPUT} for variable in _variables(program.outvars)}
    moved: dict[int, dict[int, list[Any]]] = {}  # by index of the `cond`, by branch
    for index in reversed(range(len(operations))):
        operation = operations[index]
        users_of_outputs = {user for variable in operation.outvars for user in users.get(variable, ())}
        cond, branch = next(iter(users_of_outputs), OUTPUT)
        is_random = any(variable in random_values for variable in operation.outvars)
        if len(users_of_outputs) == 1 and branch != NO_BRANCH and is_random and _may_move(operation, origins):
            moved.setdefault(cond, {}).setdefault(branch, []).insert(0, operations.pop(index))
            users_of_inputs = [(variable, (cond, branch)) for variable in _variables(operation.invars)]
        else:
            users_of_inputs = _users_of_inputs(index, operation)
        for variable, user in users_of_inputs:
            users.setdefault(variable, set()).add(user)
    for index, by_branch in moved.items():
        operations[index] = _with_moved(operations[index], by_branch)
    return traced.replace(jaxpr=program.replace(eqns=list(operations.values())))


def inline(program: Jaxpr) -> Jaxpr:
    """Replaces calls of functions jitted with `inline=True` by their operations, as JAX before 0.12 does itself."""
    operations, names = [], {}  # names: the variable, or literal, that stands for an output of an inlined function
    for operation in program.eqns:
        operation = _rename(operation, names)
        function = operation.params.get("jaxpr")
        if operation.primitive.name != "jit" or not operation.params.get("inline") or function.consts:
            operations.append(operation)
            continue
        body = inline(function.jaxpr)
        inside = dict(zip(body.invars, operation.invars, strict=True))
        for body_operation in body.eqns:  # with new variables, because a function may be called several times
            inside |= {variable: Var(variable.aval) for variable in body_operation.outvars}
            operations.append(_rename(body_operation, inside))
        names |= {
            variable: output if isinstance(output, Literal) else inside[output]
            for variable, output in zip(operation.outvars, body.outvars, strict=True)
        }
    outputs = [atom if isinstance(atom, Literal) else names.get(atom, atom) for atom in program.outvars]
    return program.replace(eqns=operations, outvars=outputs)


def _random_values(program: Jaxpr) -> set[Any]:
    """Returns the variables that depend on a Threefry key among the inputs of a program."""
    random_values = {
        variable for variable in program.invars if getattr(variable.aval, "dtype", None) in _threefry_types()
    }
    for operation in program.eqns:
        if any(variable in random_values for variable in _variables(operation.invars)):
            random_values.update(operation.outvars)
    return random_values


@functools.cache
def _threefry_types() -> list[Any]:
    """Returns the dtypes of Threefry keys. Keys of other implementations may have other values in a batch of lanes."""
    names = "threefry2x32", IMPLEMENTATION
    return [jax.eval_shape(lambda name=name: jax.random.key(0, impl=name)).dtype for name in names]


def _users_of_inputs(index: int, operation: Any) -> Iterable[tuple[Any, User]]:
    """Yields (variable, user) for each use of a variable by an operation or, in a `cond`, by one of its branches."""
    if operation.primitive.name != "cond":
        yield from ((variable, (index, NO_BRANCH)) for variable in _variables(operation.invars))
        return
    flag, *operands = operation.invars
    repeats = Counter(map(id, operands))
    yield from ((variable, (index, NO_BRANCH)) for variable in _variables([flag]))
    for number, branch in enumerate(operation.params["branches"]):
        program = branch.jaxpr
        inputs = {variable for inside in program.eqns for variable in _variables(inside.invars)}
        used = inputs | set(_variables(program.outvars))
        for operand, parameter in zip(operands, program.invars, strict=True):
            if parameter in used:
                user = index, number if repeats[id(operand)] == 1 else NO_BRANCH
                yield from ((variable, user) for variable in _variables([operand]))


def _with_moved(cond: Any, moved: Mapping[int, Sequence[Any]]) -> Any:
    """Returns the `cond` with the moved operations at the start of their branches."""
    flag, *operands = cond.invars
    operations = [operation for branch in moved.values() for operation in branch]
    outputs = {variable for operation in operations for variable in operation.outvars}
    inputs = {variable: None for operation in operations for variable in _variables(operation.invars)}
    outer_inputs = [variable for variable in inputs if variable not in outputs]
    is_replaced = [not isinstance(operand, Literal) and operand in outputs for operand in operands]
    branches = []
    for number, branch in enumerate(cond.params["branches"]):
        program = branch.jaxpr
        # In the branch, an output has the name of the parameter that it replaces.
        pairs = list(zip(operands, program.invars, is_replaced, strict=True))
        names = {operand: parameter for operand, parameter, replaced in pairs if replaced}
        first_operations = [_rename(operation, names) for operation in moved.get(number, ())]
        parameters = [parameter for _, parameter, replaced in pairs if not replaced]
        program = program.replace(invars=[*parameters, *outer_inputs], eqns=[*first_operations, *program.eqns])
        branches.append(branch.replace(jaxpr=program))
    other_operands = [operand for operand, replaced in zip(operands, is_replaced, strict=True) if not replaced]
    params = {**cond.params, "branches": tuple(branches)}
    return cond.replace(invars=[flag, *other_operands, *outer_inputs], params=params)


def _rename(operation: Any, names: Mapping[Any, Any]) -> Any:
    invars = [atom if isinstance(atom, Literal) else names.get(atom, atom) for atom in operation.invars]
    return operation.replace(invars=invars, outvars=[names.get(variable, variable) for variable in operation.outvars])


def _variables(atoms: Iterable[Any]) -> Iterable[Any]:
    return (atom for atom in atoms if not isinstance(atom, Literal))


def _may_move(operation: Any, origins: Mapping[Any, Any]) -> bool:
    """Returns whether the outputs of an operation have the same bits in any kernel."""
    name = operation.primitive.name
    if name == "jit":
        program = operation.params["jaxpr"].jaxpr
        inside = {variable: each for each in program.eqns for variable in each.outvars}
        return not operation.effects and all(_may_move(each, inside) for each in program.eqns)
    if name in MOVABLE:
        return not operation.effects
    if name not in ARITHMETIC:
        return False
    if jnp.issubdtype(operation.outvars[0].aval.dtype, jnp.integer):
        return True
    first, second = operation.invars
    is_uniform = isinstance(second, Literal) and not isinstance(first, Literal) and first in origins
    # A uniform variate is a float in [1, 2), made of random bits, minus 1.
    return name == "sub" and is_uniform and origins[first].primitive.name == "bitcast_convert_type"
