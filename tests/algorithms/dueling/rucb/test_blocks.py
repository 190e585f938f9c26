"""`rucb` by blocks: its kernels equal the plain steps, bit for bit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import matrix_duels, rucb, utility_duels
from jaxdp.dueling._rucb import blocks as _rucb_blocks
from jaxdp.dueling._rucb import blocks_kernels as _rucb_blocks_kernels
from jaxdp.dueling._rucb.blocks import KERNELS, PLAIN
from jaxdp.dueling._rucb.kernels import MOST_ARMS
from jaxdp.preferences import lower_bound_matrix
from tests.algorithms.dueling.pair_blocks import states

KEY = partial(jax.random.key, 5)


def played(steps, given):
    @jax.jit
    @jax.vmap
    def play(given):
        seen = given["released"], given["hypothesis"], given["spread"]
        return {"hypothesis": steps.view(*seen)[1], "duel": steps.duel(given["uniforms"], *seen)}

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


def with_other_releases(change):
    return KERNELS._replace(
        view=lambda released, *rest: KERNELS.view(change(released), *rest),
        duel=lambda uniforms, released, *rest: KERNELS.duel(uniforms, change(released), *rest),
    )


WRONG = {
    "noise forgotten": with_other_releases(lambda released: released._replace(noise=0 * released.noise)),
    "wins and losses exchanged": with_other_releases(lambda released: released._replace(lead=-released.lead)),
    "weights 1% less": with_other_releases(lambda released: released._replace(weight=0.99 * released.weight)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    given = states(3)
    assert differing(played(WRONG[name], given), played(PLAIN, given)) == {"hypothesis", "duel"}


def test_runs_are_equal():
    def regret(steps):
        learner = _rucb_blocks.learner_of(4, steps)
        run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(4)), 60, checkpoints=[10, 30, 60])
        return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 50), run.params(epsilon=2.0))

    jax.tree.map(np.testing.assert_array_equal, *map(regret, (KERNELS, PLAIN)))


def test_which_arms_are_few(monkeypatch):
    chosen, learner = [], _rucb_blocks.learner_of
    monkeypatch.setattr(_rucb_blocks, "learner_of", lambda num, steps: chosen.append(steps) or learner(num, steps))
    for num_arms in (MOST_ARMS, MOST_ARMS + 1):
        rucb(num_arms=num_arms, release="blocks")
    assert chosen == [KERNELS, PLAIN]
    assert KERNELS.duel is _rucb_blocks_kernels.duel


@pytest.mark.parametrize("epsilon", [1e-10, 1e-6, 1e30])
def test_budgets_of_all_sizes_give_numbers(epsilon):
    learner = rucb(num_arms=3, release="blocks")
    run = jaxdp.simulator(
        learner,
        utility_duels([1.0, 0.5, 0.0]),
        40,
        record={"released": lambda snapshot: jnp.stack(snapshot.public.released[1:])},
    )
    found = jax.jit(run)(KEY(), run.params(epsilon=epsilon))
    assert np.isfinite(found["released"]).all()
