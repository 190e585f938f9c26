"""Derives keys inside the branches that use them, so that rounds without a release compute no hash for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

# A user of a variable: the index of an operation, and the branch that uses the variable if the operation is a `cond`.
User = tuple[int, int]
NO_BRANCH = -1
OUTPUT = (-1, NO_BRANCH)  # the variable is an output of the program


def with_keys_in_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the same results, which derives keys inside the branches of `lax.cond` that use them.

    XLA does not move operations into branches. A learner that releases rarely would otherwise compute a hash for its
    key in every round. Only operations that return keys are moved, so results do not change in any bit.
    """

    def call(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)

        def flat_function(*leaves: Any) -> Any:
            return function(*jax.tree.unflatten(structure, leaves))

        traced, shapes = jax.make_jaxpr(flat_function, return_shape=True)(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(move_keys(traced))(*leaves))

    return call


def move_keys(traced: ClosedJaxpr) -> ClosedJaxpr:
    """Moves each operation that returns keys for only one branch of one `cond` into this branch."""
    program = traced.jaxpr
    operations = dict(enumerate(program.eqns))
    users: dict[Any, set[User]] = {variable: {OUTPUT} for variable in _variables(program.outvars)}
    moved: dict[int, dict[int, list[Any]]] = {}  # by index of the `cond`, by branch
    for index in reversed(range(len(operations))):
        operation = operations[index]
        users_of_outputs = {user for variable in operation.outvars for user in users.get(variable, ())}
        cond, branch = next(iter(users_of_outputs), OUTPUT)
        if len(users_of_outputs) == 1 and branch != NO_BRANCH and _returns_keys(operation):
            moved.setdefault(cond, {}).setdefault(branch, []).insert(0, operations.pop(index))
            users_of_inputs = [(variable, (cond, branch)) for variable in _variables(operation.invars)]
        else:
            users_of_inputs = _users_of_inputs(index, operation)
        for variable, user in users_of_inputs:
            users.setdefault(variable, set()).add(user)
    for index, by_branch in moved.items():
        operations[index] = _with_moved(operations[index], by_branch)
    return traced.replace(jaxpr=program.replace(eqns=list(operations.values())))


def _users_of_inputs(index: int, operation: Any) -> Iterable[tuple[Any, User]]:
    """Yields each input of an operation with each of its users."""
    if operation.primitive.name != "cond":
        yield from ((variable, (index, NO_BRANCH)) for variable in _variables(operation.invars))
        return
    flag, *operands = operation.invars
    yield from ((variable, (index, NO_BRANCH)) for variable in _variables([flag]))
    for number, branch in enumerate(operation.params["branches"]):
        program = branch.jaxpr
        inputs = {variable for inside in program.eqns for variable in _variables(inside.invars)}
        used = inputs | set(_variables(program.outvars))
        for operand, parameter in zip(operands, program.invars, strict=True):
            is_repeated = sum(operand is other for other in operands) > 1
            if parameter in used:
                yield from (
                    (variable, (index, NO_BRANCH if is_repeated else number)) for variable in _variables([operand])
                )


def _with_moved(cond: Any, moved: Mapping[int, Sequence[Any]]) -> Any:
    """Returns the `cond` with the moved operations at the start of their branches."""
    flag, *operands = cond.invars
    operations = [operation for branch in moved.values() for operation in branch]
    made = {variable for operation in operations for variable in operation.outvars}
    inputs = {variable: None for operation in operations for variable in _variables(operation.invars)}
    needed = [variable for variable in inputs if variable not in made]
    is_made = [not isinstance(operand, Literal) and operand in made for operand in operands]
    branches = []
    for number, branch in enumerate(cond.params["branches"]):
        program = branch.jaxpr
        # In the branch, a key has the name of the parameter that it replaces.
        pairs = list(zip(operands, program.invars, is_made, strict=True))
        names = {operand: parameter for operand, parameter, replaced in pairs if replaced}
        derived = [_rename(operation, names) for operation in moved.get(number, ())]
        parameters = [parameter for _, parameter, replaced in pairs if not replaced]
        program = program.replace(invars=[*parameters, *needed], eqns=[*derived, *program.eqns])
        branches.append(branch.replace(jaxpr=program))
    left = [operand for operand, replaced in zip(operands, is_made, strict=True) if not replaced]
    return cond.replace(invars=[flag, *left, *needed], params={**cond.params, "branches": tuple(branches)})


def _rename(operation: Any, names: Mapping[Any, Any]) -> Any:
    invars = [atom if isinstance(atom, Literal) else names.get(atom, atom) for atom in operation.invars]
    return operation.replace(invars=invars, outvars=[names.get(variable, variable) for variable in operation.outvars])


def _variables(atoms: Iterable[Any]) -> Iterable[Any]:
    return (atom for atom in atoms if not isinstance(atom, Literal))


def _returns_keys(operation: Any) -> bool:
    dtypes = [getattr(variable.aval, "dtype", np.dtype(bool)) for variable in operation.outvars]
    return not operation.effects and all(jnp.issubdtype(dtype, jax.dtypes.prng_key) for dtype in dtypes)
