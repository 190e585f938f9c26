"""Plays the rounds between checkpoints in pieces, for GPUs.

If the compiler does not know the number of iterations of a loop, a GPU waits for the host after each iteration. The
loops here have a known number of iterations. A CPU does not wait, and does not need pieces.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.simulation.run.rounds import Play

LOOK = 1.5  # approximate cost of reading a checkpoint, in rounds, by the number of kernels on an H100
BRANCH = 0.7  # cost, in rounds, of waiting for the host if pieces differ in length


class Pieces(NamedTuple):
    """Pieces of the rounds up to the last checkpoint, in order.

    Attributes:
        rounds: number of rounds in a long piece.
        lengths: number of rounds in each piece, `rounds` or 1.
        looks: for each piece, the index of the next checkpoint.
    """

    rounds: int
    lengths: list[int]
    looks: list[int]

    @property
    def are_equal(self) -> bool:
        """Whether all pieces have the same length."""
        return min(self.lengths) == self.rounds


def cut(checkpoints: Sequence[int]) -> Pieces:
    """Returns the cheapest pieces for increasing checkpoints >= 1. Each play_piece ends with reading a checkpoint."""
    spans = [stop - start for start, stop in itertools.pairwise([0, *checkpoints])]
    powers = (2**power for power in range(max(spans).bit_length()))
    rounds = min((math.gcd(*spans), min(spans), *powers), key=lambda rounds: _cost(spans, rounds))
    lengths, looks = [], []
    for index, span in enumerate(spans):
        num_long, num_single = divmod(span, rounds)
        lengths += [rounds] * num_long + [1] * num_single
        looks += [index] * (num_long + num_single)
    return Pieces(rounds, lengths, looks)


def play_pieces(
    checkpoints: Sequence[int],
    step: Callable[[Play], Play],
    look: Callable[[Play], Mapping[str, jax.Array]],
    play: Play,
) -> tuple[Play, dict[str, jax.Array]]:
    """Plays up to the last checkpoint by loops with known numbers of iterations.

    Args:
        checkpoints: increasing rounds >= 1.
        step: plays one round.
        look: reads the outputs of a checkpoint.
        play: the play before the first round.

    Returns:
        (play after the last checkpoint, outputs with a leading axis of checkpoints).
    """
    pieces = cut(checkpoints)

    def play_long(play: Play) -> Play:
        return jax.lax.fori_loop(0, pieces.rounds, lambda _, play: step(play), play)

    def play_piece(carry: tuple[Play, dict[str, jax.Array]], piece_of: tuple[jax.Array, jax.Array]):
        play, outputs = carry
        length, index = piece_of
        play = play_long(play) if pieces.are_equal else jax.lax.cond(length == 1, step, play_long, play)
        read = dict(look(play))
        # The last piece before a checkpoint writes last.
        return (play, {name: rows.at[index].set(read[name]) for name, rows in outputs.items()}), None

    shapes = jax.eval_shape(look, play)
    rows = {name: jnp.zeros((len(checkpoints), *leaf.shape), leaf.dtype) for name, leaf in shapes.items()}
    xs = jnp.asarray(pieces.lengths), jnp.asarray(pieces.looks)
    return jax.lax.scan(play_piece, (play, rows), xs)[0]


def _cost(spans: Sequence[int], rounds: int) -> float:
    num_long, num_single = sum(span // rounds for span in spans), sum(span % rounds for span in spans)
    overhead = LOOK + (BRANCH if num_single else 0)
    return num_long * (rounds + overhead) + num_single * (1 + overhead)
