"""Makes the grid of a sweep and the labels of its results, and checks both before anything is compiled."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.values import as_list
from jaxdp.validation import check_coordinates

if TYPE_CHECKING:
    import xarray as xr

Axes = dict[str, list[Any]]


class Output(NamedTuple):
    """One output of a lane: the names of its dimensions, its shape and its dtype."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype


def check_axes(axes: Mapping[str, Sequence[Any]], static_axes: Mapping[str, Sequence[Any]]) -> tuple[Axes, Axes]:
    """Returns (axes, static_axes) as dicts of lists.

    Raises:
        ValueError: if an argument is not a dict with names as keys; if a name is used twice, or is "seed" or the name
            of a result; if an axis is empty, is text or a single value, or has masked entries or two values with the
            same label.
    """
    for argument, named in (("axes", axes), ("static_axes", static_axes)):
        if not isinstance(named, Mapping):
            raise ValueError(f'{argument} must be a dict of lists, as {{"epsilon": [0.1, 1.0]}}, got {named!r}')
        for name in named:
            if not isinstance(name, str):
                raise ValueError(f"{argument} must have strings as names, got {name!r}")
    check_coordinates("axes and static_axes", (*axes, *static_axes))
    clash = sorted(set(axes) & set(static_axes) | ({"seed"} & {*axes, *static_axes}))
    if clash:
        raise ValueError(
            f"axes and static_axes must have different names and no axis named seed, got {', '.join(clash)}"
        )
    axes, static_axes = (
        {name: as_list(name, values) for name, values in group.items()} for group in (axes, static_axes)
    )
    for name, values in (*axes.items(), *static_axes.items()):
        labels = coordinate(values)
        if not labels:
            raise ValueError(f"axes must have at least one value each, got none for {name}")
        if len({"nan" if label != label else label for label in labels}) < len(labels):  # NaN is not equal to itself
            raise ValueError(f"axes must not repeat a value, got {name}={labels}")
    return axes, static_axes


def grid(axes: Axes) -> list[dict[str, Any]]:
    """Returns every combination of values; the last axis varies fastest."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def coordinate(values: Sequence[Any]) -> list[Any]:
    """Returns the values themselves as labels if all are numbers or all are text; otherwise their names or texts."""
    values = list(values)
    numbers = all(isinstance(value, int | float | np.number) for value in values)
    if numbers or all(isinstance(value, str) for value in values):
        return values
    return [str(getattr(value, "name", value)) for value in values]


def check_outputs(run: Run, shapes: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, Output]:
    """Returns the outputs of a lane of `run`, keyed by name.

    Args:
        run: a run.
        shapes: the shapes of a lane's outputs, keyed by name.

    Raises:
        ValueError: if names or numbers of dimensions do not match the run's `dims`.
    """
    dims = run.dims(shapes) if callable(run.dims) else run.dims
    if set(shapes) != set(dims):
        raise ValueError(f"dims must name the outputs {sorted(shapes)}, got {sorted(dims)}")
    for name, leaf in shapes.items():
        if len(leaf.shape) != len(dims[name]):
            raise ValueError(f"dims must name {len(leaf.shape)} dimensions for {name}, got {dims[name]}")
    return {name: Output(tuple(dims[name]), leaf.shape, leaf.dtype) for name, leaf in shapes.items()}


def check_equal_outputs(
    run: Run, outputs: Mapping[str, Output], first_run: Run, first_outputs: Mapping[str, Output]
) -> None:
    """Raises a ValueError if two runs differ in their outputs or coordinates, so that one array cannot hold them."""
    if outputs != first_outputs:
        raise ValueError(f"outputs must be the same for all static values, got {first_outputs} and {outputs}")
    labels, first_labels = ({name: as_list(name, r.coords[name]) for name in r.coords} for r in (run, first_run))
    if labels != first_labels:
        raise ValueError(f"coords must be the same for all static values, got {first_run.coords} and {run.coords}")


def empty_dataset(
    run: Run, outputs: Mapping[str, Output], axes: Axes, static_axes: Axes, num_seeds: int, *, allocate: bool = True
) -> "xr.Dataset":
    """Returns a dataset with labels, and with arrays for all results.

    Args:
        run: any run of the sweep, for its coordinates.
        outputs: result of `check_outputs`.
        axes: axes of the grid.
        static_axes: static axes of the grid.
        num_seeds: number of seeds at every grid point.
        allocate: whether to allocate memory for results; if False, each array is a view that broadcasts a single zero.

    Returns:
        A dataset with variables of dimensions (*static_axes, *axes, seed, *dimensions of the output). If memory is
        allocated, it is in C order and uninitialised.

    Raises:
        ValueError: if an output has the name of an axis, of a coordinate or of a dimension (such as w_0, the first
            dimension of an output w without named dimensions), a coordinate or a dimension of an output has the name of
            an axis, a coordinate has the wrong length, or a coordinate or dimension has a name in
            `jaxdp.validation.RESULT_NAMES`.
    """
    import xarray  # here, to keep `import jaxdp` fast: xarray imports pandas

    leading_axes = {**static_axes, **axes, "seed": range(num_seeds)}
    sizes = tuple(len(values) for values in leading_axes.values())
    if clash := set(run.coords) & set(leading_axes):
        raise ValueError(f"coords must not have the name of an axis, got {', '.join(sorted(clash))}")
    dims = {dim for output in outputs.values() for dim in output.dims}
    check_coordinates("dims and coords", {*run.coords, *dims})
    variables = {}
    for name, output in outputs.items():
        if name in {*leading_axes, *run.coords, *dims}:
            raise ValueError(f"outputs must not have the name of an axis, a coordinate or a dimension, got {name}")
        clash = set(output.dims) & set(leading_axes)
        if clash:
            raise ValueError(f"dims must not have the name of an axis, got {', '.join(sorted(clash))} for {name}")
        for dim, size in zip(output.dims, output.shape, strict=True):
            if dim in run.coords and len(run.coords[dim]) != size:
                raise ValueError(f"coords must have {size} values for {dim}, got {len(run.coords[dim])}")
        shape = (*sizes, *output.shape)
        array = np.empty(shape, output.dtype) if allocate else np.broadcast_to(np.zeros((), output.dtype), shape)
        variables[name] = ((*leading_axes, *output.dims), array)
    labels = {**static_axes, **axes, **run.coords}
    coords: dict[str, Any] = {name: (name, coordinate(as_list(name, values))) for name, values in labels.items()}
    coords["seed"] = ("seed", np.arange(num_seeds))  # a list would take five times the memory
    return xarray.Dataset(variables, {name: coords[name] for name in (*leading_axes, *run.coords)})
