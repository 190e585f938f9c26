"""Sparring: the kernels equal the algorithm as it reads, bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import _versatile_sparring, matrix_duels
from jaxdp.dueling._versatile_sparring import ESTIMATES, KERNELS, PLAIN
from jaxdp.numerics import compensated
from jaxdp.preferences import lower_bound_matrix

LANES = 4000
FLOAT = jnp.result_type(float)


@functools.cache
def states(num_arms):
    """Makes losses that take all digits of a float, weights of all sizes, and every result of a duel."""
    random = np.random.default_rng(num_arms)
    shape = LANES, num_arms, 2
    total = random.exponential(size=shape) * 10.0 ** random.integers(0, 8, (LANES, 1, 1))
    weights = random.exponential(size=shape) ** 3
    given = {
        "uniforms": random.random((LANES, 2), np.float32).astype(FLOAT),
        "losses": compensated.Sum(
            jnp.asarray(total, FLOAT), jnp.asarray(random.normal(size=shape) * 1e-8 * total, FLOAT)
        ),
        "weights": (weights / weights.sum(1, keepdims=True)).astype(FLOAT),
        "arms": random.integers(0, num_arms, (LANES, 2), np.int32),
        "won": random.choice([0, 1, 0.3], LANES).astype(FLOAT),
        "squared_rate": random.random(LANES).astype(FLOAT),
    }
    return jax.tree.map(jnp.asarray, given)


def played(steps, num_arms, estimate):
    @jax.jit
    @jax.vmap
    def play(given):
        seen = (given[name] for name in ("losses", "weights", "arms", "won", "squared_rate"))
        return {
            "draw": steps.draw(given["uniforms"], given["weights"]),
            "add_losses": jnp.stack(steps.add_losses(ESTIMATES[estimate], *seen)),
        }

    return jax.tree.map(np.asarray, play(states(num_arms)))


def differing(found, expected):
    """Returns the steps that differ in some lane."""
    return {name for name in expected if not np.array_equal(found[name], expected[name])}


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("num_arms", [2, 3, 16, 40])
def test_kernels_equal_the_plain_steps(num_arms, estimate):
    expected = played(PLAIN, num_arms, estimate)
    assert differing(played(KERNELS, num_arms, estimate), expected) == set()
    assert len(np.unique(expected["draw"])) == num_arms


def with_other_duels(change):
    """Builds kernels that see other arms, another result and another rate."""
    return KERNELS._replace(
        add_losses=lambda estimate, losses, weights, *seen: KERNELS.add_losses(
            estimate, losses, weights, *change(*seen)
        )
    )


def forgetful(estimate, losses, *seen):
    """Sums that are not compensated."""
    return KERNELS.add_losses(estimate, losses._replace(excess=0 * losses.excess), *seen)


WRONG = {
    "the players change places": (with_other_duels(lambda arms, *seen: (arms[::-1], *seen)), "add_losses"),
    "losses for wins": (with_other_duels(lambda arms, won, rate: (arms, 1 - won, rate)), "add_losses"),
    "another threshold": (with_other_duels(lambda arms, won, rate: (arms, won, 1.01 * rate)), "add_losses"),
    "plain sums": (KERNELS._replace(add_losses=forgetful), "add_losses"),
    "one uniform for both arms": (
        KERNELS._replace(draw=lambda u, weights: KERNELS.draw(u[:1].repeat(2), weights)),
        "draw",
    ),
    "the other player's weights": (
        KERNELS._replace(draw=lambda u, weights: KERNELS.draw(u, weights[:, ::-1])),
        "draw",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    wrong, step = WRONG[name]
    expected = played(PLAIN, 3, "reduced_variance")
    assert differing(played(wrong, 3, "reduced_variance"), expected) == {step}


def regret(learner):
    run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(5)), 60, checkpoints=[10, 30, 60])
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(93), 50), run.params(epsilon=2.0))


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_runs_are_equal(monkeypatch, estimate):
    found = []
    for steps in (KERNELS, PLAIN):
        monkeypatch.setattr(_versatile_sparring, "KERNELS", steps)
        found.append(regret(_versatile_sparring.versatile_sparring(num_arms=5, losses=estimate)))
    jax.tree.map(np.testing.assert_array_equal, *found)
