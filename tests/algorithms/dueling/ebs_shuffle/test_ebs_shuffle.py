"""Phased elimination in the shuffle model: its batches, the server's view, its promise, and errors."""

import dataclasses
import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import State
from jaxdp.dueling import ebs_local, ebs_phased, ebs_shuffle, matrix_duels, utility_duels
from jaxdp.dueling._shuffled_batches import local_budget, smallest_batches
from jaxdp.mechanisms import shuffle_delta, shuffle_epsilon_bound, shuffle_local_epsilon

KEY = partial(jax.random.key, 83)
INTEGER = jnp.result_type(int)
LARGEST = jnp.iinfo(INTEGER).max
DELTA = 1e-6
TINY = {"epsilon": 1.0, "delta": 1e-2, "failure_prob": 0.1, "confidence_multiplier": 0.07}  # a batch of twelve


def bias(local_epsilon):
    """Returns c = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / np.tanh(np.asarray(local_epsilon, np.float64) / 2)


# ---- batches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("epsilon", "found", "local", "central"), [(0.5, 395, 3447, 428), (1.0, 300, 969, 334)])
def test_the_first_batch_of_eight_arms(epsilon, found, local, central):
    """Checks the least number of duels, which is below those with the users' own noise or a curator's Laplace noise."""
    load = 8 * math.log(4 * 8 / 0.05) * 4
    assert smallest_batches(epsilon, DELTA, "tight", (load,)) == {load: found}
    radii = [math.sqrt(load / n) * bias(shuffle_local_epsilon(epsilon, DELTA, n)) for n in (found - 1, found)]
    assert radii[0] > 1 >= radii[1]
    assert math.ceil(load * bias(epsilon) ** 2) == local
    phased, shuffled = (
        learner(num_arms=8).params(epsilon=epsilon, **values).passes[0, 8]
        for learner, values in ((ebs_phased, {}), (ebs_shuffle, {"delta": DELTA}))
    )
    assert phased == math.ceil(central / 8)
    assert shuffled == math.ceil(found / 8) < phased


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("calibration", ["tight", "bound"])
def test_every_batch_is_private_and_large_enough(epsilon, calibration):
    if calibration == "bound" and epsilon > 1:
        return
    params = ebs_shuffle(num_arms=4, calibration=calibration).params(epsilon=epsilon, delta=1e-4, failure_prob=0.1)
    for phase, size in [(1, 2), (1, 4), (2, 3), (3, 4), (5, 2)]:
        users, local = int(params.passes[phase - 1, size]) * size, float(params.local_epsilon[phase - 1, size])
        assert epsilon * (1 - 1e-6) <= local <= max(8.0, epsilon)
        if users <= 10_000 and calibration == "tight":
            assert shuffle_delta(epsilon, local, users) <= 1e-4
            assert local == max(epsilon, 8.0) or shuffle_delta(epsilon, local * (1 + 1e-6), users) > 1e-4
        elif calibration == "tight":
            assert local == pytest.approx(local_budget(epsilon, 1e-4, users, "tight"), rel=1e-6)
        elif local > epsilon:
            assert shuffle_epsilon_bound(1e-4, local, users) <= epsilon * (1 + 1e-9)
        x, gap = math.log(4 * size * phase**2 / 0.1), 0.5**phase
        assert bias(local) * math.sqrt(x / (2 * users)) <= gap / 4 * (1 + 1e-6)
        margin = int(params.margins[phase - 1, size])
        assert margin == math.floor(users * gap / 2 / bias(local))
    assert (params.passes[-1] == LARGEST).all()  # never ends
    assert (params.local_epsilon[-1] <= epsilon).all()


def test_without_privacy():
    """Reports are outcomes, and only the confidence decides how many; tables of all epsilons have one form."""
    clear, some = (ebs_shuffle(num_arms=3).params(**{**TINY, "epsilon": epsilon}) for epsilon in (math.inf, 1.0))
    assert np.isinf(clear.local_epsilon).all()
    assert clear.passes[0, 3] == math.ceil(0.07 * math.ceil(32 * math.log(12 / 0.1)) / 3)
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), each) for each in (clear, some)]
    assert kinds[0] == kinds[1]


def test_batches_that_are_made_smaller_are_calibrated_as_they_are():
    learner = ebs_shuffle(num_arms=2)
    whole, half = (learner.params(**{**TINY, "confidence_multiplier": multiplier}) for multiplier in (1.0, 0.5))
    assert abs(2 * half.passes[0, 2] - whole.passes[0, 2]) <= 1
    users = 2 * int(half.passes[0, 2])
    assert half.local_epsilon[0, 2] < whole.local_epsilon[0, 2]
    assert half.local_epsilon[0, 2] == pytest.approx(shuffle_local_epsilon(1.0, 1e-2, users), rel=1e-6)


def test_the_closed_form_raises_where_its_condition_fails_and_the_exact_one_never():
    bound = ebs_shuffle(num_arms=2, calibration="bound")
    with pytest.raises(ValueError, match=r"epsilon must be <= log\(n / .* = 0.1875 .* n = 280 users, got 2.0"):
        bound.params(epsilon=2.0, delta=DELTA)
    assert bound.params(epsilon=1.0, delta=DELTA).passes[0, 2] > 300
    assert bound.params(epsilon=math.inf, delta=DELTA).passes[0, 2] < 100
    for epsilon, delta, multiplier in [(2.0, DELTA, 1e-3), (1e-3, 1e-12, 1e-4), (50.0, 1e-12, 1e-9)]:
        params = ebs_shuffle(num_arms=2).params(epsilon=epsilon, delta=delta, confidence_multiplier=multiplier)
        assert (params.local_epsilon[0] >= epsilon * (1 - 1e-6)).all()


def test_the_claim():
    claim = ebs_shuffle(num_arms=3).guarantee(**TINY)
    params = ebs_shuffle(num_arms=3).params(**TINY)
    users = params.passes * np.arange(4)
    ends = params.passes < LARGEST
    assert (claim.kind, claim.epsilon, claim.delta, claim.trust_model) == ("approximate", 1.0, 1e-2, "shuffle")
    assert claim.batch == users[ends].min() == 12
    assert claim.local_epsilon == params.local_epsilon.max() == 8.0
    assert "of 12 users or more" in claim.argument
    assert f"at {params.local_epsilon[ends].min():.6g} to 8:" in claim.argument
    assert params.local_epsilon[ends].min() > 1.0
    assert not ebs_shuffle(num_arms=3).guarantee(**{**TINY, "epsilon": math.inf}).is_private
    endless = ebs_shuffle(num_arms=2).guarantee(epsilon=1.0, delta=1e-2, confidence_multiplier=1e20)
    assert endless.local_epsilon == pytest.approx(1.0)


# ---- the release -----------------------------------------------------------------------------------------------------
LEARNER = functools.cache(lambda: ebs_shuffle(num_arms=2))


def at_the_last_round(wins, values):
    """Returns the state before a duel that the second arm, on the left, is reported to lose."""
    params = LEARNER().params(**values)
    rounds = int(params.passes[0, 2]) * 4
    state = LEARNER().init(KEY(), params)
    public = state.public._replace(played=jnp.asarray(rounds - 1, INTEGER))
    return params, rounds // 2, State(state.private._replace(wins=jnp.asarray(wins, INTEGER)), public)


def test_the_server_sees_the_numbers_of_ones():
    params, _, state = at_the_last_round([7, 4], TINY)
    report = jnp.array([1, 1], jnp.int32), jnp.int32(0)
    after = LEARNER().update(KEY(), params, state, report).public
    assert after.seen.tolist() == [7, 4]
    assert (int(after.phase), int(after.played)) == (1, 0)
    before = state.public.seen.tolist()
    earlier = State(state.private, state.public._replace(played=state.public.played - 1))
    assert LEARNER().update(KEY(), params, earlier, report).public.seen.tolist() == before == [0, 0]


@pytest.mark.parametrize("large", [0, 2**28])
def test_the_margin_decides(large):
    """Starts beyond 2^24, where a float32 count would move by 2, 4, ... or not at all."""
    params, _, _ = at_the_last_round([0, 0], TINY)
    edge = int(params.margins[0, 2])
    for lead, dropped in ((edge, 0), (edge + 1, 1)):
        params, _, state = at_the_last_round([large + lead, large], TINY)
        after = LEARNER().update(KEY(), params, state, (jnp.array([1, 1], jnp.int32), jnp.int32(0))).public
        assert after.active.tolist() == [True, not dropped]


def test_reports_are_as_random_as_the_phase_says():
    params = LEARNER().params(**TINY)
    state = LEARNER().init(KEY(), params)
    keys = jax.random.split(KEY(), 20_000)
    action = jnp.zeros(2, jnp.int32)
    for phase, local in ((0, 1.238362), (1, 2.267481)):
        public = state.public._replace(phase=jnp.int32(phase))
        report = jax.jit(
            jax.vmap(lambda key, public=public: LEARNER().privatize(key, params, public, None, action, jnp.int32(1))[1])
        )
        kept, expected = float(report(keys).mean()), 1 / (1 + math.exp(-local))
        assert abs(kept - expected) < 5 * math.sqrt(expected * (1 - expected) / len(keys))
        wrong = 1 / (1 + math.exp(-1.2 * local))
        assert abs(kept - wrong) > 5 * math.sqrt(expected * (1 - expected) / len(keys))


# ---- its promise -----------------------------------------------------------------------------------------------------
def test_the_best_arm_stays():
    """Checks failure_prob = 0.05; more daring constants do fail."""
    environment = utility_duels([0.6, 0.0, -0.5])
    run = jaxdp.simulator(
        ebs_shuffle(num_arms=3),
        environment,
        10**6,
        engine="counts",
        record={"a": lambda snapshot: snapshot.public.active},
    )
    go, points = jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, 0))), (1.0, 0.01)
    params = [run.params(epsilon=1.0, delta=1e-3, confidence_multiplier=multiplier) for multiplier in points]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)
    proved, daring = np.asarray(go(jax.random.split(KEY(), 200), stacked)["a"])[:, :, -1]
    allowed = 0.05 + 5 * math.sqrt(0.05 * 0.95 / 200)
    assert 1 - proved[:, 0].mean() <= allowed
    assert proved.sum(1).max() == 1  # all others are gone
    assert 1 - daring[:, 0].mean() > allowed


MATRIX = np.array([[0.5, 0.95], [0.05, 0.5]])


def duels_to_elimination(learner, engine, horizon, **values):
    """Returns the duels of a few lanes until each drops the worse arm; to a percent."""
    looks = np.unique(np.geomspace(20, horizon, 300).astype(int)).tolist()
    record = {"a": lambda snapshot: snapshot.public.active}
    run = jaxdp.simulator(learner, matrix_duels(MATRIX), horizon, engine=engine, checkpoints=looks, record=record)
    active = np.asarray(jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 8), run.params(**values))["a"])
    assert (active[:, -1] == [True, False]).all()
    return np.asarray(looks)[(active.sum(2) > 1).sum(1)]


def test_fewer_duels_than_by_users_own_noise():
    horizon = 20_000
    shuffle = duels_to_elimination(ebs_shuffle(num_arms=2), "counts", horizon, epsilon=0.5, delta=DELTA)
    local = duels_to_elimination(ebs_local(num_arms=2, horizon=horizon), "rounds", horizon, epsilon=0.5)
    assert shuffle.max() < 0.5 * local.min()


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ({"delta": math.nan}, r"delta must be in \(0, 1\), got nan"),
        ({"failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({"confidence_multiplier": 0.0}, "confidence_multiplier must be > 0, got 0.0"),
        ({"confidence_multiplier": math.inf}, "confidence_multiplier must be finite, got inf"),
    ],
)
def test_value_errors(changes, message):
    for function in (LEARNER().params, LEARNER().guarantee):
        with pytest.raises(ValueError, match=message):
            function(**{**TINY, **changes})


def test_factory_errors():
    with pytest.raises(ValueError, match="num_arms must be an integer >= 2, got 1"):
        ebs_shuffle(num_arms=1)
    with pytest.raises(ValueError, match="calibration must be one of tight, bound, got 'loose'"):
        ebs_shuffle(num_arms=2, calibration="loose")


def test_params_are_leaves():
    params = LEARNER().params(**TINY)
    assert {field.name for field in dataclasses.fields(params)} == {"passes", "local_epsilon", "margins"}
    assert all(leaf.shape == params.passes.shape for leaf in jax.tree.leaves(params))
