"""Elimination by optimal designs: its duels, its promise, designs in the program and outside, and errors."""

import functools
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import g_optimal_elimination, linear_duels
from jaxdp.dueling._g_optimal_elimination import _g_optimal_elimination as module
from jaxdp.dueling._g_optimal_elimination import bulk
from jaxdp.dueling._g_optimal_elimination.phase_designs import Design, first_design, most_pairs

KEY = partial(jax.random.key, 31)
INTEGER, FLOAT = jnp.result_type(int), jnp.result_type(float)
LARGEST = int(np.iinfo(INTEGER).max)


def arms_on_sphere(num_arms, dim, seed=0):
    """Returns features and weights of norm 1."""
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(num_arms + 1, dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[1:], points[0]


# ---- duels -----------------------------------------------------------------------------------------------------------
def largest_in_metric(points, active, duels, plays):
    """Returns the largest z.V^-1.z over the active arms' differences z, by the pseudo-inverse of V, the sum of z
    z^T.
    """
    arms = points[active]
    pairs = points[duels[:, 0]] - points[duels[:, 1]]
    inverse = np.linalg.pinv((pairs * plays[:, None]).T @ pairs, rcond=1e-9, hermitian=True)
    every = (arms[:, None] - arms[None]).reshape(-1, points.shape[1])
    return np.einsum("ki,ij,kj->k", every, inverse, every).max(), np.linalg.matrix_rank(arms - arms[0], tol=1e-5)


def radius_of(phase, metric, rank, support, *, epsilon, failure_prob=0.05, radius=1.0):
    """Returns the largest error of a difference of utilities: both parts."""
    slope = math.exp(-2 * radius) / (1 + math.exp(-2 * radius)) ** 2
    x = math.log(4 * phase**2 / failure_prob)
    noise = support + math.sqrt(2 * support * x) + x
    return (math.sqrt(rank) + math.sqrt(2 * x)) / 2 * math.sqrt(metric) / slope + metric * noise / (slope * epsilon)


FEATURES, WEIGHTS = arms_on_sphere(9, 3)
FLAT = np.concatenate([FEATURES[:5] * [1, 1, 0] * 0.9, FEATURES[5:] * 0.3])  # the first five in a plane
LEARNER = functools.cache(lambda: g_optimal_elimination(features=FLAT))


@pytest.mark.parametrize("epsilon", [0.2, math.inf])
def test_duels_are_as_many_as_the_radius_needs(epsilon):
    """Checks designs of the host and of the program, for any active arms: the margin is met, and not by much more."""
    params = jax.tree.map(jnp.asarray, LEARNER().params(epsilon=epsilon))
    starts = [(np.ones(9, bool), 1)]
    starts += [(np.arange(9) < 5, 2), (np.arange(9) < 2, 3), (np.arange(9) % 2 == 0, 2), (np.arange(9) > 5, 4)]
    for active, phase in starts:
        public = LEARNER().init(KEY(), params).public
        if phase > 1:  # the end of the phase before, in which no arm is dropped
            public = public._replace(active=jnp.asarray(active), phase=jnp.int32(phase - 2))
            public = next_phase(params, public)
        plays, duels = np.asarray(public.plays), np.asarray(public.duels)
        assert np.asarray(public.active).tolist() == active.tolist()
        assert active[duels[plays > 0]].all()
        assert len(np.unique(duels[plays > 0], axis=0)) == (plays > 0).sum()
        metric, rank = largest_in_metric(FLAT, active, duels, plays.astype(float))
        assert int(public.rank) == rank
        found = radius_of(phase, metric, rank, (plays > 0).sum(), epsilon=epsilon)
        assert 0.9 * 2.0**-phase < found <= 2.0**-phase * (1 + 1e-4)
        too_few = radius_of(phase, metric * 1.05, rank, (plays > 0).sum(), epsilon=epsilon)
        assert too_few > 2.0**-phase or phase > 1


@jax.jit
def next_phase(params, public):
    """Returns the phase after one in which every duel was even, so that no arm is dropped."""
    public = public._replace(played=public.plays.sum(dtype=INTEGER) - 1)
    state = jaxdp.core.State(module.Private(public.plays // 2), public)
    quiet = jax.tree.map(lambda leaf: leaf, params)
    action = LEARNER().act(KEY(), params, public, None)
    return LEARNER().update(KEY(), quiet, state, (action, jnp.int32(0))).public


def test_blocks_play_the_duels_of_their_rounds():
    """Plays a whole phase, in which the duels change."""
    learner, blocks = LEARNER(), LEARNER().blocks[0]
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, confidence_multiplier=0.01))
    public = learner.init(KEY(), params).public
    length, start = int(public.plays.sum()), 5
    keys = jax.random.split(KEY(), length)
    plan = blocks.plan(keys, params, public._replace(played=jnp.asarray(start, INTEGER)), None, jnp.asarray(length))
    assert int(plan.length) == length - start
    played = jax.vmap(lambda round_: learner.act(keys[0], params, public._replace(played=round_), None))
    duels = np.asarray(played(jnp.arange(start, length, dtype=INTEGER)))
    np.testing.assert_array_equal(plan.actions[: plan.length], duels)
    assert len(np.unique(duels, axis=0)) > 1


def test_counts_are_those_of_the_rounds():
    """Checks any phase, position and limit; a lone arm duels with itself."""
    counts = LEARNER().counts
    assert counts is not None
    params = jax.tree.map(jnp.asarray, LEARNER().params(epsilon=1.0, confidence_multiplier=1e-3))
    start = LEARNER().init(KEY(), params).public
    lone = start._replace(
        active=jnp.arange(9) == 4,
        duels=jnp.full_like(start.duels, 4),
        plays=jnp.zeros_like(start.plays).at[0].set(LARGEST),
    )
    plan = jax.jit(lambda public, limit: counts.plan(KEY(), params, public, limit).counts)
    act = jax.jit(jax.vmap(lambda public: LEARNER().act(KEY(), params, public, None)))
    rng, length = np.random.default_rng(0), int(start.plays.sum())
    for public, end in ((start, length), (lone, LARGEST)):
        for _ in range(6):
            played, limit = int(rng.integers(min(end, length))), int(rng.integers(1, 200))
            at = public._replace(played=jnp.asarray(played, INTEGER))
            found = np.asarray(plan(at, jnp.asarray(limit, INTEGER))).reshape(9, 9)
            rounds = played + jnp.arange(200, dtype=INTEGER)
            every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (200, *leaf.shape)), at)._replace(played=rounds)
            expected = np.zeros((9, 9), int)
            np.add.at(expected, tuple(np.asarray(act(every))[: min(limit, end - played)].T), 1)
            assert found.tolist() == expected.tolist()
    late = lone._replace(played=jnp.asarray(LARGEST - 3, INTEGER))
    assert int(plan(late, jnp.asarray(100, INTEGER)).sum()) == 3


def test_counts_add_the_wins_of_the_pairs_that_were_played():
    """Checks the sums of the third and fourth round of a phase with three slots, the last of them not yet played."""

    class Public(NamedTuple):
        duels: jax.Array
        plays: jax.Array
        played: jax.Array

    public = Public(jnp.asarray([[0, 1], [1, 2], [0, 2]]), jnp.asarray([3, 2, 4]), jnp.asarray(2))
    algorithm = bulk.Algorithm(
        num_arms=3,
        slots=lambda public, rounds: rounds,
        length=lambda public: public.plays.sum(),
        wins_so_far=lambda state: jnp.asarray([2, 0, 0]),
        advance=lambda key, params, public, wins, rounds: jaxdp.core.State(wins, rounds),
    )
    state, plan = jaxdp.core.State((), public), jaxdp.core.CountPlan(jnp.zeros(9, int))
    played = jnp.asarray([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).ravel()
    won = jnp.asarray([[0, 1, 5], [0, 0, 3], [0, 0, 0]]).ravel()  # at most one win a duel
    update = jax.jit(bulk.counts(algorithm).update_counts)
    wins, rounds = update(KEY(), (), state, plan, (played, won))
    assert (wins.tolist(), int(rounds)) == ([3, 1, 0], 2)


@pytest.mark.parametrize("constants", ["tight", "paper"])
def test_a_phase_that_is_too_long_to_end(constants):
    """Checks that its duels are the largest integer and none is negative; published constants have no pair twice."""
    paper = {"constants": "paper", "horizon": 1000} if constants == "paper" else {}
    learner = g_optimal_elimination(features=FEATURES, **paper)
    few, endless = (
        learner.init(
            KEY(), jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, confidence_multiplier=multiplier))
        ).public
        for multiplier in (1e-12, 1e30)
    )
    assert int(endless.plays.sum(dtype=INTEGER)) == LARGEST
    assert (endless.plays >= 0).all()
    played = np.asarray(few.duels)[np.asarray(few.plays) > 0]
    assert len(np.unique(played, axis=0)) == len(played) == int((learner.params(epsilon=1.0).first.weights > 0).sum())
    assert few.plays.max() == (2 if constants == "paper" else 1)


def test_a_phase_ends_if_all_its_duels_are_counted():
    """Checks a phase in which one pair has more than its part of the range of integers."""

    def plays(multiplier):
        params = LEARNER().params(epsilon=math.inf, confidence_multiplier=multiplier)
        return np.asarray(LEARNER().init(KEY(), params).public.plays)

    each = LARGEST / float(plays(1.0).sum(dtype=INTEGER))
    long, endless = plays(0.9 * each), plays(1.2 * each)
    assert long.max() > LARGEST // len(long)
    assert long.sum(dtype=float) == pytest.approx(0.9 * LARGEST, rel=1e-2)
    assert endless.sum(dtype=INTEGER) == LARGEST


def test_arms_that_differ_by_less_than_programs_tell_apart_are_the_end():
    """Checks a subnormal difference, which compiled programs take for 0: the arms left play on.

    No design has a pair.
    """
    tiny = float(np.finfo(FLOAT).smallest_normal) / 100
    learner = g_optimal_elimination(features=[[1.0], [tiny], [0.0]])
    params = learner.params(epsilon=math.inf, confidence_multiplier=1e-2)
    public = learner.init(KEY(), params).public
    state = jaxdp.core.State(
        module.Private(jnp.zeros_like(public.plays)), public._replace(played=public.plays.sum(dtype=INTEGER) - 1)
    )
    lost = jnp.int32(public.duels[0, 0] != 0)  # by the first arm, whichever side it is on
    state = state._replace(private=module.Private(jnp.where(lost == 1, public.plays, 0)))
    after = learner.update(KEY(), params, state, (public.duels[0], lost)).public
    assert after.active.tolist() == [False, True, True]
    assert int(after.plays.sum(dtype=INTEGER)) == LARGEST


def test_slots_without_weight_are_not_played():
    """Checks also pairs with more duels than floats count."""
    public = LEARNER().init(KEY(), LEARNER().params(epsilon=1.0, radius=22.0 if np.float32 == FLOAT else 180.0)).public
    weights = np.asarray(LEARNER().params(epsilon=1.0).first.weights)
    assert (weights == 0).any()
    assert ((np.asarray(public.plays) > 0) == (weights > 0)).all()
    assert int(public.plays.sum(dtype=INTEGER)) == LARGEST


def test_published_numbers_of_duels():
    """Checks the first phase at epsilon = 1/2: both parts of a design's pairs, each rounded up."""
    learner = g_optimal_elimination(features=FEATURES, constants="paper", horizon=1000)
    params = learner.params(epsilon=0.5, failure_prob=0.1, confidence_multiplier=1e-4)
    d, slope, tail = 3, math.exp(-4) / (1 + math.exp(-4)) ** 2, math.log(1000 / 0.1)
    phase = 16 * d**5 * math.log(d * 1000 / 0.1) / (slope * 0.5 * 0.5) + 64 * d * tail / (slope * 0.5) ** 2
    explored = 2 * (d**1.5 + d * math.sqrt(math.log(10))) ** 2 + 16 * d / slope**4 * (d**2 + tail)
    weights = params.first.weights.astype(float)
    expected = np.ceil(1e-4 * phase * weights) + np.ceil(1e-4 * explored * weights)
    public = learner.init(KEY(), jax.tree.map(jnp.asarray, params)).public
    np.testing.assert_allclose(public.plays[: len(weights)], expected, rtol=1e-5, atol=2)
    assert (public.plays[len(weights) :] == 0).all()


# ---- its promise -----------------------------------------------------------------------------------------------------
def elimination(learner, weights, horizon=2**31 - 1, features=FEATURES, looks=24):
    """Builds a function of the number of lanes and values; it returns active arms [lanes, looks, num_arms] and answers.

    Answers are [lanes, looks]. The looks are evenly spaced in their logarithm.
    """
    duels = linear_duels(features, weights)
    marks = np.unique(np.geomspace(1000, horizon, looks).astype(int)).tolist()
    run = jaxdp.simulator(
        learner,
        duels,
        horizon,
        checkpoints=marks,
        engine="counts",
        record={"active": lambda snapshot: snapshot.public.active},
    )
    compiled = jax.jit(jax.vmap(run, (0, None)))

    def play(lanes, **values):
        found = compiled(jax.random.split(KEY(), lanes), run.params(**values))
        return np.asarray(found["active"]), np.asarray(found["correct"])

    return play


def check_kept(lanes):
    """Checks the values of the proof, and so few duels that the best arm is dropped too often."""
    best = int((FEATURES @ WEIGHTS).argmax())
    play = elimination(g_optimal_elimination(features=FEATURES), WEIGHTS)
    active, correct = play(lanes, epsilon=0.5, failure_prob=0.1)
    assert active[:, :, best].all(axis=1).mean() >= 0.9
    assert correct[:, -1].mean() >= 0.9
    assert active[:, -1].sum(axis=1).max() < 9
    bold, _ = play(lanes, epsilon=0.5, failure_prob=0.1, confidence_multiplier=1e-4)
    assert bold[:, -1, best].mean() < 0.9


def test_the_best_arm_is_kept():
    check_kept(50)


def test_the_best_arm_is_kept_in_many_runs():
    check_kept(10_000)


def host_design(known, arms, active, gap):
    """Calls `next_design` back from the program."""
    del gap
    num_slots = most_pairs(*arms.shape)

    def design(arms, active):
        members = np.flatnonzero(active)
        if active.tobytes() not in known:
            zero = jnp.zeros((), FLOAT)
            found = Design(
                pairs=np.zeros((num_slots, 2), np.int32),
                weights=np.zeros(num_slots, FLOAT),
                value=zero,
                rank=np.int32(0),
            )
            if len(members) > 1:
                made = first_design(np.asarray(arms, np.float64)[members])
                spare = num_slots - len(made.weights)
                found = Design(
                    pairs=members[np.pad(made.pairs, ((0, spare), (0, 0)))].astype(np.int32),
                    weights=np.pad(made.weights, (0, spare)),
                    value=made.value,
                    rank=made.rank,
                )
            known[active.tobytes()] = jax.tree.map(np.asarray, found)
        made = known[active.tobytes()]
        return made.pairs, made.weights.astype(FLOAT), made.value.astype(FLOAT), made.rank.astype(np.int32)

    shapes = [((num_slots, 2), np.int32), ((num_slots,), FLOAT), ((), FLOAT), ((), np.int32)]
    shapes = tuple(jax.ShapeDtypeStruct(*each) for each in shapes)
    pairs, weights, value, rank = jax.pure_callback(design, shapes, arms, active, vmap_method="sequential")
    return Design(pairs=pairs, weights=weights, value=value, rank=rank)


def check_same_arms(monkeypatch, lanes, num_arms, dim):
    """Checks that designs of program and host leave the same arms after every phase that decides by a margin."""
    features, weights = arms_on_sphere(num_arms, dim, seed=5)
    found = []
    for replaced in (False, True):
        if replaced:
            monkeypatch.setattr(module, "next_design", partial(host_design, {}))
        learner = g_optimal_elimination(features=features)
        active, _ = elimination(learner, weights, features=features, looks=2)(lanes, epsilon=1.0)
        found.append(active[:, -1])
    assert (found[0].sum(axis=1) < num_arms).all()
    assert (found[0] == found[1]).all(axis=1).mean() >= 0.99


def test_the_same_arms_are_dropped_as_by_designs_of_the_host(monkeypatch):
    check_same_arms(monkeypatch, 40, 12, 2)


@pytest.mark.parametrize(("num_arms", "dim"), [(20, 2), (30, 5)])
def test_the_same_arms_are_dropped_in_many_runs(monkeypatch, num_arms, dim):
    check_same_arms(monkeypatch, 1000, num_arms, dim)


def test_arms_without_features():
    """Uses rows of an identity matrix: as many dimensions as arms, and their differences span one less."""
    learner = g_optimal_elimination(features=np.eye(3))
    run = jaxdp.simulator(learner, linear_duels(np.eye(3), [0.9, -0.2, 0.1]), 10**7, engine="counts")
    outputs = jax.jit(run)(KEY(), run.params(epsilon=1.0))
    assert outputs["correct"][-1]
    assert int(outputs["best_duels"][-1]) > 9_000_000
    assert learner.params(epsilon=1.0).first.rank == 2


def test_published_numbers_take_thousands_of_times_as_many_duels():
    """Counts duels to commitment, up to 10^12 rounds in 64 bits."""
    features, weights = arms_on_sphere(20, 2, seed=1)
    with jax.enable_x64(True):
        rounds = {}
        for constants in ("tight", "paper"):
            paper = {"constants": "paper", "horizon": 10**12} if constants == "paper" else {}
            learner = g_optimal_elimination(features=features, **paper)
            run = jaxdp.simulator(
                learner, linear_duels(features, weights), 10**12, checkpoints=[10**12], engine="counts"
            )
            outputs = jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 50), run.params(epsilon=1.0))
            assert np.asarray(outputs["correct"]).all()
            rounds[constants] = 10**12 - np.asarray(outputs["best_duels"]).mean()
        assert rounds["tight"] < 10**8
        assert rounds["paper"] > 1000 * rounds["tight"]


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_errors():
    bad: list[tuple[dict[str, Any], str]] = [
        ({"features": [[0.1], [math.nan]]}, r"features must be finite, got nan at index \(1, 0\)"),
        ({"features": [[0.1], [1.1]]}, "features must have rows of norm at most 1, got 1.1 of arm 1"),
        ({"features": np.eye(3)[:2]}, "features must have at most as many columns as rows, got dim 3 for 2 arms"),
        ({"features": [[0.1], [0.1]]}, "features must have different rows, got the same row for arms 0 and 1"),
        ({"constants": "loose"}, "constants must be one of tight, paper, got 'loose'"),
        ({"constants": "paper"}, "horizon must be given for 'paper' and left out otherwise, got None for 'paper'"),
        ({"horizon": 10}, "horizon must be given for 'paper' and left out otherwise, got 10 for 'tight'"),
        ({"horizon": 1, "constants": "paper"}, "horizon must be an integer >= 2, got 1"),
        ({"design_gap": math.nan}, "design_gap must be > 0, got nan"),
    ]
    for options, said in bad:
        with pytest.raises(ValueError, match=said):
            g_optimal_elimination(**{"features": FEATURES, **options})
    for name in ("epsilon", "confidence_multiplier", "radius", "failure_prob"):
        for value in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match=rf"{name} must be .*got {value}"):
                LEARNER().params(**{"epsilon": 1.0, name: value})
    with pytest.raises(ValueError, match=r"failure_prob must be in \(0, 1\), got 1.0"):
        LEARNER().params(epsilon=1.0, failure_prob=1.0)
    with pytest.raises(ValueError, match="radius must be smaller: the link's slope underflows float"):
        LEARNER().params(epsilon=1.0, radius=1000.0)
