"""Chunks: runs of lanes that are computed, handed over and written together, each a block of the results' arrays.

Lanes are numbered as the grid is: the last axis but the seed slower than the seed. A chunk is both a run of lane
numbers, which tiles cover, and a block of the arrays (*static axes, *axes, seed), which a file can hold.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Chunk(NamedTuple):
    """Lanes start to stop of one program.

    Attributes:
        number: among all chunks of the sweep.
        program: index of the combination of static values.
        start: first lane.
        stop: one past the last lane.
        block: (start, stop) along every dimension of (*static axes, *axes, seed).
    """

    number: int
    program: int
    start: int
    stop: int
    block: tuple[tuple[int, int], ...]

    @property
    def region(self) -> tuple[slice, ...]:
        """Where its results are in an array of dimensions (*static axes, *axes, seed, ...)."""
        return tuple(slice(*bounds) for bounds in self.block)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of the block."""
        return tuple(stop - start for start, stop in self.block)


def chunk_shape(sizes: Sequence[int], lanes: int) -> tuple[int, ...]:
    """The largest block of at most `lanes` lanes whose lane numbers are one run.

    Args:
        sizes: of (*axes, seed).
        lanes: wanted in a chunk, >= 1.

    Returns:
        Sizes of the block: 1 along the first axes, then a part of one axis, then all of the others.

    Examples:
        >>> chunk_shape((5, 4, 100), 250), chunk_shape((5, 4, 100), 64), chunk_shape((5, 4, 100), 10**6)
        ((1, 2, 100), (1, 1, 64), (5, 4, 100))
    """
    shape: list[int] = []
    for size in reversed(sizes):
        part = min(size, max(lanes, 1))
        shape.append(part)
        lanes = lanes // size if part == size else 1
    return tuple(reversed(shape))


def chunks(static_sizes: Sequence[int], sizes: Sequence[int], shape: Sequence[int]) -> list[Chunk]:
    """All chunks of a sweep, in the order of their lanes, program by program.

    Args:
        static_sizes: of the static axes.
        sizes: of (*axes, seed).
        shape: from `chunk_shape`.
    """
    found = []
    for program in range(math.prod(static_sizes)):
        place = tuple((index, index + 1) for index in _unravel(program, static_sizes))
        counts = [-(-size // part) for size, part in zip(sizes, shape, strict=True)]
        for index in range(math.prod(counts)):
            block = tuple(
                (at * part, min((at + 1) * part, size))
                for at, part, size in zip(_unravel(index, counts), shape, sizes, strict=True)
            )
            start = 0
            for (first, _), size in zip(block, sizes, strict=True):
                start = start * size + first
            stop = start + math.prod(last - first for first, last in block)
            found.append(Chunk(len(found), program, start, stop, place + block))
    return found


def share(all_chunks: Sequence[Chunk], index: int, count: int) -> list[Chunk]:
    """The chunks that one of several processes computes: a run of each program's, so that each gets its part of all.

    Args:
        all_chunks: from `chunks`.
        index: of the process, in [0, count).
        count: number of processes.
    """
    programs: dict[int, list[Chunk]] = {}
    for chunk in all_chunks:
        programs.setdefault(chunk.program, []).append(chunk)
    mine = []
    for program, own in programs.items():
        place = (index + program) % count  # where chunks are fewer than processes, others begin with the next program
        mine += own[len(own) * place // count : len(own) * (place + 1) // count]
    return mine


def _unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(sizes):
        index, remainder = divmod(index, size)
        found.append(remainder)
    return tuple(reversed(found))
