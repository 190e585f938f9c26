"""Each argument of a study is declared once, and the command's options come of these declarations."""

import importlib
import inspect
import math
import typing
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any

import jax
import pytest
import typer
from typer.models import OptionInfo

from jaxdp.studies import STUDIES
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.command import root_key
from jaxdp.studies.declared import BoundStudy, Derived, Study, TextOnly
from jaxdp.studies.running import run_command, sweep_command


def taken(study: Study) -> set[str]:
    """Returns the parameters of a study's functions, and of the functions that make their arguments."""
    found: set[str] = set()
    left: list[Callable[..., Any] | None] = [study.simulate, study.instead]
    while left:
        function = left.pop()
        for name, parameter in inspect.signature(function).parameters.items() if function else ():
            found.add(name)
            left += [
                extra.by for extra in getattr(parameter.annotation, "__metadata__", ()) if isinstance(extra, Derived)
            ]
    return found


def signatures(module: ModuleType | SimpleNamespace) -> list[str]:
    """Returns the names of arguments with a `typer.Option`, once for each signature of the module that has them."""
    home = module.STUDY.simulate.__module__
    functions = [value for value in vars(module).values() if inspect.isfunction(value) and value.__module__ == home]
    return [
        parameter.name
        for function in dict.fromkeys(functions)
        for parameter in inspect.signature(function).parameters.values()
        if any(isinstance(extra, OptionInfo) for extra in getattr(parameter.annotation, "__metadata__", ()))
    ]


def faults(module: ModuleType | SimpleNamespace) -> list[str]:
    """Returns the faults of a study's module: second signatures, and arguments that the command does not give."""
    study, declared = module.STUDY, signatures(module)
    names = [option.name for option in study.options]
    said = [f"{name} is declared twice" for name in dict.fromkeys(declared) if declared.count(name) > 1]
    said += [f"{name} is of no function of the study" for name in {*declared, *names} - taken(study)]
    said += [f"{name} is no option" for name in declared if name not in names]
    for name, parameter in inspect.signature(study.simulate).parameters.items():
        made = any(isinstance(extra, Derived) for extra in getattr(parameter.annotation, "__metadata__", ()))
        if not made and name not in names and parameter.kind is not parameter.VAR_KEYWORD:
            said.append(f"{name} is given by nothing")
    return said


@pytest.mark.parametrize("name", STUDIES)
def test_every_option_comes_of_a_parameter_of_the_study(name):
    module = importlib.import_module(f"jaxdp.studies.{name.replace('-', '_')}")
    assert not faults(module)
    study = module.STUDY
    assert "key" in typing.get_type_hints(study.simulate), "annotations can be read"
    for command in (run_command(name, study), sweep_command(study)):
        own = {"context", "out", "quick", "table_format", "store", "chunk_size", "process_index", "num_processes"}
        own |= {"overwrite", "grow"}
        options = {key: value for key, value in inspect.signature(command).parameters.items() if key not in own}
        assert list(options) == [option.name for option in study.options]
    for key, parameter in inspect.signature(study.simulate).parameters.items():
        made = any(isinstance(extra, Derived) for extra in getattr(parameter.annotation, "__metadata__", ()))
        if key in options and not made and options[key].default is not parameter.default:
            assert options[key].default == list(parameter.default)


def made_up(*, epsilon: Epsilons = (0.5, math.inf), num_seeds: NumSeeds = 3, key: Key, **scheduling: Any) -> Any:
    """Simulates a study."""
    return {"epsilon": epsilon, "num_seeds": num_seeds, "key": key, **scheduling}


def told(results: Any, *, epsilon: Sequence[float] = ()) -> Any:
    """Formats a report."""
    return results, epsilon


def second(epsilon: Epsilons = (0.5, math.inf), seeds: NumSeeds = 3) -> Any:
    """Returns a second signature."""
    return epsilon, seeds


def test_a_second_signature_is_found():
    study = Study(made_up, told, told, quick={}, minutes=1)
    assert not faults(SimpleNamespace(STUDY=study, made_up=made_up, told=told))
    said = faults(SimpleNamespace(STUDY=study, made_up=made_up, told=told, second=second))
    assert "epsilon is declared twice" in said
    assert "seeds is of no function of the study" in said
    hand_written = SimpleNamespace(
        simulate=made_up, instead=None, options=inspect.signature(second).parameters.values()
    )
    said = faults(SimpleNamespace(STUDY=hand_written, made_up=made_up))
    assert "seeds is of no function of the study" in said
    assert "num_seeds is no option" in said
    assert "num_seeds is given by nothing" in said
    with pytest.raises(ValueError, match="epsilon must be declared once"):
        _ = Study(made_up, told, told, quick={}, minutes=1, instead=second).options


def test_arguments_are_settled():
    settled = Study(made_up, told, told, quick={}, minutes=1).bind(epsilon=[2.0], seed=7)
    assert isinstance(settled, BoundStudy)
    results: Any = settled.simulate(progress=True)
    assert results.pop("key") == root_key(7)
    assert results == {"epsilon": [2.0], "num_seeds": 3, "progress": True}
    assert settled.report(results) == (results, [2.0])
    with pytest.raises(TypeError, match="horizon"):
        Study(made_up, told, told, quick={}, minutes=1).bind(horizon=3)


def test_a_text_in_place_of_a_study():
    def instead(options: Any, *, wanted: Annotated[bool, typer.Option("--wanted")] = False) -> TextOnly | None:
        return TextOnly(lambda: f"{options['num_seeds']}") if wanted else None

    study = Study(made_up, told, told, quick={}, minutes=1, instead=instead)
    assert [option.name for option in study.options] == ["epsilon", "num_seeds", "seed", "wanted"]
    assert isinstance(study.bind(), BoundStudy)
    printed = study.bind(wanted=True, num_seeds=4)
    assert isinstance(printed, TextOnly)
    assert printed.text() == "4"


def test_what_makes_an_argument_may_be_made_of_options_itself():
    def shifted(key: Key, by: Annotated[int, typer.Option("--shift")] = 1) -> jax.Array:
        return jax.random.fold_in(key, by)

    def study(
        *, sizes: Annotated[Sequence[int] | None, grid("Sizes.")] = None, at: Annotated[Any, Derived(shifted)]
    ) -> Any:
        return sizes, at

    made = Study(study, told, told, quick={}, minutes=1)
    kinds = {option.name: option.annotation.__args__[0] for option in made.options}
    assert kinds == {"sizes": list[int] | None, "seed": int, "by": int}
    settled = made.bind(seed=2, by=3)
    assert isinstance(settled, BoundStudy)
    results: Any = settled.simulate()
    assert results == (None, jax.random.fold_in(root_key(2), 3))
