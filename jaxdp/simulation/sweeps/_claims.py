"""What was claimed for a sweep's results, as a table."""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.core import Guarantee
from jaxdp.simulation.store.provenance import plain, provenance
from jaxdp.simulation.sweeps._replay import ENTRY, Recipe
from jaxdp.simulation.sweeps.labels import coordinate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

COLUMNS = (
    "claim",
    "kind",
    "claimed_epsilon",
    "claimed_delta",
    "claimed_rho",
    "claimed_mu",
    "numerical_delta",
    "trust_model",
    "privacy_unit",
    "adjacency",
    "argument",
)
_GONE = object()


def claims(results: "xr.Dataset") -> "pd.DataFrame":
    """What was claimed for each algorithm at each grid point of a sweep, as a table.

    Args:
        results: of `sweep` or `open`, in memory or from a file; of a selection, the claims of the grid points that are
            left in its coordinates. An axis whose coordinate was dropped has all its values.

    Returns:
        One row for every grid point and algorithm. Columns: the grid's values by their axes' names, as the results'
        coordinates have them; `algorithm`, the name that the run has for it; `claim`, in words; and the claim's parts,
        as `Guarantee` has them: `kind`, `claimed_epsilon`, `claimed_delta`, `claimed_rho`, `claimed_mu`,
        `numerical_delta`, `trust_model`, `privacy_unit`, `adjacency`, `argument`. Where the claim is in another
        currency, epsilon is infinite, and rho and mu are NaN; a numerical delta that is not stated is NaN. The table's
        own `to_latex` needs the package jinja2, which pandas does not install.

    Raises:
        ValueError: if the results do not tell how they were made, or hold those of another sweep as well.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9])
        >>> run = jaxdp.simulator(jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4), bandit, horizon=8)
        >>> results = jaxdp.sweep(run, axes={"epsilon": [1.0, float("inf")]}, num_seeds=2, key=jax.random.key(0))
        >>> print(jaxdp.claims(results)[["epsilon", "algorithm", "claim"]].to_string(index=False))
         epsilon algorithm                                                    claim
             1.0   learner 1-DP (rounding: delta 1e-08), central, one round's reward
             inf   learner                    no claim, central, one round's reward
    """
    import pandas

    points = [(point.static | point.values, point.guarantees) for point in provenance(results).points]
    axes = results.encoding.get(ENTRY, Recipe()).axes
    labels = {
        name: _labels(results, name, [values[name] for values, _ in points], axes.get(name)) for name in points[0][0]
    }
    rows = []
    for index, (_, guarantees) in enumerate(points):
        own = {name: found[index] for name, found in labels.items()}
        if _GONE not in own.values():
            rows += [{**own, "algorithm": name, **_parts(claim)} for name, claim in guarantees.items()]
    return pandas.DataFrame(rows, columns=[*labels, "algorithm", *COLUMNS])


def _labels(results: "xr.Dataset", name: str, values: Sequence[Any], given: Sequence[Any] | None) -> list[Any]:
    """The coordinate's labels of recorded values, `_GONE` for those that a selection left out.

    Args:
        results: of the sweep, or a selection.
        name: of the axis.
        values: at every grid point, as the provenance has them.
        given: the axis as the sweep was given it, if that is known.
    """
    left = np.atleast_1d(results[name].values).tolist() if name in results.coords else []
    text = any(isinstance(label, str) for label in left)
    if given is not None:
        by_value = {json.dumps(plain(value)): label for value, label in zip(given, coordinate(given), strict=True)}
        labels = [by_value[json.dumps(value)] for value in values]
    else:
        labels = [float(value) if value in ("inf", "-inf", "nan") and not text else value for value in values]
    known = [label in left or (label != label and any(other != other for other in left)) for label in labels]
    lost = [label for label in left if label == label and label not in labels]
    if any(known) and lost:
        raise ValueError(f"results must be of one sweep, got {name}={lost[0]}, which its provenance does not have")
    if not any(known):  # the coordinate was dropped, or labels objects by names, which the provenance does not have
        return labels
    return [label if is_there else _GONE for label, is_there in zip(labels, known, strict=True)]


def _parts(claim: Guarantee) -> dict[str, Any]:
    """A claim's columns."""
    budgets = {"epsilon": claim.epsilon, "delta": claim.delta, "rho": claim.rho, "mu": claim.mu}
    return {
        "claim": str(claim),
        "kind": claim.kind,
        **{f"claimed_{name}": math.nan if value is None else value for name, value in budgets.items()},
        "numerical_delta": math.nan if claim.numerical_delta is None else claim.numerical_delta,
        **{name: getattr(claim, name) for name in ("trust_model", "privacy_unit", "adjacency", "argument")},
    }
