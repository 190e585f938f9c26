"""The design in a compiled program, lane by lane, against the one on the host."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.design import MaskedDesign, g_optimal_differences, masked_difference_design
from jaxdp.design import _masked as masked

X64 = jax.config.read("jax_enable_x64")
DTYPE, GAP = (jnp.float64, 1e-3) if X64 else (jnp.float32, 1e-2)
NUM_ARMS, DIM = 12, 3
SINGLE = jax.jit(functools.partial(masked_difference_design, gap=GAP))


def lanes() -> tuple[np.ndarray, np.ndarray]:
    """Returns arms [lanes, NUM_ARMS, DIM] and which are active: many, few, on a plane or line, repeated, all equal."""
    random = np.random.default_rng(1)
    arms = random.uniform(-1, 1, size=(40, NUM_ARMS, DIM))
    active = random.random((40, NUM_ARMS)) < np.linspace(0.2, 1, 40)[:, None]
    arms[:8, :, 2] = arms[:8, :, 0] - 0.5 * arms[:8, :, 1]
    arms[8:12, :, 1:] = 0.25
    arms[12:16, 6:] = arms[12:16, :6]
    arms[16:20] = 0.75 + 1e-3 * np.round(arms[16:20], 2)  # survivors, close to each other
    active[8:28, :3] = True
    active[35, 0], arms[35, 0] = False, 3.0  # far out, and eliminated
    active[36] = False
    active[37] = np.arange(NUM_ARMS) == 5
    active[38] = np.arange(NUM_ARMS) % 6 == 4  # two arms
    active[39], arms[39] = True, 0.5
    return np.asarray(arms, DTYPE), active


@functools.cache
def designs() -> MaskedDesign:
    arms, active = lanes()
    one = functools.partial(masked_difference_design, gap=GAP)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(arms, active))


def pairs_of(arms: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return arms[pairs[:, 0]] - arms[pairs[:, 1]]


def in_span(arms: np.ndarray) -> np.ndarray:
    """Returns orthonormal coordinates [num_arms, rank], in float64."""
    left, values, _ = np.linalg.svd(arms - arms[0], full_matrices=False)
    return left[:, values > 1e-5 * values[0]]


def value_of(arms: np.ndarray, support: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Returns (max |z|^2_{V^-1} over all differences, ln det V), in coordinates of the span."""
    moments = (support * weights[:, None]).T @ support
    everything = (arms[:, None] - arms[None]).reshape(-1, arms.shape[1])
    largest = np.einsum("ij,jk,ik->i", everything, np.linalg.inv(moments), everything).max()
    return float(largest), float(np.linalg.slogdet(moments)[1])


def check_lane(arms: np.ndarray, active: np.ndarray, found: MaskedDesign) -> None:
    used = found.weights > 0
    assert np.all(found.weights >= 0)
    assert found.weights.sum() == pytest.approx(1, abs=1e-5)
    pairs, weights = found.pairs[used], found.weights[used].astype(float)
    assert np.all(active[pairs])
    assert np.all(pairs[:, 0] > pairs[:, 1])
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    places = np.zeros((len(arms), int(found.rank)))
    places[active] = in_span(arms[active].astype(float))
    value, log_det = value_of(places[active], pairs_of(places, np.asarray(pairs)), np.asarray(weights))
    rank = int(found.rank)
    assert value == pytest.approx(float(found.value), rel=1e-3)
    assert value <= rank * (1 + GAP) * (1 + 1e-6)
    host = g_optimal_differences(places[active], gap=1e-6)
    own = np.flatnonzero(active)
    assert host.rank == rank
    best = value_of(places[active], pairs_of(places, own[host.pairs]), host.weights)[1]
    assert best - rank * np.log1p(GAP) - 1e-6 <= log_det <= best + 1e-5


def test_designs_are_those_of_the_host():
    arms, active = lanes()
    found, seen = designs(), set()
    for lane in range(len(arms)):
        here = jax.tree.map(lambda leaf, lane=lane: leaf[lane], found)
        distinct = len(np.unique(arms[lane][active[lane]], axis=0))
        if distinct < 2:
            assert (here.rank, here.value) == (0, 0)
            assert np.all(here.weights == 0)
            assert np.all(here.pairs < NUM_ARMS)
        else:
            check_lane(arms[lane], active[lane], here)
        seen.add(int(here.rank))
    assert seen == {0, 1, 2, 3}


def test_wrong_designs_fail_the_same_check():
    arms, active = lanes()
    lane = 35
    right = jax.tree.map(lambda leaf: leaf[lane], designs())
    check_lane(arms[lane], active[lane], right)
    uniform = np.where(right.weights > 0, 1 / np.sum(right.weights > 0), 0)
    all_arms = np.ones(NUM_ARMS, bool)
    with pytest.raises(AssertionError):
        check_lane(arms[lane], active[lane], right._replace(weights=uniform))
    with pytest.raises(AssertionError):  # of other arms than those that are left
        check_lane(arms[lane], all_arms, right)


def test_one_lane_is_as_many():
    arms, active = lanes()
    for lane in (0, 30, 36):
        single = SINGLE(arms[lane], active[lane])
        assert int(single.rank) == designs().rank[lane]
        np.testing.assert_allclose(single.value, designs().value[lane], rtol=GAP)


@pytest.mark.parametrize("wrong", ["no steps", "none joins"])
def test_wrong_steps_are_not_certified(wrong, monkeypatch):
    """Computes V^-1 again at every look, so that wrong steps cannot certify themselves."""
    arms, active = lanes()
    assert SINGLE(arms[34], active[34]).value <= 3 * (1 + GAP)
    if wrong == "no steps":
        monkeypatch.setattr(masked, "_take_step", lambda slots, size, gap: slots)
    else:
        monkeypatch.setattr(masked, "_add_pairs", lambda look, coordinates, active, bound: look.slots)
    run = jax.jit(lambda arms, active: masked_difference_design(arms, active, max_steps=512, gap=GAP))
    assert not run(arms[34], active[34]).value <= 3 * (1 + GAP)


def test_wrong_whitening_is_found(monkeypatch):
    """Plants lengths in coordinates in which V is not the identity."""
    arms, active = lanes()
    check_lane(arms[34], active[34], jax.tree.map(np.asarray, SINGLE(arms[34], active[34])))
    right = masked._inverse
    monkeypatch.setattr(masked, "_inverse", lambda matrix: jnp.diag(jnp.diagonal(right(matrix))))
    run = jax.jit(lambda arms, active: masked_difference_design(arms, active, max_steps=512, gap=GAP))
    found = jax.tree.map(np.asarray, run(arms[34], active[34]))
    with pytest.raises(AssertionError):
        check_lane(arms[34], active[34], found)


def test_arms_that_are_not_finite():
    arms, _ = lanes()
    arms[30, 2, 1] = np.nan
    assert np.isnan(SINGLE(arms[30], np.ones(NUM_ARMS, bool)).value)
    without = SINGLE(arms[30], np.arange(NUM_ARMS) != 2)  # an arm that is out is not read
    assert without.value <= 3 * (1 + GAP)
    assert np.isfinite(without.weights).all()


def test_differences_of_the_largest_arms_do_not_overflow():
    largest = float(jnp.finfo(DTYPE).max)
    arms = np.asarray([[1, 0, 0], [-1, 1, 0], [0, 0, 1], [0.5, -1, -1]] * 3, DTYPE)
    found, plain = SINGLE(arms * DTYPE(largest), np.ones(12, bool)), SINGLE(arms, np.ones(12, bool))
    assert int(found.rank) == int(plain.rank) == 3
    np.testing.assert_array_equal(found.weights, plain.weights)
    assert found.value == plain.value


def test_one_hot_arms_need_every_pair():
    """Checks that all pairs have equal weight at the optimum; rank 19 of 20 dimensions, 190 pairs in 209 slots."""
    found = jax.jit(functools.partial(masked_difference_design, gap=GAP))(jnp.eye(20, dtype=DTYPE), jnp.ones(20, bool))
    assert found.rank == 19
    assert found.value <= 19 * (1 + GAP)
    assert np.sum(np.asarray(found.weights) > 0) >= 190


def test_200_arms_in_10_dimensions():
    arms = np.asarray(np.random.default_rng(0).normal(size=(200, 10)), DTYPE)
    found = jax.jit(functools.partial(masked_difference_design, gap=GAP))(arms, np.ones(200, bool))
    assert found.value <= 10 * (1 + GAP)
    used = np.asarray(found.weights) > 0
    places = in_span(arms.astype(float))
    support = pairs_of(places, np.asarray(found.pairs)[used])
    assert value_of(places, support, np.asarray(found.weights)[used].astype(float))[0] <= 10 * (1 + GAP) * 1.001


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 3), {}, r"at least two arms and active \[num_arms\], got the shapes \(1, 3\) and \(1,\)"),
        ((4,), {}, r"got the shapes \(4,\)"),
        ((4, 2), {"num_slots": 1}, "num_slots must be an integer >= 2, got 1"),
        ((4, 2), {"max_steps": 0}, "max_steps must be an integer >= 1, got 0"),
        ((4, 2), {"gap": np.nan}, "gap must be > 0, got nan"),
    ],
)
def test_bad_arguments(shape, options, message):
    with pytest.raises(ValueError, match=message):
        masked_difference_design(jnp.zeros(shape), jnp.ones(shape[:1], bool), **options)


def test_a_pair_is_in_one_slot():
    """Checks pairs without weight, too, whichever dimensions are lost: no step can give weight to a pair twice."""
    for pairs in designs().pairs:
        different = pairs[pairs[:, 0] != pairs[:, 1]]
        assert len(np.unique(different, axis=0)) == len(different)
