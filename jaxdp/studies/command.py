"""What the commands of all studies share: options, what a study is made of, and text."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    import jax
    import xarray as xr
    from matplotlib.figure import Figure

Delta = Annotated[float, typer.Option(help="Failure mass where a central estimator's noise is Gaussian, in (0, 1).")]
Seed = Annotated[int, typer.Option(help="Root seed of all randomness, in [0, 2**32).")]


class Study(NamedTuple):
    """A study with its options settled.

    Attributes:
        simulate: (**scheduling) -> results, with what `sweep` takes beside the grid: progress, store, ...
        figure: draws the results.
        report: tells them as text.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[[xr.Dataset], Figure]"
    report: "Callable[[xr.Dataset], str]"


class Printed(NamedTuple):
    """A study of which a text is all that may come: nothing is written, and nothing is simulated.

    Attributes:
        text: () -> what the command prints.
    """

    text: Callable[[], str]


def root_key(seed: int) -> "jax.Array":
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
