"""Counters inside a learner: the entries that get noise, and the effect of one user's entry."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from jaxdp.audit import UserData, full_information, grey_box
from jaxdp.core import Guarantee, Learner, State
from jaxdp.mechanisms import doubling_counter, toeplitz_counter, tree_counter

HORIZON = 4
MAKE = {
    "tree": lambda: tree_counter(horizon=HORIZON, arity=2),
    "plain tree": lambda: tree_counter(horizon=HORIZON, arity=2, combine=False),
    "gaussian tree": lambda: tree_counter(horizon=HORIZON, arity=2, noise="gaussian"),
    "toeplitz": lambda: toeplitz_counter(horizon=HORIZON),
    "doubling": lambda: doubling_counter(horizon=HORIZON),
}
DELTA = 1e-3


def is_pure(name):
    return name in ("tree", "plain tree", "doubling")


def counting(name, counter=None, change=lambda params: params, key_of=lambda key: key, released=None):
    """Counts two streams that share a clock."""
    counter = counter or MAKE[name]()
    delta = 0.0 if is_pure(name) else DELTA

    def params(*, epsilon):
        return change(counter.params(epsilon=epsilon, **({} if is_pure(name) else {"delta": delta})))

    def guarantee(*, epsilon):
        return Guarantee.approximate(
            epsilon, delta, trust_model="central", privacy_unit="one entry", argument="for tests"
        )

    def update(key, params, state, report):
        private = counter.feed(key_of(key), params, state.private, report)
        return State(private, counter.read(params, private) if released is None else released(private))

    return Learner(
        params=params,
        guarantee=guarantee,
        init=lambda key, params: State(counter.init(key, params, (2,)), jnp.zeros(2)),
        act=lambda key, params, public, context: jnp.int32(0),
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
    )


def draw_user(key):
    """Draws users; one of the two entries is fixed, so that a user changes one counter."""
    return UserData(jnp.stack([jax.random.bernoulli(key).astype(int), jnp.ones((), int)]))


def look(learner):
    return grey_box(
        jax.random.key(0),
        learner,
        {"epsilon": 1.0},
        draw_user,
        rounds=HORIZON,
        answer=full_information,
        num_bases=2,
        num_neighbours=32,
    )


@pytest.mark.parametrize("name", MAKE)
def test_a_counter_spends_what_it_claims(name):
    found = look(counting(name))
    assert found.verdict == "consistent", found
    assert found.spent == pytest.approx(1.0, rel=1e-4)


def twice(params):
    if hasattr(params, "epsilon"):
        return dataclasses.replace(params, epsilon=2 * params.epsilon)
    return dataclasses.replace(params, noise_stddev=params.noise_stddev / 2)


def one_level_less(params):
    return dataclasses.replace(params, l1_sensitivity=params.l1_sensitivity - 1)


@pytest.mark.parametrize(("name", "change"), [("toeplitz", twice), ("plain tree", one_level_less)])
def test_too_little_noise_is_found(name, change):
    found = look(counting(name, change=change))
    assert any(fault.startswith("releases cost epsilon") for fault in found.faults), found


def test_noise_that_serves_twice_is_found():
    found = look(counting("plain tree", key_of=lambda key: jax.random.key(0)))
    assert any("key" in fault for fault in found.faults), found


def test_a_path_around_the_noise_is_found():
    released = lambda private: private.nodes.sums.sum(axis=0).astype(float)  # noqa: E731
    found = look(counting("tree", released=released))
    assert any("a path around the noise" in fault for fault in found.faults), found
