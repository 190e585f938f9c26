"""Double Thompson sampling: the kernels equal the algorithm as it reads, bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import matrix_duels
from jaxdp.dueling._double_thompson import _double_thompson
from jaxdp.dueling._double_thompson import blocks as _double_thompson_blocks
from jaxdp.dueling._double_thompson._double_thompson import KERNELS, PLAIN, is_uncertain, posterior
from jaxdp.dueling._double_thompson.draws import may_beat
from jaxdp.preferences import lower_bound_matrix

LANES = 2000
FLOAT = jnp.result_type(float)


def test_arms_that_may_win_are_those_of_the_upper_bound():
    spread = 0.51 * np.log(500)
    won, lost = np.meshgrid(np.arange(30), np.arange(30))
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = won / (won + lost) + np.sqrt(spread / (won + lost))
    expected = ~(bound <= 0.5)  # no bound before the first duel
    found = may_beat(jnp.asarray(won, FLOAT), jnp.asarray(lost, FLOAT), jnp.asarray(spread, FLOAT))
    np.testing.assert_array_equal(found, expected)
    assert not expected.all()


@functools.cache
def arguments(num_arms):
    """Makes the arguments of each step: for few duels and many, for arms that lead clearly or not, and for ties."""
    random = np.random.default_rng(num_arms)
    scale = 10.0 ** random.integers(0, 6, (LANES, 1, 1))
    strength = random.integers(0, 3, (LANES, num_arms, 1))  # arms of equal strength may tie
    wins = (strength + random.integers(0, 2, (LANES, num_arms, num_arms))) * scale * (1 - np.eye(num_arms))
    rounds = 1 + random.exponential(size=LANES) * scale[:, 0, 0]
    wins, spread = jnp.asarray(wins, FLOAT), jnp.asarray(0.51 * np.log(rounds), FLOAT)
    keys = jax.random.split(jaxdp.random.key(num_arms), (3, LANES))
    left = random.integers(0, num_arms, LANES, np.int32)  # any arm

    def against(wins, spread, left):
        won, lost = wins[:, left], wins[left]
        return posterior(won, lost, 1.0), posterior(lost, won, 1.0), is_uncertain(won, lost, spread)

    return {
        "num_beaten": (wins, spread),
        "draw_left": (*keys[:2], posterior(wins, wins.mT, 1.0), jax.vmap(PLAIN.num_beaten)(wins, spread)),
        "draw_right": (keys[2], jnp.asarray(left), *jax.vmap(against)(wins, spread, left)),
    }


@functools.cache
def played(name, step, num_arms):
    return np.asarray(jax.jit(jax.vmap(step))(*arguments(num_arms)[name]))


def differing(steps, num_arms):
    """Returns the steps that differ from the plain ones in some lane."""
    pairs = {name: (getattr(steps, name), getattr(PLAIN, name)) for name in PLAIN._fields}
    found = {name: [played(name, step, num_arms) for step in pair] for name, pair in pairs.items()}
    return {name for name, both in found.items() if not np.array_equal(both[0], both[1])}


@pytest.mark.parametrize("num_arms", [2, 3, 8, 20])
def test_kernels_equal_the_plain_steps(num_arms):
    assert differing(KERNELS, num_arms) == set()
    for name in PLAIN._fields:  # states are of all kinds
        assert len(np.unique(played(name, getattr(PLAIN, name), num_arms))) >= num_arms - 1


WRONG = {
    "bounds 1% wider": (
        KERNELS._replace(num_beaten=lambda wins, spread: KERNELS.num_beaten(wins, 1.01**2 * spread)),
        "num_beaten",
    ),
    "losses for wins": (
        KERNELS._replace(num_beaten=lambda wins, spread: KERNELS.num_beaten(wins.T, spread)),
        "num_beaten",
    ),
    "probabilities of losing": (
        KERNELS._replace(draw_left=lambda *seen: KERNELS.draw_left(*seen[:2], seen[2].T, seen[3])),
        "draw_left",
    ),
    "one key for draw and ties": (
        KERNELS._replace(draw_left=lambda key, ties, *seen: KERNELS.draw_left(key, key, *seen)),
        "draw_left",
    ),
    "all arms are candidates": (
        KERNELS._replace(draw_left=lambda *seen: KERNELS.draw_left(*seen[:3], 0 * seen[3])),
        "draw_left",
    ),
    "the last of arms that beat equally many": (
        KERNELS._replace(draw_left=lambda *seen: len(seen[3]) - 1 - KERNELS.draw_left(*seen[:2], *flipped(*seen[2:]))),
        "draw_left",
    ),
    "every arm is drawn from": (
        KERNELS._replace(draw_right=lambda *seen: KERNELS.draw_right(*seen[:4], seen[4] | True)),
        "draw_right",
    ),
    "the left arm's own probability is drawn": (
        KERNELS._replace(draw_right=lambda key, left, *seen: KERNELS.draw_right(key, -1 + 0 * left, *seen)),
        "draw_right",
    ),
}


def flipped(shapes, may_beat):
    return shapes[::-1, ::-1], may_beat[::-1]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    wrong, step = WRONG[name]
    assert differing(wrong, 3) == {step}


def regret(learner):
    run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(3)), 60, checkpoints=[10, 30, 60])
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(92), 50), run.params(epsilon=2.0))


@pytest.mark.parametrize(
    ("learner_of", "kernels", "plain"),
    [
        pytest.param(_double_thompson._learner, KERNELS, PLAIN, id="local"),
        pytest.param(
            _double_thompson_blocks.learner_of,
            _double_thompson_blocks.KERNELS,
            _double_thompson_blocks.PLAIN,
            id="blocks",
        ),
    ],
)
def test_runs_are_equal(learner_of, kernels, plain):
    jax.tree.map(np.testing.assert_array_equal, *(regret(learner_of(3, steps)) for steps in (kernels, plain)))
