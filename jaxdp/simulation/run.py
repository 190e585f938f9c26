"""What a sweep sweeps: one lane's simulation, with its host-side parameters and labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxdp.core.made_by import MadeBy, described
from jaxdp.core.shown import page, run_rows


@dataclass(frozen=True, kw_only=True, eq=False)  # equal to itself alone, so that jax.jit(run) works
class Run:
    """A pure function of (key, params), and what a sweep needs to call and to label it.

    Attributes:
        simulate: (key, params) -> dict of arrays; pure and vmappable.
        params: (**values) -> pytree. On the host: validates one grid point.
        guarantee: (**values) -> dict from algorithm to Guarantee. On the host.
        dims: names of the dimensions of each output; or a function that tells them from the outputs' shapes.
        coords: values along those dimensions, where they have any.
        by_round: (key, params, num_rounds) -> what happened in each round of one lane, for `replay`; None for a run
            that has no rounds, or cannot tell them apart.
        made_by: what it simulates, for people.
    """

    simulate: Callable[[jax.Array, Any], Mapping[str, jax.Array]]
    params: Callable[..., Any]
    guarantee: Callable[..., Mapping[str, Any]]
    dims: Mapping[str, tuple[str, ...]] | Callable[[Mapping[str, jax.ShapeDtypeStruct]], Mapping[str, tuple[str, ...]]]
    coords: Mapping[str, Any] = field(default_factory=dict)
    by_round: Callable[[jax.Array, Any, int], Mapping[str, Any]] | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return described(self, "run")

    def _repr_html_(self) -> str:
        made_of = {} if self.made_by is None else self.made_by.arguments
        return page(repr(self), "run", run_rows(made_of, self.params, self.coords))

    def __call__(self, key: jax.Array, params: Any) -> Mapping[str, jax.Array]:
        """One lane: the outputs for this key and these parameters."""
        return self.simulate(key, params)
