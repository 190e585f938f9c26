"""Whether blocks give the results of single rounds, whose audit then holds for them, too."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.forced import Base, drawn_alone
from jaxdp.audit.play import play

RUNS = 64


def as_rounds(key: jax.Array, base: Base) -> bool:
    """Whether blocks give the plays and public states of single rounds, bit for bit, in random runs.

    Not tried where users react: within a block they see less than in single rounds.

    Args:
        key: a typed PRNG key.
        base: a learner with blocks, and its users.
    """
    if not drawn_alone(base):
        return False
    keys = jax.random.split(key, (2, RUNS, base.rounds))
    users = jax.vmap(jax.vmap(base.draw_user))(keys[0])

    def runs(path: str) -> Any:
        def one(key: jax.Array, users: Any) -> Any:
            return play(base.learner, base.answer, key, base.params, users, path=path)

        return jax.jit(jax.vmap(one))(keys[1][:, 0], users)

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


def _is_float(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)
