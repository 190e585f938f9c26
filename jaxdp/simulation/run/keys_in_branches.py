"""Derives keys inside the branches that use them, so that rounds without a release compute no hash for it."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

RESULT = (-1, -1)  # stands for results of the program; other users are (index of the operation, branch), or branch -1


def with_keys_in_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the same results, which derives keys inside the branches of `lax.cond` that use them.

    XLA does not move operations into branches. A learner that releases rarely would otherwise compute a hash for its
    key in every round. Only operations that return keys are moved, so results do not change in any bit.
    """

    def call(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        traced, shapes = jax.make_jaxpr(
            lambda *leaves: function(*jax.tree.unflatten(structure, leaves)), return_shape=True
        )(*leaves)
        results = jaxpr_as_fun(move_keys(traced))(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return call


def move_keys(traced: ClosedJaxpr) -> ClosedJaxpr:
    """Moves each operation that returns keys for only one branch of one `cond` into this branch."""
    program = traced.jaxpr
    users: dict[Any, set[tuple[int, int]]] = {variable: {RESULT} for variable in _variables(program.outvars)}
    moved: dict[tuple[int, int], list[Any]] = {}
    kept: dict[int, Any] = {}
    for index in reversed(range(len(program.eqns))):
        equation = program.eqns[index]
        using = set().union(*(users.get(variable, ()) for variable in equation.outvars))
        if len(using) == 1 and min(using)[1] >= 0 and _returns_keys(equation):
            (user,) = using
            moved.setdefault(user, []).insert(0, equation)
            inputs = [(variable, {user}) for variable in _variables(equation.invars)]
        else:
            kept[index] = equation
            inputs = _inputs_by_branch(index, equation)
        for variable, new_users in inputs:
            users.setdefault(variable, set()).update(new_users)
    for index in {index for index, _ in moved}:
        kept[index] = _with_moved(kept[index], {branch: ops for (each, branch), ops in moved.items() if each == index})
    return traced.replace(jaxpr=program.replace(eqns=[kept[index] for index in sorted(kept)]))


def _inputs_by_branch(index: int, equation: Any) -> Iterable[tuple[Any, set[tuple[int, int]]]]:
    """Yields each input of an operation with its users: the branches that use it, if the operation is a `cond`."""
    if equation.primitive.name != "cond":
        yield from ((variable, {(index, -1)}) for variable in _variables(equation.invars))
        return
    flag, *operands = equation.invars
    yield from ((variable, {(index, -1)}) for variable in _variables([flag]))
    read = [_used(branch.jaxpr) for branch in equation.params["branches"]]
    for position, operand in enumerate(operands):
        branches = {
            (index, number)
            for number, branch in enumerate(equation.params["branches"])
            if branch.jaxpr.invars[position] in read[number]
        }
        repeated = sum(operand is other for other in operands) > 1
        yield from ((variable, {(index, -1)} if repeated else branches) for variable in _variables([operand]))


def _with_moved(equation: Any, moved: dict[int, list[Any]]) -> Any:
    """Returns the `cond` with these operations at the start of its branches."""
    flag, *operands = equation.invars
    made = {variable for operations in moved.values() for each in operations for variable in each.outvars}
    stay = [
        position for position, operand in enumerate(operands) if isinstance(operand, Literal) or operand not in made
    ]
    needed = dict.fromkeys(
        variable
        for operations in moved.values()
        for each in operations
        for variable in _variables(each.invars)
        if variable not in made
    )
    branches = []
    for number, branch in enumerate(equation.params["branches"]):
        inner = branch.jaxpr
        names = {operand: inner.invars[p] for p, operand in enumerate(operands) if p not in stay}

        def rename(variables: Iterable[Any], names: dict[Any, Any] = names) -> list[Any]:
            return [v if isinstance(v, Literal) else names.get(v, v) for v in variables]

        before = [
            each.replace(invars=rename(each.invars), outvars=rename(each.outvars)) for each in moved.get(number, [])
        ]
        invars = [*(inner.invars[position] for position in stay), *needed]
        branches.append(branch.replace(jaxpr=inner.replace(invars=invars, eqns=[*before, *inner.eqns])))
    return equation.replace(
        invars=[flag, *(operands[position] for position in stay), *needed],
        params={**equation.params, "branches": tuple(branches)},
    )


def _used(program: Any) -> set[Any]:
    return {v for each in program.eqns for v in _variables(each.invars)} | set(_variables(program.outvars))


def _variables(atoms: Iterable[Any]) -> Iterable[Any]:
    return (atom for atom in atoms if not isinstance(atom, Literal))


def _returns_keys(equation: Any) -> bool:
    dtypes = [getattr(variable.aval, "dtype", np.dtype(bool)) for variable in equation.outvars]
    return not equation.effects and all(jnp.issubdtype(dtype, jax.dtypes.prng_key) for dtype in dtypes)
