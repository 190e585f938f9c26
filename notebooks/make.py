"""Pairs and executes the notebooks: `python notebooks/make.py pair`, `python notebooks/make.py run [--small] [01 ...]`.

The text of each notebook is its percent script, `NN_name.py`. `pair` writes `NN_name.ipynb` from it, without outputs.
`run` executes the scripts in fresh kernels, two at a time, and writes notebooks with outputs, and their pictures, to
`results/notebooks`. With `--small` the cell tagged `parameters` is followed by the smaller values in its metadata;
with `--changed` a notebook is left alone that was executed from the same script by the same library.
"""

import argparse
import base64
import hashlib
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
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
AT_A_TIME = 2
LONGEST = 600  # seconds that one cell may take


def read(script: Path, *, small: bool = False) -> Any:
    """A percent script as a notebook.

    Args:
        script: its path.
        small: whether the smaller values of its parameters are put in.

    Returns:
        The notebook, without outputs; numbered cells, so that the same script always gives the same file.
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
    """The text of the .ipynb that belongs to a script."""
    return nbformat.writes(read(script)) + "\n"


def execute(notebook: Any) -> Any:
    """Executes a notebook in a fresh kernel, whose working directory is this folder.

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
    client.execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """Every output of every cell, in order."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def pictures(notebook: Any) -> list[bytes]:
    """Every picture that an executed notebook shows, as PNG."""
    data = [output.get("data", {}) for output in outputs(notebook)]
    return [base64.b64decode(own["image/png"]) for own in data if "image/png" in own]


def made_from(script: Path, *, small: bool = False) -> str:
    """A hash of what an executed notebook shows: its script, the library's sources, and the version of JAX."""
    digest = hashlib.sha256(f"{jax.__version__} {small}".encode())
    for path in (script, *sorted((HERE.parent / "jaxdp").rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_executed(script: Path, *, small: bool = False) -> bool:
    """Whether `results/notebooks` has this notebook as it would be executed now."""
    path = RESULTS / f"{script.stem}.ipynb"
    if not path.exists():
        return False
    return nbformat.read(path, as_version=4).metadata.get("made_from") == made_from(script, small=small)


def _run(script: Path, small: bool) -> bool:
    """Executes one notebook and writes what it shows. Returns whether all cells ran."""
    start, notebook = time.perf_counter(), read(script, small=small)
    digest = made_from(script, small=small)
    try:
        execute(notebook)
        notebook.metadata["made_from"] = digest
        failure = ""
    except CellExecutionError as error:
        failure = f"\n{error}"
    nbformat.write(notebook, RESULTS / f"{script.stem}.ipynb")
    found = pictures(notebook)
    for number, picture in enumerate(found, 1):
        (RESULTS / f"{script.stem}-{number}.png").write_bytes(picture)
    print(f"{script.stem}: {time.perf_counter() - start:.1f} s, {len(found)} pictures{failure}", flush=True)
    return not failure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("pair", "run"))
    parser.add_argument("--small", action="store_true", help="run small forms, as the tests do")
    parser.add_argument("--changed", action="store_true", help="run only those that are not executed as they are now")
    parser.add_argument("numbers", nargs="*", help="which, as 01 07; all without")
    told = parser.parse_intermixed_args()
    chosen = [script for script in SCRIPTS if not told.numbers or script.stem[:2] in told.numbers]
    if told.verb == "pair":
        for script in chosen:
            script.with_suffix(".ipynb").write_text(paired(script), encoding="utf-8")
        return
    if told.changed:
        chosen = [script for script in chosen if not is_executed(script, small=told.small)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        done = list(pool.map(lambda script: _run(script, told.small), chosen))
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
