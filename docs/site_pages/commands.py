"""Writes the page with the help of every command."""

from collections.abc import Iterator
from typing import Any

import typer
from site_pages.docstrings import escape
from site_pages.rst import heading, table

from jaxdp.__main__ import app
from jaxdp.studies.menu import LazyCommand


def commands(command: Any = None, path: str = "python -m jaxdp") -> Iterator[tuple[str, Any]]:
    """Yields (call, command) for the program and for each of its commands; commands of a group follow it."""
    if command is None:
        command = typer.main.get_command(app)
    yield path, command
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), f"{path} {name}")


def commands_page() -> str:
    """Returns the page with the `--help` of each command, and its arguments in a table."""
    lines = [
        *heading("Commands", "="),
        "``jaxdp`` and ``python -m jaxdp`` are the same program. ``--help`` prints the text of this page.",
        "",
    ]
    for path, command in commands():
        if isinstance(command, LazyCommand):  # its arguments are known once it is called
            command = command.make_context(command.name, [], resilient_parsing=True).command
        depth = "-" if path.count(" ") < 4 else "^"
        title = f"``{path}``"
        lines += ["", *heading(title, depth)]
        lines += [escape(line) for line in (command.help or "").splitlines()] + [""]
        rows = [row for row in map(_row, command.params) if row]
        if rows:
            lines += table(["argument", "default", "meaning"], rows, "32 18 50")
    return "\n".join(lines) + "\n"


def _row(parameter: Any) -> list[str] | None:
    if getattr(parameter, "hidden", False):
        return None
    if parameter.param_type_name == "argument":
        name = f"``{parameter.name.upper()}``"
    else:
        name = " ".join(f"``{each}``" for each in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if default is None or callable(default) or default is False or default == () or default == []:
        shown = ""
    else:
        shown = ", ".join(str(each) for each in default) if isinstance(default, (list, tuple)) else str(default)
    return [name, f"``{shown}``" if shown else "", escape(" ".join((parameter.help or "").split()))]
