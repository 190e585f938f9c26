"""The arguments that many studies have, as they are declared."""

from collections.abc import Container, Sequence
from typing import Annotated, Any

import jax
import typer

from jaxdp.studies.command import root_key
from jaxdp.studies.declared import Made
from jaxdp.validation import warn_large_delta


def grid(help: str, *names: str) -> Any:
    """An option of what a study's grid is made of.

    Args:
        help: what it says of itself.
        *names: of the option, as `--seeds`; that of the parameter without.
    """
    return typer.Option(*names, help=help, rich_help_panel="Grid")


Epsilons = Annotated[Sequence[float], grid("Privacy budget, > 0; inf is no privacy. Repeat for several.")]
Registered = Annotated[Sequence[str], grid("Learner, by its name in `list`. Repeat for several; all without.")]
NumSeeds = Annotated[int, grid("Repetitions of every setting.", "--seeds")]
Horizon = Annotated[int, typer.Option(help="Rounds, >= 100.")]
GaussianDelta = Annotated[float, typer.Option(help="Failure mass of Gaussian noise, in (0, 1).")]
Delta = Annotated[float, typer.Option(help="Failure mass where a central estimator's noise is Gaussian, in (0, 1).")]
Key = Annotated[jax.Array, Made(root_key)]


def fixed_delta(names: Container[str], delta: float, num_records: int) -> dict[str, float]:
    """Returns the delta of a learner that takes one, else nothing. Warns where delta > 1 / num_records.

    Args:
        names: of the learner's values.
        delta: in (0, 1).
        num_records: of the study: rounds, where each is another user's.
    """
    if "delta" not in names:
        return {}
    warn_large_delta(delta, num_records)
    return {"delta": delta}
