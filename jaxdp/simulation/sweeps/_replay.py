"""Replays one lane of a sweep, and records every round."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.random.threefry import fast_key
from jaxdp.simulation.run.lane_run import Run, as_build
from jaxdp.simulation.run.values import plain
from jaxdp.simulation.store.provenance import provenance
from jaxdp.simulation.sweeps.labels import Axes, coordinate
from jaxdp.validation import check_count, did_you_mean

if TYPE_CHECKING:
    import xarray as xr

ENTRY = "jaxdp_recipe"
TOLERANCE = 1e-5


class Recipe:
    """The `build` function and the values that were passed to a sweep, stored with the sweep's dataset in memory.

    Copies and selections of the dataset keep the recipe. It is not written to files, and a pickle of it is empty.
    """

    def __init__(self, build: Callable[..., Run] | None = None, axes: Axes | None = None) -> None:
        self.build = build
        self.axes = axes or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (Recipe, ())

    def __deepcopy__(self, memo: Any) -> "Recipe":
        return self


def attach(results: "xr.Dataset", recipe: Recipe) -> None:
    """Stores a sweep's recipe with its results."""
    results.encoding[ENTRY] = recipe


def replay(
    results: "xr.Dataset",
    *,
    seed: int,
    build: Callable[..., Run] | Run | None = None,
    num_rounds: int | None = None,
    **values: Any,
) -> "xr.Dataset":
    """Runs one lane of a sweep again and records every round.

    Warns:
        RuntimeWarning: if the replay and the results differ at a checkpoint by more than float rounding, that is by
            more than 1e-5 + 1e-5 * |result|. Then `build` or the version of a package has changed, or a decision
            depended on the last bit of a float. Nothing is compared if the results do not contain the lane, or lack the
            coordinate `round` or a coordinate of the lane.

    Args:
        results: a dataset from `sweep`, in memory or from a file.
        seed: index of the seed in the sweep, in [0, num_seeds).
        build: the sweep's `build`; required if the results were read from a file or come from another process.
        num_rounds: number of rounds to replay from the start, >= 1; None means up to the last checkpoint. Memory grows
            with this number.
        **values: a value for each axis and static axis, as passed to the sweep. You may omit axes with only one value
            (for results from a file: only if it is a number, because a text may be the name of an object).

    Returns:
        A dataset with the dimension `round`, which ends at `num_rounds` or when the learner stopped. Its variables are
        `action`, `context`, `feedback`, `report` and `public` (the learner's released state after the round). If one of
        these is a pytree and not an array, each leaf is a variable named by its path. The dataset also has the sweep's
        summed outcomes, hindsight metrics, evaluated recommendations and records. If such a name is already taken, also
        by a dimension, the variable is named `results.NAME`.

    Raises:
        ValueError: if `build` is required and not given; if a value is missing, has an unknown name or is not in the
            results; if the sweep has no such seed; if num_rounds is < 1 or exceeds the horizon; if the results have no
            provenance; if the run has no separate rounds (as a run of estimators, or with the engine "counts").

    Examples:
        >>> import jax, jaxdp
        >>> def build():
        ...     learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        ...     return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=8)
        >>> results = jaxdp.sweep(build, axes={"epsilon": [1.0, float("inf")]}, num_seeds=2, key=jax.random.key(0))
        >>> lane = jaxdp.replay(results, seed=1, epsilon=float("inf"))
        >>> lane.action.values.tolist()
        [0, 1, 0, 1, 1, 1, 1, 1]
    """
    source = provenance(results)
    recipe = results.encoding.get(ENTRY, Recipe())
    make = as_build(build or recipe.build)
    if make is None:
        raise ValueError("build must be given for results that come from a file or another process, got None")
    if not 0 <= check_count("seed", seed, 0) < source.num_seeds:
        raise ValueError(f"seed must be < {source.num_seeds}, got {seed}")

    static_names = list(source.points[0].static)
    labels, point = _point(results, recipe.axes, [*static_names, *source.points[0].values], values)
    run = make(**{name: point[name] for name in static_names})
    if run.by_round is None:
        raise ValueError("results must be of a run with separate rounds, got a run of estimators or by counts")
    params = run.params(**{name: value for name, value in point.items() if name not in static_names})
    checkpoints = [int(value) for value in run.coords["round"]]
    num_rounds = checkpoints[-1] if num_rounds is None else check_count("num_rounds", num_rounds)

    lane_key = jax.random.fold_in(fast_key(source.key), np.uint32(seed))
    rounds = jax.device_get(
        jax.jit(run.by_round, static_argnums=2)(lane_key, jax.tree.map(jnp.asarray, params), num_rounds)
    )
    lane = _dataset(rounds, num_rounds)
    seeds = np.atleast_1d(results["seed"].values) if "seed" in results.coords else np.asarray([seed])
    if "seed" in results.dims:
        labels["seed"] = seed
    if seed in seeds and labels.keys() <= results.indexes.keys():  # a selection may lack the lane or its coordinates
        selected = results.sel(labels)
        if "round" in results.coords and "round" not in results.dims:
            selected = selected.expand_dims("round")
        _compare(lane, selected, set(rounds["sums"]) & set(results.data_vars), checkpoints)
    return lane


def _point(
    results: "xr.Dataset", axes: Axes, names: Sequence[str], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the grid point at `values`, as labels of the results' dimensions and as values passed to the sweep.

    `names` contains all axes and static axes. `values` may omit an axis with one value.
    """
    for name in values:
        if name not in names:
            raise ValueError(f"values must be among {', '.join(names)}, got {name}{did_you_mean(name, names)}")
    labels, point = {}, {}
    for name in names:
        known_labels = np.atleast_1d(results[name].values).tolist() if name in results.coords else []
        if not known_labels:  # a selection dropped the coordinate
            known_labels = coordinate(axes[name] if name in axes else [values[name]] if name in values else [])
        is_known = len(known_labels) == 1 and (name in axes or not isinstance(known_labels[0], str))
        if name not in values and not is_known:
            raise ValueError(f"values must have {name}, one of {known_labels}, got {', '.join(values) or 'none'}")
        label = coordinate([plain(values[name])])[0] if name in values else known_labels[0]
        if isinstance(known_labels[0], str):  # an axis of numbers and other values has texts as labels
            label = str(label)
        if label not in known_labels:
            raise ValueError(f"{name} must be one of {known_labels}, got {label}")
        if name in results.dims:
            labels[name] = label
        axis = axes.get(name, [])
        point[name] = axis[coordinate(axis).index(label)] if axis else values.get(name, label)
    return labels, point


def _dataset(rounds: Mapping[str, Any], num_rounds: int) -> "xr.Dataset":
    import xarray

    stopped = rounds["stopped"]
    num_played = num_rounds if stopped is None or not stopped.any() else int(np.argmax(stopped)) + 1
    variables = {}
    events = [
        ("".join(str(part) for part in (path[0].key, *(jax.tree_util.keystr((entry,)) for entry in path[1:]))), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(rounds["events"])
    ]
    taken = {*dict(events), *(f"{name}_{axis}" for name, leaf in events for axis in range(leaf.ndim - 1))}
    sums = [(f"results.{name}" if name in taken else name, leaf) for name, leaf in rounds["sums"].items()]
    for name, leaf in (*events, *sums):
        dims = ("round", *(f"{name}_{axis}" for axis in range(leaf.ndim - 1)))
        variables[name] = (dims, leaf[:num_played])
    return xarray.Dataset(variables, {"round": np.arange(1, num_played + 1)})


def _compare(lane: "xr.Dataset", results: "xr.Dataset", names: Iterable[str], checkpoints: Sequence[int]) -> None:
    rounds = results["round"].values.tolist() if "round" in results.indexes else []
    common_rounds = [round_ for round_ in checkpoints if round_ <= lane.sizes["round"] and round_ in rounds]
    for name in sorted(names) if common_rounds else ():
        replayed = lane[f"results.{name}" if f"results.{name}" in lane else name]
        replayed, recorded = replayed.sel(round=common_rounds).values, results[name].sel(round=common_rounds).values
        if not np.allclose(replayed, recorded, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            warnings.warn(
                f"the replay differs from the results in {name}: the build or a version is different, or a decision "
                "depended on a last bit",
                RuntimeWarning,
                stacklevel=3,
            )
