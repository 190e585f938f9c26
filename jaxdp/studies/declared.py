"""Declarations of studies, which are annotated functions. The parameters of a study are the options of a command."""

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from typer.models import OptionInfo

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr
    from matplotlib.figure import Figure


class Derived(NamedTuple):
    """Marks an argument that is computed from options, as in `Annotated[jax.Array, Derived(root_key)]`.

    Attributes:
        by: function that computes the argument; its parameters are declared in the same way as a study's parameters.
    """

    by: Callable[..., Any]


class BoundStudy(NamedTuple):
    """A study with values for all of its options.

    Attributes:
        simulate: function(**scheduling) that returns the results; it takes arguments of `sweep`, such as progress and
            store.
        figure: function that draws the results.
        report: function that formats the results as text.
        files: function(results, folder) that writes further files to the folder of `run`, and returns text that says
            how to use them. None if there are no further files.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[[xr.Dataset], Figure]"
    report: "Callable[[xr.Dataset], str]"
    files: "Callable[[xr.Dataset, Path], str] | None" = None


class TextOnly(NamedTuple):
    """A text that the command prints instead of a simulation. It then makes no output folder.

    Attributes:
        text: function without arguments that returns the text to print.
    """

    text: Callable[[], str]


@dataclass(frozen=True)
class Study:
    """A study: an annotated function, its figure and its report. The study's command is derived from them.

    An argument of `simulate` or `instead` that is `Annotated` with a `typer.Option` becomes an option of the command,
    with the argument's name (or the name in the `Option`), type, default and help. A sequence becomes an option that
    can be repeated. An argument annotated with `Derived` is computed from options. Any other argument of `simulate` or
    `instead` gets the value of the option with the same name. Any other argument of `figure` or `report` gets the value
    of the option, or of the argument of `simulate`, with the same name. Without such a value, the argument keeps its
    default. Each option is declared by only one function. The docstring of the module that defines `simulate` is the
    command's help text.

    Attributes:
        simulate: function(**arguments, **scheduling) that returns the results.
        figure: function(results, **arguments) that returns the figure of the results.
        report: function(results, **arguments) that returns the results as text.
        instead: function(values, **arguments) that returns a `TextOnly` to print a text instead of simulating, or None
            to simulate; `values` maps each option's name to its value. If the attribute is None, the study always
            simulates.
        files: as in `BoundStudy`.
        quick: values of options, by parameter name. With --quick, for a first look, they replace the defaults.
        minutes: time in minutes, including compilation, that the study takes with its defaults on two cores; None if
            the time depends on data.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[..., Figure]"
    report: "Callable[..., str]"
    _: KW_ONLY
    instead: Callable[..., TextOnly | None] | None = None
    files: "Callable[[xr.Dataset, Path], str] | None" = None
    quick: Mapping[str, Any]
    minutes: float | None

    @property
    def text(self) -> str:
        """The command's help text."""
        return inspect.getdoc(inspect.getmodule(self.simulate)) or ""

    @property
    def options(self) -> list[inspect.Parameter]:
        """The options of the command, in the order of their declarations.

        Raises:
            ValueError: if an option is declared twice.
        """
        options: dict[str, inspect.Parameter] = {}
        for option in [*_declared_options(self.simulate), *(_declared_options(self.instead) if self.instead else ())]:
            if option.name in options:
                raise ValueError(f"{option.name} must be declared once, got a second declaration")
            options[option.name] = option
        return list(options.values())

    def bind(self, **options: Any) -> BoundStudy | TextOnly:
        """Returns the study with values for all options, or the text of `instead`.

        Args:
            **options: values of options, by parameter name; all other options have their defaults.
        """
        bound = inspect.Signature(self.options).bind(**options)
        bound.apply_defaults()
        values = bound.arguments
        if self.instead is not None:
            printed = self.instead(values, **_arguments(self.instead, values))
            if printed is not None:
                return printed
        arguments = _arguments(self.simulate, values)
        values = {**values, **arguments}
        return BoundStudy(
            functools.partial(self.simulate, **arguments),
            functools.partial(self.figure, **_arguments(self.figure, values)),
            functools.partial(self.report, **_arguments(self.report, values)),
            self.files,
        )


def _maker(parameter: inspect.Parameter) -> Callable[..., Any] | None:
    """Returns the function that computes an argument marked with `Derived`; None for any other argument."""
    return next((extra.by for extra in _extras(parameter) if isinstance(extra, Derived)), None)


def _extras(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Returns the metadata of a parameter's `Annotated` type; () if the annotation is another type."""
    return getattr(parameter.annotation, "__metadata__", ())


def _declared_options(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yields the options that a function and its derived arguments declare."""
    for parameter in inspect.signature(function).parameters.values():
        maker = _maker(parameter)
        if maker is not None:
            yield from _declared_options(maker)
        elif any(isinstance(extra, OptionInfo) for extra in _extras(parameter)):
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            annotated: Any = Annotated
            kind = annotated[(_with_lists(get_args(parameter.annotation)[0]), *_extras(parameter))]
            yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _with_lists(kind: Any) -> Any:
    """Replaces `Sequence` by `list` in a type and in members of a union, because Typer supports only lists."""
    if get_origin(kind) is Sequence:
        return list[get_args(kind)]
    if isinstance(kind, types.UnionType):
        return functools.reduce(operator.or_, map(_with_lists, get_args(kind)))
    return kind


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a function keyed by name.

    Arguments marked with `Derived` are computed, and other arguments are taken from `values`. Arguments that are
    neither marked nor in `values` are left out, so that they keep their defaults.
    """
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        maker = _maker(parameter)
        if maker is not None:
            arguments[name] = maker(**_arguments(maker, values))
        elif name in values:
            arguments[name] = values[name]
    return arguments
