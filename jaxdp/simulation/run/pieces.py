"""Plays the rounds between checkpoints in pieces of many rounds or of one.

A GPU waits for the host after each turn of a loop if the program does not know the number of turns. The loops here have
known numbers of turns. A CPU does not wait, and plays from checkpoint to checkpoint.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.simulation.run.rounds import Play

LOOK = 1.5  # approximate cost of reading a checkpoint, in rounds, by the kernels that XLA launches for an H100
BRANCH = 0.7  # cost of the host's wait, in rounds, if pieces differ in length


class Pieces(NamedTuple):
    """Pieces of the rounds up to the last checkpoint, in order.

    Attributes:
        rounds: number of rounds in a long piece.
        lengths: number of rounds in each piece, `rounds` or 1.
        looks: for each piece, the index of the checkpoint that it leads to.
    """

    rounds: int
    lengths: list[int]
    looks: list[int]

    @property
    def alike(self) -> bool:
        """Whether all pieces have the same length."""
        return min(self.lengths) == self.rounds


def cut(checkpoints: Sequence[int]) -> Pieces:
    """Returns the cheapest pieces. Each piece reads a checkpoint at its end, and different lengths cost waiting.

    Args:
        checkpoints: increasing rounds >= 1.
    """
    spans = [stop - start for start, stop in itertools.pairwise([0, *checkpoints])]
    powers = (2**power for power in range(max(spans).bit_length()))
    rounds = min((math.gcd(*spans), min(spans), *powers), key=lambda rounds: _cost(spans, rounds))
    lengths, looks = [], []
    for index, span in enumerate(spans):
        long, single = divmod(span, rounds)
        lengths += [rounds] * long + [1] * single
        looks += [index] * (long + single)
    return Pieces(rounds, lengths, looks)


def play_pieces(
    checkpoints: Sequence[int],
    step: Callable[[Play], Play],
    look: Callable[[Play], Mapping[str, jax.Array]],
    play: Play,
) -> tuple[Play, dict[str, jax.Array]]:
    """Plays up to the last checkpoint by loops with known numbers of turns.

    Args:
        checkpoints: increasing rounds >= 1.
        step: plays a round.
        look: reads the outputs of a checkpoint.
        play: state before the first round.

    Returns:
        (play after the last checkpoint, outputs with a leading axis of checkpoints).
    """
    pieces = cut(checkpoints)

    def long(play: Play) -> Play:
        return jax.lax.fori_loop(0, pieces.rounds, lambda _, play: step(play), play)

    def piece(carry: tuple[Play, dict[str, jax.Array]], piece_of: tuple[jax.Array, jax.Array]):
        play, outputs = carry
        length, index = piece_of
        play = long(play) if pieces.alike else jax.lax.cond(length == 1, step, long, play)
        read = dict(look(play))
        # The last piece before a checkpoint writes last.
        return (play, {name: rows.at[index].set(read[name]) for name, rows in outputs.items()}), None

    shapes = jax.eval_shape(look, play)
    rows = {name: jnp.zeros((len(checkpoints), *leaf.shape), leaf.dtype) for name, leaf in shapes.items()}
    xs = jnp.asarray(pieces.lengths), jnp.asarray(pieces.looks)
    return jax.lax.scan(piece, (play, rows), xs)[0]


def _cost(spans: Sequence[int], rounds: int) -> float:
    long, single = sum(span // rounds for span in spans), sum(span % rounds for span in spans)
    overhead = LOOK + (BRANCH if single else 0)
    return long * (rounds + overhead) + single * (1 + overhead)
