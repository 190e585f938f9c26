"""Elimination: the steps that are laid out by hand equal the algorithm as it reads, bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import ebs_elimination, matrix_duels
from jaxdp.dueling._ebs_elimination import _ebs_elimination
from jaxdp.dueling._ebs_elimination._ebs_elimination import KERNELS, PLAIN
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.mechanisms.continual_counting.arity import level_variances
from jaxdp.mechanisms.continual_counting.noise import node_noise
from jaxdp.preferences import lower_bound_matrix

LANES, LEVELS, ARITY = 4000, 4, 5
TREES = Trees(ARITY, level_variances(ARITY, LEVELS, True), node_noise("laplace", LEVELS), "laplace")


@functools.cache
def states(num_arms):
    """Makes states with any set of active arms and any clocks."""
    random = np.random.default_rng(num_arms)
    active = random.random((LANES, num_arms)) < random.random((LANES, 1))
    active[np.arange(LANES), random.integers(0, num_arms, LANES)] = True
    digits = random.integers(0, ARITY, (LANES, LEVELS, num_arms), np.int32)
    digits = np.where(np.arange(LEVELS)[:, None] < random.integers(1, LEVELS + 1, (LANES, 1, 1)), digits, 0)
    return jax.random.split(jaxdp.random.key(num_arms), LANES), jnp.asarray(active), jnp.asarray(digits)


def played(steps, num_arms):
    learner = ebs_elimination(num_arms=num_arms, horizon=ARITY**LEVELS - 1 - num_arms, arity=ARITY)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=0.7))

    @jax.jit
    @jax.vmap
    def play(key, active, digits):
        return {
            "opponent": steps.opponent(key, active),
            "noise_line": jnp.stack(steps.noise_line(TREES, params, digits)),
        }

    return jax.tree.map(np.asarray, play(*states(num_arms)))


def differing(found, expected):
    """Returns the steps that differ in some lane."""
    return {name for name in expected if not np.array_equal(found[name], expected[name])}


@pytest.mark.parametrize("num_arms", [2, 3, 8, 40])
def test_kernels_equal_the_plain_steps(num_arms):
    expected = played(PLAIN, num_arms)
    assert differing(played(KERNELS, num_arms), expected) == set()
    assert len(np.unique(expected["opponent"])) == num_arms
    assert len(np.unique(expected["noise_line"][:, 1])) >= 3  # several lines are the lowest somewhere
    assert np.asarray(states(num_arms)[1])[np.arange(LANES), expected["opponent"]].all()


WRONG = {
    "dropped arms are opponents": (
        KERNELS._replace(opponent=lambda key, active: KERNELS.opponent(key, active | True)),
        "opponent",
    ),
    "the order of arms is another": (
        KERNELS._replace(opponent=lambda key, active: len(active) - 1 - KERNELS.opponent(key, active[::-1])),
        "opponent",
    ),
    "the lowest line without leaves": (
        KERNELS._replace(noise_line=lambda trees, *seen: KERNELS.noise_line(trees._replace(arity=0), *seen)),
        "noise_line",
    ),
    "a level is left out": (
        KERNELS._replace(
            noise_line=lambda trees, params, digits: KERNELS.noise_line(trees, params, digits.at[-1].set(0))
        ),
        "noise_line",
    ),
    "leaves count": (
        KERNELS._replace(
            noise_line=lambda trees, params, digits: KERNELS.noise_line(trees, params, digits.at[1].add(digits[0]))
        ),
        "noise_line",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    wrong, step = WRONG[name]
    assert differing(played(wrong, 3), played(PLAIN, 3)) == {step}


def test_runs_are_equal(monkeypatch):
    found, keys = [], jax.random.split(jax.random.key(94), 50)
    for steps in (KERNELS, PLAIN):
        monkeypatch.setattr(_ebs_elimination, "KERNELS", steps)
        learner = ebs_elimination(num_arms=4, horizon=100, arity=3)
        record = {
            "active": lambda snapshot: snapshot.public.active,
            "estimates": lambda snapshot: snapshot.public.estimates,
        }
        duels = matrix_duels(lower_bound_matrix(4))
        run = jaxdp.simulator(learner, duels, 100, checkpoints=[10, 50, 100], record=record, engine="rounds")
        params = run.params(epsilon=5.0, confidence_multiplier=0.2)
        found.append(jax.jit(jax.vmap(run, (0, None)))(keys, params))
    jax.tree.map(np.testing.assert_array_equal, *found)
    assert len(np.unique(np.asarray(found[0]["active"]).sum(2))) >= 3  # arms were dropped
