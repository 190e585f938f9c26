"""A run over a grid of parameters and many seeds, as an xarray Dataset with every seed's value."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm import tqdm

from jaxdp.simulation.lanes import compile_tile, run_lanes
from jaxdp.simulation.provenance import provenance
from jaxdp.simulation.run import Run
from jaxdp.validation import check_count


def sweep(
    build: Callable[..., Run],
    *,
    axes: Mapping[str, Sequence[Any]],
    static_axes: Mapping[str, Sequence[Any]] | None = None,
    num_seeds: int,
    key: jax.Array,
    tile_size: int = 256,
    chunk_tiles: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Runs `build(**static)` for every combination of values and every seed.

    Every value of `axes` shares one compiled program; every combination of `static_axes` has its own. Results are the
    same bit for bit whatever `chunk_tiles`; they may differ in the last bits between tile sizes.

    Args:
        build: (**static) -> Run. Called once for every combination of static values, before anything is compiled.
        axes: values of the run's parameters, by name; their product is the grid.
        static_axes: values of `build`'s arguments, which fix shapes.
        num_seeds: seeds for every grid point, >= 1. Seed i has the key fold_in(key, i) at every grid point.
        key: a typed PRNG key, as from `jax.random.key`.
        tile_size: lanes in a compiled unit, >= 1; memory grows with it.
        chunk_tiles: tiles in flight at a time, >= 1; None is 8. Memory for results grows with it.
        progress: show a progress bar on stderr.

    Returns:
        A dataset with dimensions (*static_axes, *axes, seed, *the run's own) and coordinates as given. Its attribute
        `provenance` is JSON text: versions, devices, key, tile size, and every grid point's parameters and guarantees.

    Raises:
        ValueError: if an axis is empty, has a repeated value, or is named twice; if a count is < 1; if key is not a
            typed key; if a value is out of range for the run; if the outputs' dimensions do not match their labels.

    >>> import jax, jaxdp
    >>> def build(num_samples):
    ...     estimators = {"local": jaxdp.estimation.debiased_rr(), "clear": jaxdp.estimation.mle()}
    ...     problem = jaxdp.estimation.gaussian_rewards(num_samples=num_samples, dim=2)
    ...     return jaxdp.estimation_run(estimators, problem)
    >>> results = jaxdp.sweep(build, axes={"epsilon": [0.5, float("inf")]}, static_axes={"num_samples": [100]},
    ...                       num_seeds=4, key=jax.random.key(0))
    >>> results.l2_error.dims
    ('num_samples', 'epsilon', 'seed', 'estimator')
    """
    axes, static_axes = _check_axes(axes, static_axes or {})
    check_count("num_seeds", num_seeds)
    check_count("tile_size", tile_size)
    chunk_tiles = check_count("chunk_tiles", 8 if chunk_tiles is None else chunk_tiles)
    if not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        raise ValueError(f"key must be one typed PRNG key, as jax.random.key(0) makes, got {key!r}")

    static_points, points = _grid(static_axes), _grid(axes)
    runs = [build(**static) for static in static_points]
    params = [[run.params(**point) for point in points] for run in runs]  # the whole grid, before any compilation
    guarantees = [[run.guarantee(**point) for point in points] for run in runs]
    outputs = [_check_outputs(run, key, own[0]) for run, own in zip(runs, params, strict=True)]

    pieces = []
    with tqdm(total=len(runs) * len(points) * num_seeds, unit="lane", disable=not progress) as bar:
        for static, run, own, shapes in zip(static_points, runs, params, outputs, strict=True):
            bar.set_postfix(static)
            tile = compile_tile(run, key, own, tile_size)
            arrays = run_lanes(
                tile,
                num_points=len(points),
                num_seeds=num_seeds,
                tile_size=tile_size,
                chunk_tiles=chunk_tiles,
                advance=bar.update,
            )
            pieces.append(_label(run, arrays, static, axes, shapes))
    dataset = xr.combine_by_coords(pieces, combine_attrs="drop") if static_axes else pieces[0]
    assert isinstance(dataset, xr.Dataset)
    dataset = dataset.reindex(dict(static_axes))  # the order given
    dataset.attrs["provenance"] = json.dumps(
        provenance(key, tile_size, num_seeds, static_points, points, params, guarantees), allow_nan=False
    )
    return dataset


def _check_axes(axes, static_axes) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    twice = set(axes) & set(static_axes) | ({"seed"} & {*axes, *static_axes})
    if twice:
        raise ValueError(
            f"axes and static_axes must have different names, none of them 'seed', got {sorted(twice)} twice"
        )
    checked = []
    for group in (axes, static_axes):
        checked.append({})
        for name, values in group.items():
            values = list(values)
            if not values:
                raise ValueError(f"axes must have at least one value each, got none for {name}")
            if len(set(values)) < len(values):
                raise ValueError(f"axes must not repeat a value, got {name}={values}")
            checked[-1][name] = values
    return checked[0], checked[1]


def _grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _check_outputs(run: Run, key: jax.Array, params: Any) -> dict[str, tuple[int, ...]]:
    shapes = {name: output.shape for name, output in jax.eval_shape(run, key, params).items()}
    if set(shapes) != set(run.dims):
        raise ValueError(f"dims must name the outputs {sorted(shapes)}, got {sorted(run.dims)}")
    for name, shape in shapes.items():
        if len(shape) != len(run.dims[name]):
            raise ValueError(f"dims must name {len(shape)} dimensions for {name}, got {run.dims[name]}")
    return shapes


def _label(run: Run, arrays: dict[str, np.ndarray], static, axes, shapes) -> xr.Dataset:
    lead = (*static, *axes, "seed")
    sizes = [1] * len(static) + [len(values) for values in axes.values()]
    variables = {}
    for name, values in arrays.items():
        shape = (*sizes, values.shape[1], *shapes[name])
        variables[name] = ((*lead, *run.dims[name]), values.reshape(shape))
    num_seeds = next(iter(arrays.values())).shape[1]
    coords = {**{name: [value] for name, value in static.items()}, **axes, "seed": np.arange(num_seeds), **run.coords}
    return xr.Dataset(variables, coords)
