"""What is registered, as text."""

import math

from jaxdp.core import Guarantee
from jaxdp.registry.estimators import ESTIMATORS
from jaxdp.registry.learners import LEARNERS
from jaxdp.registry.mechanisms import MECHANISMS
from jaxdp.validation import check_choice

KINDS = ("mechanism", "learner", "estimator")


def listing(kind: str | None = None) -> str:
    """A table of what is registered, with what each claims at its example values.

    Args:
        kind: "mechanism", "learner" or "estimator"; None is all.

    Returns:
        Lines of text.

    Raises:
        ValueError: if kind is unknown.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    rows = [("KIND", "NAME", "EXAMPLE CLAIM", "WHAT IT DOES")]
    if kind in (None, "mechanism"):
        rows += [("mechanism", name, _text(e.guarantee(**e.values)), e.summary) for name, e in MECHANISMS.items()]
    for made, entries in (("learner", LEARNERS), ("estimator", ESTIMATORS)):
        if kind in (None, made):
            rows += [(made, name, _text(e.make().guarantee(**e.values)), e.summary) for name, e in entries.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3])) for row in rows
    )


def claims_table() -> str:
    """What every registered estimator and learner keeps private, and who claims nothing, as a table in Markdown."""
    rows: dict[tuple[str, str], list[str]] = {}
    nothing: list[str] = []
    for name, entry in (*ESTIMATORS.items(), *LEARNERS.items()):
        claim = entry.make().guarantee(**entry.values)
        if claim.is_private:
            kind = "(ε, δ)-DP" if claim.delta else "ε-DP"
            rows.setdefault((claim.privacy_unit, f"{claim.trust_model}, {kind}"), []).append(name)
        else:
            nothing.append(name)
    lines = ["| private | how | by |", "|---|---|---|"]
    for (unit, how), names in (*rows.items(), (("nothing", "no claim"), nothing)):
        lines.append(f"| {unit} | {how} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def _text(claim: Guarantee) -> str:
    if math.isinf(claim.epsilon):
        return "none"
    budget = f"({claim.epsilon:g}, {claim.delta:g})-DP" if claim.delta else f"{claim.epsilon:g}-DP"
    return f"{budget}, {claim.trust_model}, {claim.privacy_unit}"
