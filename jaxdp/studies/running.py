"""The two ways to run a study from the command line: at once to a new folder, or into a store that survives."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from jaxdp.simulation.store.files import COMPUTED
from jaxdp.simulation.store.inspection import describe
from jaxdp.studies.declared import Printed, Study
from jaxdp.studies.numbers import with_parsers
from jaxdp.studies.output import claimed_folder, save

Out = Annotated[
    Path | None,
    typer.Option(
        help="New or empty folder for data.zarr and figure.png. Without it: results/STUDY, or the next free "
        "results/STUDY-2, ..."
    ),
]
Where = Annotated[str, typer.Option(help="Path of the store: nothing yet, or that of the same sweep, to go on with.")]
Chunk = Annotated[int | None, typer.Option(help="Lanes written together, at most. Without it: of about 20 seconds.")]
Index = Annotated[
    str | None,
    typer.Option(help="Which of several processes this is, from 0; auto: as SLURM or a Kubernetes indexed job says."),
]
Count = Annotated[str | None, typer.Option(help="How many processes share the store; auto: as SLURM says.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what the store holds.")]
Grow = Annotated[
    bool, typer.Option("--grow", help="Keep what the store holds of this sweep, and add more seeds and values.")
]


def run_command(name: str, study: Study) -> Callable[..., None]:
    """The command that runs a study, and writes its data and figure to a folder.

    Args:
        name: of the study.
        study: of that name.
    """

    def command(out: Out = None, **chosen: Any) -> None:
        settled = study.settled(**chosen)
        if isinstance(settled, Printed):
            if out is not None:
                raise ValueError(f"out must be left out where a text is all that comes, got {out}")
            typer.echo(settled.text())
            return
        with claimed_folder(out, name) as folder:
            results = settled.simulate(progress=True)
            data, image = save(results, settled.figure, folder)
        typer.echo(f"{settled.report(results)}\n\ndata:   {data}\nfigure: {image}")

    return _with_options(command, study, "Writes data.zarr and figure.png, and prints a table.")


def advise_command(study: Study) -> Callable[..., None]:
    """The command that prints a study's report, and writes its data and figure only where it is told to."""

    def command(
        out: Annotated[Path | None, typer.Option(help="New or empty folder for data.zarr and figure.png.")] = None,
        **chosen: Any,
    ) -> None:
        settled = study.settled(**chosen)
        assert not isinstance(settled, Printed)
        if out is None:
            typer.echo(settled.report(settled.simulate(progress=True)))
            return
        with claimed_folder(out, "advise") as folder:
            results = settled.simulate(progress=True)
            data, image = save(results, settled.figure, folder)
        typer.echo(f"{settled.report(results)}\n\ndata:   {data}\nfigure: {image}")

    return _with_options(command, study, "Prints a report; with --out, also writes data.zarr and figure.png.")


def sweep_command(study: Study) -> Callable[..., None]:
    """The command that runs a study into a store, or goes on with it."""

    def command(
        store: Where,
        chunk_size: Chunk = None,
        process_index: Index = None,
        num_processes: Count = None,
        overwrite: Overwrite = False,
        grow: Grow = False,
        **chosen: Any,
    ) -> None:
        settled = study.settled(**chosen)
        if isinstance(settled, Printed):
            raise ValueError(f"store must be left out where a text is all that comes (use run), got {store}")
        try:
            results = settled.simulate(
                progress=True,
                store=store,
                chunk_size=chunk_size,
                process_index=_number(process_index),
                num_processes=_number(num_processes),
                overwrite=overwrite,
                grow=grow,
            )
        except KeyboardInterrupt as stop:
            typer.echo(str(stop) or "interrupted", err=True)
            raise typer.Exit(130) from stop
        except ValueError as error:  # a message that names arguments names options here
            text = str(error).replace("overwrite=True", "--overwrite").replace("grow=True", "--grow")
            error.args = (text,)
            raise
        typer.echo(describe(store) if COMPUTED in results else f"{settled.report(results)}\n\nstore: {store}")

    return _with_options(
        command, study, "Writes to the store as it goes. Interrupted or killed, the same command goes on."
    )


def _with_options(command: Callable[..., None], study: Study, ending: str) -> Callable[..., None]:
    """Gives a command a study's options beside its own, and the study's text."""
    own = [value for value in inspect.signature(command).parameters.values() if value.kind is not value.VAR_KEYWORD]
    parameters = [
        with_parsers(each) for each in (*study.options, *(value.replace(kind=value.KEYWORD_ONLY) for value in own))
    ]

    def named(**chosen: Any) -> None:
        try:
            command(**chosen)
        except ValueError as error:
            if error.args:
                error.args = (_by_its_option(str(error.args[0]), parameters), *error.args[1:])
            raise

    named.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    named.__annotations__ = {value.name: value.annotation for value in parameters}
    named.__doc__ = f"{study.text}\n\n{ending}"
    return named


def _by_its_option(text: str, parameters: Sequence[inspect.Parameter]) -> str:
    """A message that begins with an argument whose option has another name, as --seeds, begins with the option."""
    first, *rest = text.split(" ", 1)
    for parameter in parameters:
        for extra in getattr(parameter.annotation, "__metadata__", ()):
            # What is annotated has no default of its own: Typer keeps the first name there.
            names = [extra.default, *(extra.param_decls or ())] if isinstance(extra, OptionInfo) else []
            if parameter.name == first and names and isinstance(names[0], str):
                return " ".join([names[0], *rest])
    return text


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else text
