"""The seed option of studies, and means, intervals and notes for their reports."""

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
    """Returns the root PRNG key of a study.

    Args:
        seed: in [0, 2**32). In this range a seed gives the same key in 32-bit mode and in 64-bit mode.

    Raises:
        ValueError: if seed is out of range.
    """
    import jax

    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be in [0, 2**32), got {seed}")
    return jax.random.key(seed)


def mean_and_half_width(values: "xr.DataArray") -> tuple["xr.DataArray", "xr.DataArray"]:
    """Returns the mean over seeds, and the half width of the mean's 95% confidence interval by Student's t."""
    from jaxdp.stats import mean_interval

    interval = mean_interval(values)
    return interval["mean"], (interval.high - interval.low) / 2


def convergence_notes(results: "xr.Dataset") -> list[str]:
    """Returns a list with one note if minimisations failed or did not converge, else an empty list.

    Args:
        results: a dataset with `certificate` and `converged`. The certificate is NaN for a minimisation that failed,
            and infinite for an algorithm without certificates, which is not counted.
    """
    import numpy as np

    minimised = ~np.isinf(results.certificate)
    stopped = int((minimised & ~results.converged).sum())
    if not stopped:
        return []
    total, failed = int(minimised.sum()), int(np.isnan(results.certificate).sum())
    note = f"note: {stopped} of {total} minimisations stopped before they converged; see `certificate` in the data."
    return [note + (f" {failed} of them failed: their certificates and estimates are NaN." if failed else "")]
