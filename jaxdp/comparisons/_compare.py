"""Runs the sweep of a comparison: all learners in one environment, or all estimators on one problem."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax

from jaxdp.checks import check_made
from jaxdp.comparisons._comparison import FEWEST_SEEDS, Comparison
from jaxdp.core import Environment, Estimator, Learner, Problem
from jaxdp.core.interface import is_space
from jaxdp.persons import UNITS, with_unit
from jaxdp.simulation import Run, estimation_run, simulator, sweep
from jaxdp.simulation.run.checkpoints import LogSpaced
from jaxdp.simulation.run.values import as_list, is_list, parameters, select_values
from jaxdp.simulation.sweeps.tiles import keeps_tile
from jaxdp.validation import check_choice, check_count, check_epsilon, check_horizon, did_you_mean

METRICS = ("pseudo_regret", "regret", "dynamic_regret")  # the default metric is the first of these that the runs have
TILE = 256  # largest number of lanes in a tile on a CPU
SMALLEST_TILE = 16  # a tile is a multiple of this number of lanes
Contestant = Any  # a learner or an estimator, a factory, or a pair (learner or factory; dict of values)


def compare(
    learners: Mapping[str, Contestant],
    world: Environment | None = None,
    *,
    problem: Problem | None = None,
    epsilon: float | Sequence[float],
    horizon: int | Sequence[int] | None = None,
    num_seeds: int,
    key: jax.Array,
    metric: str | None = None,
    best: str = "least",
    values: Mapping[str, Any] | None = None,
    checkpoints: int | Sequence[int] | LogSpaced | None = None,
    engine: str = "auto",
    unit: str | Sequence[str] | None = None,
    reports: int = 1,
    **scheduling: Any,
) -> Comparison:
    """Runs learners on one world, or estimators on one problem, with the same seeds at every epsilon.

    Each seed draws one world, or one data set, for all contestants, so differences between contestants are paired.
    Learners that are simulated by counts (`engine="counts"`) draw separate worlds. The result lists these learners as
    unpaired; comparisons with them are valid, too.

    Args:
        learners: a dict with a learner, or with `problem` an estimator, for each display name. Instead of a learner you
            can pass its factory, which is called with the number of arms or experts, the dimension and the horizon if
            it requires them. You can also pass a pair of a learner or factory and a dict. The dict contains further
            arguments of the factory and parameter values except epsilon, as in `(jaxdp.bandits.ucb, {"report":
            "gaussian"})`. For an estimator, a pair has a factory and a dict of all its required arguments, without
            parameter values.
        world: the environment of the learners; None for estimators.
        problem: the problem of the estimators; None for learners.
        epsilon: one privacy budget, or several. A learner without the parameter epsilon plays the same at each budget.
        horizon: number of rounds; None for a problem. If a list of horizons is given, each has separate runs, and a
            learner that depends on the horizon must be given as a factory.
        num_seeds: number of repetitions, >= 5.
        key: root PRNG key.
        metric: the output to compare, such as "pseudo_regret" or "l2_error". For a world, None chooses the first of
            pseudo_regret, regret and dynamic_regret that the world has. For a problem, a metric must be given.
        best: "least" if small values of the metric are good, or "largest" if large values are good.
        values: further parameter values, such as delta, for each learner, estimator, world or problem that accepts
            them.
        checkpoints: as in `simulator`, for a single horizon; tables compare the values at the last checkpoint. None for
            a problem or a list of horizons.
        engine: as in `simulator`, for all learners. With "counts", learners without counts are simulated as with
            "auto". A problem requires "auto".
        unit: the privacy unit: "round", "person", or both, which become separate columns. With "person", learners are
            wrapped by `jaxdp.per_person` (as in `simulator`), the world must have `visits`, and factories receive as
            horizon the number of rounds that learners use. None leaves learners unchanged; a problem requires None.
        reports: with the unit "person", the number of visits of each person that a learner uses; otherwise 1.
        **scheduling: further arguments of `sweep`, such as `store` and `progress`.

    Returns:
        The comparison.

    Raises:
        ValueError: if an argument is out of its range; if a learner's dict or params fix epsilon; if both or neither of
            world and problem are given; if a world comes without a horizon; if a factory needs an argument that neither
            the world nor the horizon determines; if no learner, estimator, world or problem accepts a name in `values`;
            or if the metric does not exist.

    Examples:
        >>> import jax, jaxdp
        >>> result = compare(
        ...     {"UCB": jaxdp.bandits.ucb, "explore": (jaxdp.bandits.explore_then_commit, {"explore_rounds": 60})},
        ...     jaxdp.bandits.bernoulli_bandit([0.2, 0.8]),
        ...     epsilon=1.0,
        ...     horizon=400,
        ...     num_seeds=10,
        ...     key=jax.random.key(0),
        ... )
        >>> result.verdict().partition(",")[0], result.not_worse().sel(epsilon=1.0).values.tolist()
        ('At ε = 1 after 400 rounds', [False, True])
    """
    if not isinstance(learners, Mapping) or not learners:
        raise ValueError(f'learners must be a dict, as {{"UCB": jaxdp.bandits.ucb}}, got {learners!r}')
    for name in learners:
        if not isinstance(name, str):
            raise ValueError(f"learners must have strings as names, got {name!r}")
        if name.startswith("_"):  # Matplotlib would leave out its entry in a legend
            raise ValueError(f"learners must have names that do not begin with an underscore, got {name!r}")
    if (world is None) == (problem is None):
        raise ValueError(f"exactly one of world and problem must be given, got {'none' if world is None else 'both'}")
    for name, value, kind in (("world", world, Environment), ("problem", problem, Problem)):
        if value is not None:
            check_made(name, value, kind)
    check_count("num_seeds", num_seeds, FEWEST_SEEDS)
    check_choice("best", best, ("least", "largest"))
    budgets = [check_epsilon(budget) for budget in _one_or_more("epsilon", epsilon)]
    if not (values is None or isinstance(values, Mapping)):
        raise ValueError(f'values must be a dict, as {{"delta": 1e-6}}, got {values!r}')
    common = dict(values or {})
    run_sweep = partial(sweep, axes={"epsilon": budgets}, num_seeds=num_seeds, key=key)
    if problem is not None:
        optional = {"engine": (engine, "auto"), "reports": (reports, 1)}
        changed = {name: value for name, (value, default) in optional.items() if value != default}
        _refuse("problem", horizon=horizon, checkpoints=checkpoints, unit=unit, **changed)
        run = _estimation(learners, problem, common)
        chosen_metric = _metric(_outputs(run, budgets[0]), _dims(run, {}), metric)
        dataset = run_sweep(run, **_with_tile(scheduling, len(budgets) * num_seeds))
        return Comparison(dataset, chosen_metric, best, along="estimator")
    assert world is not None
    horizons, several = _horizons(horizon, checkpoints)
    units = _units(unit, reports, world)
    entries = {
        (name, rounds, unit_): make_learner_for(name, contestant, world, rounds, unit_, reports)
        for name, contestant in learners.items()
        for rounds in horizons
        for unit_ in units
    }
    _check_used(common, [learner.params for learner, _ in entries.values()], world.params)

    def build(learner: str, horizon: int = horizons[0], unit: str | None = units[0]) -> Run:
        algorithm, learner_values = entries[learner, horizon, unit]
        learner_engine = engine if engine != "counts" or algorithm.counts else "auto"
        run = simulator(algorithm, world, horizon, checkpoints=checkpoints, engine=learner_engine, unit=unit)
        run = _with_values(run, {**select_values(run.params, common), **learner_values})
        return _last_round(run, _outputs(run, budgets[0])) if several else run

    first = build(next(iter(learners)))
    outputs = _outputs(first, budgets[0])
    chosen_metric = _metric(outputs, _dims(first, outputs), metric)
    static: dict[str, list[Any]] = {"learner": list(learners), **({"horizon": horizons} if several else {})}
    if unit is not None:
        static["unit"] = units
    dataset = run_sweep(build, static_axes=static, **_with_tile(scheduling, len(budgets) * num_seeds))
    by_counts = [name for (name, *_), (algorithm, _) in entries.items() if engine == "counts" and algorithm.counts]
    return Comparison(dataset, chosen_metric, best, unpaired=tuple(dict.fromkeys(by_counts)))


def _dims(run: Run, outputs: Mapping[str, jax.ShapeDtypeStruct]) -> Mapping[str, tuple[str, ...]]:
    return run.dims(outputs) if callable(run.dims) else run.dims


def _refuse(other: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} must be left out with {other}, got {value!r}")


def _one_or_more(name: str, argument: Any) -> list[Any]:
    """Returns the elements of a list, or a list of the single value."""
    elements = as_list(name, argument) if is_list(argument) else [argument]
    if not elements:
        raise ValueError(f"{name} must have at least one value, got {argument}")
    return elements


def _horizons(horizon: Any, checkpoints: Any) -> tuple[list[int], bool]:
    """Returns the horizons as a list of ints, and whether they were given as a sequence."""
    if horizon is None:
        raise ValueError("horizon must be given with a world, got None")
    several = is_list(horizon)
    horizons = [check_horizon(rounds) for rounds in _one_or_more("horizon", horizon)]
    if several:
        _refuse("several horizons", checkpoints=checkpoints)
    return horizons, several


def _units(unit: Any, reports: int, world: Environment) -> list[Any]:
    """Checks the privacy units, and returns them as a list; [None] if no unit is given."""
    check_count("reports", reports)
    units = [] if unit is None else _one_or_more("unit", unit)
    for unit_ in units:
        check_choice("unit", unit_, UNITS)
    if reports != 1 and "person" not in units:
        got = "without a unit" if unit is None else f"with unit={unit!r}"
        raise ValueError(f'reports must come with unit="person", got {reports} {got}')
    if "person" in units and world.visits is None:
        raise ValueError(
            'world must have visits for the unit "person", for example bernoulli_bandit(means, '
            f"visits=jaxdp.Visits.random(people=..., each=...)), got {world!r}"
        )
    return [None] if unit is None else units


def make_learner_for(
    name: str, contestant: Contestant, world: Environment, horizon: int, unit: str | None, reports: int = 1
) -> tuple[Learner, dict[str, Any]]:
    """Returns a contestant's learner and parameter values; the learner's claim is for `unit`, or unchanged if None."""
    num_used = horizon  # number of rounds that the learner uses
    if unit == "person":
        assert world.visits is not None
        num_used = world.visits.num_heard(reports, min(horizon, len(world.visits)))
    learner, learner_values = _make_learner(name, contestant, world, num_used)
    own_values = {**getattr(learner.params, "keywords", {}), **learner_values}  # a partial has keywords
    if "epsilon" in own_values:
        raise ValueError(
            f"learners[{name!r}] must get epsilon from the argument epsilon, got its own {own_values['epsilon']}"
        )
    return (learner if unit is None else with_unit(learner, unit, reports)), learner_values


def _make_learner(
    name: str, contestant: Contestant, world: Environment, horizon: int
) -> tuple[Learner, dict[str, Any]]:
    """Makes a contestant's learner, and returns it with the parameter values from the contestant's dict."""
    factory, arguments = split_contestant(name, contestant)
    if isinstance(factory, Learner):
        _check_known(name, arguments, [*parameters(factory.params)])
        return factory, arguments
    if not callable(factory):
        raise ValueError(f"learners[{name!r}] must be a learner or its factory, got {type(factory).__name__}")
    accepted = inspect.signature(factory).parameters
    required = {argument for argument, parameter in accepted.items() if parameter.default is parameter.empty}
    sizes = {size: value for size, value in sizes_of(world, horizon).items() if size in required}
    factory_arguments = {argument: value for argument, value in arguments.items() if argument in accepted}
    learner = _call(name, factory, {**sizes, **factory_arguments}, accepted)
    if not isinstance(learner, Learner):
        raise ValueError(f"learners[{name!r}] must make a learner, got {type(learner).__name__}")
    learner_values = {argument: value for argument, value in arguments.items() if argument not in accepted}
    # Values of the world are rejected, because this contestant would play in a different world than the others.
    _check_known(name, learner_values, {*accepted, *parameters(learner.params)})
    return learner, learner_values


def split_contestant(name: str, contestant: Contestant) -> tuple[Any, dict[str, Any]]:
    if isinstance(contestant, tuple) and not isinstance(contestant, Learner | Estimator):
        if len(contestant) != 2 or not isinstance(contestant[1], Mapping):
            raise ValueError(f"learners[{name!r}] must be a pair of a factory and a dict, got {contestant!r}")
        return contestant[0], dict(contestant[1])
    return contestant, {}


def sizes_of(world: Environment, horizon: int) -> dict[str, int]:
    """Returns the horizon and, from the world's interface, the number of arms and the dimension, keyed by name."""
    sizes, space = {"horizon": horizon}, world.interface
    if space is not None:
        for part in jax.tree.leaves((space.action, space.context), is_leaf=is_space):  # a space may be a pair of spaces
            if part.kind == "integers" and part is space.action:
                sizes["num_arms"] = sizes["num_experts"] = int(part.high - part.low) + 1
            elif part.kind == "numbers" and part.shape:
                sizes["dim"] = part.shape[-1]
    return sizes


def _call(name: str, factory: Callable[..., Any], arguments: Mapping[str, Any], accepted: Mapping[str, Any]) -> Any:
    missing = [
        argument
        for argument, parameter in accepted.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and argument not in arguments
    ]
    if missing:
        raise ValueError(
            f"learners[{name!r}] must have a value for {', '.join(missing)}, as the pair "
            f"({getattr(factory, '__name__', 'factory')}, {{{missing[0]!r}: ...}})"
        )
    return factory(**arguments)


def _estimation(estimators: Mapping[str, Contestant], problem: Problem, values: Mapping[str, Any]) -> Run:
    """Builds one run, with these parameter values, in which all estimators fit the same data sets of `problem`."""
    completed: dict[str, Estimator] = {}
    for name, contestant in estimators.items():
        factory, arguments = split_contestant(name, contestant)
        if not isinstance(factory, Estimator):
            if not callable(factory):
                raise ValueError(f"learners[{name!r}] must be an estimator or its factory, got {factory!r}")
            accepted = inspect.signature(factory).parameters
            _check_known(name, arguments, accepted)
            factory, arguments = _call(name, factory, arguments, accepted), {}
        if arguments:
            raise ValueError(f"learners[{name!r}] must pair its dict with a factory, got a dict with an estimator")
        completed[name] = factory
    run = estimation_run(completed, problem)
    _check_used(values, [run.params])
    return _with_values(run, values)


def _check_known(name: str, arguments: Mapping[str, Any], names: Any) -> None:
    for argument in arguments:
        if argument not in names:
            raise ValueError(
                f"learners[{name!r}] must have arguments among {', '.join(sorted(names))}, got "
                f"{argument}{did_you_mean(argument, names)}"
            )


def _check_used(
    values: Mapping[str, Any], takers: Sequence[Callable[..., Any]], *world_params: Callable[..., Any]
) -> None:
    names = {name for taker in (*takers, *world_params) for name in parameters(taker)} - {"epsilon"}
    for name in values:
        if name not in names:
            raise ValueError(f"values must be among {', '.join(sorted(names))}, got {name}{did_you_mean(name, names)}")


def _with_values(run: Run, fixed: Mapping[str, Any]) -> Run:
    """Returns the run with these values fixed; if the run has no epsilon, the new run accepts and ignores epsilon."""
    bound = {name: partial(getattr(run, name), **fixed) for name in ("params", "guarantee")}
    if "epsilon" not in parameters(run.params):
        bound = {name: _without_epsilon(function) for name, function in bound.items()}
    return dataclasses.replace(run, **bound)


def _without_epsilon(function: Callable[..., Any]) -> Callable[..., Any]:
    def ignore_epsilon(*, epsilon: float, **values: Any) -> Any:
        del epsilon
        return function(**values)

    return ignore_epsilon


def _last_round(run: Run, outputs: Mapping[str, jax.ShapeDtypeStruct]) -> Run:
    """Returns the run with only the outputs after the last round, without the dimension of rounds."""
    assert callable(run.dims)
    simulate, dims = run.simulate, run.dims(outputs)
    rounds = {name for name, names in dims.items() if names[:1] == ("round",)}

    def simulate_last(key: jax.Array, params: Any) -> dict[str, jax.Array]:
        return {name: leaf[-1] if name in rounds else leaf for name, leaf in simulate(key, params).items()}

    without = {name: names[1:] if name in rounds else names for name, names in dims.items()}
    coords = {name: labels for name, labels in run.coords.items() if name != "round"}
    return dataclasses.replace(run, simulate=simulate_last, dims=without, coords=coords)


def _with_tile(scheduling: Mapping[str, Any], lanes: int) -> dict[str, Any]:
    """Returns the options. On a CPU, adds a tile size that leaves few lanes unused, if no size is given or stored."""
    if "tile_size" in scheduling or keeps_tile(scheduling) or jax.default_backend() != "cpu":
        return dict(scheduling)
    fewest_lanes = -(-lanes // -(-lanes // TILE))
    return {**scheduling, "tile_size": -(-fewest_lanes // SMALLEST_TILE) * SMALLEST_TILE}


def _outputs(run: Run, epsilon: float) -> Mapping[str, jax.ShapeDtypeStruct]:
    return jax.eval_shape(run, jax.random.key(0), run.params(epsilon=epsilon))


def _metric(
    outputs: Mapping[str, jax.ShapeDtypeStruct], dims: Mapping[str, tuple[str, ...]], metric: str | None
) -> str:
    """Returns the name of the output to compare, a single number for each run or checkpoint; None selects a regret."""
    dims_of_scalars = {"round", "estimator"}
    scalars = tuple(name for name in outputs if {*dims.get(name, ())} <= dims_of_scalars)
    if metric is None:
        metric = next((name for name in METRICS if name in scalars), None)
        if metric is None:
            raise ValueError(f"metric must be named, one of {', '.join(scalars)}, got None")
    return check_choice("metric", metric, scalars)
