"""The studies as commands. A study is loaded when its command is called, not when `--help` lists it."""

from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from jaxdp.studies import STUDIES, check_study, study
from jaxdp.studies.numbers import with_repetition

SEVERAL = ("--means",)  # options that take several values at a time

UsageError: Any = typer.BadParameter.__base__  # Typer does not export it


class LazyCommand(TyperCommand):
    """A placeholder with a name and one sentence of help, which builds the real command when it is called."""

    def __init__(self, name: str, command_of: Callable[[str], Callable[..., None]], help: str | None = None) -> None:
        super().__init__(name, help=help or STUDIES[name])
        self._name, self._command_of = name, command_of

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Makes the context of the real command, which knows the options."""
        app = typer.Typer(add_completion=False)
        app.command(self._name)(self._command_of(self._name))
        command, (title, arguments, *parents) = typer.main.get_command(app), args
        arguments = repeat_options(arguments)
        try:
            # a copy of the arguments, because the parser empties the list
            return command.make_context(title, list(arguments), *parents, **extra)
        except UsageError as error:
            if "unexpected extra argument" in error.message:
                repeatable = [
                    name for option in command.params if getattr(option, "multiple", False) for name in option.opts
                ]
                error.message = with_repetition(error.message, arguments, repeatable)
            raise


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Repeats each option of `SEVERAL` for every value that follows it.

    Examples:
        >>> repeat_options(["--means", ".3", ".2", "--arms", "2"])
        ['--means', '.3', '--means', '.2', '--arms', '2']
    """
    repeated, option = [], ""
    for argument in arguments:
        if argument.startswith("--"):
            option = argument if argument in SEVERAL else ""
        elif option and repeated[-1] != option:
            repeated.append(option)
        repeated.append(argument)
    return repeated


def _run(name: str) -> Callable[..., None]:
    from jaxdp.studies.running import run_command

    return run_command(name, study(name))


def _advise(name: str) -> Callable[..., None]:
    from jaxdp.studies.running import run_command

    return run_command(name, study(name), writes=False)


def _sweep(name: str) -> Callable[..., None]:
    from jaxdp.studies.running import sweep_command

    return sweep_command(study(name))


def _bench(name: str) -> Callable[..., None]:
    from jaxdp.suite.command import bench_learners

    return bench_learners


def _report(name: str) -> Callable[..., None]:
    from jaxdp.comparisons.report import report_store

    return report_store


def _group_with(*commands: LazyCommand) -> type[TyperGroup]:
    """Returns a class of command groups that also have these commands."""

    class Group(TyperGroup):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.commands.update({str(command.name): command for command in commands})

    return Group


def _group_of_studies(command_of: Callable[[str], Callable[..., None]]) -> type[TyperGroup]:
    """Returns a class of command groups with one command a study, which raise a ValueError for other names."""

    class Group(_group_with(*(LazyCommand(name, command_of) for name in STUDIES))):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            check_study(args[0])
            return super().resolve_command(ctx, args)

    return Group


RunGroup = _group_of_studies(_run)
SweepGroup = _group_of_studies(_sweep)
MainGroup = _group_with(
    LazyCommand("advise", _advise),
    LazyCommand("bench", _bench, help="Play the frozen benchmark with learners or estimators."),
    LazyCommand("report", _report, help="Write a store's comparison as one HTML file."),
)
