"""Writes learners, environments, estimators, problems and randomizers as HTML, for notebooks."""

import html
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, Context
from typing import Any

from jaxdp.core.interface import text as spaces
from jaxdp.core.made_by import text

# If an algorithm has no default for a value, its claim is shown at this value.
EXAMPLES = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "rho": 0.5,
    "mu": 1.0,
    "failure_prob": 0.05,
    "learning_rate": 0.1,
    "radius": 1.0,
    "feature_norm": 1.0,
    "regularization": 1.0,
    "low": 0.0,
    "high": 1.0,
    "bound": 1.0,
    "norm": 1.0,
}
# A second claim, at these values, shows which parts of a claim do not depend on the budget.
OTHERS = {"epsilon": 2.0, "rho": 1.0, "mu": 2.0}
Rows = list[tuple[str, str]]


def unit_word(privacy_unit: str) -> str:
    """Returns the word after "one" in the name of a privacy unit, for example "round" in "one round's reward".

    A name that does not start with "one" is returned unchanged.
    """
    return re.sub(r"^one (\w+).*", r"\1", privacy_unit)


def html_of(value: Any, kind: str) -> str:
    """Returns an algorithm, environment, estimator, problem or randomizer as HTML.

    Args:
        value: an object with `params` and `made_by`. For optional attributes that are also shown, see `rows_of`.
        kind: the kind of object in one word, for example "learner".

    Returns:
        A table that sets no colours, so that it is readable on light and dark backgrounds.
    """
    return page(repr(value), kind, rows_of(value))


def page(title: str, kind: str, rows: Iterable[tuple[str, str]]) -> str:
    """Returns a title and rows of (name, text), escaped, as HTML."""
    cells = "".join(
        f'<tr><th style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(text_of_row)}</td></tr>'
        for name, text_of_row in rows
    )
    return f"<div><strong>{html.escape(title)}</strong> <em>{html.escape(kind)}</em><table>{cells}</table></div>"


def rows_of(value: Any) -> Rows:
    """Returns rows (name, text) of an object's values and, if it has them, its claim, interface and other fields.

    The other fields are the metrics, the horizon, the number of rounds of one user, and whether features are public.
    """
    rows: Rows = []
    if (guarantee := getattr(value, "guarantee", None)) is not None:
        rows += _claim(guarantee)
    interface = getattr(value, "interface", None)
    for name in () if interface is None else interface._fields:
        if (exchanged := getattr(interface, name)) is not None:
            rows.append((name, spaces(exchanged)))
    if (dims := getattr(value, "dims", None)) and hasattr(value, "metrics"):
        rows.append(
            ("metrics", ", ".join(f"{name}[{', '.join(axes)}]" if axes else name for name, axes in dims.items()))
        )
    if (horizon := getattr(value, "horizon", None)) is not None:
        rows.append(("horizon", text(horizon)))
    if (user_level := getattr(value, "user_level", None)) is not None:
        rows.append(("user_level", f"one {user_level.name} answers in up to {user_level.rounds_per_user} rounds"))
    if hasattr(value, "features_public"):
        rows.append(("features", "public" if value.features_public else "private"))
    return [*rows, ("values", _values(value.params))]


def rounded_up(value: float, digits: int) -> str:
    """Returns a number with this number of significant digits, rounded up, for example "2e-10" for 1.01e-10.

    The number is first rounded to 12 digits, because its own computation is not more precise.
    """
    return f"{float(Context(digits, ROUND_CEILING).create_decimal(f'{value:.12g}')):.{digits}g}"


def budget_text(claim: Any) -> str:
    """Returns the budget of a claim as text, for example "0.5-zCDP"."""
    return {
        "pure": f"{claim.epsilon:g}-DP",
        "approximate": f"({claim.epsilon:g}, {claim.delta:g})-DP",
        "zcdp": f"{claim.rho or 0:g}-zCDP",
        "gaussian": f"{claim.mu or 0:g}-GDP",
        "none": "no claim",
    }[claim.kind]


def guarantee_rows(claim: Any) -> Rows:
    """Returns rows (name, text) of a claim, its reason, adjacency and arithmetic, and what an adversary may see."""
    return [
        ("claim", str(claim)),
        ("because", claim.argument),
        ("neighbours", claim.adjacency),
        ("arithmetic", claim.arithmetic),
        ("may be logged", ", ".join(sorted(claim.adversary_view)) or "nothing"),
    ]


def run_rows(made_of: Mapping[str, Any], params: Callable[..., Any], coords: Mapping[str, Any]) -> Rows:
    """Returns rows (name, text) of the parts of a run and of its coordinates.

    The rows of a learner show its claim, its interface and its values; the rows of an estimator, its claim and its
    values; the rows of another part, its metrics and its values. `made_of` maps names to the parts, and `coords` maps
    names to the run's coordinates. `params` is the run's function of keyword arguments, which are shown if `made_of` is
    empty.
    """
    rows: Rows = []
    for name, part in made_of.items():
        if isinstance(part, Mapping):  # estimators keyed by name
            rows += [(label, f"{estimator!r}: {claim_text(estimator.guarantee)}") for label, estimator in part.items()]
            rows.append(("values", _values_of_parts(part.values())))
        elif hasattr(part, "params"):
            labels = ("metrics", "values")
            if hasattr(part, "guarantee"):  # only the learner shows the interface
                labels = ("claim", "because", "action", "feedback", "context", "values")
            rows.append((name, repr(part)))
            rows += [(f"{label} of the {name}", words) for label, words in rows_of(part) if label in labels]
        else:
            rows.append((name, part if isinstance(part, str) else text(part)))
    if not rows:
        rows.append(("values", _values(params)))
    return [*rows, *((f"coordinate {name}", text(list(values))) for name, values in coords.items())]


def claim_text(guarantee: Callable[..., Any]) -> str:
    """Formats the claim at default or example values.

    If a required value has no example, or `guarantee` raises an error, the text has the names of the required values
    instead of a claim. If `guarantee` raises an error and requires no values, the text is "not known".
    """
    return _claim(guarantee)[0][1]


def _claim(guarantee: Callable[..., Any]) -> Rows:
    parameters = _parameters(guarantee)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    examples = {name: EXAMPLES[name] for name in needed if name in EXAMPLES}
    claim = _claim_or_none(guarantee, examples) if len(examples) == len(needed) else None
    if claim is None:
        return [("claim", f"needs {', '.join(needed)}" if needed else "not known")]
    example_values = ", ".join(f"{name}={value:g}" for name, value in examples.items())
    if not example_values:
        return [("claim", str(claim)), ("because", claim.argument)]
    rows = [("claim", f"{claim} (at {example_values})"), ("because", claim.argument)]
    other = _claim_or_none(guarantee, {**examples, **{name: OTHERS[name] for name in examples if name in OTHERS}})
    has_same_unit = other is not None and all(
        getattr(claim, name) == getattr(other, name) for name in ("trust_model", "privacy_unit")
    )
    return (
        rows if not has_same_unit else [*rows, ("at any values", f"{claim.trust_model} model, of {claim.privacy_unit}")]
    )


def _claim_or_none(guarantee: Callable[..., Any], values: Mapping[str, float]) -> Any:
    try:
        return guarantee(**values)
    except Exception:  # perhaps in a user's code: `repr` must not raise
        return None


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _values(params: Callable[..., Any]) -> str:
    """Returns the names and defaults of the values that `params` takes."""
    return _names_and_defaults(_parameters(params)) or "none"


def _values_of_parts(parts: Iterable[Any]) -> str:
    parameters = {p.name: p for part in parts for p in _parameters(part.params)}
    return _names_and_defaults(parameters.values())


def _names_and_defaults(parameters: Iterable[inspect.Parameter]) -> str:
    return ", ".join(p.name if p.default is p.empty else f"{p.name}={text(p.default)}" for p in parameters)
