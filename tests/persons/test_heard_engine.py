"""The engine over heard rounds has the bits of single rounds; outcomes of other rounds are added at once."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, dueling, experts, per_person
from jaxdp.core import Visits, add_visits
from jaxdp.simulation.run.engines import choose_engine
from tests.lazily import Lazy

MEANS = [0.2, 0.3, 0.8]
RANDOM = Visits.random(people=150, each=6, seed=1)
SESSIONS = Visits.sessions(people=40, sessions=4, length=5)
MATRIX = [[0.5, 0.9, 0.9], [0.1, 0.5, 0.6], [0.1, 0.4, 0.5]]
REGRETS = ["pseudo_regret", "borda_regret", "best_duels"]
LANES = 8
CASES: Any = Lazy(
    {
        "ucb_central": lambda: (per_person(bandits.ucb_central(num_arms=3)), bandit(RANDOM), {}),
        "ucb in sessions": lambda: (per_person(bandits.ucb(num_arms=3), reports=7), bandit(SESSIONS), {}),
        "taste": lambda: (per_person(bandits.tsallis_inf(num_arms=3), reports=2), bandit(RANDOM, taste=0.2), {}),
        "drift": lambda: (
            per_person(bandits.ucb(num_arms=3), reports=2),
            add_visits(bandits.drifting_bandit(MEANS, drift=0.2), RANDOM),
            {},
        ),
        "elimination": lambda: (
            per_person(bandits.successive_elimination_central(num_arms=3)),
            bandit(Visits.random(people=1500, each=2), means=[0.2, 0.78, 0.8]),
            {},
        ),
        "clipped": lambda: (
            per_person(bandits.ucb(num_arms=3, rewards="bounded")),
            bandits.gaussian_bandit(MEANS, visits=RANDOM),
            {"outcomes": ["pseudo_regret"]},
        ),
        "duels": lambda: (
            per_person(dueling.rucb(num_arms=3)),
            dueling.matrix_duels(MATRIX, visits=RANDOM),
            {"outcomes": REGRETS},
        ),
        "stopping": lambda: (
            per_person(bandits.pairwise_elimination(num_arms=3), reports=5),
            bandit(Visits.random(people=400, each=12), means=[0.05, 0.1, 0.95]),
            {},
        ),
    }
)


def bandit(visits, means=MEANS, **options):
    return bandits.bernoulli_bandit(means, visits=visits, **options)


def record(snapshot):
    """Records all releases, the latest action, and the rounds by both counts."""
    kept = snapshot.public, snapshot.action, snapshot.round, snapshot.world.round
    return jnp.concatenate([jnp.ravel(leaf).astype(jnp.result_type(float)) for leaf in jax.tree.leaves(kept)])


def run_of(learner, world, horizon=None, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* hears ", category=UserWarning)
        return jaxdp.simulator(learner, world, horizon or len(world.visits), **options)


def play_lanes(learner, world, engine, epsilon=4.0, **options):
    """Returns the outputs of all lanes at checkpoints within and at the ends of unheard stretches."""
    visits, horizon = world.visits, len(world.visits) - 7
    unheard = np.flatnonzero(visits.nth[:horizon] >= learner.reports)
    middle = unheard[len(unheard) // 2 :][:3]
    looks = sorted({1, 2, int(unheard[0]), *(int(round_) + 1 for round_ in middle), horizon - 1, horizon})
    run = run_of(learner, world, horizon, engine=engine, checkpoints=looks, record={"seen": record}, **options)
    keys = jaxdp.lane_keys(jax.random.key(3), LANES)
    return jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=epsilon))


def assert_same(first, second):
    assert set(first) == set(second)
    for name, values in first.items():
        if jnp.issubdtype(values.dtype, jnp.floating) and name != "seen":
            np.testing.assert_allclose(values, second[name], rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(values, second[name], err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_heard_rounds_are_rounds(name):
    learner, world, options = CASES[name]
    rounds, heard = (play_lanes(learner, world, engine, **options) for engine in ("rounds", "heard"))
    assert_same(rounds, heard)
    assert len(np.unique(np.asarray(rounds["seen"]).reshape(LANES, -1), axis=0)) > 1  # lanes differ
    if name == "stopping":
        assert 0 < np.asarray(rounds["censored"]).mean() < 1 or len(np.unique(rounds["rounds"])) > 2


@pytest.mark.parametrize("wrong", ["length", "action", "clock"])
def test_wrong_weights_are_noticed(wrong):
    learner, world, _ = CASES["ucb_central"]
    rounds, unheard = play_lanes(learner, world, "rounds"), world.unheard
    if wrong == "length":
        world = world._replace(unheard=lambda params, state, action, rounds: unheard(params, state, action, rounds + 1))
    elif wrong == "action":
        learner = learner._replace(best_action=lambda params, public: jnp.int32(0))
    else:  # the world's clock stands still, so that later rounds have other visitors
        world = world._replace(
            unheard=lambda params, state, action, rounds: (state, unheard(params, state, action, rounds)[1])
        )
    with pytest.raises(AssertionError):
        assert_same(rounds, play_lanes(learner, world, "heard"))


def test_a_sweep_of_heard_rounds_is_a_sweep_of_rounds():
    learner, world, _ = CASES["ucb_central"]
    first, second = (
        jaxdp.sweep(
            run_of(learner, world, engine=engine, checkpoints=5),
            axes={"epsilon": [0.5, 4.0], "gap": [0.1, 0.2]},
            num_seeds=8,
            tile_size=16,
            key=jax.random.key(0),
        )
        for engine in ("rounds", "heard")
    )
    np.testing.assert_array_equal(first.best_arm_plays, second.best_arm_plays)
    np.testing.assert_allclose(first.pseudo_regret, second.pseudo_regret, rtol=1e-6)


def test_auto_is_heard_where_it_is_exact():
    learner, world, _ = CASES["ucb_central"]
    duelist, duels, _ = CASES["duels"]
    assert choose_engine(learner, world, "auto") == "heard"
    assert choose_engine(learner, world, "auto", hears_all=True) == "rounds"
    assert choose_engine(learner, jaxdp.delayed(world, 1), "auto") == "rounds"
    assert choose_engine(learner._replace(best_action=None), world, "auto") == "rounds"
    assert choose_engine(duelist, duels, "auto") == "rounds"
    assert choose_engine(duelist, duels, "auto", outcomes=["left_wins"]) == "rounds"
    assert choose_engine(duelist, duels, "auto", outcomes=REGRETS) == "heard"


def test_auto_plays_by_rounds_where_an_outcome_is_drawn():
    """Checks that the names in `Environment.drawn` are those that `unheard` leaves out."""
    for name, outcomes, drawn in (("duels", None, "left_wins"), ("clipped", ["pseudo_regret", "clipped"], "clipped")):
        learner, world, _ = CASES[name]
        run = run_of(learner, world, outcomes=outcomes)
        outputs = jax.eval_shape(run, jax.random.key(0), run.params(epsilon=1.0))
        assert drawn in outputs
        assert "engine='rounds'" in repr(run)


@pytest.mark.parametrize(("engine", "count"), [("heard", 150), ("auto", 150), ("rounds", 900)])
def test_unheard_rounds_are_not_played(engine, count):
    learner, world, _ = CASES["ucb_central"]
    calls = []

    def feedback(*arguments):
        jax.debug.callback(lambda: calls.append(1))
        return world.feedback(*arguments)

    run = run_of(learner, world._replace(feedback=feedback), engine=engine, checkpoints=9)
    jax.block_until_ready(jax.jit(run)(jax.random.key(0), run.params(epsilon=1.0)))
    jax.effects_barrier()
    assert len(calls) == count


def bytes_per_lane(people, engine):
    """Returns temporary bytes of one more lane, which do not count the tables of visits."""
    world = bandit(Visits.random(people=people, each=1))
    run = run_of(per_person(bandits.ucb_central(num_arms=3)), world, engine=engine)

    def temporary_bytes(lanes):
        lowered = jax.jit(jax.vmap(run, (0, None))).lower(
            jaxdp.lane_keys(jax.random.key(0), lanes), run.params(epsilon=1.0)
        )
        analysis: Any = lowered.compile().memory_analysis()
        return analysis.temp_size_in_bytes

    return (temporary_bytes(128) - temporary_bytes(64)) / 64


@pytest.mark.parametrize("engine", ["rounds", "heard"])
def test_memory_of_a_lane_does_not_grow_with_rounds_or_people(engine):
    short, long = (bytes_per_lane(people, engine) for people in (10**3, 10**6))
    assert 0 < long <= short


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (bandits.ucb(num_arms=3), bandit(RANDOM)), "got 'heard' without a learner by per_person"),
        (
            lambda: (per_person(bandits.ucb(num_arms=3), rest="act"), bandit(RANDOM)),
            r"without the rest that plays one action, per_person\(rest='best'\)",
        ),
        (
            lambda: (per_person(bandits.ucb(num_arms=3)), bandit(RANDOM)._replace(unheard=None)),
            "without the environment's unheard",
        ),
        (
            lambda: (
                per_person(experts.hedge(num_experts=3, horizon=150), rest="act"),
                experts.stochastic_losses(MEANS, visits=RANDOM),
            ),
            "per_person.*, the environment's unheard",
        ),
    ],
)
def test_other_pairs_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        run_of(*make(), engine="heard")


@pytest.mark.parametrize(("outcomes", "drawn"), [(None, "left_wins"), (["left_wins", "pseudo_regret"], "left_wins")])
def test_outcomes_that_are_drawn_in_each_round_are_refused(outcomes, drawn):
    learner, world, _ = CASES["duels"]
    run = run_of(learner, world, engine="heard", outcomes=outcomes)
    with pytest.raises(ValueError, match=f"outcomes must be a list of some of .*pseudo_regret.* got {drawn}"):
        run(jax.random.key(0), run.params(epsilon=1.0))


def test_clipped_rounds_cannot_be_counted():
    learner, world, _ = CASES["clipped"]
    run = run_of(learner, world, engine="heard", outcomes=["clipped"])
    with pytest.raises(ValueError, match=r"some of best_arm_plays, pseudo_regret .* clipped"):
        run(jax.random.key(0), run.params(epsilon=1.0))
