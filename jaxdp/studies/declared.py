"""Declarations of studies: annotated functions whose parameters are the options of a command."""

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from typer.models import OptionInfo

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Derived(NamedTuple):
    """Marks an argument that is computed from options and has no option itself.

    Written as `Annotated[jax.Array, Derived(root_key)]`.

    Attributes:
        by: computes the argument; its own parameters are declared like a study function's.
    """

    by: Callable[..., Any]


class BoundStudy(NamedTuple):
    """A study with values for all of its options.

    Attributes:
        simulate: (**scheduling) -> results; takes the arguments of `sweep` other than the grid, such as progress and
            store.
        figure: draws the results.
        report: formats the results as text.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[[xr.Dataset], Figure]"
    report: "Callable[[xr.Dataset], str]"


class TextOnly(NamedTuple):
    """The outcome of options that only print a text: nothing is simulated or written.

    Attributes:
        text: () -> the text that the command prints.
    """

    text: Callable[[], str]


@dataclass(frozen=True)
class Study:
    """A study, from which a command is derived: an annotated function, its figure and its report.

    Each argument is declared once, by the function that takes it. An argument `Annotated` with a `typer.Option` becomes
    an option of its name (or the name in the `Option`), with its type, default and help; a sequence becomes an option
    to repeat. An argument annotated with `Derived` is computed from options. Any other argument takes the option or the
    argument of `simulate` with its name, and keeps its default if there is none. The command's text is the docstring of
    the module of `simulate`.

    Attributes:
        simulate: (**arguments, **scheduling) -> results.
        figure: (results, **arguments) draws them; it may take arguments of the study by name.
        report: (results, **arguments) formats them as text; it may take arguments of the study by name.
        instead: (options by name, **options) -> a text that replaces the simulation, or None; may declare options.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[..., Figure]"
    report: "Callable[..., str]"
    instead: Callable[..., TextOnly | None] | None = None

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
        """Returns the study with these options, and with defaults for all others.

        Args:
            **options: values of options, by parameter name.
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
        )


def _maker(parameter: inspect.Parameter) -> Callable[..., Any] | None:
    return next((extra.by for extra in _extras(parameter) if isinstance(extra, Derived)), None)


def _extras(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def _declared_options(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yields the options of a function, and the options of its derived arguments."""
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
    """Replaces `Sequence` by `list` in a type: the command line only knows lists."""
    if get_origin(kind) is Sequence:
        return list[get_args(kind)]
    if isinstance(kind, types.UnionType):
        return functools.reduce(operator.or_, map(_with_lists, get_args(kind)))
    return kind


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a function: derived ones, and the values with a parameter's name."""
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        maker = _maker(parameter)
        if maker is not None:
            arguments[name] = maker(**_arguments(maker, values))
        elif name in values:
            arguments[name] = values[name]
    return arguments
