"""Makes runs of estimators on a problem."""

import contextlib
import dataclasses
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_leaves, check_made
from jaxdp.core import Estimator, Guarantee, MadeBy, Problem, Sample, scalar_leaf
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.products import with_full_products
from jaxdp.simulation.run.values import check_point, check_taken, once, parameters, select_values, with_names
from jaxdp.validation import check_key, warn_large_delta


def estimation_run(estimators: Mapping[str, Estimator], problem: Problem) -> Run:
    """Returns a run of several estimators on the same data sets, in one program.

    Each lane splits its key into a key for the data and a key for the estimators. For the same seed, every estimator
    and every epsilon of a sweep gets the same data. An estimator's key depends only on the lane and on the estimator's
    name, so adding or reordering estimators does not change the results of the other estimators.

    If you do not pass a value, the estimator gets the problem's fact with the same name (for example `radius`). Facts
    that are computed from the features are passed only if features are public under the estimator's privacy unit,
    because a bound that changes with a private record could reveal that record, however large the noise is.

    An estimator gets only the facts for which it has arguments. An estimator without a radius is therefore at a
    disadvantage against an estimator that gets the true parameter's norm as its radius. For a fair comparison, pass
    `known=()` to the problem, which then passes no facts.

    Args:
        estimators: the estimators, keyed by name.
        problem: draws the data sets and evaluates the estimates.

    Returns:
        A run. Its outputs are the problem's metrics, with a leading dimension `estimator`. Its `params` takes the
        values of all estimators and of the problem, and passes to each function the values of the function's arguments.
        A value that you pass overrides the problem's fact for every estimator. A parameter is NaN if the problem fills
        it in later, when data are drawn. Claims must not depend on such a value. If you pass a delta, `params` warns if
        a claim's delta is above 1 / number of records.

    Raises:
        ValueError: if there are no estimators, if a name is not a string, or if an estimator or the problem has the
            wrong type (for example a factory that was not called). `params` raises if neither an estimator nor the
            problem has an argument with a given name, or if a required value is missing. Values are required for facts
            from which an estimator computes other parameters. For an estimator with private features, values are also
            required for arguments without a default that the problem would compute from the features. `guarantee`
            raises, too, if a claim depends on a fact for which no value is passed. The run raises if its key is not a
            typed key, if its parameters were not made by its `params`, or if an estimator does not support data of the
            problem's shapes.
    """
    if not isinstance(estimators, Mapping):
        raise ValueError(
            f'estimators must be a dict, as {{"name": estimator}}, got an instance of {type(estimators).__name__}'
        )
    if not estimators:
        raise ValueError("estimators must name at least one, got none")
    for name, estimator in estimators.items():
        if not isinstance(name, str):
            raise ValueError(f"estimators must have strings as names, got {name!r}")
        check_made(f"estimators[{name!r}]", estimator, Estimator)
    check_made("problem", problem, Problem)
    estimators = dict(estimators)
    takers = [*((name, estimator.params) for name, estimator in estimators.items()), ("the problem", problem.params)]
    facts_of = {
        name: {*problem.known, *(problem.known_from_features if estimator.features_public else ())}
        for name, estimator in estimators.items()
    }

    made_problem = once(problem.params)

    def check(values: Mapping[str, Any]) -> None:
        for name, estimator in estimators.items():
            for field in sorted({*problem.known_from_features} - {*facts_of[name], *values}):
                parameter = parameters(estimator.params).get(field)
                if parameter is not None and parameter.default is parameter.empty:
                    raise ValueError(
                        f"values must have {field}, as {name} keeps features private, and the problem would read "
                        f"{field} from them: choose a value without the data; got {', '.join(values) or 'none'}"
                    )
        check_taken(values, takers, facts_of)

    def fill_values(name: str, values: Mapping[str, Any], **placeholders: float) -> dict[str, Any]:
        """Returns the estimator's values, with placeholders (1 by default) for facts that the problem will fill in."""
        return select_values(estimators[name].params, {**dict.fromkeys(facts_of[name], 1.0), **placeholders, **values})

    def facts_to_fill(name: str, values: Mapping[str, Any]) -> list[str]:
        """Returns the names of the estimator's arguments that the problem will fill in."""
        return sorted(facts_of[name] & (parameters(estimators[name].params).keys() - values.keys()))

    def params_without_facts(name: str, values: Mapping[str, Any], **placeholders: float) -> Any:
        """Returns the estimator's parameters, with NaN for facts that the problem will fill in."""
        params = check_leaves(f"params of {name}", estimators[name].params(**fill_values(name, values, **placeholders)))
        unknown = {
            field: scalar_leaf(field, np.nan)
            for field in sorted(facts_of[name])
            if field not in values and hasattr(params, field)
        }
        return dataclasses.replace(params, **unknown) if unknown else params

    def point(name: str, values: Mapping[str, Any]) -> Any:
        params = params_without_facts(name, values)
        for field in facts_to_fill(name, values):
            try:  # parameters that `params` computes from this value could not use the sample's fact later
                is_independent = _differ_only_in(field, params, params_without_facts(name, values, **{field: 2.0}))
            except ValueError:
                is_independent = False
            if not is_independent:
                raise ValueError(
                    f"values must have {field}, as other parameters of {name} are computed from it before data are "
                    f"drawn, got {', '.join(values) or 'none'}"
                )
        return params

    sizes: list[int] = []  # empty, or the number of records, which is the same at every grid point

    def check_deltas(values: Mapping[str, Any], problem_params: Any) -> None:
        deltas = [claim.delta for claim in guarantee(**values).values() if claim.is_private]
        if not sizes:
            sizes.append(jax.eval_shape(problem.sample, jax.random.key(0), problem_params).labels.shape[0])
        warn_large_delta(max(deltas, default=0.0), sizes[0])

    def params(**values: Any) -> dict[str, Any]:
        """Returns the parameters of one grid point, on the host, from the estimators' and the problem's values."""
        check(values)
        estimator_params = {name: point(name, values) for name in estimators}
        problem_params = check_leaves("params of the problem", made_problem(**select_values(problem.params, values)))
        if values.get("delta"):
            check_deltas(values, problem_params)
        return {"problem": problem_params, "estimators": estimator_params}

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        """Returns each estimator's claim for the values that `params` takes; claims must not depend on facts."""
        check(values)
        claims = {name: estimator.guarantee(**fill_values(name, values)) for name, estimator in estimators.items()}
        for name, claim in claims.items():
            for field in facts_to_fill(name, values):
                if estimators[name].guarantee(**fill_values(name, values, **{field: 2.0})) != claim:
                    raise ValueError(
                        f"values must have {field}, as the claim of {name} depends on it, and the problem fills it in "
                        f"only when data are drawn, got {', '.join(values) or 'none'}"
                    )
        return claims

    def fill_facts(name: str, params: Any, sample: Sample) -> Any:
        """Replaces NaN in the parameters by the sample's facts that this estimator may know."""
        facts = {**sample.known, **(sample.known_from_features if estimators[name].features_public else {})}
        fields = {field: (getattr(params, field), fact) for field, fact in facts.items() if hasattr(params, field)}
        filled = {
            field: jnp.where(jnp.isnan(value), jnp.asarray(fact, jnp.result_type(value)), value)
            for field, (value, fact) in fields.items()
        }
        return dataclasses.replace(params, **filled) if filled else params

    @with_full_products
    def simulate(key: jax.Array, params: dict[str, Any]) -> dict[str, jax.Array]:
        check_point(params, ("problem", "estimators"))
        check_point(params["estimators"], tuple(estimators))
        key_data, key_estimators = jax.random.split(check_key(key))
        sample = problem.sample(key_data, params["problem"])
        outputs = []
        for name, estimator in estimators.items():
            key_privatize, key_fit = jax.random.split(_fold_in_name(key_estimators, name))
            estimator_params = fill_facts(name, params["estimators"][name], sample)
            with _naming_data(name, estimator, sample):
                report = estimator.privatize(key_privatize, estimator_params, sample.features, sample.labels)
                estimate = estimator.fit(key_fit, estimator_params, sample.features, report)
            outputs.append(problem.metrics(params["problem"], sample, estimate))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *outputs)

    return Run(
        simulate=simulate,
        params=with_names(params, takers),
        guarantee=with_names(guarantee, takers),
        dims={name: ("estimator", *dims) for name, dims in problem.dims.items()},
        coords={"estimator": list(estimators), **problem.coords},
        made_by=MadeBy("estimation_run", {"estimators": estimators, "problem": problem}, ("estimators", "problem")),
    )


@contextlib.contextmanager
def _naming_data(name: str, estimator: Estimator, sample: Sample) -> Iterator[None]:
    """Converts TypeErrors and ValueErrors of an estimator in a `with` block to a ValueError with the data's shapes.

    An estimator without `check` supports only compared pairs. For other data the error is raised before the block runs.
    """
    features, labels = np.shape(sample.features), np.shape(sample.labels)
    got = f"got a problem with features {features} and labels {labels}"
    # Shapes that fit by accident would broadcast, and estimates would be wrong without an error.
    if estimator.check is None and (len(features) != 2 or labels != features[:1]):
        raise ValueError(
            f"estimators[{name!r}] must take the problem's data; without a `check` it takes compared pairs, features "
            f"[num_samples, dim] and labels [num_samples]; {got}"
        )
    try:
        yield
    except jax.errors.JAXTypeError:  # a step that JAX cannot trace: its message has the reason
        raise
    except (TypeError, ValueError) as error:
        raise ValueError(f"estimators[{name!r}] must take the problem's data, {got}: {error}") from error


def _fold_in_name(key: jax.Array, name: str) -> jax.Array:
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))


def _differ_only_in(field: str, params: Any, other: Any) -> bool:
    """Returns whether two pytrees of parameters agree in all leaves except leaves named `field`, at any depth."""
    pairs = zip(*map(jax.tree_util.tree_leaves_with_path, (params, other)), strict=True)
    return all(
        getattr(path[-1], "name", None) == field or np.array_equal(leaf, another, equal_nan=True)
        for (path, leaf), (_, another) in pairs
    )
