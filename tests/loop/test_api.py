"""The public names and signatures equal `docs/reference/api.txt`, and a change of one is named."""

import pytest

import jaxdp.stats
from tests.loop import api

pytestmark = pytest.mark.always  # the guard of the public surface
RENEW = "; if this is meant, renew the file: python tests/loop/api.py"


def test_the_public_names_are_those_of_the_file():
    assert list(api.differences(api.lines_in_file(), api.lines_now())) == []


def test_a_renamed_argument_a_name_that_is_gone_and_a_new_one_are_named(monkeypatch):
    def seeds_needed(values, level): ...

    def tail_slope(values): ...

    before = api.lines_now()  # and not the file's: the test above alone compares that
    exported = [name for name in jaxdp.stats.__all__ if name != "paired"]
    monkeypatch.setattr(jaxdp.stats, "seeds_needed", seeds_needed)
    monkeypatch.setattr(jaxdp.stats, "tail_slope", tail_slope, raising=False)
    monkeypatch.setattr(jaxdp.stats, "__all__", [*exported, "tail_slope"])
    gone, renamed, new = api.differences(before, api.lines_now())
    assert gone == f"jaxdp.stats.paired: docs/reference/api.txt has it, and no public module does{RENEW}"
    assert renamed.startswith("jaxdp.stats.seeds_needed: it was jaxdp.stats.seeds_needed(at_least: float, ")
    assert renamed.endswith(f" in docs/reference/api.txt and is jaxdp.stats.seeds_needed(values, level) now{RENEW}")
    assert new.startswith("jaxdp.stats.tail_slope: it is not in docs/reference/api.txt")
    assert new.endswith(RENEW)
