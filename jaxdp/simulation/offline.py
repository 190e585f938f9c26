"""Estimators on a problem, as a run that a sweep can take."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_leaves, check_made
from jaxdp.learner import Estimator, Guarantee, Problem, scalar_leaf
from jaxdp.simulation.run import Run
from jaxdp.simulation.values import check_point, check_taken, taken
from jaxdp.validation import check_key


def estimation_run(estimators: Mapping[str, Estimator], problem: Problem) -> Run:
    """Runs several estimators on the same data sets, in one program.

    A lane splits its key into the data's and the estimators': every estimator, and every epsilon of a sweep, meets the
    same data for the same seed. An estimator's key depends on its name only, so that adding or reordering estimators
    leaves the others' results as they are.

    Args:
        estimators: by name.
        problem: draws the data and measures the estimates. What it declares `known` replaces the field of that name in
            the `Params` of every estimator that has one; until then the field is NaN.

    Returns:
        A run. Its `params` take the names of all `params` (estimators' and problem's), and hand each what it takes; its
        outputs are the problem's metrics with a leading dimension `estimator`.

    Raises:
        ValueError: if there is no estimator, or one of them or the problem is none, as a factory that was not called;
            from `params`, if a name is taken by none, a required one is missing, or one is given that the problem makes
            known; from the run, if its key is not a typed one, or its parameters are not made by its `params`.
    """
    if not isinstance(estimators, Mapping):
        raise ValueError(
            f'estimators must be a dict, as {{"name": estimator}}, got an instance of {type(estimators).__name__}'
        )
    if not estimators:
        raise ValueError("estimators must name at least one, got none")
    for name, estimator in estimators.items():
        check_made(f"estimators[{name!r}]", estimator, Estimator)
    check_made("problem", problem, Problem)
    estimators = dict(estimators)
    everyone = [*((name, estimator.params) for name, estimator in estimators.items()), ("the problem", problem.params)]

    placeholders = dict.fromkeys(problem.known, 1.0)  # pass every check; each sample replaces them

    def point(name: str, estimator: Estimator, values: Mapping[str, Any]) -> Any:
        params = check_leaves(name, estimator.params(**taken(estimator.params, {**values, **placeholders})))
        unknown = {name: scalar_leaf(name, np.nan) for name in problem.known if hasattr(params, name)}
        return dataclasses.replace(params, **unknown) if unknown else params

    def params(**values: Any) -> dict[str, Any]:
        check_taken(values, everyone, problem.known)
        mine = {name: point(name, estimator, values) for name, estimator in estimators.items()}
        ours = check_leaves("the problem", problem.params(**taken(problem.params, values)))
        return {"problem": ours, "estimators": mine}

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        check_taken(values, everyone, problem.known)
        everything = {**values, **placeholders}
        return {name: e.guarantee(**taken(e.params, everything)) for name, e in estimators.items()}

    def simulate(key: jax.Array, params: dict[str, Any]) -> dict[str, jax.Array]:
        check_point(params, ("problem", "estimators"))
        key_data, key_estimators = jax.random.split(check_key(key))
        sample = problem.sample(key_data, params["problem"])
        outputs = []
        for name, estimator in estimators.items():
            key_privatize, key_fit = jax.random.split(_fold_in_name(key_estimators, name))
            mine = params["estimators"][name]
            known = {field: value for field, value in sample.known.items() if hasattr(mine, field)}
            mine = dataclasses.replace(mine, **known) if known else mine
            report = estimator.privatize(key_privatize, mine, sample.features, sample.labels)
            estimate = estimator.fit(key_fit, mine, sample.features, report)
            outputs.append(problem.metrics(params["problem"], sample, estimate))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=guarantee,
        dims={name: ("estimator", *dims) for name, dims in problem.dims.items()},
        coords={"estimator": list(estimators), **problem.coords},
    )


def _fold_in_name(key: jax.Array, name: str) -> jax.Array:
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))
