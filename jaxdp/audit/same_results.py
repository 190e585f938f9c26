"""Whether blocks give the results of single rounds, whose audit then holds for them, too."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.forced import Base, drawn_alone
from jaxdp.audit.play import play
from jaxdp.simulation.run.engines import has_totals

RUNS = 4096  # enough for one percent of noise more or less to change a choice in one of them
LARGEST = 2**24  # numbers in all their transcripts
QUICKLY = {"xla_backend_optimization_level": 0}  # compiled for few runs


def as_rounds(key: jax.Array, base: Base) -> bool:
    """Whether blocks give the plays and public states of single rounds, bit for bit, in random runs.

    Not tried where users react: within a block they see less than in single rounds; nor of blocks with totals.

    Args:
        key: a typed PRNG key.
        base: a learner with blocks, and its users.
    """
    if not drawn_alone(base) or has_totals(base.learner):
        return False

    def one(path: str, key: jax.Array, users: Any) -> Any:
        return play(base.learner, base.answer, key, base.params, users, path=path)

    key_users, key_runs = jax.random.split(key)
    size = sum(x.size for x in jax.tree.leaves(jax.eval_shape(partial(one, "blocks"), key, _users(base, key))))
    count = max(1, min(RUNS, LARGEST // max(size, 1)))
    users = jax.vmap(partial(_users, base))(jax.random.split(key_users, count))

    def runs(path: str) -> Any:
        compiled = jax.jit(jax.vmap(partial(one, path)), compiler_options=QUICKLY)
        return compiled(jax.random.split(key_runs, count), users)

    blocks, rounds = runs("blocks"), runs("rounds")
    lengths = np.asarray(blocks.length)
    run, start = np.nonzero(lengths)
    end = start + lengths[run, start] - 1
    pairs = [
        *zip(jax.tree.leaves(blocks.actions), jax.tree.leaves(rounds.actions), strict=True),
        *(
            (many[run, start], one[run, end])
            for many, one in zip(jax.tree.leaves(blocks.after), jax.tree.leaves(rounds.after), strict=True)
        ),
    ]
    return all(bool(jnp.array_equal(many, one, equal_nan=_is_float(one))) for many, one in pairs)


def _users(base: Base, key: jax.Array) -> Any:
    """One run's."""
    return jax.vmap(base.draw_user)(jax.random.split(key, base.rounds))


def _is_float(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)
