"""Loops of known length between checkpoints, as a GPU plays them: the same bits as loops that ask when to end."""

import itertools
from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.numerics.platforms import trace_for
from jaxdp.simulation.run.checkpoints import resolve
from jaxdp.simulation.run.pieces import count_blocks, cut

HORIZON = 200
CHECKPOINTS = [
    pytest.param(2, marks=pytest.mark.always, id="2"),
    3,
    7,
    pytest.param([1, 2, 7, 150], marks=pytest.mark.always, id="[1, 2, 7, 150]"),
    [5, 10],
    [199, 200],
    jaxdp.log_spaced(8),
]


def simulated(checkpoints: Any, engine: str, num_lanes: int = 5) -> dict[str, np.ndarray]:
    learner = jaxdp.bandits.explore_then_commit(num_arms=3, explore_rounds=30)
    environment = jaxdp.bandits.bernoulli_bandit([0.1, 0.5, 0.9])
    record = {"last": lambda snapshot: snapshot.action, "round_played": lambda snapshot: snapshot.round}
    run = jaxdp.simulator(learner, environment, HORIZON, checkpoints=checkpoints, engine=engine, record=record)
    params, axes = run.points(epsilon=[0.1, float("inf")])
    keys = jaxdp.lane_keys(jax.random.key(0), num_lanes)
    return jax.device_get(jax.jit(jax.vmap(jax.vmap(run, (None, axes)), (0, None)))(keys, params))


@pytest.mark.parametrize("checkpoints", CHECKPOINTS, ids=str)
@pytest.mark.parametrize("engine", ["rounds", "blocks"])
def test_the_same_bits_by_pieces(checkpoints, engine):
    expected = simulated(checkpoints, engine)
    with trace_for("gpu"):
        found = simulated(checkpoints, engine)
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("engine", ["rounds", "blocks"])
def test_no_loop_asks_when_to_end(engine):
    """Checks that loops of known length are a `scan` in the traced program, not a `while` with a condition."""

    def count(jaxpr: Any) -> int:
        inner = (value for eqn in jaxpr.eqns for value in jax.tree.leaves(list(eqn.params.values()), is_leaf=is_jaxpr))
        loops = sum(eqn.primitive.name == "while" for eqn in jaxpr.eqns)
        return loops + sum(count(getattr(value, "jaxpr", value)) for value in inner if is_jaxpr(value))

    def is_jaxpr(value: Any) -> bool:
        return hasattr(value, "eqns") or hasattr(value, "jaxpr")

    learner = jaxdp.bandits.explore_then_commit(num_arms=3, explore_rounds=30)
    environment = jaxdp.bandits.bernoulli_bandit([0.1, 0.5, 0.9])

    def loops() -> int:
        run = jaxdp.simulator(learner, environment, HORIZON, checkpoints=[10, 30, 200], engine=engine)
        return count(jax.make_jaxpr(run)(jax.random.key(0), run.params(epsilon=1.0)).jaxpr)

    assert loops() > 0
    with trace_for("gpu"):
        assert loops() == 0


@pytest.mark.parametrize(
    "checkpoints",
    [[1], [10], [1000, 2000, 3000], [333, 666, 1000], [1, 2, 4, 7], [7, 10**6], resolve(jaxdp.log_spaced(16), 10**7)],
    ids=str,
)
def test_pieces_end_at_checkpoints(checkpoints):
    pieces = cut(checkpoints)
    assert set(pieces.lengths) <= {1, pieces.turns}
    ends = list(itertools.accumulate(pieces.lengths))
    last = dict(zip(pieces.next_checkpoint, ends, strict=True))
    assert [last[index] for index in range(len(checkpoints))] == checkpoints
    assert pieces.next_checkpoint == sorted(pieces.next_checkpoint)


def test_blocks_end_at_checkpoints_and_at_their_own_ends():
    assert count_blocks([200], 48, [30]) == [5]  # 30 rounds, three times 48, and 26
    assert count_blocks([30, 200], 48, [30]) == [1, 5]
    assert count_blocks([1, 2, 40, 200], 48, [30]) == [1, 2, 4, 8]
    assert count_blocks([200], 48, []) == [5]
    assert count_blocks([200], 200, [500]) == [1]


def test_pieces_of_even_checkpoints_are_alike():
    assert cut([250, 500, 750, 1000]) == (250, [250] * 4, [0, 1, 2, 3])
    assert cut([100, 1000, 10000]).are_equal


def test_spans_that_differ_by_a_round_have_single_rounds():
    assert cut([333, 666, 1000]) == (333, [333, 333, 333, 1], [0, 1, 2, 2])


def test_looks_are_few():
    for horizon in (10**4, 10**6, 2**31 - 1):
        for checkpoints in (resolve(jaxdp.log_spaced(16), horizon), resolve(7, horizon), [1, 10, 1000, horizon]):
            assert len(cut(checkpoints).lengths) <= 0.06 * horizon
            assert len(cut(checkpoints).lengths) <= 1_000_000
