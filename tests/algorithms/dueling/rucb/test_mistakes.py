"""Mistakes of RUCB by blocks are flagged, and their correct twins are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData, audit, feedback_of_pair, grey_box, learner_attack
from jaxdp.core import State
from jaxdp.dueling import _pair_blocks, rucb
from jaxdp.registry import LEARNERS

VALUES = {"epsilon": 1.0}
RIGHT = rucb(num_arms=2, release="blocks")


def users(rounds, changed):
    """Makes users of two arms; the first arm wins always, or all except once."""
    always = np.tile(np.triu(np.ones((2, 2), np.int32)), (rounds, 1, 1))
    once = always.copy()
    once[changed] = 1 - once[changed]
    return UserData(always), UserData(once)


def released_twice(key, params, state, report):
    """Releases a block's total with noise, and again at the next duel: the mean of both."""
    once, again = (RIGHT.update(each, params, state, report) for each in jax.random.split(key))
    lead = (once.public.released.lead + again.public.released.lead) / 2
    return once._replace(public=once.public._replace(released=once.public.released._replace(lead=lead)))


def no_noise_at_first(key, params, state, report):
    """Releases a single outcome as it is: noise starts with blocks of two."""
    after = RIGHT.update(key, params, state, report)
    _, bare = _pair_blocks.count_duel(
        key, jnp.full_like(params.epsilon, jnp.inf), state.private, state.public.released, report
    )
    is_first = after.public.released.duels[0, 1] == 1
    lead = jnp.where(is_first, bare.lead, after.public.released.lead)
    return after._replace(public=after.public._replace(released=after.public.released._replace(lead=lead)))


def counted_on(key, params, state, report):
    """Keeps counting wins after a release, so that each total repeats the earlier blocks."""
    private, history = state.private
    after = RIGHT.update(key, params, State(private, state.public), report)
    before, now = state.public.released, after.public.released
    share = (now.weight - before.weight) / jnp.maximum(now.duels // 2, 1).astype(now.weight.dtype)
    lead = now.lead + 2 * share * history
    history = history + jnp.where(share > 0, after.private.wins, 0).astype(history.dtype)
    return State((after.private, history), after.public._replace(released=now._replace(lead=lead)))


def init_counted_on(key, params):
    state = RIGHT.init(key, params)
    return State((state.private, jnp.zeros((2, 2))), state.public)


MISTAKES = {  # the learner, rounds, and the user with the changed outcome
    "a block released twice": (RIGHT._replace(update=released_twice), 1, 0),
    "no noise at the first block": (RIGHT._replace(update=no_noise_at_first), 1, 0),
    "a later block released twice": (RIGHT._replace(update=released_twice), 4, 2),
    "wins counted on": (RIGHT._replace(init=init_counted_on, update=counted_on), 2, 0),
}


def verdict_on(learner, rounds, changed):
    attack = learner_attack(learner, VALUES, users(rounds, changed), answer=feedback_of_pair)
    return audit(jax.random.key(0), attack, trials=20_000).verdict


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_flagged(name):
    assert verdict_on(*MISTAKES[name]) == "violated"


@pytest.mark.parametrize(("rounds", "changed"), [(1, 0), (4, 2), (2, 0)])
def test_their_correct_twin_is_not(rounds, changed):
    assert verdict_on(RIGHT, rounds, changed) == "consistent"


def test_the_grey_box_finds_what_a_block_released_twice_costs():
    entry = LEARNERS["rucb_blocks"]
    for update, spent, verdict in ((RIGHT.update, 1.0, "consistent"), (released_twice, 2.0, "violated")):
        found = grey_box(
            jax.random.key(0),
            RIGHT._replace(update=update),
            VALUES,
            entry.make_user,
            rounds=4,
            answer=feedback_of_pair,
            num_bases=2,
            num_neighbours=64,
        )
        assert (found.verdict, found.spent) == (verdict, pytest.approx(spent, rel=1e-4))
