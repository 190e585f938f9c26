"""The loop over rounds against plain Python: outcomes, checkpoints, records, stopping times, keys and sums."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit, gaussian_bandit
from jaxdp.core import CountPlan
from jaxdp.experts import adaptive_losses, exponential_weights, loss_sequence
from jaxdp.simulation import log_spaced, simulator
from jaxdp.simulation.run.checkpoints import resolve
from jaxdp.simulation.run.rounds import root_keys, round_keys
from jaxdp.validation import check_horizon
from tests.lazily import Lazy
from tests.simulation.learners import linear_bandit, stay_or_switch, successive_elimination
from tests.simulation.worlds import key_reader, linear_rewards, rotting_rewards

X64 = jax.config.read("jax_enable_x64")
HORIZON = 90
LARGEST = 2**31 - 1
KEY = partial(jax.random.key, 3)
LOSSES = np.random.default_rng(0).uniform(size=(HORIZON, 5))

PAIRS = Lazy(
    {
        "binary": lambda: (explore_then_commit(num_arms=3, explore_rounds=30), bernoulli_bandit([0.2, 0.5, 0.6]), 0.5),
        "bounded": lambda: (
            explore_then_commit(num_arms=2, explore_rounds=20, rewards="bounded"),
            gaussian_bandit([0.1, 0.4]),
            2.0,
        ),
        "experts": lambda: (exponential_weights(num_experts=5, horizon=HORIZON), loss_sequence(LOSSES), 8.0),
        "adaptive": lambda: (
            exponential_weights(num_experts=3, horizon=HORIZON),
            adaptive_losses([0.3] * 3, penalty=0.5),
            8.0,
        ),
        "contextual": lambda: (linear_bandit(num_arms=4, dim=3), linear_rewards([0.7, -0.2, 0.4], num_arms=4), 20.0),
        "stopping": lambda: (
            successive_elimination(num_arms=3, first_plays=4),
            bernoulli_bandit([0.02, 0.99, 0.05]),
            math.inf,
        ),
        "memory": lambda: (stay_or_switch(num_arms=3), rotting_rewards([0.8, 0.6, 0.7]), 2.0),
    }
)


def reference(learner, environment, values, key, horizon):
    """Plays every round by hand: the observations after each, as NumPy values.

    Outcomes are added up in float64 and int.
    """
    mine, theirs = jax.tree.map(jnp.asarray, (learner.params(**values), environment.params()))
    act, privatize, update = jax.jit(learner.act), jax.jit(learner.privatize), jax.jit(learner.update)
    feedback, hindsight = jax.jit(environment.feedback), jax.jit(environment.hindsight or (lambda params, world: {}))
    key_init, key_env, key_learner = jax.random.split(key, 3)
    roots_env, roots_learner = jax.random.split(key_env), jax.random.split(key_learner, 3)
    key_state, key_world = jax.random.split(key_init)
    state, world = learner.init(key_state, mine), environment.init(key_world, theirs)
    rounds, sums, stopped, action, last = [], {}, False, None, 0
    for t in range(horizon):
        if not stopped:
            key_context, key_feedback = (jax.random.fold_in(key, t) for key in roots_env)
            key_act, key_user, key_update = (jax.random.fold_in(key, t) for key in roots_learner)
            context = environment.context(key_context, theirs, world) if environment.context else None
            action = act(key_act, mine, state.public, context)
            world, answer, outcome = feedback(key_feedback, theirs, world, action)
            report = privatize(key_user, mine, state.public, context, action, answer)
            state = update(key_update, mine, state, report)
            sums = {name: sums.get(name, 0) + value.item() for name, value in outcome.items()}
            stopped = bool(learner.done(mine, state.public)) if learner.done else False
            last = t + 1
        seen = {**sums, **hindsight(theirs, world), "action": action, "sum": total(state.public)}
        rounds.append({name: np.asarray(value) for name, value in seen.items()})
    return rounds, last, not stopped


def total(public):
    """Returns a number that depends on all releases."""
    return sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(public))


RECORD = {"action": lambda snapshot: snapshot.action, "sum": lambda snapshot: total(snapshot.public)}


@pytest.mark.parametrize(
    "name",
    PAIRS,
)
def test_equals_a_loop_in_python(name):
    learner, environment, epsilon = PAIRS[name]
    looks = [1, 2, 7, 30, 31, 45, HORIZON]
    run = simulator(learner, environment, HORIZON, checkpoints=looks, record=RECORD, engine="rounds")
    outputs = dict(jax.jit(run)(KEY(), run.params(epsilon=epsilon)))
    expected, last, censored = reference(learner, environment, {"epsilon": epsilon}, KEY(), HORIZON)
    if learner.done:
        assert int(outputs.pop("rounds")) == last
        assert bool(outputs.pop("censored")) == censored
        assert last < HORIZON
    actions = [int(seen["action"]) for seen in expected]
    assert sum(one != other for one, other in itertools.pairwise(actions)) > 1  # else this would prove little
    assert set(outputs) == set(expected[0])
    for output, values in outputs.items():
        assert values.shape[0] == len(looks)
        found, wanted = np.asarray(values), np.stack([expected[look - 1][output] for look in looks])
        if np.issubdtype(found.dtype, np.floating):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=output)
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=output)
    assert run.coords == {"round": looks}
    dims = run.dims(outputs) if callable(run.dims) else run.dims
    assert all(names[0] == "round" for names in dims.values())


@pytest.mark.parametrize(
    ("name", "engine"),
    [("contextual", "rounds"), ("stopping", "auto"), ("memory", "auto")],
)
def test_results_do_not_depend_on_the_checkpoints(name, engine):
    learner, environment, epsilon = PAIRS[name]
    every = simulator(learner, environment, HORIZON, checkpoints=HORIZON, record=RECORD, engine=engine)
    params = every.params(epsilon=epsilon)
    full = jax.jit(every)(KEY(), params)
    assert every.coords["round"] == list(range(1, HORIZON + 1))
    for checkpoints in [None, [3, 17, 30]]:
        run = simulator(learner, environment, HORIZON, checkpoints=checkpoints, record=RECORD, engine=engine)
        outputs = jax.jit(run)(KEY(), params)
        looks = np.asarray(run.coords["round"])
        assert set(outputs) == set(full)
        for output, values in outputs.items():
            wanted = full[output] if output in ("rounds", "censored") else full[output][looks - 1]
            np.testing.assert_array_equal(values, wanted, err_msg=output)


def test_checkpoints():
    assert resolve(None, 1000) == [1000]
    assert resolve(4, 1000) == [250, 500, 750, 1000]
    assert resolve(3, 10) == [3, 6, 10]
    assert resolve(1, 7) == [7]
    assert resolve(99, 5) == [1, 2, 3, 4, 5]
    assert resolve([2, 5], 10) == [2, 5]
    assert resolve(np.array([2, 5]), 10) == [2, 5]  # pyright: ignore[reportArgumentType]
    assert resolve(jnp.array([2, 5]), 10) == [2, 5]  # pyright: ignore[reportArgumentType]
    assert resolve(range(1, 4), 10) == [1, 2, 3]
    assert all(type(look) is int for look in resolve(np.arange(1, 3), 5))  # pyright: ignore[reportArgumentType]
    assert resolve(log_spaced(4), 1000) == [1, 10, 100, 1000]
    assert resolve(log_spaced(1), 1000) == [1000]
    assert resolve(log_spaced(50), 10) == list(range(1, 11))
    for count, horizon in [(7, LARGEST), (30, 2**40 + 1), (1000, 12345)]:
        for looks in (resolve(log_spaced(count), horizon), resolve(count, horizon)):
            assert looks[-1] == horizon
            assert looks[0] >= 1
            assert all(later > earlier for earlier, later in itertools.pairwise(looks))
            assert len(looks) <= count


def test_sums_are_frozen_when_the_learner_stops():
    learner, environment, _ = PAIRS["stopping"]
    run = simulator(learner, environment, 150, checkpoints=150)
    runs = jax.jit(jax.vmap(run, in_axes=(0, None)))
    outputs = jax.device_get(runs(jax.random.split(KEY(), 20), run.params(epsilon=5.0)))
    assert 0 < outputs["censored"].sum() < 20
    for lane in range(20):
        last, regret = outputs["rounds"][lane], outputs["pseudo_regret"][lane]
        if outputs["censored"][lane]:
            assert last == 150
        else:
            assert 0 < last < 150
            assert (regret[last - 1 :] == regret[last - 1]).all()
        growing = np.diff(outputs["pseudo_regret"][lane][:last]) + np.diff(outputs["best_arm_plays"][lane][:last])
        assert (growing > 0).all()


def test_a_stopping_time_beyond_the_last_checkpoint():
    learner, environment, epsilon = PAIRS["stopping"]
    late = simulator(learner, environment, 400)
    early = simulator(learner, environment, 400, checkpoints=[5])
    params = late.params(epsilon=epsilon)
    expected, found = (jax.jit(run)(KEY(), params) for run in (late, early))
    assert expected["rounds"] == found["rounds"] > 5
    assert not found["censored"]
    assert found["best_arm_plays"].tolist() == [2]


def test_a_learner_that_never_stops_is_censored():
    learner = PAIRS["stopping"][0]._replace(done=lambda params, public: jnp.asarray(False))
    run = simulator(learner, PAIRS["stopping"][1], HORIZON)
    outputs = run(KEY(), run.params(epsilon=1.0))
    assert bool(outputs["censored"])
    assert int(outputs["rounds"]) == HORIZON


def test_full_information_does_not_depend_on_the_play():
    """Checks that the regret of always playing expert 2 is that expert's, from the same losses."""
    learner, environment, _ = PAIRS["experts"]
    always = learner._replace(act=lambda key, params, public, context: jnp.int32(2))
    run = simulator(always, environment, HORIZON, checkpoints=[10, HORIZON])
    outputs = run(KEY(), run.params(epsilon=1.0))
    total = LOSSES.cumsum(0)[[9, HORIZON - 1]]
    np.testing.assert_allclose(outputs["loss"], total[:, 2], rtol=1e-6)
    np.testing.assert_allclose(outputs["best_loss"], total.min(1), rtol=1e-6)
    np.testing.assert_allclose(outputs["regret"], total[:, 2] - total.min(1), rtol=1e-5, atol=1e-6)


def test_by_counts_records_get_no_action():
    learner, environment, _ = PAIRS["binary"]
    seen = []

    def best(snapshot):
        seen.append(snapshot.action)
        return snapshot.public.best_arm

    run = simulator(learner, environment, HORIZON, checkpoints=[29, 30], record={"best": best}, engine="counts")
    outputs = run(KEY(), run.params(epsilon=1.0))
    assert outputs["best"][0] == -1
    assert outputs["best"][1] >= 0
    assert set(seen) == {None}


# ---- horizons and keys -----------------------------------------------------------------------------------------------
def test_horizons_beyond_32_bits():
    learner, environment, _ = PAIRS["binary"]
    assert check_horizon(LARGEST) == LARGEST
    if not X64:
        for horizon in (LARGEST + 1, 2**36):
            with pytest.raises(ValueError, match=rf"horizon must be <= {LARGEST} .* got {horizon}; .*JAX_ENABLE_X64"):
                simulator(learner, environment, horizon)
        return
    horizon = 2**36 + 5
    run = simulator(learner, environment, horizon, engine="counts", checkpoints=[horizon // 2, horizon])
    outputs = jax.jit(run)(KEY(), run.params(epsilon=math.inf))
    assert outputs["best_arm_plays"].dtype == jnp.int64
    assert int(outputs["best_arm_plays"][1] - outputs["best_arm_plays"][0]) in (0, horizon - horizon // 2)


@pytest.mark.skipif(not X64, reason="such rounds need 64 bits")
def test_rounds_beyond_32_bits_have_their_own_keys():
    roots = root_keys(*jax.random.split(KEY()))

    def words(round_, horizon):
        keys = round_keys(roots, jnp.asarray(round_), horizon)
        return [tuple(jax.random.key_data(key).tolist()) for key in keys]

    rounds = [5, 5 + 2**32, 5 + 2**33]
    found = [words(round_, 2**40) for round_ in rounds]
    assert len({word for words_ in found for word in words_}) == 5 * len(rounds)
    assert words(5, 2**32) == words(5, 100)


def test_keys_of_a_round_differ():
    roots = root_keys(*jax.random.split(KEY()))
    found = [jax.random.key_data(key) for t in range(20) for key in round_keys(roots, jnp.asarray(t), 100)]
    assert len({tuple(words.tolist()) for words in found}) == len(found)


def test_every_learner_and_epsilon_meets_the_same_world():
    learners = [explore_then_commit(num_arms=2, explore_rounds=10), stay_or_switch(num_arms=2)]
    runs = [simulator(learner, key_reader(), 40, checkpoints=4) for learner in learners]
    draws = []
    for run in runs:
        for epsilon in (0.1, 1.0, math.inf):
            outputs = jax.jit(run)(KEY(), run.params(epsilon=epsilon))
            draws.append((outputs["draw"].tolist(), outputs["start"].tolist()))
    assert all(draw == draws[0] for draw in draws)
    other = runs[0](jax.random.key(4), runs[0].params(epsilon=1.0))
    assert other["draw"].tolist() != draws[0][0]
    assert other["start"].tolist() != draws[0][1]


# ---- compilation -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["binary", "contextual"])
def test_one_compilation_for_every_epsilon(name):
    learner, environment, _ = PAIRS[name]
    run = simulator(learner, environment, HORIZON, checkpoints=2)
    traces = []

    @jax.jit
    def traced(key, params):
        traces.append(None)
        return run(key, params)

    for epsilon in (0.5, 3, np.float32(7.0), math.inf):
        traced(KEY(), run.params(epsilon=epsilon))
    assert len(traces) == 1


@pytest.mark.parametrize("engine", ["rounds", "blocks", "counts"])
@pytest.mark.parametrize("name", ["binary", "stopping"])
def test_the_program_does_not_grow_with_the_horizon(name, engine):
    learner, environment, _ = PAIRS[name]

    def program(horizon, checkpoints):
        run = simulator(learner, environment, horizon, checkpoints=checkpoints, engine=engine)
        return len(jax.jit(run).lower(KEY(), run.params(epsilon=1.0)).as_text())

    small = program(10**3, 10)
    assert abs(program(10**9, 10) - small) < 1000  # digits
    assert program(10**3, 1) > 0.9 * small  # nor with the number of checkpoints


# ---- sweeps ----------------------------------------------------------------------------------------------------------
def test_a_sweep_labels_what_a_run_gives():
    learner, environment, _ = PAIRS["memory"]
    record = {"latest": lambda snapshot: snapshot.action}
    run = simulator(learner, environment, 30, checkpoints=[10, 30], record=record)
    results = jaxdp.sweep(lambda: run, axes={"epsilon": [1.0, math.inf]}, num_seeds=3, tile_size=3, key=KEY())
    assert results.plays.dims == ("epsilon", "seed", "round", "arm")
    assert results.latest.dims == ("epsilon", "seed", "round")
    assert results["round"].values.tolist() == [10, 30]
    outputs = run(jax.random.fold_in(KEY(), 2), run.params(epsilon=math.inf))
    lane = results.sel(epsilon=math.inf, seed=2)
    np.testing.assert_array_equal(lane.plays, outputs["plays"])
    np.testing.assert_array_equal(lane.reward, outputs["reward"])


def test_the_guarantee_is_the_learners():
    learner, environment, _ = PAIRS["binary"]
    run = simulator(learner, environment, 100)
    assert run.guarantee(epsilon=0.5) == {"learner": learner.guarantee(epsilon=0.5)}


def test_a_plan_by_counts_has_the_limit():
    """Looks cut plans: by counts too, the number of rounds at a checkpoint is the checkpoint."""
    learner, environment, _ = PAIRS["binary"]
    limits = []
    assert learner.counts is not None
    counts = learner.counts

    def plan(key, params, public, limit) -> CountPlan:
        limits.append(limit)
        return counts.plan(key, params, public, limit)

    watched = learner._replace(counts=counts._replace(plan=plan))
    record = {"rounds_played": lambda snapshot: snapshot.public.round}
    run = simulator(watched, environment, 100, checkpoints=[1, 13, 30, 31, 77], record=record, engine="counts")
    assert run(KEY(), run.params(epsilon=1.0))["rounds_played"].tolist() == [1, 13, 30, 31, 77]
    assert limits
