"""Comparison of blocks with single rounds: if they agree, the audit of rounds holds for blocks, too."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.forced import Base, draws_without_history
from jaxdp.audit.play import play

RUNS = 4096  # in one of so many, noise larger or smaller by one percent changes a choice
LARGEST = 2**24  # numbers in the transcripts of all runs
QUICKLY = {"xla_backend_optimization_level": 0}  # compiled for few runs


def blocks_equal_rounds(key: jax.Array, base: Base) -> bool:
    """Returns whether blocks give the plays and public states of single rounds, bit for bit, in random runs.

    Not tried if users react, since within a block they see less than in single rounds: returns False.

    Args:
        key: a typed PRNG key.
        base: a learner with blocks, and its users.
    """
    if not draws_without_history(base):
        return False

    def play_run(path: str, key: jax.Array, users: Any) -> Any:
        return play(base.learner, base.answer, key, base.params, users, path=path)

    key_users, key_runs = jax.random.split(key)
    size = sum(x.size for x in jax.tree.leaves(jax.eval_shape(partial(play_run, "blocks"), key, _users(base, key))))
    count = max(1, min(RUNS, LARGEST // max(size, 1)))
    users = jax.vmap(partial(_users, base))(jax.random.split(key_users, count))

    def runs(path: str) -> Any:
        compiled = jax.jit(jax.vmap(partial(play_run, path)), compiler_options=QUICKLY)
        return compiled(jax.random.split(key_runs, count), users)

    blocks, rounds = runs("blocks"), runs("rounds")
    lengths = np.asarray(blocks.length)
    run, start = np.nonzero(lengths)
    end = start + lengths[run, start] - 1
    pairs = [
        *zip(jax.tree.leaves(blocks.actions), jax.tree.leaves(rounds.actions), strict=True),
        *(
            (many[run, start], play_run[run, end])
            for many, play_run in zip(jax.tree.leaves(blocks.after), jax.tree.leaves(rounds.after), strict=True)
        ),
    ]
    return all(bool(jnp.array_equal(many, play_run, equal_nan=_is_float(play_run))) for many, play_run in pairs)


def _users(base: Base, key: jax.Array) -> Any:
    """Draws one run's users."""
    return jax.vmap(base.draw_user)(jax.random.split(key, base.rounds))


def _is_float(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)
