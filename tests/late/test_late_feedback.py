"""Late and batched feedback: bits without delay, an independent order of reports, audits and refusals."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, batched, delayed, dueling, experts
from jaxdp.bandits import contextual
from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms, guarantee_for
from jaxdp.core.params import pytree_dataclass, scalar_leaf
from jaxdp.mechanisms import laplace
from tests.late.by_queues import play_by_queues
from tests.persons.two_arms import audit

ROUNDS = 120
ARMS = bandits.bernoulli_bandit([0.3, 0.5, 0.8])
DUELS = dueling.matrix_duels([[0.5, 0.8, 0.9], [0.2, 0.5, 0.6], [0.1, 0.4, 0.5]])
LOSSES = experts.stochastic_losses([0.2, 0.5, 0.6])
CASES = {
    "ucb": (lambda: bandits.ucb(num_arms=3), ARMS),
    "ucb_central": (lambda: bandits.ucb_central(num_arms=3), ARMS),
    "tsallis_inf": (lambda: bandits.tsallis_inf(num_arms=3), ARMS),
    "explore_then_commit": (lambda: bandits.explore_then_commit(num_arms=3, explore_rounds=30), ARMS),
    "rucb": (lambda: dueling.rucb(num_arms=3), DUELS),
    "exponential_weights": (lambda: experts.exponential_weights(num_experts=3, horizon=ROUNDS), LOSSES),
}


def drawn_delays(longest=9):
    """Returns [ROUNDS] delays, by which reports overtake others, and several or none arrive in a round."""
    delays = np.random.default_rng(0).integers(longest + 1, size=ROUNDS)
    due = np.arange(ROUNDS) + delays
    assert (np.diff(due) < 0).any()
    assert {0, 1, 2} <= set(np.bincount(due))
    return delays


@pytest.mark.parametrize("name", CASES)
def test_without_delay_results_are_the_worlds_bits(name):
    make, world = CASES[name]
    worlds = world, delayed(world, 0), batched(world, 1), delayed(world, 1)
    runs = [jaxdp.simulator(make(), each, ROUNDS, checkpoints=7) for each in worlds]
    keys = jax.random.split(jax.random.key(0), 4)
    plain, *others, late = (jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=2.0)) for run in runs)
    for other in others:
        assert set(plain) == set(other)
        jax.tree.map(np.testing.assert_array_equal, plain, other)
    assert any((np.asarray(plain[key]) != np.asarray(late[key])).any() for key in plain)


@pytest.mark.parametrize("name", CASES)
def test_reports_are_heard_as_by_lists_of_reports(name):
    make, world = CASES[name]
    learner, delays, key = make(), drawn_delays(), jax.random.key(3)
    run = jaxdp.simulator(learner, delayed(world, delays), ROUNDS)
    by_round = run.by_round
    assert by_round is not None
    played = jax.jit(lambda key: by_round(key, run.params(epsilon=2.0), ROUNDS))(key)["events"]
    actions, public, heard = play_by_queues(learner, world, delays, key)
    assert played["action"].tolist() == actions
    last = jax.tree.map(lambda leaf: leaf[-1], played["public"])
    # What compensated sums leave over is itself a rounding error, of the size of one.
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), last.learner, public)
    assert (
        int(last.used.sum()) == len(heard) <= int(last.queued.sum()) == int((np.arange(ROUNDS) + delays < ROUNDS).sum())
    )
    assert played["public"].round.tolist() == list(range(1, ROUNDS + 1))


def test_hearing_reports_about_other_actions_differs():
    """Plants a learner that hears every report when it arrives."""
    learner, delays, key = bandits.ucb_central(num_arms=3), drawn_delays(), jax.random.key(3)
    right, wrong = (play_by_queues(learner, ARMS, delays, key, matches=matches)[0] for matches in (True, False))
    assert right != wrong


def test_a_batch_is_heard_after_its_last_round():
    run = jaxdp.simulator(bandits.ucb(num_arms=3), batched(ARMS, 50), ROUNDS)
    by_round = run.by_round
    assert by_round is not None
    params = run.params(epsilon=2.0)
    played = jax.jit(lambda key: by_round(key, params, ROUNDS))(jax.random.key(0))["events"]
    assert params["learner"].arrived[1:].tolist() == [0] * 49 + [50] * 50 + [100] * 21
    used = np.asarray(played["public"].used).sum(1)
    assert np.flatnonzero(np.diff(used, prepend=0)).tolist() == [49, 99]


def test_a_learner_that_stops_hears_nothing_more():
    world = delayed(bandits.bernoulli_bandit([0.0, 1.0]), 30)
    run = jaxdp.simulator(bandits.lil_ucb(num_arms=2), world, 3000)
    outputs = run(jax.random.key(0), run.params(epsilon=8.0))
    at_once = jaxdp.simulator(bandits.lil_ucb(num_arms=2), bandits.bernoulli_bandit([0.0, 1.0]), 3000)
    plain = at_once(jax.random.key(0), at_once.params(epsilon=8.0))
    assert not bool(outputs["censored"])
    assert int(plain["rounds"]) < int(outputs["rounds"]) <= int(plain["rounds"]) + 200
    assert bool(outputs["correct_at_stop"])


def test_a_sweep_that_is_interrupted_resumes_with_the_same_bits(tmp_path):
    def build():
        return jaxdp.simulator(bandits.ucb_central(num_arms=3), delayed(ARMS, drawn_delays()), ROUNDS)

    options = {"axes": {"epsilon": [0.5, 2.0]}, "num_seeds": 64, "key": jax.random.key(0), "tile_size": 16}
    whole = jaxdp.sweep(build(), **options)

    def stop(progress):
        if progress.lanes >= 64:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        jaxdp.sweep(build(), **options, store=tmp_path / "late", progress=stop)
    resumed = jaxdp.sweep(build(), **options, store=tmp_path / "late")
    np.testing.assert_array_equal(whole.pseudo_regret, resumed.pseudo_regret)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: delayed(ARMS, lambda reward: reward),
            "delays must be public numbers, got a function: .* fixed window",
        ),
        (lambda: delayed(ARMS, 1.5), "delays must be an integer"),
        (lambda: delayed(ARMS, [1, -1]), "delays must be in"),
        (lambda: delayed(delayed(ARMS, 1), 1), "world must have feedback without delays"),
        (lambda: delayed(bandits.ucb(num_arms=2), 1), "world must be an Environment"),  # pyright: ignore[reportArgumentType]
        (lambda: batched(ARMS, 0), "size must be"),
        (lambda: jaxdp.simulator(bandits.ucb(num_arms=3), delayed(ARMS, [1, 2]), 3), "horizon must be <="),
        (
            lambda: jaxdp.simulator(bandits.ucb(num_arms=3), delayed(ARMS, 1), 3, engine="blocks"),
            "engine must be one that both sides have",
        ),
        (
            lambda: jaxdp.simulator(contextual.linear_ucb(num_arms=3, dim=2, horizon=12), delayed(ARMS, 1), 12),
            "read no contexts for late feedback, got linear_ucb",
        ),
        (lambda: audit(bandits.ucb(num_arms=2), 8, delays=[0, 1]), "delays must be 8 integers"),
        (lambda: audit(bandits.ucb(num_arms=2), 2, delays=[0, 2**40]), r"delays must be 2 integers in \[0, 2\^20\]"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_claims_of_other_trust_models_are_refused():
    joint = bandits.ucb(num_arms=3)._replace(
        guarantee=lambda *, epsilon: Guarantee.pure(epsilon, trust_model="joint", privacy_unit="a", argument="b")
    )
    run = jaxdp.simulator(joint, delayed(ARMS, 1), 9)
    for function in (run.params, run.guarantee):
        with pytest.raises(ValueError, match="learner must claim local or central privacy for late feedback"):
            function(epsilon=1.0)


DELAYS = [0, 2, 1, 3, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "learner",
    [
        bandits.explore_then_commit(num_arms=2, explore_rounds=4),
        bandits.ucb_central(num_arms=2),
        bandits.ucb(num_arms=2),
    ],
    ids=["explore_then_commit", "ucb_central", "ucb"],
)
def test_audits_of_late_feedback_pass(learner):
    result = audit(learner, len(DELAYS), num_neighbours=32, delays=DELAYS)
    assert (result.faults, result.notes, result.verdict) == ((), (), "consistent")
    assert result.spent == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(("mistake", "spent"), [("none", 1.0), ("again", 2.0), ("both", 2.0)])
def test_audits_flag_a_phase_that_is_released_again_and_a_reward_in_two_phases(mistake, spent):
    result = audit(phase_sums(mistake), len(DELAYS), num_neighbours=32)
    assert result.spent == pytest.approx(spent, rel=1e-5)
    assert result.verdict == ("consistent" if spent == 1.0 else "violated")


def test_lateness_costs_little_where_rounds_are_many():
    """Compares the mean regrets of delays of 0 and 50 rounds: at most one more repetition of each arm."""
    runs = [jaxdp.simulator(bandits.ucb(num_arms=3), delayed(ARMS, delay), 2000) for delay in (0, 50)]
    keys = jax.random.split(jax.random.key(1), 64)
    at_once, late = (
        np.asarray(jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=4.0))["pseudo_regret"])[:, -1]
        for run in runs
    )
    error = np.sqrt((at_once.var() + late.var()) / 64)
    assert late.mean() - at_once.mean() < 50 * (0.5 + 0.3) + 5 * error


def test_the_longest_queue_fits():
    """Checks that reports of an action that arrived and were not heard are never more than are stored."""
    delays = np.random.default_rng(1).integers(4, size=ROUNDS)
    run = jaxdp.simulator(bandits.thompson(num_arms=3), delayed(ARMS, delays), ROUNDS)
    by_round = run.by_round
    assert by_round is not None
    lanes = jax.jit(jax.vmap(lambda key: by_round(key, run.params(epsilon=1.0), ROUNDS)))
    public = lanes(jax.random.split(jax.random.key(0), 64))["events"]["public"]
    waiting = np.asarray(public.queued - public.used)
    assert waiting.min() >= 0
    assert 1 < waiting.max() <= delays.max() + 1


class Phase(NamedTuple):
    """The current phase's total and the previous phase's."""

    now: jax.Array
    before: jax.Array


@pytree_dataclass
class Budget:
    """Traced values: [] float, epsilon."""

    epsilon: jax.Array


def phase_sums(mistake: str) -> Learner:
    """Releases the sum of every two rounds. The reward of round 1 comes in round 2, after its phase.

    Args:
        mistake: "none": it enters the phase of its arrival; "again": it enters its own phase, which is released again;
            "both": it enters its own phase when it is played, and the phase of its arrival.
    """

    def params(*, epsilon: float) -> Budget:
        return Budget(epsilon=scalar_leaf("epsilon", epsilon))  # pyright: ignore[reportArgumentType]

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(epsilon, trust_model="central", privacy_unit="one round's reward", argument="phase sums")

    def init(key, params) -> State:
        zero, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.result_type(float))
        return State((Phase(zero, zero), zero), (zero, nothing, nothing))

    def update(key, params, state: State, report) -> State:
        (phase, held), (round_, one, two), reward = *state, report
        if mistake == "both":
            now = phase.now + reward + jnp.where(round_ == 2, held, 0)
        else:
            now = phase.now + jnp.where(round_ == 1, 0, reward)
            now = now + (jnp.where(round_ == 2, held, 0) if mistake == "none" else 0)
        held = jnp.where(round_ == 1, reward, held)
        one = jax.lax.cond(round_ % 2 == 1, lambda: laplace(key, now, params.epsilon, l1_sensitivity=1.0), lambda: one)
        if mistake == "again":
            late = phase.before + held
            again = jax.random.fold_in(key, 7)
            two = jax.lax.cond(
                round_ == 2, lambda: laplace(again, late, params.epsilon, l1_sensitivity=1.0), lambda: two
            )
        before = jnp.where(round_ % 2 == 1, now, phase.before)
        now = jnp.where(round_ % 2 == 1, 0, now)
        return State((Phase(now, before), held), (round_ + 1, one, two))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=lambda key, params, public, context: jnp.int32(0),
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
        interface=Interface(arms(2), Space("integers", (), 0, 1)),
    )
