"""Every algorithm has a name for figures and tables, and no two learners or estimators share one."""

from typing import Any

import pytest

from jaxdp.registry import ESTIMATORS, LEARNERS, MechanismEntry
from jaxdp.registry.titles import display_name


@pytest.mark.parametrize("entries", [LEARNERS, ESTIMATORS], ids=["learners", "estimators"])
def test_display_names_are_distinct_and_have_no_code(entries):
    names = [display_name(name) for name in entries]
    assert len(set(names)) == len(entries)
    assert not [name for name in names if "_" in name or name != name.strip()]


def test_a_title_is_one_line_of_text():
    functions: dict[str, Any] = dict.fromkeys(("params", "guarantee", "release"), lambda: None)
    with pytest.raises(ValueError, match="title must be one line of text, got 'two\\\\nlines'"):
        MechanismEntry(summary="doubles", title="two\nlines", neighbours=(0, 1), **functions)
