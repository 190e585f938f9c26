"""Mutations: their places, their changes, and their table."""

import ast
from collections import Counter

import pytest

from tests.loop.mutation_runs import failures, first_failure
from tests.loop.mutations import (
    EQUIVALENT,
    NOT_DECIDED,
    NOTICED,
    PACKAGES,
    ROOT,
    SHARES,
    SURVIVED,
    Mutation,
    choose,
    mutations,
    sites_of,
    table,
)

SAMPLE = '''
"""1 + 2"""


def guarantee(epsilon):
    return 3 * epsilon


def update(key, params, total: "1 - 2", count=7):
    """total - 3"""
    key_noise, key_coin = split(key)
    if total < 0:
        raise ValueError(f"total must be >= {total - 1}")
    check_count("total", total - 1)

    def claim():
        return 1 - total

    noise = laplace(key_noise, params, total)
    ñ = select(noise, total) if total < 5 else flip(key_coin)
    return where(total, noise + 1, ñ)
'''
EXPECTED = {
    ("key", "key_noise", "key_coin"),
    ("key", "key_coin", "key_noise"),
    ("arguments", "select(noise, total)", "select(total, noise)"),
    ("off by one", "total < 5", "total <= 5"),
    ("constant", "5", "10"),
    ("sign", "noise + 1", "noise - 1"),
    ("off by one", "noise + 1", "noise"),
    ("arguments", "where(total, noise + 1, ñ)", "where(total, ñ, noise + 1)"),
}


def test_only_what_is_compiled_is_changed():
    found = list(sites_of(SAMPLE, "sample.py"))
    assert {(site.kind, site.old, site.new[1:-1]) for site in found} == EXPECTED
    assert len(found) == len(EXPECTED)
    for site in found:
        line = SAMPLE.splitlines()[site.line - 1]
        assert line.encode()[site.column - 1 :].decode().startswith(site.old.split("\n")[0])
        mutated = site.mutated(SAMPLE)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(SAMPLE))
        assert mutated.splitlines()[: site.line - 1] == SAMPLE.splitlines()[: site.line - 1]


def test_another_version_of_a_file_has_the_same_mistake_or_none():
    site = next(site for site in sites_of(SAMPLE, "sample.py") if site.old == "total < 5")
    assert "total <= 5" in site.mutated("# moved\n" + SAMPLE)
    for other in (SAMPLE.replace("total < 5", "total < 6"), "# moved\n" + SAMPLE + "is_small = total < 5\n"):
        with pytest.raises(ValueError, match=r"sample\.py must have this expression once, got [02] times total < 5"):
            site.mutated(other)


def test_every_package_has_its_share():
    every = mutations()
    assert every == mutations()
    assert len({each.identity for each in every}) == len(every) == len(PACKAGES) * sum(SHARES.values()) == 60
    assert EQUIVALENT.keys() <= {each.identity for each in every}
    assert Counter(each.path.split("/")[1] for each in every) == dict.fromkeys(PACKAGES, 12)
    for each in every:
        text = (ROOT / each.path).read_text()
        assert ast.dump(ast.parse(each.mutated(text))) != ast.dump(ast.parse(text)), each


def test_a_change_elsewhere_moves_no_mutation():
    def identities(text):
        sites = {kind: [] for kind in SHARES}
        for path in ("a.py", "b.py", "c.py"):
            for site in sites_of(text if path == "b.py" else SAMPLE, path):
                sites[site.kind].append(site)
        return [site.identity for site in choose(sites)]

    chosen = identities(SAMPLE)
    assert chosen
    moved = "# moved\n\n" + SAMPLE.replace("    noise = ", "    nothing = note(total)\n    noise = ")
    assert identities(moved) == chosen
    lines = [site for site in sites_of(SAMPLE, "b.py") if site.identity in chosen]
    assert lines
    changed = identities(SAMPLE.replace(lines[0].text, lines[0].text + "  # changed"))
    assert changed != chosen
    assert [each for each in chosen if each not in changed] == [
        each for each in chosen if lines[0].text in each and "b.py" in each
    ]


def test_the_table_says_which_share_was_noticed(monkeypatch):
    first, second = (Mutation("a.py", "sign", 1, 1, 0, 1, new, "x", "f(x)") for new in ("y", "z"))
    rows = {each.identity: {"verdict": verdict, "seconds": 2.0, "by": by} for each, verdict, by in (
        (first, "noticed", "tests/test_a.py::test_a"), (second, "survived", "")
    )}  # fmt: skip
    assert [" ".join(line.split()) for line in table(enumerate([first, second], 1), rows)] == [
        f"1 noticed 2 s {first}",
        "by tests/test_a.py::test_a",
        f"2 survived 2 s {second}",
        "1 noticed, 1 survived of 2",
    ]
    monkeypatch.setitem(EQUIVALENT, "a.py sign: x -> z in f(x)", "x is z")
    assert list(table([(2, second)], rows))[1:] == [f"{'':17}as x is z", "1 equivalent of 1"]


def test_a_mutation_is_noticed_by_the_first_test_that_fails_and_capped_ones_are_not_decided(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:unraisableexception")  # which collects garbage after each run
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in (
        ("right", "def test_a(): pass\ndef test_b(): pass\n"),
        ("wrong", "def test_a(): pass\ndef test_b(): assert False\ndef test_c(): assert False\n"),
        ("broken", "import jaxdp.nothing\ndef test_a(): pass\n"),
    ):
        (tmp_path / f"test_{name}.py").write_text(text)
    right, wrong, broken = (str(tmp_path / f"test_{name}.py") for name in ("right", "wrong", "broken"))

    def verdict(*tests, most_seconds=float("inf")):  # of this process, which other tests have used
        made = first_failure([*tests], most_seconds)
        return made["verdict"], file_and_test(made["by"])

    def file_and_test(name):
        return name.rpartition("/")[2]  # pytest's root is a folder that has the checkout and these files, if one has

    assert verdict() == verdict(right) == (SURVIVED, "")
    assert verdict(right, wrong) == (NOTICED, "test_wrong.py::test_b")
    assert verdict(f"{right}::test_a", f"{broken}::test_a") == (NOTICED, "test_broken.py")
    assert verdict(right, most_seconds=0.0) == (NOT_DECIDED, "")
    assert verdict(f"{right}::test_z") == (NOT_DECIDED, "")  # there is no such test
    assert list(map(file_and_test, failures([right, wrong]))) == ["test_wrong.py::test_b", "test_wrong.py::test_c"]
