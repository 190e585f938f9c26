"""Command-line arguments that many studies share."""

from collections.abc import Container, Sequence
from typing import Annotated, Any

import jax
import typer

from jaxdp.studies.command import root_key
from jaxdp.studies.declared import Derived
from jaxdp.validation import warn_large_delta


def grid(help: str, *names: str) -> Any:
    """Returns a command-line option for one axis of a study's grid; `--help` lists it under "Grid".

    Args:
        help: the option's help text.
        *names: names of the option, such as `--seeds`; by default the parameter's name.
    """
    return typer.Option(*names, help=help, rich_help_panel="Grid")


Epsilons = Annotated[Sequence[float], grid("Privacy budget epsilon, > 0; inf for no privacy. Repeat for several.")]
Registered = Annotated[
    Sequence[str], grid("Learner, by its name in the output of `list`. Repeat for several. Default: all.")
]
NumSeeds = Annotated[int, grid("Repetitions (seeds) of every setting.", "--seeds")]
Horizon = Annotated[int, typer.Option(help="Rounds, >= 100.")]
GaussianDelta = Annotated[float, typer.Option(help="Delta of learners with Gaussian noise, in (0, 1).")]
Delta = Annotated[float, typer.Option(help="Delta of a central estimator with Gaussian noise, in (0, 1).")]
Key = Annotated[jax.Array, Derived(root_key)]


def fixed_delta(names: Container[str], delta: float, num_records: int) -> dict[str, float]:
    """Returns {"delta": delta} if `names` contains "delta", else {}.

    If `names` contains "delta" and delta > 1 / num_records, a warning is issued.

    Args:
        names: names of the learner's values.
        delta: the delta of the claim, in (0, 1).
        num_records: number of records, each of a different user, such as rounds or ballots.
    """
    if "delta" not in names:
        return {}
    warn_large_delta(delta, num_records)
    return {"delta": delta}
