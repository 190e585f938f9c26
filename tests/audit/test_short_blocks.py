"""Audits cut blocks to the rounds of a run, and play the same run."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxdp.audit.play import play, with_short_blocks
from jaxdp.registry import LEARNERS


@pytest.mark.parametrize(
    "name",
    [
        "ebs_elimination",
        "ebs_phased",
        "explore_then_commit",
        "g_optimal_elimination",
        "limited_updates",
        "successive_elimination_central",
        "svt_restarts",
        "ucb_central",
    ],
)
def test_short_blocks_play_the_same_run(name):
    """Checks blocks that are cut to the rounds of a run, as audits cut them, against the blocks of the learner."""
    entry, rounds = LEARNERS[name], 2 if name == "svt_restarts" else 5
    users = jax.vmap(entry.make_user)(jax.random.split(jax.random.key(0), rounds))
    learner = entry.make()
    assert any(one.any_length and one.length > rounds for one in learner.blocks)
    assert all(one.length <= rounds for one in with_short_blocks(learner, rounds).blocks if one.any_length)
    whole = learner._replace(blocks=tuple(one._replace(any_length=False) for one in learner.blocks))
    params, keys = learner.params(**entry.values), jax.random.split(jax.random.key(1), 64)

    def transcripts(learner):
        run = partial(play, learner, entry.users_answer, params=params, users=users, path="blocks")
        return jax.jit(jax.vmap(lambda key: run(key)))(keys)

    jax.tree.map(np.testing.assert_array_equal, transcripts(learner), transcripts(whole))
