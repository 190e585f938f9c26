"""Texts are stored in the user's cache directory, and made again when the sources change."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxdp import user_cache
from jaxdp.user_cache import TEXTS, stored_text


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Returns the file of texts in a cache directory, and lets the package have one source file."""
    source = tmp_path / "package" / "a.py"
    source.parent.mkdir()
    source.write_text("1")
    monkeypatch.setattr(user_cache, "PACKAGE", source.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path / "cache" / "jaxdp" / TEXTS


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache"),
        ("darwin", {}, "Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
    ],
)
def test_on_other_systems(platform, variables, expected, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_cache.user_cache() == tmp_path / expected


def test_texts_are_made_once_for_each_name(file):
    assert stored_text("a", lambda: "first") == "first"
    assert stored_text("b", lambda: "second") == "second"
    assert stored_text("a", lambda: "third") == "first"
    assert [path.name for path in file.parent.iterdir()] == [TEXTS]


def test_texts_are_made_again_when_a_source_changes(file):
    assert stored_text("a", lambda: "old") == "old"
    (user_cache.PACKAGE / "b.py").write_text("2")
    assert stored_text("a", lambda: "new") == "new"
    assert stored_text("a", lambda: "newer") == "new"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"sources": 1}', '"text"', "\udcff"])
def test_a_damaged_file_is_replaced(file, content):
    stored_text("a", lambda: "old")
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert stored_text("a", lambda: "new") == "new"
    assert stored_text("a", lambda: "newer") == "new"


def test_a_text_that_is_no_text_is_made_again(file):
    stored_text("a", lambda: "old")
    file.write_text(file.read_text().replace('"old"', "3"))
    assert stored_text("a", lambda: "new") == "new"


def test_where_nothing_can_be_stored_texts_are_made_each_time(file, monkeypatch):
    file.parent.parent.write_text("a file, not a folder")
    assert [stored_text("a", lambda text=text: text) for text in ("first", "second")] == ["first", "second"]

    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", no_home)
    assert stored_text("a", lambda: "third") == "third"


def test_the_second_list_is_printed_without_jax(tmp_path):
    def listing(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "importtime", "-m", "jaxdp", *arguments]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True)

    def imports_jax(result: subprocess.CompletedProcess[str]) -> bool:
        return re.search(r"\| +jax\n", result.stderr) is not None

    first, second = listing("list", "--kind", "learner"), listing("list", "--kind", "learner")
    assert first.stdout == second.stdout
    assert "ucb_central" in first.stdout
    assert [imports_jax(result) for result in (first, second)] == [True, False]
    assert imports_jax(listing("--no-cache", "list", "--kind", "learner"))
