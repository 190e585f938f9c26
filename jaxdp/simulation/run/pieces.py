"""Rounds between checkpoints in pieces of one length.

A GPU waits for the host after each turn of a loop whose number of turns the program does not know. The loops here have
known numbers of turns. A CPU waits for nobody, and plays from checkpoint to checkpoint.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.simulation.run.rounds import Play

LOOK = 1.5  # rounds that a look costs, about, by kernels that XLA launches for an H100
MASK = 1.25  # a round of a piece that may end before its last round, in rounds of others


class Pieces(NamedTuple):
    """Pieces of the rounds up to the last checkpoint, in order.

    Attributes:
        rounds: in a whole piece.
        lengths: of each piece, in [1, rounds]; less than `rounds` only where a checkpoint ends it.
        looks: of each piece, the index of the checkpoint that it leads to.
    """

    rounds: int
    lengths: list[int]
    looks: list[int]

    @property
    def whole(self) -> bool:
        """Whether no piece ends before its time."""
        return min(self.lengths) == self.rounds


def cut(checkpoints: Sequence[int]) -> Pieces:
    """Returns the pieces that cost least, counting rounds that are played for nothing and a look at each piece's end.

    Args:
        checkpoints: increasing rounds >= 1.
    """
    spans = [stop - start for start, stop in itertools.pairwise([0, *checkpoints])]
    longest = max(spans)
    powers = (2**power for power in range(longest.bit_length()))
    rounds = min((longest, math.gcd(*spans), *powers), key=lambda rounds: _cost(spans, rounds))
    lengths, looks = [], []
    for index, span in enumerate(spans):
        count = -(-span // rounds)
        lengths += [rounds] * (count - 1) + [span - (count - 1) * rounds]
        looks += [index] * count
    return Pieces(rounds, lengths, looks)


def play_pieces(
    checkpoints: Sequence[int],
    step: Callable[[Play], Play],
    look: Callable[[Play], Mapping[str, jax.Array]],
    play: Play,
) -> tuple[Play, dict[str, jax.Array]]:
    """Plays up to the last checkpoint by loops whose numbers of turns the program knows.

    Args:
        checkpoints: increasing rounds >= 1.
        step: plays a round.
        look: what is read at a checkpoint.
        play: before the first round.

    Returns:
        (play after the last checkpoint, what was read with a leading axis of checkpoints).
    """
    pieces = cut(checkpoints)

    def piece(carry: tuple[Play, dict[str, jax.Array]], each: tuple[jax.Array, jax.Array]):
        play, outputs = carry
        length, index = each

        stop = play.round + length

        def turn(number: jax.Array, play: Play) -> Play:
            after = step(play)
            if pieces.whole:
                return after
            kept = jax.tree.map(lambda new, old: jnp.where(number < length, new, old), after, play)
            return kept._replace(round=after.round)  # XLA knows a number that grows by one, and needs no kernel for it

        play = jax.lax.fori_loop(0, pieces.rounds, turn, play)._replace(round=stop)
        read = dict(look(play))
        # A checkpoint's last piece writes last.
        return (play, {name: rows.at[index].set(read[name]) for name, rows in outputs.items()}), None

    shapes = jax.eval_shape(look, play)
    rows = {name: jnp.zeros((len(checkpoints), *leaf.shape), leaf.dtype) for name, leaf in shapes.items()}
    xs = jnp.asarray(pieces.lengths), jnp.asarray(pieces.looks)
    return jax.lax.scan(piece, (play, rows), xs)[0]


def _cost(spans: Sequence[int], rounds: int) -> float:
    count = sum(-(-span // rounds) for span in spans)
    return count * (LOOK + rounds * (1 if all(span % rounds == 0 for span in spans) else MASK))
