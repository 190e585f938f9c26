"""Compares a learner's blocks with its single rounds: if they agree, an audit of the rounds also holds for blocks."""

from functools import partial
from typing import Any

import jax
import numpy as np

from jaxdp.audit.forced import Base, draws_without_history
from jaxdp.audit.play import play
from jaxdp.audit.quick_programs import jit_quickly, quick_options

RUNS = 4096  # in about one of 4096 runs, noise that is 1% too large or too small changes a choice
LARGEST = 2**24  # maximum count of numbers in the transcripts of all runs together


def blocks_equal_rounds(key: jax.Array, base: Base) -> bool:
    """Returns whether blocks give the same actions and public states as single rounds, bit for bit, in random runs.

    There are at most `RUNS` runs. If users react to the past, the result is False without a comparison: in a block,
    users see less of the past.
    """
    if not draws_without_history(base):
        return False

    def play_run(path: str, key: jax.Array, users: Any) -> Any:
        return play(base.learner, base.answer, key, base.params, users, path=path)

    key_users, key_runs = jax.random.split(key)
    transcript = jax.eval_shape(lambda key: play_run("blocks", key, _users(base, key)), key)
    size = sum(leaf.size for leaf in jax.tree.leaves(transcript))
    count = max(1, min(RUNS, LARGEST // max(size, 1)))
    users = jit_quickly(jax.vmap(partial(_users, base)))(jax.random.split(key_users, count))  # one program

    def runs(path: str) -> Any:
        compiled = jax.jit(jax.vmap(partial(play_run, path)), compiler_options=quick_options())
        return compiled(jax.random.split(key_runs, count), users)

    blocks, rounds = (jax.tree.map(np.asarray, runs(path)) for path in ("blocks", "rounds"))
    run, start = np.nonzero(blocks.length)
    end = start + blocks.length[run, start] - 1
    pairs = [
        *zip(jax.tree.leaves(blocks.actions), jax.tree.leaves(rounds.actions), strict=True),
        *(
            (of_blocks[run, start], of_rounds[run, end])
            for of_blocks, of_rounds in zip(jax.tree.leaves(blocks.after), jax.tree.leaves(rounds.after), strict=True)
        ),
    ]
    return all(
        np.array_equal(of_blocks, of_rounds, equal_nan=np.issubdtype(of_rounds.dtype, np.inexact))
        for of_blocks, of_rounds in pairs
    )


def _users(base: Base, key: jax.Array) -> Any:
    """Draws the users ([rounds, ...]) of one run."""
    return jax.vmap(base.draw_user)(jax.random.split(key, base.rounds))
