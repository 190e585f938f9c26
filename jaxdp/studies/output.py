"""Output folders of studies, which contain a dataset and a figure. No existing file is overwritten."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from jaxdp.validation import check_local_path

RESULTS = Path("results")


@contextlib.contextmanager
def claim_folder(out: Path | None, name: str) -> Iterator[Path]:
    """Creates the folder for a study's results before any computation, and removes the folder if the study fails.

    Args:
        out: the user's folder; None for the first of results/NAME, results/NAME-2, ... that does not exist.
        name: name of the study.

    Yields:
        An existing empty folder. If the study fails, the folder is removed, unless it has files or existed before.

    Raises:
        ValueError: if `out` exists and is not an empty folder, or is an address such as s3://bucket/folder.
    """
    folder, created = _claim(out, name)
    try:
        yield folder
    except BaseException:
        if created and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _claim(out: Path | None, name: str) -> tuple[Path, bool]:
    """Returns a study's output folder, and whether this call created it; None creates a new folder in results/."""
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
        dataset: the results.
        figure: function that returns the figure of the results; it is called after the data are written.
        folder: a folder from `claim_folder`.

    Returns:
        The paths of the dataset and of the figure.

    Raises:
        RuntimeError: if drawing or writing the figure fails. The message has the path of the data, which are complete.
    """
    data, image = folder / "data.zarr", folder / "figure.png"
    # Every Zarr reader can read text coordinates in format 2; format 3 has no standard for text yet.
    dataset.to_zarr(data, mode="w-", zarr_format=2, consolidated=True)
    try:
        figure(dataset).savefig(image, dpi=150)
    except Exception as error:
        raise RuntimeError(f"the figure could not be made, but the data is complete: {data}") from error
    return data, image
