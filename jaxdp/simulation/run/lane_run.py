"""Defines `Run`, the simulation of one lane with the functions and labels that a sweep needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxdp.core.made_by import MadeBy, describe
from jaxdp.core.shown import page, run_rows
from jaxdp.simulation.run.stacking import stack_varying
from jaxdp.simulation.run.values import as_list, is_list

_MISSING: Any = object()


@dataclass(frozen=True, kw_only=True, eq=False)  # a run equals only itself, so that jax.jit(run) works
class Run:
    """A simulation of one lane (one grid point and one seed), with the functions and labels that a sweep needs.

    Attributes:
        simulate: (key, params) -> dict of arrays; pure and vmappable.
        params: (**values) -> pytree. On the host: checks the values of one grid point and returns its parameters.
        guarantee: (**values) -> dict of claims keyed by name. On the host: returns a claim for each algorithm and, if
            the environment has `user_level`, a claim for a person, unless the learner's claim is for a person.
        dims: names of the dimensions of each output, or a function that returns the names for given shapes of the
            outputs.
        coords: maps the name of a dimension to its coordinates; dimensions may be left out.
        by_round: (key, params, num_rounds) -> the events of each round of one lane, and the outputs after it, for
            `replay`. None if the run has no rounds, or uses the engine "counts".
        init: (key, params) -> the lane's state before the first round. On a CPU, the size of this state decides how
            many lanes a sweep compiles together. None if the run has no such state.
        made_by: the parts of the simulation, for `repr` and tables.
    """

    simulate: Callable[[jax.Array, Any], Mapping[str, jax.Array]]
    params: Callable[..., Any]
    guarantee: Callable[..., Mapping[str, Any]]
    dims: Mapping[str, tuple[str, ...]] | Callable[[Mapping[str, jax.ShapeDtypeStruct]], Mapping[str, tuple[str, ...]]]
    coords: Mapping[str, Any] = field(default_factory=dict)
    by_round: Callable[[jax.Array, Any, int], Mapping[str, Any]] | None = None
    init: Callable[[jax.Array, Any], Any] | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "run")

    def _repr_html_(self) -> str:
        made_of = {} if self.made_by is None else self.made_by.arguments
        return page(repr(self), "run", run_rows(made_of, self.params, self.coords))

    def __call__(self, key: jax.Array, params: Any = _MISSING) -> Mapping[str, jax.Array]:
        """Returns the outputs of one lane. Both the key and the parameters are required."""
        if params is _MISSING:
            raise ValueError(
                "a run must be called with a key and params, as run(key, run.params(epsilon=1.0)), got one argument"
            )
        return self.simulate(key, params)

    def points(self, *unnamed: Any, **values: Any) -> tuple[Any, Any]:
        """Returns the parameters of several grid points, with varying leaves stacked, for your own `jax.vmap`.

        Args:
            *unnamed: must be empty; otherwise an error asks for keyword arguments.
            **values: the values of `params`. Each is either one value for all points, or a list with one value for each
                point. A tuple, a range or an array with axes counts as a list, but a NamedTuple does not. All lists
                must have the same length, and point i has the i-th value of every list. For all combinations of two
                lists use `sweep`. If a value is itself such a list, pass a list with one copy for each point.

        Returns:
            (params, in_axes): one pytree with leaves on the host, and its `in_axes` for `jax.vmap`. A leaf that varies
            has a leading axis of points, and 0 in `in_axes`. Every other leaf is as `params` returns it, and has None
            in `in_axes`. If no leaf varies, all leaves have the axis.

        Raises:
            ValueError: if a value has no name or has masked entries; if no value is a list, a list is empty, or two
                lists differ in length; if `params` raises; or if the parameters of two points differ in structure, or
                in the shape of a leaf.

        Examples:
            >>> import jax, jaxdp
            >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9])
            >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
            >>> run = jaxdp.simulator(learner, bandit, horizon=8)
            >>> params, in_axes = run.points(epsilon=[0.1, 1.0, float("inf")])
            >>> many = jax.vmap(jax.vmap(run, in_axes=(None, in_axes)), in_axes=(0, None))
            >>> jax.jit(many)(jaxdp.lane_keys(jax.random.key(0), 5), params)["pseudo_regret"].shape
            (5, 3, 1)
        """
        if unnamed:
            raise ValueError(f"points must have values by name, as epsilon=[0.1, 1.0], got {unnamed[0]!r}")
        lists = {name: as_list(name, value) for name, value in values.items() if is_list(value)}
        sizes = {name: len(axis_values) for name, axis_values in lists.items()}
        if not lists:
            raise ValueError(
                f"points must have a list of values, as epsilon=[0.1, 1.0], got {', '.join(values) or 'none'}"
            )
        if len({*sizes.values()}) > 1 or 0 in sizes.values():
            lengths = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ValueError(f"points must have lists of one length >= 1, got {lengths}")
        (size,) = {*sizes.values()}
        return stack_varying(
            [
                self.params(**values | {name: axis_values[index] for name, axis_values in lists.items()})
                for index in range(size)
            ]
        )


def as_build(build: Any) -> Any:
    """Returns a function that returns a run: `build` itself, or a constant function if `build` is a Run."""
    return (lambda: build) if isinstance(build, Run) else build
