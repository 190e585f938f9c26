"""Measures the statements of a source paper: `python benchmarks/papers/run.py PAPER`; `--help` lists the options."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.papers import PAPERS
from benchmarks.papers.record import chosen, listed, reproduced, summary, write
from benchmarks.papers.rows import FULL, Size
from jaxdp.__main__ import show_warning
from jaxdp.simulation.sweeps.compilation import configure_cache
from jaxdp.studies.command import Seed, root_key


def run(
    paper: Annotated[
        str | None, typer.Argument(help="A paper, as the list without an argument names it.", show_default=False)
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="8 times the repetitions. Says first how long it takes.")
    ] = False,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Only rows whose number has this text in it, as 'Thm 4'. Repeat for several."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="New or empty folder for results.json and results.csv. Without it: results/reproduce-PAPER, or the "
            "next free one."
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no compiled programs in your cache directory, and read none.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Measure the statements of a source paper: claim, our number, agrees or differs, and why.

    Without a paper it lists them, with the time each takes.
    """
    if paper is None:
        if row or out is not None or full or seed:
            raise ValueError("paper must be given with --full, --row, --out or --seed, got none")
        typer.echo(listed())
        return
    from jaxdp.studies.output import claim_folder  # Matplotlib, which a list does not need

    configure_cache(not no_cache, lambda sentence: typer.echo(sentence, err=True))  # before JAX compiles anything
    root_key(seed)
    rows, size = chosen(paper, row or ()), Size("full" if full else "quick", seed)
    minutes = PAPERS[paper].minutes * (FULL if full else 1)
    most = (
        f"at most {minutes} minutes of processors, with {FULL} times the repetitions"
        if full
        else f"about {minutes} min"
    )
    typer.echo(f"{paper}: {len(rows)} rows; all rows of the paper take {most}\n")
    with claim_folder(out, f"reproduce-{paper}") as folder:
        record = reproduced(paper, rows, size, typer.echo)
        data, table = write(record, folder)
    typer.echo(f"{summary(record)}\n\ndata:  {data}\ntable: {table}")


def main() -> None:
    """Runs the command; a ValueError or an OSError is printed in one line, and the exit status is 2."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    warnings.showwarning = show_warning
    try:
        app()
    except (ValueError, OSError, MemoryError) as error:
        typer.echo("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
