"""Pairs and executes the notebooks: `python notebooks/make.py pair`, `python notebooks/make.py run [--small] [01 ...]`.

The source of each notebook is a percent script, `NN_name.py`. `pair` writes `NN_name.ipynb` from the script, without
outputs. `run` executes the scripts in fresh kernels, two at a time, and writes notebooks with outputs, and their
pictures, to `results/notebooks`. A few notebooks that mostly compile use the flags in the variable `QUICKLY`. With
`--small` the cell tagged `parameters` is followed by the smaller values in its metadata; with `--changed`, notebooks
that were executed from the same script by the same library are skipped.
"""

import argparse
import base64
import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("[0-9][0-9]_*.py"))
RESULTS = HERE.parent / "results" / "notebooks"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
}
AT_A_TIME = 2
# The others come after these, so that no core waits at the end.
LONGEST_FIRST = ("12", "09", "07", "06", "02", "10", "05", "08", "13", "11")
# These compile for much longer than they run, and compare no times. Others would run longer than they gain.
MOSTLY_COMPILING = ("02", "06", "07", "10", "12")
LONGEST = 600  # largest number of seconds that one cell may take


def read(script: Path, *, small: bool = False) -> Any:
    """Reads a percent script as a notebook.

    Args:
        script: path of the script.
        small: whether to insert a cell with the smaller values of the script's parameters.

    Returns:
        The notebook, without outputs. Cells are numbered, so that the same script always gives the same file.
    """
    notebook = jupytext.read(script)
    notebook.metadata = nbformat.from_dict(KERNEL)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        values = cell.metadata.get("small")
        if small and values:
            text = "\n".join(f"{name} = {value!r}" for name, value in values.items())
            cells.append(nbformat.v4.new_code_cell(text))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook.cells = cells
    return notebook


def paired(script: Path) -> str:
    """Returns the text of the .ipynb file of a script."""
    return nbformat.writes(read(script)) + "\n"


def execute(notebook: Any, *, flags: str = "") -> Any:
    """Executes a notebook in a fresh kernel with this folder as its working directory.

    Args:
        notebook: the notebook, which gets the outputs.
        flags: flags of XLA beside those of the environment.

    Returns:
        The same notebook, with outputs up to the first error.

    Raises:
        CellExecutionError: if a cell fails, with its traceback.
    """
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": HERE}},
    )
    all_flags = " ".join(filter(None, [os.environ.get("XLA_FLAGS"), flags]))
    client.execute(
        env={**os.environ, **({"XLA_FLAGS": all_flags} if all_flags else {})}
    )
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """Returns every output of every cell, in order."""
    return [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def pictures(notebook: Any) -> list[bytes]:
    """Returns every picture that an executed notebook shows, as PNG."""
    data = [output.get("data", {}) for output in outputs(notebook)]
    return [
        base64.b64decode(shown["image/png"]) for shown in data if "image/png" in shown
    ]


def flags_of(script: Path) -> str:
    """Returns the flags of XLA with which a notebook is executed."""
    return os.environ.get("QUICKLY", "") if script.stem[:2] in MOSTLY_COMPILING else ""


def made_from(script: Path, *, small: bool = False) -> str:
    """Returns a hash of the inputs of an executed notebook: its script, the library's sources, JAX's version, flags."""
    digest = hashlib.sha256(f"{jax.__version__} {small} {flags_of(script)}".encode())
    for path in (script, *sorted((HERE.parent / "jaxdp").rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_executed(script: Path, *, small: bool = False) -> bool:
    """Returns whether the notebook in `results/notebooks` was executed from the current script and library."""
    path = RESULTS / f"{script.stem}.ipynb"
    if not path.exists():
        return False
    return nbformat.read(path, as_version=4).metadata.get("made_from") == made_from(
        script, small=small
    )


def _run(script: Path, small: bool) -> bool:
    """Executes one notebook, writes it and its pictures, and returns whether all cells ran."""
    start, notebook = time.perf_counter(), read(script, small=small)
    digest = made_from(script, small=small)
    try:
        execute(notebook, flags=flags_of(script))
        notebook.metadata["made_from"] = digest
        failure = ""
    except CellExecutionError as error:
        failure = f"\n{error}"
    nbformat.write(notebook, RESULTS / f"{script.stem}.ipynb")
    images = pictures(notebook)
    for number, picture in enumerate(images, 1):
        (RESULTS / f"{script.stem}-{number}.png").write_bytes(picture)
    print(
        f"{script.stem}: {time.perf_counter() - start:.1f} s, {len(images)} pictures{failure}",
        flush=True,
    )
    return not failure


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("pair", "run"))
    parser.add_argument(
        "--small", action="store_true", help="run small forms, as the tests do"
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="run only notebooks that changed since their last run",
    )
    parser.add_argument(
        "numbers", nargs="*", help="numbers of notebooks, such as 01 07; by default all"
    )
    args = parser.parse_intermixed_args()
    chosen = [
        script
        for script in SCRIPTS
        if not args.numbers or script.stem[:2] in args.numbers
    ]
    if args.verb == "pair":
        for script in chosen:
            script.with_suffix(".ipynb").write_text(paired(script), encoding="utf-8")
        return
    if args.changed:
        chosen = [
            script for script in chosen if not is_executed(script, small=args.small)
        ]
    chosen.sort(
        key=lambda script: (*LONGEST_FIRST, script.stem[:2]).index(script.stem[:2])
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        done = list(pool.map(lambda script: _run(script, args.small), chosen))
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
