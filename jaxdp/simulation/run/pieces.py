"""Plays rounds or blocks between checkpoints in pieces with a known number of iterations, for GPUs.

If the compiler does not know the number of iterations of a loop, a GPU waits for the host after each iteration. The
loops in this module have a known number of iterations. A CPU does not wait, and needs no pieces. A turn is one
iteration, which plays a round or a block of rounds.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Learner
from jaxdp.simulation.run.rounds import Play

LOOK = 1.5  # cost of reading a checkpoint, in turns, estimated from the number of kernels on an H100
BRANCH = 0.7  # cost, in turns, of waiting for the host if pieces differ in length


class Pieces(NamedTuple):
    """The pieces, in order, into which the turns up to the last checkpoint are divided.

    Attributes:
        turns: number of turns in a long piece.
        lengths: number of turns in each piece, `turns` or 1.
        next_checkpoint: for each piece, the index of the next checkpoint.
    """

    turns: int
    lengths: list[int]
    next_checkpoint: list[int]

    @property
    def are_equal(self) -> bool:
        """Whether all pieces have the same length."""
        return min(self.lengths) == self.turns


def cut(checkpoints: Sequence[int]) -> Pieces:
    """Divides the turns up to the last checkpoint into pieces.

    The length of a long piece is the candidate with the lowest estimated cost. `checkpoints` has the number of turns up
    to each checkpoint. Outputs are read at the end of every piece.
    """
    spans = [stop - start for start, stop in itertools.pairwise([0, *checkpoints])]
    powers = (2**power for power in range(max(spans).bit_length()))
    turns = min((math.gcd(*spans), min(spans), *powers), key=lambda turns: _cost(spans, turns))
    lengths, next_checkpoint = [], []
    for index, span in enumerate(spans):
        num_long, num_single = divmod(span, turns)
        lengths += [turns] * num_long + [1] * num_single
        next_checkpoint += [index] * (num_long + num_single)
    return Pieces(turns, lengths, next_checkpoint)


def count_blocks(checkpoints: Sequence[int], length: int, ends: Sequence[int]) -> list[int]:
    """Returns the number of blocks up to each checkpoint.

    A block has `length` rounds, unless it ends earlier at a checkpoint or at a round in `ends`.
    """
    counts = []
    for start, stop in itertools.pairwise([0, *checkpoints]):
        edges = sorted({start, *(end for end in ends if start < end < stop), stop})
        counts.append(sum(-(-(last - first) // length) for first, last in itertools.pairwise(edges)))
    return list(itertools.accumulate(counts))


def known_turns(learner: Learner, engine: str, checkpoints: Sequence[int]) -> Sequence[int] | None:
    """Returns the number of rounds or blocks up to each checkpoint; None if the number is unknown or differs by lane.

    It also returns None if the engine is "rounds" and there is only one checkpoint, because XLA then knows the number
    of iterations without pieces.
    """
    if learner.done is not None:
        return None
    if engine == "rounds":
        return checkpoints if len(checkpoints) > 1 else None
    if engine == "blocks" and len(learner.blocks) == 1 and learner.blocks[0].ends is not None:
        return count_blocks(checkpoints, learner.blocks[0].length, learner.blocks[0].ends)
    return None


def play_pieces(
    checkpoints: Sequence[int],
    step: Callable[[Play, jax.Array], Play],
    look: Callable[[Play], Mapping[str, jax.Array]],
    play: Play,
) -> tuple[Play, dict[str, jax.Array]]:
    """Plays up to the last checkpoint in loops with known numbers of iterations.

    Args:
        checkpoints: the number of turns up to each checkpoint, increasing and >= 1.
        step: (play, index of the next checkpoint) -> play after one turn.
        look: reads the outputs of a checkpoint.
        play: the play before the first turn.

    Returns:
        (play after the last checkpoint, outputs with a leading axis of checkpoints).
    """
    pieces = cut(checkpoints)

    def play_piece(carry: tuple[Play, dict[str, jax.Array]], piece_of: tuple[jax.Array, jax.Array]):
        play, outputs = carry
        length, index = piece_of

        def play_one(play: Play) -> Play:
            return step(play, index)

        def play_long(play: Play) -> Play:
            return jax.lax.fori_loop(0, pieces.turns, lambda _, play: play_one(play), play)

        play = play_long(play) if pieces.are_equal else jax.lax.cond(length == 1, play_one, play_long, play)
        read = dict(look(play))
        # Each piece writes the row of its next checkpoint, so the row keeps the outputs of the last piece before the
        # checkpoint.
        return (play, {name: rows.at[index].set(read[name]) for name, rows in outputs.items()}), None

    shapes = jax.eval_shape(look, play)
    rows = {name: jnp.zeros((len(checkpoints), *leaf.shape), leaf.dtype) for name, leaf in shapes.items()}
    xs = jnp.asarray(pieces.lengths), jnp.asarray(pieces.next_checkpoint)
    return jax.lax.scan(play_piece, (play, rows), xs)[0]


def _cost(spans: Sequence[int], turns: int) -> float:
    num_long, num_single = sum(span // turns for span in spans), sum(span % turns for span in spans)
    overhead = LOOK + (BRANCH if num_single else 0)
    return num_long * (turns + overhead) + num_single * (1 + overhead)
