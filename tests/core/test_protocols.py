"""A type checker refuses a step function with swapped arguments."""

import inspect
import json
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

from jaxdp import core

ROOT = Path(__file__).parents[2]
PROTOCOLS = {name: kind for name in core.__all__ if getattr(kind := getattr(core, name), "_is_protocol", False)}
HOLDERS = ("Learner", "Blocks", "Counts", "Environment", "Estimator", "Problem", "LocalRandomizer")
ON_THE_HOST = {"params", "guarantee", "check_estimate", "range_bound", "second_moment", "variance_proxy"}


def _functions(kind: type) -> Iterator[str]:
    """Writes the header of a right function, and headers with two neighbouring arguments swapped."""
    parameters = list(inspect.signature(kind.__call__).parameters.values())[1:]
    names = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    optional = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    rest = "".join(f", *, {one.name}{'' if one.default is one.empty else '=None'}" for one in optional)
    yield f"({', '.join(names)}{rest}) -> Any"
    for index in range(len(names) - 1):
        swapped = [*names[:index], names[index + 1], names[index], *names[index + 2 :]]
        yield f"({', '.join(swapped)}{rest}) -> Any"


def test_every_function_of_the_vocabulary_has_a_protocol():
    for holder in (getattr(core, name) for name in HOLDERS if hasattr(core, name)):
        for name, hint in typing.get_type_hints(holder).items():
            kinds = [kind for kind in (hint, *typing.get_args(hint)) if getattr(kind, "_is_protocol", False)]
            is_function = bool(kinds) or "Callable" in str(hint)
            assert not is_function or kinds or name in ON_THE_HOST, f"{holder.__name__}.{name} is {hint}"
    assert len(PROTOCOLS) >= 20


def test_swapped_arguments_are_errors(tmp_path):
    lines, wrong = ["from typing import Any", "from jaxdp.core import *"], []
    for name, kind in PROTOCOLS.items():
        for index, header in enumerate(_functions(kind)):
            lines += [f"def {name}_{index}{header}: ...", f"{name}_is_{index}: {name} = {name}_{index}"]
            wrong += [len(lines) - 1] if index else []
    # In a definition, too, with annotations of one's own.
    lines += [
        "from jax import Array",
        "def update(key: Array, state: State, params: Array, report: Array) -> State: ...",
        "def act(key: Array, params: Array, public: Array, context: None) -> Array: ...",
        "def rest(**values: Any) -> Any: ...",
        "class Own: ...",
        "Learner(params=rest, guarantee=rest, init=InitFn_0, act=act, privatize=PrivatizeFn_0, update=update)",
    ]
    wrong.append(len(lines) - 1)
    program = tmp_path / "swapped.py"
    program.write_text("\n".join(lines) + "\n")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"})
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout)
    errors = {one["range"]["start"]["line"] for one in found["generalDiagnostics"] if one["severity"] == "error"}
    missed, needless = sorted(set(wrong) - errors), sorted(errors - set(wrong))
    assert not missed, [lines[line] for line in missed]
    assert not needless, [lines[line] for line in needless]
