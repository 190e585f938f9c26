"""The attack on a shuffled batch: the right one is spent in full, and planted mistakes are flagged."""

import functools

import jax
import numpy as np
import pytest

from jaxdp.audit import Attack, audit, exact_delta, exact_epsilon, g_test
from jaxdp.registry import MECHANISMS
from jaxdp.testing import check_registered

NAME = "shuffled_randomized_response"
NAMES = ("keeps_the_order", "half_the_batch")
TRIALS = 100_000  # with 20,000, some keys miss half of a batch


def attack(entry, release=None):
    made = entry.make()
    return Attack(
        release or made.release, made.params(**entry.values), entry.make_neighbours(), made.guarantee(**entry.values)
    )


def distribution(entry, data):
    assert entry.distribution is not None
    return entry.distribution(entry.make().params(**entry.values), data)


@pytest.mark.parametrize("name", NAMES)
def test_planted_mistakes_are_flagged_and_their_twins_are_not(planted, name):
    sizes = {"num_users": 20}
    wrong, right = (
        audit(jax.random.key(0), attack(planted[each].sized(**sizes)), trials=TRIALS)
        for each in (name, f"{name}_right")
    )
    assert wrong.verdict == "violated", wrong
    assert right.verdict == "consistent", right
    check_registered(f"{name}_right")


@pytest.mark.parametrize("name", NAMES)
def test_at_the_sizes_of_the_command(planted, name):
    """Attacks also the single reports of half a batch, which the server sees in place of their numbers of ones."""
    wrong = planted[name]
    releases = [wrong.make().release, *(functools.partial(each, parts=2) for each in wrong.others.values())]
    for release in releases:
        assert audit(jax.random.key(0), attack(wrong, release)).verdict == "violated"


def test_the_distribution_spends_the_claim_exactly():
    entry = MECHANISMS[NAME]
    made = entry.make()
    claim = made.guarantee(**entry.values)
    first, second = (distribution(entry, data) for data in entry.make_neighbours())
    assert 0.999 < exact_epsilon(first, second, claim.delta) <= claim.epsilon
    assert 0.999 * claim.delta < exact_delta(first, second, claim.epsilon) <= claim.delta


@pytest.mark.parametrize("way", ["release", "reports"])
def test_all_ways_to_release_follow_the_distribution(way):
    entry = MECHANISMS[NAME]
    made = entry.make()
    params = made.params(**entry.values)
    zero, one = entry.make_neighbours()
    release = made.release if way == "release" else entry.others[way]
    keys = jax.random.split(jax.random.key(1), 20_000)
    seen = np.asarray(jax.vmap(release, (0, None, None))(keys, params, jax.numpy.asarray(one)))
    counts = seen.reshape(len(keys), -1).sum(axis=1).tolist()
    assert g_test(counts, distribution(entry, one)) > 1e-6
    assert g_test(counts, distribution(entry, zero)) < 1e-6
