"""Sums of losses that a curator sees are exact for all losses: neighbours differ by the loss that was replaced."""

import ast
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import experts
from jaxdp.core import State
from jaxdp.experts import _svt_lazy
from jaxdp.experts._svt_restarts import _svt_restarts
from jaxdp.experts._svt_restarts import windows as _restart_windows
from jaxdp.numerics import compensated, fixed_point

EXPERTS, ROUNDS = 3, 256
INTEGER = jnp.result_type(int)
HORIZON = 2**31 - 2
KEY = jax.random.key(0)
STARTS = [(whole, part) for whole in (2**24, 2**26, 2**30 - 1) for part in (0, fixed_point.UNITS - 1)]


class Case(NamedTuple):
    """A learner with private sums.

    Attributes:
        make: () -> learner.
        values: of its params.
        before: (state) -> a state from which so many rounds only add.
        sums: the path of its sums in the private state.
        adds: ([rounds, experts] units of losses) -> what each round adds to them, expert 0 being played.
    """

    make: Any
    values: dict[str, Any]
    before: Any
    sums: tuple[str, ...] = ()
    adds: Any = lambda units: units


def late(state):
    """Makes neighbours that differ within a block of rounds, or a batch."""
    return state._replace(public=state.public._replace(round=jnp.full((), 2**30 + 5, INTEGER)))


def no_more_switches(state):
    return state._replace(public=state.public._replace(switches=jnp.int32(1), played=jnp.ones((), INTEGER)))


def intervals():
    return experts.mirror_descent(num_experts=EXPERTS, horizon=HORIZON, num_switches=1, form="intervals")


def within_an_interval(state):
    """Makes neighbours that differ within an interval of every level longer than the rounds of a test."""
    return state._replace(public=state.public._replace(round=jnp.full((), 2**30 - ROUNDS - 3, INTEGER)))


def lazy():
    return experts.lazy_weights(num_experts=EXPERTS, horizon=HORIZON, rounds_per_step=64)


def restarts():
    return experts.svt_restarts(num_experts=EXPERTS, horizon=HORIZON, check_every=2**20)


def within_an_epoch(state):
    return state._replace(public=state.public._replace(selection=late(State((), state.public.selection)).public))


CASES = {
    "limited_updates": Case(lambda: experts.limited_updates(num_experts=EXPERTS), {}, late, ("totals",)),
    "limited_updates_oblivious": Case(
        lambda: experts.limited_updates_oblivious(num_experts=EXPERTS, horizon=HORIZON), {"batch": 2**30}, late
    ),
    "svt_lazy": Case(
        lambda: experts.svt_lazy(num_experts=EXPERTS, horizon=HORIZON),
        {"max_switches": 1},
        no_more_switches,
        ("totals",),
    ),
    "mirror_descent": Case(intervals, {"delta": 1e-3}, within_an_interval),
    "lazy_weights": Case(lazy, {"delta": 1e-3, "batch": 2**30}, late, ("losses",)),
    "lazy_weights, weights": Case(
        lambda: experts.lazy_weights(num_experts=EXPERTS, horizon=HORIZON),
        {"delta": 1e-3, "batch": 1},
        lambda state: state,
        ("weights",),
    ),
    "svt_restarts, totals": Case(restarts, {}, within_an_epoch, ("selection", "totals")),
    "svt_restarts, regrets": Case(restarts, {}, within_an_epoch, ("regrets",), lambda units: units[:, :1] - units),
}


def replaced(private, path, sums):
    if not path:
        return sums
    inner = replaced(getattr(private, path[0]), path[1:], sums)
    return private._replace(**{path[0]: inner})


def adversarial():
    """Makes losses of two neighbours, [2, ROUNDS, EXPERTS]; most of them have all of their digits."""
    losses = np.random.default_rng(63).uniform(0.9, 1, (ROUNDS, EXPERTS))
    first, second = losses.copy(), losses.copy()
    first[0], second[0] = [0.0, 1.0, 0.75], [1.0, 0.0, 0.5]
    return np.stack([first, second])


def integers(sums):
    """Returns Python integers [...], units of the sums."""
    whole, part = (np.asarray(word).astype(object) for word in sums)
    return whole * fixed_point.UNITS + part


def rounds_of(case, *, rounds_per_step=False):
    """Builds (losses, sums) -> the learner's sums after the rounds: one by one, or many at once by its blocks."""
    learner = case.make()
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, **case.values))
    begun = case.before(learner.init(jax.random.key(0), params))
    actions, keys = jnp.zeros(ROUNDS, jnp.int32), jax.random.split(jax.random.key(1), ROUNDS)

    def report_of(key, action, losses):
        return learner.privatize(key, params, begun.public, None, action, losses)

    def step(state, entry):
        return learner.update(entry[0], params, state, report_of(*entry)), None

    def at_once(state, losses):
        block = learner.blocks[-1]
        size = block.length
        for begin in range(0, ROUNDS - size + 1, size):
            some = tuple(values[begin : begin + size] for values in (keys, actions, losses))
            plan = block.plan(some[0], params, state.public, None, jnp.asarray(size, INTEGER))
            state, _ = block.update_block(some[0], params, state, plan, jax.vmap(report_of)(*some))
        return state

    @jax.jit
    def after(losses, sums):
        shapes = functools.reduce(getattr, case.sums, begun.private)
        sums = jax.tree.map(lambda word, like: jnp.broadcast_to(word, like.shape), sums, shapes)
        state = State(replaced(begun.private, case.sums, sums), begun.public)
        state = at_once(state, losses) if rounds_per_step else jax.lax.scan(step, state, (keys, actions, losses))[0]
        found = functools.reduce(getattr, case.sums, state.private)
        return jax.tree.map(lambda word: word.reshape(-1, EXPERTS)[-1], found)  # of the longest intervals

    return after


def check_exact(case, starts, *, rounds_per_step=False, read=integers, encode=lambda sums: sums):
    """Checks that both neighbours' sums equal sums of Python's integers."""
    run = rounds_of(case, rounds_per_step=rounds_per_step)
    for whole, part in starts:
        sums = encode(fixed_point.Sum(*(jnp.full(EXPERTS, word, INTEGER) for word in (whole, part))))
        for losses in adversarial():
            rows = jnp.asarray(losses, jnp.result_type(float))
            units = np.round(np.asarray(rows, np.float64) * fixed_point.UNITS).astype(np.int64)
            found = read(run(rows, sums)) - (whole * fixed_point.UNITS + part)
            assert (found == case.adds(units).sum(axis=0)).all()


@pytest.mark.parametrize("name", CASES)
def test_sums_are_exact(name):
    check_exact(CASES[name], STARTS)


BULK = [name for name in CASES if CASES[name].make().blocks]


@pytest.mark.parametrize("name", BULK)
def test_sums_of_many_rounds_are_exact(name):
    check_exact(CASES[name], STARTS, rounds_per_step=True)


# ---- the old way, planted --------------------------------------------------------------------------------------------
def words_of(sums):
    """Stores the bits of a compensated sum of floats in the words of a fixed-point sum."""
    bits = (jax.lax.bitcast_convert_type(leaf.astype(jnp.float32), jnp.int32) for leaf in sums)
    return fixed_point.Sum(*(word.astype(INTEGER) for word in bits))


def floats_of(sums):
    return compensated.Sum(*(jax.lax.bitcast_convert_type(word.astype(jnp.int32), jnp.float32) for word in sums))


def kept_floats(running, restart):
    """Returns the floats of a running sum; 0 where `restart` is set."""
    return floats_of(running if restart is None else jax.tree.map(lambda word: jnp.where(restart, 0, word), running))


def compensated_add(running, units, *, restart=None):
    kept = kept_floats(running, restart)
    return words_of(compensated.add(kept, units.astype(jnp.float32) * (1 / fixed_point.UNITS)))


def plain_add(running, units, *, restart=None):
    total = kept_floats(running, restart).total + units.astype(jnp.float32) * (1 / fixed_point.UNITS)
    return words_of(compensated.zero(total)._replace(total=total))


def rounded_start(sums):
    total = sums.whole.astype(jnp.float32)
    return words_of(compensated.Sum(total, (total.astype(INTEGER) - sums.whole).astype(jnp.float32)))


def read_floats(sums):
    total, excess = (np.asarray(leaf, np.float64) for leaf in floats_of(sums))
    return np.round((total - excess) * fixed_point.UNITS).astype(np.int64).astype(object)


WRONG = {compensated_add: 2**30 + 40, plain_add: 2**30}  # a sum from which each goes wrong


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", CASES)
def test_float_sums_are_noticed(name, wrong, monkeypatch):
    monkeypatch.setattr(fixed_point, "add", wrong)
    with pytest.raises(AssertionError):
        check_exact(CASES[name], [(WRONG[wrong], 0)], read=read_floats, encode=rounded_start)


# ---- one long block --------------------------------------------------------------------------------------------------
def unit_of(round_):
    """Returns a loss in [.9, 1] of every round, in units; integers of 32 bits, of NumPy or JAX."""
    return 2**20 - ((round_ * 1103515245 + 12345) >> 8) % 104857


def totals_of_a_block(rounds, first_loss):
    """Scans `limited_updates` through a block of `rounds` rounds but the last one; returns expert 0's total."""
    learner = experts.limited_updates(num_experts=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0))
    begun = learner.init(KEY, params)
    state = State(begun.private, begun.public._replace(round=jnp.asarray(rounds - 1, INTEGER)))

    def step(round_, state):
        loss = unit_of(round_.astype(jnp.uint32)).astype(jnp.float32) * jnp.float32(1 / fixed_point.UNITS)
        losses = jnp.stack([jnp.where(round_ == 0, jnp.float32(first_loss), loss), loss])
        report = learner.privatize(KEY, params, state.public, None, jnp.int32(0), losses)
        return learner.update(KEY, params, state, report)

    after = jax.jit(lambda state: jax.lax.fori_loop(0, rounds - 1, step, state))(state)
    return jax.tree.map(lambda word: word[:1], after.private.totals)


def check_block(rounds, read=integers):
    """Checks that totals of two neighbours equal totals of NumPy's integers of 64 bits."""
    others = sum(
        int(unit_of(np.arange(begin, min(begin + 2**20, rounds - 1), dtype=np.uint32)).astype(np.int64).sum())
        for begin in range(0, rounds - 1, 2**20)
    ) - int(unit_of(np.uint32(0)))
    for first_loss in (0.0, 1.0):
        (total,) = read(totals_of_a_block(rounds, first_loss))
        assert total == others + int(first_loss * fixed_point.UNITS)


@pytest.mark.optimised
def test_a_block_of_67_million_rounds_is_exact():
    check_block(2**26)


@pytest.mark.optimised
def test_a_block_with_float_sums_is_noticed(monkeypatch):
    monkeypatch.setattr(fixed_point, "add", plain_add)
    with pytest.raises(AssertionError):
        check_block(2**26, read=read_floats)


# ---- sums of floats --------------------------------------------------------------------------------------------------
FLOATS = {
    "_hedge.py": "without privacy",
    "_lane_kernels.py": "sums of `hedge`",
    "_exponential_weights.py": "reports of a local learner",
    "_comparators.py": "outcomes",
    "_mirror_descent/sampling.py": "shares, which are products",
    "_shares.py": "shares, and public totals",
    "_share_kernels.py": "the same",
    "_sequence_class.py": "weights, which are products",
    "_filter/_filter.py": "the same",
    "classes.py": "the same",
}


def adds_floats(source):
    """Returns whether a module imports sums of floats."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {(node.module, alias.name) for node in imports for alias in node.names}
    module = "jaxdp.numerics.compensated"
    return ("jaxdp.numerics", "compensated") in names or any(where == module for where, _ in names)


ELSEWHERE = {
    "bandits/_best_arm.py": "reports of local learners",
    "bandits/_exp3.py": "the same",
    "bandits/_lane_kernels.py": "the same",
    "bandits/_means.py": "the same",
    "bandits/_tsallis_inf.py": "the same",
    "bandits/_ucb.py": "the same",
    "bandits/contextual/_generalized_linear.py": "the same",
    "bandits/contextual/_linear_ucb.py": "the same",
    "bandits/contextual/_model.py": "the same",
    "bandits/convex/_ball.py": "the same",
    "bandits/convex/_ball_kernels.py": "the same",
    "bandits/convex/_barrier_smooth.py": "the same",
    "bandits/convex/_barrier_strongly_convex.py": "the same",
    "bandits/convex/_box.py": "the same",
    "bandits/convex/_domain.py": "the same",
    "bandits/convex/_one_point.py": "the same",
    "bandits/convex/_stochastic_1d.py": "the same",
    "dueling/_versatile_sparring.py": "the same",
    "dueling/_versatile_sparring_kernels.py": "the same",
    "estimation/one_pass.py": "randomized labels, and exact labels",
    "bandits/_arm_blocks.py": "totals that have noise",
    "bandits/_thompson_central.py": "the same",
    "bandits/_pairwise_elimination_central.py": "the same",
    "bandits/_reward_sequence.py": "outcomes",
    "bandits/convex/_world.py": "outcomes",
    "dueling/switching.py": "outcomes",
}


def floats_in(folder):
    files = sorted(Path(folder).rglob("*.py"))
    return {file.relative_to(folder).as_posix() for file in files if adds_floats(file.read_text(encoding="utf-8"))}


def test_no_other_sums_are_floats():
    assert floats_in(experts.__path__[0]) == set(FLOATS)
    package = Path(experts.__path__[0]).parent
    others = ("mechanisms", "bandits", "dueling", "estimation", "audit")
    assert {f"{each}/{file}" for each in others for file in floats_in(package / each)} == set(ELSEWHERE)
    assert adds_floats("from jaxdp.numerics import compensated, fixed_point")
    assert adds_floats("from jaxdp.numerics.compensated import Sum, rounded")


# ---- questions -------------------------------------------------------------------------------------------------------
def asked(module, learner, values, state, losses, monkeypatch):
    """Returns a learner's question to the sparse vector technique after a round of these losses; expert 0 plays."""
    params, queries = learner.params(epsilon=1.0, **values), []

    def step(key, monitor, query, grid):
        queries.append(query)
        return monitor, jnp.asarray(False)

    monkeypatch.setattr(module, "ask", step)
    with jax.disable_jit():
        report = learner.privatize(KEY, params, state.public, None, jnp.int32(0), jnp.asarray(losses))
        learner.update(KEY, params, state, report)
    (query,) = queries
    # Largest windows are asked in ranges: float64 holds them exactly.
    return int(integers(query)) if isinstance(query, fixed_point.Sum) else int(np.float64(query) * fixed_point.UNITS)


@pytest.mark.parametrize(("whole", "part"), STARTS)
def test_a_question_is_the_exact_loss(whole, part, monkeypatch):
    learner, values = experts.svt_lazy(num_experts=EXPERTS, horizon=HORIZON), {"max_switches": 2}
    state = learner.init(KEY, learner.params(epsilon=1.0, **values))
    own = fixed_point.Sum(jnp.asarray(whole, INTEGER), jnp.asarray(part, INTEGER))
    state = State(state.private._replace(expert_loss=own), state.public._replace(played=jnp.ones((), INTEGER)))
    query = asked(_svt_lazy, learner, values, state, [1.0, 0.5, 0.25], monkeypatch)
    assert query == (whole + 1) * fixed_point.UNITS + part


@pytest.mark.parametrize("windows", ["dyadic", "all"])
@pytest.mark.parametrize(("whole", "part"), STARTS)
def test_a_question_moves_by_what_the_window_does(windows, whole, part, monkeypatch):
    """Lets expert 1 lead by far since a window's beginning, at which sums were large, too."""
    learner = experts.svt_restarts(num_experts=EXPERTS, horizon=300, windows=windows)
    state = learner.init(KEY, learner.params(epsilon=1.0))
    regrets = jax.tree.map(lambda word: jnp.asarray([0, word, 0], INTEGER), fixed_point.Sum(whole, part))
    public = state.public._replace(
        round=jnp.asarray(8, INTEGER), selection=state.public.selection._replace(round=jnp.asarray(8, INTEGER))
    )
    state = State(state.private._replace(regrets=regrets), public)
    queries = [
        asked(_svt_restarts, learner, {}, state, losses, monkeypatch)
        for losses in ([0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.75, 0.0, 1.0])
    ]
    assert queries[1] - queries[0] == 2 * fixed_point.UNITS
    assert queries[1] - queries[2] == fixed_point.UNITS // 4
    assert 0 < (whole - 1) * fixed_point.UNITS + part - queries[0] < 2**10 * fixed_point.UNITS  # slack is public


def test_a_rounded_question_is_noticed(monkeypatch):
    """Sums are read as floats of 32 bits where windows are compared."""

    def rounded(sums):
        floats = fixed_point.to_float(sums, jnp.float32).astype(jnp.float64)
        return jnp.round(floats * fixed_point.UNITS)

    monkeypatch.setattr(_restart_windows, "wide", rounded)
    with pytest.raises(AssertionError):
        test_a_question_moves_by_what_the_window_does("all", *STARTS[2], monkeypatch)
