"""What is registered, as text."""

from jaxdp.registry.plugins import load_plugins
from jaxdp.registry.registered import ESTIMATORS, KINDS, LEARNERS, TABLES, claim_of
from jaxdp.validation import check_choice

_HOW = {"pure": "ε-DP", "approximate": "(ε, δ)-DP", "zcdp": "ρ-zCDP", "gaussian": "μ-GDP"}  # noqa: RUF001


def listing(kind: str | None = None, *, sources: bool = False) -> str:
    """A table of what is registered, with what each claims at its example values.

    Args:
        kind: "mechanism", "learner" or "estimator"; None is all.
        sources: whether to tell paper and algorithm, and whether the claim is proved, in place of what it does.

    Returns:
        Lines of text.

    Raises:
        ValueError: if kind is unknown.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    load_plugins()
    rows = [("KIND", "NAME", "EXAMPLE CLAIM", *(("PROOF", "SOURCE") if sources else ("WHAT IT DOES",)))]
    for made, (_, entries) in TABLES.items():
        for name, entry in entries.items() if kind in (None, made) else ():
            claim = claim_of(entry)
            last = (entry.proof, entry.source) if sources else (entry.summary,)
            rows.append((made, name, str(claim) if claim.is_private else "none", *last))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return "\n".join(
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])) for row in rows
    )


def claims_table() -> str:
    """What every registered estimator and learner keeps private, and who claims nothing, as a table in Markdown."""
    load_plugins()
    rows: dict[tuple[str, str], list[str]] = {}
    nothing: list[str] = []
    for name, entry in (*ESTIMATORS.items(), *LEARNERS.items()):
        claim = claim_of(entry)
        if claim.is_private:
            rows.setdefault((claim.privacy_unit, f"{claim.trust_model}, {_HOW[claim.kind]}"), []).append(name)
        else:
            nothing.append(name)
    lines = ["| private | how | by |", "|---|---|---|"]
    for (unit, how), names in (*rows.items(), (("nothing", "no claim"), nothing)):
        lines.append(f"| {unit} | {how} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)
