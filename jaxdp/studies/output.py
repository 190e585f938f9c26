"""Where a study's results go: a folder with the dataset and the figure. Nothing is overwritten."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

RESULTS = Path("results")


def claim_folder(out: Path | None, name: str) -> Path:
    """Makes the folder for a study's results, before anything is computed.

    Args:
        out: the folder that the user asked for; None takes the first free of results/NAME, results/NAME-2, ...
        name: of the study.

    Returns:
        A folder that exists and is empty.

    Raises:
        ValueError: if `out` exists and is not an empty folder.
    """
    if out is None:
        number = 1
        while True:
            folder = RESULTS / (name if number == 1 else f"{name}-{number}")
            try:
                folder.mkdir(parents=True)
                return folder
            except FileExistsError:
                number += 1
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"out must be a new or empty folder, so that no result is overwritten, got {out}")
    out.mkdir(parents=True, exist_ok=True)
    return out


def save(dataset: xr.Dataset, figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Writes data.zarr and figure.png.

    Args:
        dataset: results.
        figure: of them.
        folder: from `claim_folder`.

    Returns:
        The paths of dataset and figure.
    """
    data, image = folder / "data.zarr", folder / "figure.png"
    # Format 2 stores text coordinates in a way that every zarr reader knows; in format 3 that is not yet settled.
    dataset.to_zarr(data, mode="w-", zarr_format=2, consolidated=True)
    figure.savefig(image, dpi=150)
    return data, image
