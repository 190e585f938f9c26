"""Headings and tables of reStructuredText."""


def heading(text: str, mark: str) -> list[str]:
    """Returns a heading, underlined by repetitions of a character."""
    return [text, mark * max(len(text), 3), ""]


def table(head: list[str], rows: list[list[str]], widths: str, *, classes: str = "") -> list[str]:
    """Returns a table; its cells are reStructuredText of one line. Wide tables scroll on a narrow screen.

    Args:
        head: the headings of the columns.
        rows: the cells of each row.
        widths: the relative widths of the columns.
        classes: names of further CSS classes.
    """
    kind = " ".join(["wide", *["many"] * (len(head) > 3), *classes.split()])
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", f"   :class: {kind}", ""]
    for row in [head, *rows]:
        lines += [f"   {'* -' if number == 0 else '  -'} {cell}" for number, cell in enumerate(row)]
    return [*lines, ""]
