"""Estimators on a problem, as a run that a sweep can take."""

import dataclasses
import inspect
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.learner import Estimator, Guarantee, Problem
from jaxdp.simulation.run import Run


def estimation_run(estimators: Mapping[str, Estimator], problem: Problem) -> Run:
    """Runs several estimators on the same data sets, in one program.

    A lane splits its key into the data's and the estimators': every estimator, and every epsilon of a sweep, meets the
    same data for the same seed. An estimator's key depends on its name only, so that adding or reordering estimators
    leaves the others' results as they are.

    Args:
        estimators: by name.
        problem: draws the data and measures the estimates. What it declares `known` replaces the field of that name in
            the `Params` of every estimator that has one.

    Returns:
        A run. Its `params` take the names of all `params` (estimators' and problem's), and hand each what it takes; its
        outputs are the problem's metrics with a leading dimension `estimator`.

    Raises:
        ValueError: if there is no estimator; from `params`, if a name is taken by none, or a required one is missing.
    """
    if not estimators:
        raise ValueError("estimators must name at least one, got none")
    estimators = dict(estimators)
    takers = {**{name: e.params for name, e in estimators.items()}, "": problem.params}

    def split(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        taken = {name: _parameters(params) for name, params in takers.items()}
        unknown = set(values).difference(*taken.values())
        if unknown:
            known = sorted(set().union(*taken.values()))
            raise ValueError(f"values must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
        for name, parameters in taken.items():
            missing = [key for key, p in parameters.items() if p.default is p.empty and key not in values]
            if missing:
                raise ValueError(f"values must have {missing[0]}, which {name or 'the problem'} needs")
        return {name: {key: values[key] for key in parameters if key in values} for name, parameters in taken.items()}

    def params(**values: Any) -> dict[str, Any]:
        return {name: takers[name](**mine) for name, mine in split(values).items()}

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        mine = split(values)
        return {name: e.guarantee(**mine[name]) for name, e in estimators.items()}

    def simulate(key: jax.Array, params: dict[str, Any]) -> dict[str, jax.Array]:
        key_data, key_estimators = jax.random.split(key)
        sample = problem.sample(key_data, params[""])
        outputs = []
        for name, estimator in estimators.items():
            key_privatize, key_fit = jax.random.split(_fold_in_name(key_estimators, name))
            known = {field: value for field, value in sample.known.items() if hasattr(params[name], field)}
            mine = dataclasses.replace(params[name], **known)
            report = estimator.privatize(key_privatize, mine, sample.features, sample.labels)
            estimate = estimator.fit(key_fit, mine, sample.features, report)
            outputs.append(problem.metrics(params[""], sample, estimate))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=guarantee,
        dims={name: ("estimator", *dims) for name, dims in problem.dims.items()},
        coords={"estimator": list(estimators), **problem.coords},
    )


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _fold_in_name(key: jax.Array, name: str) -> jax.Array:
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))
