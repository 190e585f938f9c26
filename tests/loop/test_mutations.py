"""Mutations: where they are, what they change, and what a table says of them."""

import ast
from collections import Counter

import pytest

from tests.loop.mutations import PACKAGES, ROOT, SHARES, Mutation, mutations, sites_of, table

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
    assert len({str(each) for each in every}) == len(every) == len(PACKAGES) * sum(SHARES.values()) == 60
    assert Counter(each.path.split("/")[1] for each in every) == dict.fromkeys(PACKAGES, 12)
    for each in every:
        text = (ROOT / each.path).read_text()
        assert ast.dump(ast.parse(each.mutated(text))) != ast.dump(ast.parse(text)), each


def test_the_table_says_which_share_was_noticed():
    first, second = (Mutation("a.py", "sign", 1, 1, 0, 1, new, "x") for new in ("y", "z"))
    rows = {str(each): {"verdict": verdict, "seconds": 2.0, "by": by} for each, verdict, by in (
        (first, "noticed", "tests/test_a.py::test_a"), (second, "survived", "")
    )}  # fmt: skip
    assert [" ".join(line.split()) for line in table(enumerate([first, second], 1), rows)] == [
        f"1 noticed 2 s {first}",
        "by tests/test_a.py::test_a",
        f"2 survived 2 s {second}",
        "noticed: 1 of 2",
    ]
