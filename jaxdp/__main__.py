"""The command line: `python -m jaxdp`."""

import sys
from typing import Annotated

import jax
import typer

from jaxdp import registry
from jaxdp.studies import STUDIES, study
from jaxdp.validation import check_count

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
    kind: Annotated[str | None, typer.Option(help="Only this kind: mechanism, learner or estimator.")] = None,
) -> None:
    """List every mechanism, learner and estimator with what it claims."""
    typer.echo(registry.listing(kind))


@app.callback()
def options(
    cpu_devices: Annotated[
        int | None,
        typer.Option(help="Number of CPU devices, each with its own tiles. Without it JAX's own, which is one."),
    ] = None,
) -> None:
    """What must be set before JAX starts."""
    if cpu_devices is not None:
        jax.config.update("jax_num_cpu_devices", check_count("cpu_devices", cpu_devices))


def main() -> None:
    """Runs the command line; a ValueError or an OSError is the user's to mend, and is told in one line."""
    arguments = sys.argv[1:]
    try:
        if "run" in arguments[:-1] and not (name := arguments[arguments.index("run") + 1]).startswith("-"):
            study(name)
        app(prog_name="jaxdp")
    except (ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
