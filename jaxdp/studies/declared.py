"""Studies as they are declared: functions, whose parameters are the options of a command."""

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


class Made(NamedTuple):
    """Says that no option gives an argument itself: it is made of options.

    Written as in `Annotated[jax.Array, Made(root_key)]`.

    Attributes:
        by: makes the argument; its own parameters are declared as those of a study's function are.
    """

    by: Callable[..., Any]


class Settled(NamedTuple):
    """A study with its options settled.

    Attributes:
        simulate: (**scheduling) -> results, with what `sweep` takes beside the grid: progress, store, ...
        figure: draws the results.
        report: tells them as text.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[[xr.Dataset], Figure]"
    report: "Callable[[xr.Dataset], str]"


class Printed(NamedTuple):
    """A study of which a text is all that may come: nothing is written, and nothing is simulated.

    Attributes:
        text: () -> what the command prints.
    """

    text: Callable[[], str]


@dataclass(frozen=True)
class Study:
    """A study, of which a command is derived: an annotated function, its figure and its report.

    Each argument is declared once, where a function takes it. One that is `Annotated` with a `typer.Option` is an
    option of that name, or the one in the `Option`, with its type, default and help; sequences are options to repeat.
    One with `Made` is made of options. One with neither takes what has its name, an option or an argument of
    `simulate`, and is left alone where nothing has. The command's text is the docstring of the module of `simulate`.

    Attributes:
        simulate: (**arguments, **scheduling) -> results.
        figure: (results) draws them; with arguments of the study that it names.
        report: (results) tells them as text; with arguments of the study that it names.
        instead: (options by name) -> what is printed in place of all this, or None; with options of its own.
    """

    simulate: "Callable[..., xr.Dataset]"
    figure: "Callable[..., Figure]"
    report: "Callable[..., str]"
    instead: Callable[..., Printed | None] | None = None

    @property
    def text(self) -> str:
        """What the command says of itself."""
        return inspect.getdoc(inspect.getmodule(self.simulate)) or ""

    @property
    def options(self) -> list[inspect.Parameter]:
        """The options of the command, in the order of their declarations.

        Raises:
            ValueError: if one is declared twice.
        """
        found: dict[str, inspect.Parameter] = {}
        for option in [*_declared(self.simulate), *(_declared(self.instead) if self.instead else ())]:
            if option.name in found:
                raise ValueError(f"{option.name} must be declared once, got a second declaration")
            found[option.name] = option
        return list(found.values())

    def settled(self, **chosen: Any) -> Settled | Printed:
        """The study with these options, and with defaults for all others.

        Args:
            **chosen: values of options, by the names of their parameters.
        """
        bound = inspect.Signature(self.options).bind(**chosen)
        bound.apply_defaults()
        values = bound.arguments
        if self.instead is not None:
            printed = self.instead(values, **_arguments(self.instead, values))
            if printed is not None:
                return printed
        arguments = _arguments(self.simulate, values)
        values = {**values, **arguments}
        return Settled(
            functools.partial(self.simulate, **arguments),
            functools.partial(self.figure, **_arguments(self.figure, values)),
            functools.partial(self.report, **_arguments(self.report, values)),
        )


def _maker(parameter: inspect.Parameter) -> Callable[..., Any] | None:
    return next((extra.by for extra in _extras(parameter) if isinstance(extra, Made)), None)


def _extras(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def _declared(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The options that a function declares, and those of what makes its arguments."""
    for parameter in inspect.signature(function).parameters.values():
        maker = _maker(parameter)
        if maker is not None:
            yield from _declared(maker)
        elif any(isinstance(extra, OptionInfo) for extra in _extras(parameter)):
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            annotated: Any = Annotated
            kind = annotated[(_listed(get_args(parameter.annotation)[0]), *_extras(parameter))]
            yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _listed(kind: Any) -> Any:
    """The type of an option for arguments of this type: lists are the sequences that the command line knows."""
    if get_origin(kind) is Sequence:
        return list[get_args(kind)]
    if isinstance(kind, types.UnionType):
        return functools.reduce(operator.or_, map(_listed, get_args(kind)))
    return kind


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function: what makers make, and what has the name of a parameter."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        maker = _maker(parameter)
        if maker is not None:
            found[name] = maker(**_arguments(maker, values))
        elif name in values:
            found[name] = values[name]
    return found
