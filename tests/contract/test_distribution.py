"""Blocks and counts of every registered learner agree with its rounds."""

import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jaxdp.registry import LEARNERS
from jaxdp.testing import checks_of
from jaxdp.testing.checks import DISTRIBUTION, run_checks
from tests.loop.durations import read_durations

NUM_LANES = 2000
ALWAYS = 10  # CPU seconds that the cheapest entry of an implementation may take in each run of the tests
ENGINES = {"blocks": ("blocks", "checkpoints"), "counts": ("counts",)}  # how names of checks begin


def codes(function: Any) -> Any:
    """Returns the code of a function, without its wrappers."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function.__code__


@functools.cache
def implementations() -> dict[str, tuple[Any, ...]]:
    """Returns the functions that play, of each learner's engine: `NAME-ENGINE`, and their codes."""
    found = {}
    for name, entry in LEARNERS.items():
        learner, environment = entry.make(), entry.make_environment()
        if learner.blocks and environment.block and (environment.contexts or not environment.context):
            functions = [each for blocks in learner.blocks for each in (blocks.plan, blocks.update_block)]
            found[f"{name}-blocks"] = tuple(map(codes, functions))
        if learner.counts and environment.feedback_totals:
            found[f"{name}-counts"] = tuple(map(codes, learner.counts))
    return found


def cheapest(durations: Mapping[str, float | None]) -> set[str]:
    """Returns the cheapest of all that share an implementation, if it does not take too long."""
    best: dict[Any, tuple[float, str]] = {}
    for each, functions in implementations().items():
        seconds = durations.get(node(each))
        seconds = 0.0 if seconds is None else seconds  # not measured yet
        if seconds <= ALWAYS:
            best[functions] = min(best.get(functions, (seconds, each)), (seconds, each))
    return {each for _, each in best.values()}


def node(each: str) -> str:
    return f"tests/contract/test_distribution.py::test_distribution[{each}]"


def cases() -> list[Any]:
    always = cheapest(read_durations(Path(__file__).parents[2]))
    return [
        pytest.param(*each.rsplit("-", 1), id=each, marks=[pytest.mark.always] if each in always else [])
        for each in implementations()
    ]


@pytest.mark.parametrize(("name", "engine"), cases())
def test_distribution(name, engine):
    checks = [check for check in checks_of(name, num_lanes=NUM_LANES) if check.kind == DISTRIBUTION]
    run_checks([check for check in checks if check.name.startswith(ENGINES[engine])])


def test_every_check_of_distributions_belongs_to_an_engine():
    for check in checks_of("explore_then_commit"):
        assert (check.kind == DISTRIBUTION) == check.name.startswith(sum(ENGINES.values(), ())), check


def test_the_cheapest_entry_of_an_implementation_always_runs():
    durations = {node(each): 20.0 for each in implementations()}
    assert not cheapest(durations)
    durations[node("ebs_shuffle-blocks")] = 9.0  # as of ebs_phased
    assert cheapest(durations) == {"ebs_shuffle-blocks"}
    durations[node("ebs_phased-blocks")] = 8.0
    assert cheapest(durations) == {"ebs_phased-blocks"}
