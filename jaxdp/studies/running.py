"""The commands that run a study.

`run` writes results to a new or empty folder, `sweep` writes them to a store and can be resumed, and `advise` prints
them.
"""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import OptionInfo

from jaxdp.simulation.store.files import COMPUTED
from jaxdp.simulation.store.inspection import describe
from jaxdp.studies.declared import BoundStudy, Study, TextOnly
from jaxdp.studies.numbers import with_parsers
from jaxdp.studies.output import claim_folder, save
from jaxdp.studies.tables import TableFormat, collect_tables, format_tables
from jaxdp.studies.terminal import terminal_width, wrap_prose

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as AnyFigure

Where = Annotated[str, typer.Option(help="Path of the store: a new path, or the store of this sweep, to resume it.")]
Chunk = Annotated[
    int | None, typer.Option(help="Largest number of runs (lanes) written together. Default: about 20 seconds of work.")
]
Index = Annotated[
    str | None,
    typer.Option(help="Index of this process, from 0; auto: read from SLURM or a Kubernetes indexed job."),
]
Count = Annotated[str | None, typer.Option(help="Number of processes that share the store; auto: read from SLURM.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the contents of the store.")]
Grow = Annotated[
    bool, typer.Option("--grow", help="Keep this sweep's results in the store, and add more seeds and values.")
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", help="Run a smaller form of the study, for a first look; options that you give override it."
    ),
]


def run_command(name: str, study: Study, *, writes: bool = True) -> Callable[..., None]:
    """Returns the command that prints a study's report, and writes its data and figure to a folder.

    Args:
        name: name of the study.
        study: the study.
        writes: whether the command writes to a folder in results/ if --out is not given.
    """
    default = " Default: results/STUDY, or the next free results/STUDY-2, ..." if writes else ""
    out_help = f"New or empty folder for data.zarr and figure.png.{default}"

    def command(
        context: typer.Context,
        out: Annotated[Path | None, typer.Option(help=out_help)] = None,
        quick: Quick = False,
        table_format: TableFormat = "text",
        **options: Any,
    ) -> None:
        bound, note = study.bind(**options), ""
        if quick and not isinstance(bound, TextOnly):
            options, note = _quick_form(study, context, options)
            bound = study.bind(**options)
        if isinstance(bound, TextOnly):
            for option, value in (("out", out), ("quick", quick), ("format", table_format)):
                if value and value != "text":
                    raise ValueError(f"{option} must be left out if only text is printed, got {value}")
            _print(bound.text())
        else:
            with _compiling_briefly() if quick else contextlib.nullcontext():
                if writes or out is not None:
                    _write(bound, out, name, note, table_format)
                else:
                    _print_report(bound, bound.simulate(progress=True), note, table_format)

    action = "Writes data.zarr and figure.png, and prints a table."
    if not writes:
        action = "Prints a report; with --out, also writes data.zarr and figure.png."
    return _with_options(command, study, f"{action} {_time_text(study)}")


@contextlib.contextmanager
def _compiling_briefly() -> Iterator[None]:
    """Turns off optimisation of programs for a CPU within the context: a quick form compiles longer than it runs."""
    from jaxdp.audit.quick_programs import quick_options
    from jaxdp.simulation.sweeps.lanes import added_options

    with added_options("cpu", quick_options()):
        yield


def _time_text(study: Study) -> str:
    """Returns a sentence on the minutes that the study takes with its defaults."""
    if study.minutes is None:
        return "Its time depends on your data; --quick runs a smaller form."
    return f"With its defaults it takes about {study.minutes:g} min on two cores; --quick runs a smaller form."


def _quick_form(study: Study, context: typer.Context, options: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns the options after replacing defaults by the quick form's values, and a note that lists these values."""
    sources = {name: context.get_parameter_source(name) for name in study.quick}
    replaced = {
        name: study.quick[name] for name, source in sources.items() if source is None or source.name != "COMMANDLINE"
    }
    names = {option.name: _option_name(option) for option in study.options}
    listed = [
        names[name] if single is True else f"{names[name]} {single}"
        for name, value in replaced.items()
        for single in (value if isinstance(value, tuple) else (value,))
    ]
    note = f"\n\nQuick form: {' '.join(listed) or 'your own options'}. {_time_text(study)}"
    as_lists = {name: list(value) if isinstance(value, tuple) else value for name, value in replaced.items()}
    return {**options, **as_lists}, note


def _write(study: BoundStudy, out: Path | None, name: str, note: str, table_format: str) -> None:
    """Runs a study, writes its data and figure to a folder, and prints its report and the note."""
    with claim_folder(out, name) as folder:
        results = study.simulate(progress=True)
        data, image = save(results, partial(_figure, study), folder)
        more = "" if study.files is None else f"\n\n{study.files(results, folder)}"
    _print_report(study, results, f"{note}\n\ndata:   {data}\nfigure: {image}{more}", table_format)


def _print_report(study: BoundStudy, dataset: "xr.Dataset", ending: str, table_format: str) -> None:
    """Prints the report and its ending; if the format is not text, prints them to stderr, and the tables to stdout."""
    with collect_tables() as tables:
        report = _report(study, dataset)
    if table_format != "text":
        typer.echo(format_tables(tables, table_format))
    typer.echo(wrap_prose(report + ending, terminal_width()), err=table_format != "text")


def _report(study: BoundStudy, dataset: "xr.Dataset") -> str:
    """Returns the report of a study, with a sentence on the privacy units of its claims."""
    from jaxdp.plotting.labels import unit_sentence

    return "\n\n".join(filter(None, [study.report(dataset), unit_sentence(dataset)]))


def _figure(study: BoundStudy, dataset: "xr.Dataset") -> "AnyFigure":
    """Draws the figure of a study, with a caption that names the privacy units of its claims."""
    from jaxdp.plotting import Figure, caption
    from jaxdp.plotting.labels import CLAIMS_ARE, unit_sentence
    from jaxdp.plotting.records import note

    figure = study.figure(dataset)
    if isinstance(figure, Figure) and CLAIMS_ARE not in caption(figure.axes):
        note(figure.axes[0], unit_sentence(dataset))
        figure.refresh()
    return figure


def _print(text: str) -> None:
    typer.echo(wrap_prose(text, terminal_width()))


def sweep_command(study: Study) -> Callable[..., None]:
    """Returns the command that runs a study and writes its results to a store, or resumes the study in that store."""

    def command(
        store: Where,
        chunk_size: Chunk = None,
        process_index: Index = None,
        num_processes: Count = None,
        overwrite: Overwrite = False,
        grow: Grow = False,
        **options: Any,
    ) -> None:
        bound = study.bind(**options)
        if isinstance(bound, TextOnly):
            raise ValueError(f"store must be left out if only text is printed (use run), got {store}")
        try:
            results = bound.simulate(
                progress=True,
                store=store,
                chunk_size=chunk_size,
                process_index=_parse_process(process_index),
                num_processes=_parse_process(num_processes),
                overwrite=overwrite,
                grow=grow,
            )
        except KeyboardInterrupt as stop:
            typer.echo(str(stop) or "interrupted", err=True)
            raise typer.Exit(130) from stop
        except ValueError as error:  # the message names arguments, but the command line has options
            text = str(error).replace("overwrite=True", "--overwrite").replace("grow=True", "--grow")
            error.args = (text,)
            raise
        _print(describe(store) if COMPUTED in results else f"{_report(bound, results)}\n\nstore: {store}")

    return _with_options(
        command, study, "Writes to the store while it runs. If interrupted or killed, the same command resumes."
    )


def _with_options(command: Callable[..., None], study: Study, ending: str) -> Callable[..., None]:
    """Returns the command after adding the study's options and the study's help text."""
    keyword_only = [
        value.replace(kind=value.KEYWORD_ONLY)
        for value in inspect.signature(command).parameters.values()
        if value.kind is not value.VAR_KEYWORD
    ]
    parameters = [with_parsers(parameter) for parameter in (*study.options, *keyword_only)]

    def with_option_names(**options: Any) -> None:
        try:
            command(**options)
        except ValueError as error:
            if error.args:
                error.args = (_with_option_name(str(error.args[0]), parameters), *error.args[1:])
            raise

    with_option_names.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    with_option_names.__annotations__ = {value.name: value.annotation for value in parameters}
    with_option_names.__doc__ = f"{study.text}\n\n{ending}"
    return with_option_names


def _with_option_name(text: str, parameters: Sequence[inspect.Parameter]) -> str:
    """Replaces the argument name at the start of an error message by its option if their names differ (--seeds)."""
    first, *remainder = text.split(" ", 1)
    for parameter in parameters:
        option = _option_name(parameter)
        if parameter.name == first and option != f"--{first.replace('_', '-')}":
            return " ".join([option, *remainder])
    return text


def _option_name(parameter: inspect.Parameter) -> str:
    """Returns the option of a parameter on the command line, such as --num-arms."""
    for extra in getattr(parameter.annotation, "__metadata__", ()):
        # An annotated option has no default; Typer stores the option's first name in the field `default`.
        names = [extra.default, *(extra.param_decls or ())] if isinstance(extra, OptionInfo) else []
        if names and isinstance(names[0], str):
            return names[0]
    return f"--{parameter.name.replace('_', '-')}"


def _parse_process(text: str | None) -> int | str | None:
    """Returns a process index or count as an integer if the text is an integer, and otherwise unchanged."""
    return int(text) if text is not None and re.fullmatch("-?[0-9]+", text) else text
