"""Where a study's results go: a folder with the dataset and the figure. Nothing is overwritten."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from jaxdp.validation import check_local_path

RESULTS = Path("results")


@contextlib.contextmanager
def claimed_folder(out: Path | None, name: str) -> Iterator[Path]:
    """Makes the folder for a study's results, before anything is computed, and removes it if nothing comes of it.

    Args:
        out: the folder that the user asked for; None takes the first free of results/NAME, results/NAME-2, ...
        name: of the study.

    Yields:
        A folder that exists and is empty. Where the block fails, it is removed if it is still empty and was made here;
        a folder that the user made stays.

    Raises:
        ValueError: if `out` exists and is not an empty folder.
    """
    folder, created = _claim(out, name)
    try:
        yield folder
    except BaseException:
        if created and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _claim(out: Path | None, name: str) -> tuple[Path, bool]:
    """Returns the folder, and whether it was made here."""
    if out is None:
        number = 1
        while True:
            folder = RESULTS / (name if number == 1 else f"{name}-{number}")
            try:
                folder.mkdir(parents=True)
                return folder, True
            except FileExistsError:
                number += 1
    check_local_path("out", out)
    if not out.exists():
        out.mkdir(parents=True)
        return out, True
    if not out.is_dir() or any(out.iterdir()):
        raise ValueError(f"out must be a new or empty folder, so that no result is overwritten, got {out}")
    return out, False


def save(dataset: xr.Dataset, figure: Callable[[xr.Dataset], Figure], folder: Path) -> tuple[Path, Path]:
    """Writes data.zarr, and then draws and writes figure.png.

    Args:
        dataset: results.
        figure: draws them. It is called once the data is safe.
        folder: from `claimed_folder`.

    Returns:
        The paths of dataset and figure.

    Raises:
        RuntimeError: if drawing or writing the figure failed, with the path of the data, which is complete.
    """
    data, image = folder / "data.zarr", folder / "figure.png"
    # Format 2 stores text coordinates in a way that every zarr reader knows; in format 3 that is not yet settled.
    dataset.to_zarr(data, mode="w-", zarr_format=2, consolidated=True)
    try:
        figure(dataset).savefig(image, dpi=150)
    except Exception as error:
        raise RuntimeError(f"the figure could not be made, but the data is complete, in {data}") from error
    return data, image
