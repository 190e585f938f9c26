"""One lane of a sweep again, with every round recorded."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.random.threefry import fast
from jaxdp.simulation.run.lane_run import Run, as_build
from jaxdp.simulation.store.provenance import provenance
from jaxdp.simulation.sweeps.labels import Axes, coordinate
from jaxdp.validation import check_count, did_you_mean

if TYPE_CHECKING:
    import xarray as xr

ENTRY = "jaxdp_recipe"
TOLERANCE = 1e-5


class Recipe:
    """What a sweep was made of, kept beside its dataset in memory: `build` and the values as given, not their labels.

    It goes along with copies and selections of the dataset; it is not written to files, and a pickled one is empty.
    """

    def __init__(self, build: Callable[..., Run] | None = None, axes: Axes | None = None) -> None:
        self.build = build
        self.axes = axes or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (Recipe, ())

    def __deepcopy__(self, memo: Any) -> "Recipe":
        return self


def attach(results: "xr.Dataset", recipe: Recipe) -> None:
    """Keeps a sweep's recipe with its results."""
    results.encoding[ENTRY] = recipe


def replay(
    results: "xr.Dataset",
    *,
    seed: int,
    build: Callable[..., Run] | Run | None = None,
    num_rounds: int | None = None,
    **values: Any,
) -> "xr.Dataset":
    """Runs one lane of a sweep again, round by round, and records every round.

    Warns:
        RuntimeWarning: if the replay and the results differ at a common checkpoint by more than float rounding: another
            `build`, another version, or a decision that depended on a last bit.

    Args:
        results: of `sweep`, in memory or from a file.
        seed: index of the seed.
        build: that of the sweep; needed if the results were read from a file or another process.
        num_rounds: from the start; None is up to the last checkpoint. Memory grows with it.
        **values: a value of every axis and static axis, as given to the sweep; those of a single value may be left out.

    Returns:
        A dataset with dimension `round` (1, 2, ... up to `num_rounds`, or to where the learner stopped): `action`,
        `context`, `feedback`, `report` and `public` (what was released, after the round), by their names, and where
        they are of several parts by the parts' paths; and the sums, summaries and records that the sweep has, as
        `results.NAME` where an event has their name.

    Raises:
        ValueError: if a value or the seed is not among the results'; if num_rounds is beyond the horizon; if the
            results do not tell how they were made; if the run cannot be told round by round (an estimator's, or one
            played by counts).

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
        raise ValueError("results must be of a run by rounds or blocks, got one that cannot be told round by round")
    params = run.params(**{name: value for name, value in point.items() if name not in static_names})
    checkpoints = [int(value) for value in run.coords["round"]]
    num_rounds = checkpoints[-1] if num_rounds is None else check_count("num_rounds", num_rounds)

    lane_key = jax.random.fold_in(fast(source.key), np.uint32(seed))
    told = jax.device_get(
        jax.jit(run.by_round, static_argnums=2)(lane_key, jax.tree.map(jnp.asarray, params), num_rounds)
    )
    lane = _dataset(told, num_rounds)
    seeds = np.atleast_1d(results["seed"].values) if "seed" in results.coords else np.asarray([seed])
    if seed in seeds:  # a selection need not hold what is replayed
        if "seed" in results.dims:
            labels["seed"] = seed
        chosen = results.sel(labels)
        if "round" in results.coords and "round" not in results.dims:
            chosen = chosen.expand_dims("round")
        _compare(lane, chosen, set(told["sums"]) & set(results.data_vars), checkpoints)
    return lane


def _point(
    results: "xr.Dataset", axes: Axes, names: Sequence[str], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The labels of a grid point, and its values as given to the sweep."""
    for name in values:
        if name not in names:
            raise ValueError(f"values must be among {', '.join(names)}, got {name}{did_you_mean(name, names)}")
    labels, point = {}, {}
    for name in names:
        known = np.atleast_1d(results[name].values).tolist() if name in results.coords else []
        if not known:  # dropped by a selection: nothing to compare with
            known = coordinate(axes[name] if name in axes else [values[name]] if name in values else [])
        if name not in values and len(known) != 1:
            raise ValueError(f"values must have {name}, one of {known}, got {', '.join(values) or 'none'}")
        label = coordinate([values[name]])[0] if name in values else known[0]
        if label not in known:
            raise ValueError(f"{name} must be one of {known}, got {label}")
        if name in results.dims:
            labels[name] = label
        given = axes.get(name, [])
        point[name] = given[coordinate(given).index(label)] if given else values.get(name, label)
    return labels, point


def _dataset(told: Mapping[str, Any], num_rounds: int) -> "xr.Dataset":
    import xarray

    stopped = told["stopped"]
    played = num_rounds if stopped is None or not stopped.any() else int(np.argmax(stopped)) + 1
    variables = {}
    events = [
        ("".join(str(part) for part in (path[0].key, *(jax.tree_util.keystr((entry,)) for entry in path[1:]))), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(told["events"])
    ]
    taken = dict(events)
    sums = [(f"results.{name}" if name in taken else name, leaf) for name, leaf in told["sums"].items()]
    for name, leaf in (*events, *sums):
        dims = ("round", *(f"{name}_{axis}" for axis in range(leaf.ndim - 1)))
        variables[name] = (dims, leaf[:played])
    return xarray.Dataset(variables, {"round": np.arange(1, played + 1)})


def _compare(lane: "xr.Dataset", results: "xr.Dataset", names: Iterable[str], checkpoints: Sequence[int]) -> None:
    kept = results["round"].values.tolist() if "round" in results.dims else []
    common = [round_ for round_ in checkpoints if round_ <= lane.sizes["round"] and round_ in kept]
    for name in sorted(names):
        mine = lane[f"results.{name}" if f"results.{name}" in lane else name]
        mine, theirs = mine.sel(round=common).values, results[name].sel(round=common).values
        if not np.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            warnings.warn(
                f"the replay differs from the results in {name}: another build or version, or a decision that "
                "depended on a last bit",
                RuntimeWarning,
                stacklevel=3,
            )
