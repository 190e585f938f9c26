"""Prose is wrapped to a terminal; rows of tables, short lines and words longer than the terminal stay."""

from jaxdp.studies.terminal import terminal_width, wrap_prose

TEXT = """regret after 1,000 rounds of a learner with a long name
            ε = 1     ε = ∞ (no privacy)
thompson    1 +- 1    1 +- 1
  note: the attack found little, as the noise may be too large
/a/path/that/is/longer/than/the/terminal"""


def test_prose_is_wrapped_and_tables_are_not():
    assert wrap_prose(TEXT, 25).split("\n") == [
        "regret after 1,000 rounds",
        "of a learner with a long",
        "name",
        "            ε = 1     ε = ∞ (no privacy)",
        "thompson    1 +- 1    1 +- 1",
        "  note: the attack found",
        "  little, as the noise",
        "  may be too large",
        "/a/path/that/is/longer/than/the/terminal",
    ]


def test_nothing_is_wrapped_in_a_pipe(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert wrap_prose(TEXT, terminal_width()) == TEXT
    monkeypatch.setenv("COLUMNS", "60")
    assert terminal_width() == 60
