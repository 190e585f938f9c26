"""Schedules of visits, and environments with people."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import jaxdp
from jaxdp import bandits, dueling, experts
from jaxdp.core import UserLevel, Visit, Visits, add_visits

MEANS = [0.2, 0.8]


def earlier(person):
    """Counts by a loop how often the person of each round came before."""
    seen, counts = collections.Counter(), []
    for one in person:
        counts.append(seen[one])
        seen[one] += 1
    return counts


@pytest.mark.parametrize(
    "visits",
    [
        Visits.random(people=7, each=5, seed=3),
        Visits.sessions(people=5, sessions=3, length=4),
        Visits.from_ids(np.random.default_rng(0).integers(-9, 9, 200)),
    ],
    ids=["random", "sessions", "from_ids"],
)
def test_a_table_counts_the_visits_of_each_person(visits):
    assert visits.nth.tolist() == earlier(visits.person.tolist())
    assert sorted(set(visits.person.tolist())) == list(range(visits.num_people))
    assert visits.most == max(collections.Counter(visits.person.tolist()).values())
    for reports in (1, 2, 100):
        for rounds in (1, 17, None):
            heard = sum(nth < reports for nth in visits.nth[:rounds].tolist())
            assert visits.num_heard(reports, rounds) == heard
    assert not visits.person.flags.writeable
    assert not visits.nth.flags.writeable


def test_everyone_comes_equally_often_in_an_order_of_the_seed():
    visits = [Visits.random(people=50, each=4, seed=seed) for seed in (0, 0, 1)]
    assert all((np.bincount(one.person) == 4).all() for one in visits)
    assert (visits[0].person == visits[1].person).all()
    assert (visits[0].person != visits[2].person).any()
    sessions = Visits.sessions(people=50, sessions=2, length=3).person.reshape(-1, 3)
    assert (sessions == sessions[:, :1]).all()
    assert (np.bincount(sessions[:, 0]) == 2).all()


def test_texts_and_integers_name_people_in_the_order_of_first_visits():
    assert Visits.from_ids(["b", "a", "b", "c"]).person.tolist() == [0, 1, 0, 2]
    assert Visits.from_ids(np.array([9, 3, 9, 5], np.uint8)).person.tolist() == [0, 1, 0, 2]
    for dtype in (None, "string", object, "category"):
        assert Visits.from_ids(pd.Series(["b", "a", "b", "c"], dtype=dtype)).person.tolist() == [0, 1, 0, 2]
    assert Visits.from_ids(np.array(["b", "a", "b"], np.dtypes.StringDType())).person.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Visits.random(people=0, each=1), "people must be"),
        (lambda: Visits.random(people=1, each=0), "each must be an integer >= 1"),
        (lambda: Visits.random(people=2**20, each=2**11), "must have fewer than 2"),
        (lambda: Visits.random(people=1, each=1, seed=-1), "seed must be"),
        (lambda: Visits.sessions(people=1, sessions=1, length=0), "length must be"),
        (lambda: Visits.from_ids([0.5, 1.0]), "ids must be ids that are all text or all integers, got float"),
        (lambda: Visits.from_ids([]), "ids must be a vector"),
        (lambda: Visits.from_ids(pd.Series(["a", None])), "ids must be ids that are all text or all integers"),
        (lambda: Visits.from_ids(["a", 1]), "ids must be ids that are all text or all integers, got integer, text"),
        (lambda: Visits.random(people=2, each=2).num_heard(0), "reports must be"),
        (lambda: Visits.random(people=2, each=2).num_heard(1, 5), "rounds must be"),
        (
            lambda: bandits.bernoulli_bandit(MEANS, visits=[0, 1]),  # pyright: ignore[reportArgumentType]
            "visits must be a jaxdp.Visits, got list",
        ),
        (lambda: bandits.bernoulli_bandit(MEANS, taste=0.1), "taste must be 0 without visits, got 0.1"),
        (lambda: bandits.bernoulli_bandit(MEANS, visits=Visits.from_ids([0]), taste=-1.0), "taste must be >= 0"),
        (
            lambda: add_visits(bandits.bernoulli_bandit(MEANS, visits=Visits.from_ids([0])), Visits.from_ids([0])),
            "visits must be of an environment with an interface and no contexts",
        ),
    ],
)
def test_wrong_schedules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_world_shows_its_schedule_and_answers_as_without_people():
    visits = Visits.random(people=3, each=2, seed=4)
    plain, visited = bandits.bernoulli_bandit(MEANS), bandits.bernoulli_bandit(MEANS, visits=visits)
    params, plain_params = visited.params(gap=0.5), plain.params(gap=0.5)
    assert visited.context is not None
    assert visited.interface is not None
    world = visited.init(jax.random.key(0), params)
    for round_ in range(6):
        key = jax.random.key(round_)
        context = visited.context(key, params, world)
        assert isinstance(context, Visit)
        assert [int(x) for x in context] == [visits.person[round_], visits.nth[round_]]
        world, reward, outcome = visited.feedback(key, params, world, jnp.int32(1))
        _, same_reward, same_outcome = plain.feedback(key, plain_params, (), jnp.int32(1))
        assert (reward, outcome) == (same_reward, same_outcome)
    assert visited.horizon == 6
    assert visited.interface.context[0].high == 2
    assert visited.interface.context[1].high == 1


def test_duels_and_losses_take_visits_too():
    visits = Visits.random(people=3, each=2)
    worlds = [
        dueling.matrix_duels([[0.5, 0.7], [0.3, 0.5]], visits=visits),
        dueling.utility_duels([0.0, 1.0], visits=visits),
        experts.stochastic_losses(MEANS, visits=visits),
        bandits.gaussian_bandit(MEANS, visits=visits, taste=0.1),
        bandits.bounded_bandit(MEANS, visits=visits, taste=0.1),
        bandits.heavy_tailed_bandit(MEANS, visits=visits, taste=0.1),
    ]
    for world in worlds:
        params = world.params()
        state = world.init(jax.random.key(0), params)
        assert world.interface is not None
        action = jnp.zeros(world.interface.action.shape, jnp.int32)
        state, _, outcome = world.feedback(jax.random.key(1), params, state, action)
        assert int(state.round) == 1
        assert bool(jnp.isfinite(outcome["pseudo_regret"]))
        assert world.visits is visits
        assert world.user_level == UserLevel("person", 2)


def shares_of_people(taste, key):
    """Returns each person's share of rewards from the first arm in 400 visits."""
    visits = Visits.sessions(people=200, sessions=1, length=400)
    world = bandits.bernoulli_bandit([0.5, 0.4], visits=visits, taste=taste)
    params = world.params()

    def step(state, key):
        state, reward, outcome = world.feedback(key, params, state, jnp.int32(0))
        return state, (reward, outcome["pseudo_regret"])

    keys = jax.random.split(jax.random.fold_in(key, 7), len(visits))
    _, (rewards, regrets) = jax.jit(lambda: jax.lax.scan(step, world.init(key, params), keys))()
    assert float(jnp.abs(regrets).max()) == 0  # by the means before taste
    return np.asarray(rewards).reshape(200, 400).mean(1)[np.argsort(visits.person[::400])]


def test_a_taste_belongs_to_a_person():
    first, second = (shares_of_people(0.1, key) for key in (jax.random.key(0), jax.random.key(1)))
    noise = 0.5 / 20  # of a share
    spread = np.sqrt(0.1**2 + noise**2)
    error = 5 * spread / np.sqrt(2 * 200)
    assert abs(first.std() - spread) < error
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(200)  # each lane draws its own people
    plain = shares_of_people(0.0, jax.random.key(0))
    assert abs(plain.std() - spread) > error  # a world without taste fails


def test_visits_are_one_table_for_all_lanes():
    visits = Visits.random(people=3, each=2)
    world = bandits.bernoulli_bandit(MEANS, visits=visits)
    run = jaxdp.simulator(bandits.ucb(num_arms=2), world, 6)
    points = [run.params(epsilon=epsilon)["environment"] for epsilon in (0.5, 1.0)]
    assert points[0].person is points[1].person is visits.person


def test_whole_floats_are_numbers_of_visits():
    assert Visits.random(people=2.0, each=2.0, seed=1.0).is_same(Visits.random(people=2, each=2, seed=1))  # pyright: ignore[reportArgumentType]
