"""The command `python -m jaxdp bench`: plays the suite with several learners, and prints standings."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.suite import v1
from jaxdp.suite._bench import bench, file_name
from jaxdp.suite._standings import FORMATS, draw_standings, left_out, read_results, standings
from jaxdp.validation import check_choice


def bench_learners(
    learners: Annotated[
        list[str] | None,
        typer.Argument(help="Learners: module:name, or a name in `list --all`. Each gets one file in --out."),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for the results, one JSON file for each learner.")
    ] = Path("bench"),
    every: Annotated[bool, typer.Option("--all", help="Play with every registered learner and estimator.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds and short horizons: a minute or two for most learners.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Use the second set of seeds, to check published results.")
    ] = False,
    unit: Annotated[
        str, typer.Option(help="Privacy unit: round, or person; results for persons are written to separate files.")
    ] = "round",
    value: Annotated[
        list[str] | None,
        typer.Option(help="NAME=NUMBER: an argument that you chose; marks the row as tuned. Repeat for several."),
    ] = None,
    family: Annotated[str | None, typer.Option(help="Play only this family, such as arms.", show_default=False)] = None,
    proof: Annotated[str, typer.Option(help="Link to a proof of the claim.", show_default=False)] = "",
    standings: Annotated[
        Path | None,
        typer.Option(help="Play nothing; print the standings of the results in this folder.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the standings into this picture file.", show_default=False)
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="Format of standings: markdown, text, latex or csv.")
    ] = "markdown",
) -> None:
    """Plays the frozen benchmark, suite version 1, with learners or estimators; rerun to resume."""
    if standings is None and plot is not None:
        raise ValueError(f"plot must come with --standings, got {plot}")
    if standings is not None:
        if learners or every:
            raise ValueError("learners must be left out with --standings, which only reads results")
        typer.echo(print_standings(standings, format_, plot, lambda line: typer.echo(line, err=True)))
        return
    failures = bench_all(
        list(learners or ()),
        folder,
        every,
        value or (),
        lambda line: typer.echo(line, err=True),
        quick=quick,
        verify=verify,
        unit=unit,
        family=family,
        proof=proof,
    )
    if failures:
        raise typer.Exit(1)
    typer.echo(f"wrote {folder}")


def bench_all(
    names: Sequence[str],
    folder: Path,
    every: bool,
    values: Sequence[str],
    report: Callable[[str], None],
    *,
    unit: str = "round",
    family: str | None = None,
    **options: Any,
) -> list[str]:
    """Plays the suite with each learner, one after the other, and writes one file for each learner.

    Args:
        names: names of learners or estimators, as for `resolve`.
        folder: folder of the files; it is created if it does not exist.
        every: whether to add all registered learners and estimators.
        values: strings of the form NAME=NUMBER, for the argument `tuned` of `bench`.
        report: function that is called with each line of progress.
        unit: the privacy unit, "round" or "person".
        family: family of the instances to play; None plays all.
        **options: quick, verify and proof of `bench`.

    Returns:
        The names of learners that could not play or raised an error. If there is only one learner, its error is raised
        instead.

    Raises:
        ValueError: if there is no learner, or an argument is out of its range.
    """
    if family is not None:
        check_choice("family", family, v1.FAMILIES)
    check_choice("unit", unit, v1.UNITS)
    learners = [*names, *([*LEARNERS, *ESTIMATORS] if every else ())]
    if not learners:
        raise ValueError(
            "learners must name at least one learner, such as my_module:my_learner, or add --all, got none"
        )
    tuned = dict(map(_named_number, values))
    if len(tuned) < len(values):
        raise ValueError(f"value must name each argument once, got {', '.join(values)}")
    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    for name in learners:
        report(name)
        try:
            path = folder / file_name(name, unit)
            bench(name, path, unit=unit, tuned=tuned, family=family, report=lambda line: report(f"  {line}"), **options)
        except ValueError as error:
            if len(learners) == 1:
                raise
            failures.append(name)
            report(f"  {error}")
        except Exception as error:  # a fault of one learner's code does not end the others' play
            if len(learners) == 1:
                raise
            failures.append(name)
            report(f"  {name} raised {type(error).__name__}: {error}")
    return failures


def print_standings(
    folder: Path, format: str, picture: Path | None = None, report: Callable[[str], None] = print
) -> str:
    """Formats the standings of the results in a folder; with `picture`, also draws them to this file.

    Calls `report` with a sentence that names the learners that the picture leaves out.
    """
    records, format = read_results(folder), check_choice("format", format, FORMATS)
    if picture is not None:
        draw_standings(records).savefig(picture)
        if names := left_out(records):
            condition = "have finite scores in all instances of a table with two or more"
            report(f"{picture} shows only learners that {condition}, so not {', '.join(names)}")
    return standings(records, format)


def _named_number(text: str) -> tuple[str, float | int | str]:
    """Parses NAME=NUMBER; a value that is not a number remains a string."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"value must be NAME=NUMBER, got {text!r}")
    for parse in (int, float):
        try:
            return name, parse(value)
        except ValueError:
            continue
    return name, value
