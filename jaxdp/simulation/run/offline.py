"""Estimators on a problem, as a run that a sweep can take."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_leaves, check_made
from jaxdp.core import Estimator, Guarantee, MadeBy, Problem, Sample, scalar_leaf
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.products import with_full_products
from jaxdp.simulation.run.values import check_point, check_taken, once, parameters, taken, with_names
from jaxdp.validation import check_key, warn_large_delta


def estimation_run(estimators: Mapping[str, Estimator], problem: Problem) -> Run:
    """Runs several estimators on the same data sets, in one program.

    A lane splits its key into the data's and the estimators': every estimator, and every epsilon of a sweep, meets the
    same data for the same seed. An estimator's key depends on its name only, so that adding or reordering estimators
    leaves the others' results as they are.

    What a problem knows stands for the values of that name that are not given. An estimator is told facts of the world,
    and facts that were read from the features only where its privacy unit leaves features public: a bound that moves
    with a private record would reveal that record, whatever noise is added.

    What an estimator does not take it is not told: beside one that is told the true parameter's norm as its radius, one
    without a radius is at a disadvantage. Problems have an argument `known` to tell nobody, which is fair.

    Args:
        estimators: by name.
        problem: draws the data and measures the estimates.

    Returns:
        A run. Its `params` take the names of all `params` (estimators' and problem's), and hand each what it takes; a
        value that is given wins over what the problem knows, for every estimator. A field that the problem will fill
        in is NaN. They warn where delta is above one over the number of records. Its outputs are the problem's metrics
        with a leading dimension `estimator`.

    Raises:
        ValueError: if there is no estimator, or one of them or the problem is none, as a factory that was not called;
            from `params`, if a name is taken by none, or a required one is missing, which an estimator of private
            features needs also where the problem reads it from the features; from the run, if its key is not a typed
            one, or its parameters are not made by its `params`.
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
    told = {
        name: {*problem.known, *(problem.known_from_features if estimator.features_public else ())}
        for name, estimator in estimators.items()
    }

    made_problem = once(problem.params)

    def check(values: Mapping[str, Any]) -> None:
        for name, estimator in estimators.items():
            for field in sorted({*problem.known_from_features} - {*told[name], *values}):
                parameter = parameters(estimator.params).get(field)
                if parameter is not None and parameter.default is parameter.empty:
                    raise ValueError(
                        f"values must have {field}, fixed without the data: the problem reads it from the features, "
                        f"and {name} keeps features private, got {', '.join(values) or 'none'}"
                    )
        check_taken(values, everyone, told)

    def filled(name: str, values: Mapping[str, Any], **others: float) -> dict[str, Any]:
        """The values for this estimator; 1 or another placeholder where the problem will fill in its own."""
        return taken(estimators[name].params, {**dict.fromkeys(told[name], 1.0), **others, **values})

    def blank(name: str, values: Mapping[str, Any], **others: float) -> Any:
        """The params without what the problem will fill in."""
        params = check_leaves(name, estimators[name].params(**filled(name, values, **others)))
        unknown = {
            field: scalar_leaf(field, np.nan)
            for field in sorted(told[name])
            if field not in values and hasattr(params, field)
        }
        return dataclasses.replace(params, **unknown) if unknown else params

    def point(name: str, values: Mapping[str, Any]) -> Any:
        params = blank(name, values)
        for field in sorted(told[name] & (parameters(estimators[name].params).keys() - values.keys())):
            try:  # what is made from a value on the host cannot follow a fact that the sample tells later
                alike = _same_but_for(field, params, blank(name, values, **{field: 2.0}))
            except ValueError:
                alike = False
            if not alike:
                raise ValueError(
                    f"values must have {field}, since other values of {name} are scaled by it before there are data, "
                    f"got {', '.join(values) or 'none'}"
                )
        return params

    sizes: list[int] = []  # the number of records, once known; shapes are the same at every grid point

    def check_deltas(values: Mapping[str, Any], problem_params: Any) -> None:
        deltas = [claim.delta for claim in guarantee(**values).values() if claim.is_private]
        if not sizes:
            sizes.append(jax.eval_shape(problem.sample, jax.random.key(0), problem_params).labels.shape[0])
        warn_large_delta(max(deltas, default=0.0), sizes[0])

    def params(**values: Any) -> dict[str, Any]:
        """Returns the parameters of one grid point, on the host, from the estimators' and the problem's values."""
        check(values)
        mine = {name: point(name, values) for name in estimators}
        ours = check_leaves("the problem", made_problem(**taken(problem.params, values)))
        if values.get("delta"):
            check_deltas(values, ours)
        return {"problem": ours, "estimators": mine}

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        """Returns what each estimator claims for the same values as `params` takes."""
        check(values)
        return {name: estimator.guarantee(**filled(name, values)) for name, estimator in estimators.items()}

    def informed(name: str, params: Any, sample: Sample) -> Any:
        """The params, NaN in which is replaced by what the sample tells this estimator."""
        facts = {**sample.known, **(sample.known_from_features if estimators[name].features_public else {})}
        fields = {field: (getattr(params, field), fact) for field, fact in facts.items() if hasattr(params, field)}
        known = {
            field: jnp.where(jnp.isnan(value), jnp.asarray(fact, jnp.result_type(value)), value)
            for field, (value, fact) in fields.items()
        }
        return dataclasses.replace(params, **known) if known else params

    @with_full_products
    def simulate(key: jax.Array, params: dict[str, Any]) -> dict[str, jax.Array]:
        check_point(params, ("problem", "estimators"))
        check_point(params["estimators"], tuple(estimators))
        key_data, key_estimators = jax.random.split(check_key(key))
        sample = problem.sample(key_data, params["problem"])
        outputs = []
        for name, estimator in estimators.items():
            key_privatize, key_fit = jax.random.split(_fold_in_name(key_estimators, name))
            mine = informed(name, params["estimators"][name], sample)
            report = estimator.privatize(key_privatize, mine, sample.features, sample.labels)
            estimate = estimator.fit(key_fit, mine, sample.features, report)
            outputs.append(problem.metrics(params["problem"], sample, estimate))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)

    return Run(
        simulate=simulate,
        params=with_names(params, everyone),
        guarantee=with_names(guarantee, everyone),
        dims={name: ("estimator", *dims) for name, dims in problem.dims.items()},
        coords={"estimator": list(estimators), **problem.coords},
        made_by=MadeBy("estimation_run", {"estimators": estimators, "problem": problem}, ("estimators", "problem")),
    )


def _fold_in_name(key: jax.Array, name: str) -> jax.Array:
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))


def _same_but_for(field: str, params: Any, other: Any) -> bool:
    """Whether two points agree in all leaves but those of this name, also of an estimator inside another."""
    pairs = zip(*map(jax.tree_util.tree_leaves_with_path, (params, other)), strict=True)
    return all(
        getattr(path[-1], "name", None) == field or np.array_equal(leaf, another, equal_nan=True)
        for (path, leaf), (_, another) in pairs
    )
