"""Lists the privacy claims of a sweep's results in a table."""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.core import Guarantee
from jaxdp.simulation.store.provenance import as_json, provenance
from jaxdp.simulation.sweeps._replay import ENTRY, Recipe
from jaxdp.simulation.sweeps.labels import coordinate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

COLUMNS = (
    "algorithm",
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
    """Returns a table of the claims of each algorithm at each grid point of a sweep.

    Args:
        results: a dataset from `sweep` or `open`, in memory or from a file. If you pass a selection of the results, the
            table has only the selected grid points. If an axis has lost its coordinate, the table has all values of
            that axis.

    Returns:
        A table with a row for every claim at every grid point. The columns are: one for each axis, with the labels of
        the results' coordinates (if an axis has the name of another column, such as `kind`, its column is named
        `axis.kind`); `algorithm`, the name of the algorithm in the run (for a claim that the environment's `user_level`
        adds, its word for a person instead); `claim`, as text; and the parts of the claim, as in `Guarantee`: `kind`,
        `claimed_epsilon`, `claimed_delta`, `claimed_rho`, `claimed_mu`, `numerical_delta`, `trust_model`,
        `privacy_unit`, `adjacency`, `argument`. If a claim does not state a number, its column has infinity (epsilon),
        0 (delta) or NaN (rho, mu, numerical delta). If results come from a file, and an axis has names of objects as
        labels, its column has the recorded texts of all values instead, including values that a selection left out. The
        table's `to_latex` needs the package jinja2, which pandas does not install.

    Raises:
        ValueError: if the results have no provenance or damaged provenance, or contain results of another sweep.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9])
        >>> run = jaxdp.simulator(jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4), bandit, horizon=8)
        >>> results = jaxdp.sweep(run, axes={"epsilon": [1.0, float("inf")]}, num_seeds=2, key=jax.random.key(0))
        >>> print(jaxdp.claims(results)[["epsilon", "algorithm", "claim"]].to_string(index=False))
         epsilon algorithm                                                     claim
             1.0   learner 1-DP (rounding: delta 2e-10), central, one round's reward
             inf   learner                     no claim, central, one round's reward
    """
    import pandas

    points = [(point.static | point.values, point.guarantees) for point in provenance(results).points]
    axes = results.encoding.get(ENTRY, Recipe()).axes
    labels = {
        name: _labels(results, name, [values[name] for values, _ in points], axes.get(name)) for name in points[0][0]
    }
    columns = [f"axis.{name}" if name in COLUMNS else name for name in labels]
    rows = []
    for index, (_, guarantees) in enumerate(points):
        point_labels = dict(zip(columns, (values[index] for values in labels.values()), strict=True))
        if _GONE not in point_labels.values():
            rows += [{**point_labels, "algorithm": name, **claim_columns(claim)} for name, claim in guarantees.items()]
    return pandas.DataFrame(rows, columns=[*columns, *COLUMNS])


def _labels(results: "xr.Dataset", name: str, values: Sequence[Any], axis: Sequence[Any] | None) -> list[Any]:
    """Returns the label of each recorded value of axis `name`; `_GONE` for values that a selection left out.

    `axis` contains the values that were passed to the sweep; None if they are unknown.
    """
    labels_left = np.atleast_1d(results[name].values).tolist() if name in results.coords else []
    text = any(isinstance(label, str) for label in labels_left)
    if axis is not None:
        by_value = {json.dumps(as_json(value)): label for value, label in zip(axis, coordinate(axis), strict=True)}
        labels = [by_value[json.dumps(value)] for value in values]
    else:
        labels = [float(value) if value in ("inf", "-inf", "nan") and not text else value for value in values]
    is_left = [
        label in labels_left or (label != label and any(other != other for other in labels_left)) for label in labels
    ]
    lost = [label for label in labels_left if label == label and label not in labels]
    if any(is_left) and lost:
        raise ValueError(f"results must be of one sweep, got {name}={lost[0]}, which its provenance does not have")
    if not any(is_left):  # the coordinate was dropped, or its labels are names of objects, which are not in provenance
        return labels
    return [label if is_there else _GONE for label, is_there in zip(labels, is_left, strict=True)]


def claim_columns(claim: Guarantee) -> dict[str, Any]:
    """Returns a claim's columns of the table of claims, keyed by name."""
    budgets = {"epsilon": claim.epsilon, "delta": claim.delta, "rho": claim.rho, "mu": claim.mu}
    return {
        "claim": str(claim),
        "kind": claim.kind,
        **{f"claimed_{name}": math.nan if value is None else value for name, value in budgets.items()},
        "numerical_delta": math.nan if claim.numerical_delta is None else claim.numerical_delta,
        **{name: getattr(claim, name) for name in ("trust_model", "privacy_unit", "adjacency", "argument")},
    }
