"""What the commands of all studies share: options, the way from a simulation to files and a report, and text."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp.studies.output import claimed_folder, save

Delta = Annotated[float, typer.Option(help="Failure mass of the central estimator, in (0, 1).")]
Seed = Annotated[int, typer.Option(help="Root seed of all randomness, in [0, 2**32).")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="New or empty folder for data.zarr and figure.png. Without it: results/STUDY, or the next free "
        "results/STUDY-2, ..."
    ),
]


def root_key(seed: int) -> jax.Array:
    """The root key of a study.

    Args:
        seed: in [0, 2**32): what keeps its value, and gives the same key, in 32-bit and in 64-bit JAX.

    Raises:
        ValueError: if seed is out of range.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be in [0, 2**32), got {seed}")
    return jax.random.key(seed)


def run_study(
    name: str,
    out: Path | None,
    *,
    simulate: Callable[[], xr.Dataset],
    figure: Callable[[xr.Dataset], Figure],
    report: Callable[[xr.Dataset], str],
) -> None:
    """Simulates, saves the data and the figure, and prints the report and where the files are.

    Args:
        name: of the study.
        out: folder for the results, as in `claimed_folder`.
        simulate: returns the results.
        figure: draws them.
        report: tells them as text.

    Raises:
        ValueError: if `out` exists and is not an empty folder; and what `simulate` raises.
        RuntimeError: if the figure could not be made; the data is safe then.
    """
    with claimed_folder(out, name) as folder:
        results = simulate()
        data, image = save(results, figure, folder)
    typer.echo(f"{report(results)}\n\ndata:   {data}\nfigure: {image}")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines with aligned columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def convergence_notes(results: xr.Dataset) -> list[str]:
    """What to tell about minimisations that stopped early or failed.

    Args:
        results: with `certificate` and `converged`. An infinite certificate is of an algorithm that has none; NaN is of
            a minimisation that failed.

    Returns:
        One note, or none if all converged.
    """
    minimised = ~np.isinf(results.certificate)
    stopped = int((minimised & ~results.converged).sum())
    if not stopped:
        return []
    total, failed = int(minimised.sum()), int(np.isnan(results.certificate).sum())
    note = f"note: {stopped} of {total} minimisations stopped before their tolerance; see `certificate` in the data."
    return [note + (f" {failed} of them failed: their certificates and estimates are NaN." if failed else "")]
