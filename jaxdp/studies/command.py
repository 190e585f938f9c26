"""What the commands of all studies share: the seed, and text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jaxdp.studies.numbers import whole_number

if TYPE_CHECKING:
    import jax
    import xarray as xr

Seed = Annotated[
    int,
    typer.Option(help="Root seed of all randomness, in [0, 2**32).", parser=whole_number, metavar="<int>"),
]


def root_key(seed: Seed = 0) -> "jax.Array":
    """The root key of a study.

    Args:
        seed: in [0, 2**32): what keeps its value, and gives the same key, in 32-bit and in 64-bit JAX.

    Raises:
        ValueError: if seed is out of range.
    """
    import jax

    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be in [0, 2**32), got {seed}")
    return jax.random.key(seed)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines with aligned columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def mean_and_half_width(values: "xr.DataArray") -> tuple["xr.DataArray", "xr.DataArray"]:
    """The mean over seeds, and the half width of its 95% confidence interval by Student's t."""
    from jaxdp.stats import mean_interval

    found = mean_interval(values)
    return found["mean"], (found.high - found.low) / 2


def convergence_notes(results: "xr.Dataset") -> list[str]:
    """What to tell about minimisations that stopped early or failed.

    Args:
        results: with `certificate` and `converged`. An infinite certificate is of an algorithm that has none; NaN is of
            a minimisation that failed.

    Returns:
        One note, or none if all converged.
    """
    import numpy as np

    minimised = ~np.isinf(results.certificate)
    stopped = int((minimised & ~results.converged).sum())
    if not stopped:
        return []
    total, failed = int(minimised.sum()), int(np.isnan(results.certificate).sum())
    note = f"note: {stopped} of {total} minimisations stopped before their tolerance; see `certificate` in the data."
    return [note + (f" {failed} of them failed: their certificates and estimates are NaN." if failed else "")]
