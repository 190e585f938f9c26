"""The command `python -m jaxdp bench`: plays the suite with several learners, and prints standings."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.suite import v1
from jaxdp.suite._bench import bench
from jaxdp.suite._standings import FORMATS, draw_standings, read_results, standings
from jaxdp.validation import check_choice


def bench_all(
    names: Sequence[str],
    folder: Path,
    every: bool,
    values: Sequence[str],
    report: Callable[[str], None],
    *,
    family: str | None = None,
    **options: Any,
) -> list[str]:
    """Plays the suite with each learner, one after the other, and writes a file for each.

    Args:
        names: as for `bench`.
        folder: the folder of the files; it is made if it does not exist.
        every: whether to add all registered learners and estimators.
        values: texts NAME=NUMBER.
        report: function that is called with one line at a time.
        family: only the instances of this family.
        **options: quick, verify and proof of `bench`.

    Returns:
        The names of learners that could not play. If there is only one learner, its error is raised instead.

    Raises:
        ValueError: if there is no learner, or an argument is out of its range.
    """
    if family is not None:
        check_choice("family", family, v1.FAMILIES)
    learners = [*names, *([*LEARNERS, *ESTIMATORS] if every else ())]
    if not learners:
        raise ValueError("learners must be at least one, as my_module:my_learner, or --all, got none")
    tuned = dict(map(_named_number, values))
    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    for name in learners:
        report(name)
        try:
            path = folder / f"{name.replace(':', '.')}.json"
            bench(name, path, tuned=tuned, family=family, report=lambda line: report(f"  {line}"), **options)
        except ValueError as error:
            if len(learners) == 1:
                raise
            failures.append(name)
            report(f"  {error}")
    return failures


def print_standings(folder: Path, format: str, picture: Path | None = None) -> str:
    """Formats the standings of the results in a folder; with `picture`, also draws them to this file."""
    records, format = read_results(folder), check_choice("format", format, FORMATS)
    if picture is not None:
        draw_standings(records).savefig(picture)
    return standings(records, format)


def _named_number(text: str) -> tuple[str, float | int | str]:
    """Parses NAME=NUMBER; other values than numbers stay texts."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"value must be NAME=NUMBER, got {text!r}")
    for parse in (int, float):
        try:
            return name, parse(value)
        except ValueError:
            continue
    return name, value
