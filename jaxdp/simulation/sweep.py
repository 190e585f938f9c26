"""A run over a grid of parameters and many seeds, as an xarray Dataset with every seed's value."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from tqdm import tqdm

from jaxdp.simulation.labels import check_axes, check_outputs, empty_dataset, grid
from jaxdp.simulation.lanes import Device, compile_tile, run_lanes, tiles_in_flight
from jaxdp.simulation.provenance import provenance
from jaxdp.simulation.replay import Recipe, attach
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
    devices: Sequence[Device] | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Runs `build(**static)` for every combination of values and every seed.

    Every value of `axes` shares one compiled program; every combination of `static_axes` has its own. Results are the
    same bit for bit whatever `chunk_tiles` and however many `devices` of one kind; they may differ in the last bits
    between tile sizes and kinds of devices.

    Args:
        build: (**static) -> Run. Called once for every combination of static values, before anything is compiled.
        axes: values of the run's parameters, by name; their product is the grid.
        static_axes: values of `build`'s arguments, which fix shapes.
        num_seeds: seeds for every grid point, >= 1. Seed i has the key fold_in(key, i) at every grid point.
        key: a typed PRNG key, as from `jax.random.key`, of a Threefry implementation (JAX's default).
        tile_size: lanes in a compiled unit, >= 1; memory grows with it.
        chunk_tiles: tiles in flight at a time, >= 1; None is 8. Memory for results grows with it.
        devices: of one kind, where tiles run, each on one of them; None is all local devices of JAX's default kind.
        progress: show a progress bar on stderr.

    Returns:
        A dataset with dimensions (*static_axes, *axes, seed, *the run's own) and coordinates as given; values that are
        neither all numbers nor all text (links, None) are labelled by their name or their text. Its attribute
        `provenance` is JSON text: versions, devices, key, tile size, and every grid point's parameters and guarantees.

    Raises:
        ValueError: if an axis is empty, has a repeated value, or is named twice; if a count is < 1; if devices are none
            or of several kinds; if key is not a typed Threefry key; if a value is out of range for the run; if the
            outputs' dimensions do not match their labels, or differ between static values; all before anything is
            compiled.

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
    axes, static_axes = check_axes(axes, static_axes or {})
    check_count("num_seeds", num_seeds)
    check_count("tile_size", tile_size)
    chunk_tiles = check_count("chunk_tiles", 8 if chunk_tiles is None else chunk_tiles)
    if not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        raise ValueError(f"key must be one typed PRNG key, as jax.random.key(0) makes, got {key!r}")

    if "rbg" in str(jax.random.key_impl(key)):
        raise ValueError(
            f"key must be of a Threefry implementation, got {jax.random.key_impl(key)}, whose numbers for one lane "
            "depend on the lanes beside it"
        )

    devices = list(jax.local_devices() if devices is None else devices)
    if len({device.platform for device in devices}) != 1:
        raise ValueError(f"devices must be at least one, all of one kind, got {devices}")

    static_points, points = grid(static_axes), grid(axes)
    runs = [build(**static) for static in static_points]
    params = [[run.params(**point) for point in points] for run in runs]  # the whole grid, before any compilation
    guarantees = [[run.guarantee(**point) for point in points] for run in runs]
    outputs = check_outputs(runs, key, [own[0] for own in params])
    dataset = empty_dataset(runs[0], outputs, axes, static_axes, num_seeds)
    record = provenance(key, devices, tile_size, num_seeds, static_points, points, params, guarantees)
    dataset.attrs["provenance"] = json.dumps(record, allow_nan=False)

    num_lanes = len(points) * num_seeds
    lanes = {name: dataset[name].values.reshape(len(runs), num_lanes, *out.shape) for name, out in outputs.items()}
    with tqdm(total=len(runs) * num_lanes, unit="lane", disable=not progress) as bar:
        for index, (static, run, own) in enumerate(zip(static_points, runs, params, strict=True)):
            bar.set_postfix_str(", ".join(f"{name}={value}" for name, value in static.items()))
            run_lanes(
                compile_tile(run, key, own, tile_size, devices),
                {name: values[index] for name, values in lanes.items()},
                in_flight=tiles_in_flight(devices),
                num_seeds=num_seeds,
                tile_size=tile_size,
                chunk_tiles=chunk_tiles,
                advance=bar.update,
            )
    attach(dataset, Recipe(build, {**static_axes, **axes}))
    return dataset
