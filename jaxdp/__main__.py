"""The command line: `python -m jaxdp`."""

import sys
from typing import Annotated

import typer

from jaxdp import registry
from jaxdp.studies import STUDIES, study

app = typer.Typer(
    help="What differential privacy costs, in regret or estimation error, by Monte Carlo with error bars.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
runs = typer.Typer(help="Run a study: simulate, write the dataset and the figure, print a table.", no_args_is_help=True)
app.add_typer(runs, name="run")
for name in STUDIES:
    runs.command(name)(study(name))


@app.command("list")
def list_entries(
    kind: Annotated[str | None, typer.Option(help="Only this kind: mechanism or estimator.")] = None,
) -> None:
    """List every mechanism and estimator with what it claims."""
    typer.echo(registry.listing(kind))


def main() -> None:
    """Runs the command line; a ValueError or an OSError is the user's to mend, and is told in one line."""
    arguments = sys.argv[1:]
    try:
        if len(arguments) > 1 and arguments[0] == "run" and not arguments[1].startswith("-"):
            study(arguments[1])
        app(prog_name="jaxdp")
    except (ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
