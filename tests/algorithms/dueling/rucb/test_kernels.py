"""RUCB: the kernels for few arms equal the algorithm as it reads, bit for bit, and few arms alone have them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import matrix_duels
from jaxdp.dueling._rucb import _rucb
from jaxdp.dueling._rucb._rucb import KERNELS, PLAIN
from jaxdp.dueling._rucb.kernels import MOST_ARMS
from jaxdp.preferences import lower_bound_matrix

LANES = 4000
FLOAT, INTEGER = jnp.result_type(float), jnp.result_type(int)


def states(num_arms):
    """States of all kinds: of few duels and many, with ties, with one champion, some or none."""
    random = np.random.default_rng(num_arms)
    scale = 10.0 ** random.integers(0, 8, (LANES, 1, 1))
    strength = random.integers(0, 3, (LANES, num_arms, 1))  # arms of equal strength may tie
    wins = (strength + random.integers(0, 2, (LANES, num_arms, num_arms))) * scale * (1 - np.eye(num_arms))
    rounds = 1 + random.exponential(size=LANES) * scale[:, 0, 0]
    given = {
        "uniforms": random.random((LANES, 2), np.float32).astype(FLOAT),
        "wins": wins.astype(INTEGER),
        "hypothesis": random.integers(-1, num_arms, LANES, np.int32),
        "spread": (0.51 * np.log(rounds)).astype(FLOAT),
        "unmet": np.full(LANES, 1.5 * np.tanh(0.5), FLOAT),
        "report": (
            random.integers(0, num_arms, (LANES, 2), np.int32),
            random.integers(0, 2, LANES, np.int32),
        ),
    }
    return jax.tree.map(jnp.asarray, given)


def played(steps, given):
    @jax.jit
    @jax.vmap
    def play(given):
        seen = given["wins"], given["hypothesis"], given["spread"]
        return {
            "hypothesis": steps.view(*seen)[1],
            "duel": steps.duel(given["uniforms"], *seen, given["unmet"]),
            "wins": steps.count_duel(given["wins"], given["report"]),
        }

    return jax.tree.map(np.asarray, play(given))


def differing(found, expected):
    """Returns the steps that differ in some lane."""
    return {name for name in expected if not np.array_equal(found[name], expected[name])}


@pytest.mark.parametrize("num_arms", [2, 3, 8, MOST_ARMS])
def test_kernels_equal_the_plain_steps(num_arms):
    given = states(num_arms)
    expected = played(PLAIN, given)
    assert differing(played(KERNELS, given), expected) == set()
    assert len(np.unique(expected["hypothesis"])) == num_arms + 1  # so states are of all kinds


def with_other_bounds(change):
    """Builds kernels that see other wins, another hypothesis and spread."""
    return KERNELS._replace(
        view=lambda *seen: KERNELS.view(*change(*seen)),
        duel=lambda uniforms, wins, hypothesis, spread, unmet: KERNELS.duel(
            uniforms, *change(wins, hypothesis, spread), unmet
        ),
    )


WRONG = {
    "bounds 1% wider": (
        with_other_bounds(lambda wins, last, spread: (wins, last, 1.01**2 * spread)),
        "hypothesis duel",
    ),
    "no hypothesis": (with_other_bounds(lambda wins, last, spread: (wins, -1 + 0 * last, spread)), "hypothesis duel"),
    "losses for wins": (with_other_bounds(lambda wins, last, spread: (wins.T, last, spread)), "hypothesis duel"),
    "one uniform for both arms": (KERNELS._replace(duel=lambda u, *seen: KERNELS.duel(u[:1].repeat(2), *seen)), "duel"),
    "arms that have not met": (KERNELS._replace(duel=lambda *seen: KERNELS.duel(*seen[:4], 0 * seen[4])), "duel"),
    "counted for the loser": (
        KERNELS._replace(count_duel=lambda wins, report: KERNELS.count_duel(wins, (report[0], 1 - report[1]))),
        "wins",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    wrong, steps = WRONG[name]
    given = states(3)
    assert differing(played(wrong, given), played(PLAIN, given)) == set(steps.split())


def regret(learner):
    run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(5)), 60, checkpoints=[10, 30, 60])
    return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(91), 50), run.params(epsilon=2.0))


def test_runs_are_equal():
    jax.tree.map(np.testing.assert_array_equal, *(regret(_rucb._learner(5, steps)) for steps in (KERNELS, PLAIN)))


def test_which_arms_are_few(monkeypatch):
    chosen, learner = [], _rucb._learner
    monkeypatch.setattr(_rucb, "_learner", lambda num_arms, steps: chosen.append(steps) or learner(num_arms, steps))
    for num_arms in (MOST_ARMS, MOST_ARMS + 1):
        _rucb.rucb(num_arms=num_arms)
    assert chosen == [KERNELS, PLAIN]
