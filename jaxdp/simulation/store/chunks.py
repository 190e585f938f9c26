"""Chunks: runs of lanes that are computed, handed over and written together, each a block of the results' arrays.

Lanes are numbered as the grid is: the last axis but the seed slower than the seed. A chunk is a block of the arrays
(*static axes, *axes, seed), which a file can hold, and the lanes in it. In a sweep that has not grown they are one run
of numbers. A store that has grown keeps its blocks, in which lanes may be several runs, and keeps values in the order
in which they came, which need not be that of the grid.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """Lanes of one program, and their place in the results.

    Attributes:
        number: among all chunks of the sweep.
        program: index of the combination of static values, in the order of the grid.
        runs: (first, one past the last) of the lanes' numbers, in the order of the block; of a block that is partly
            computed, they may be those of the other lanes alone.
        block: (start, stop) along every dimension of (*static axes, *axes, seed), as stored.
        part: with which part of a sweep that grew its last lanes came; 0 is the first.
        packed: whether its lanes may be in any places of tiles; else lane n is in place n modulo the tile.
    """

    number: int
    program: int
    runs: tuple[tuple[int, int], ...]
    block: tuple[tuple[int, int], ...]
    part: int = 0
    packed: bool = False

    @property
    def num_lanes(self) -> int:
        """How many lanes the runs are."""
        return sum(stop - start for start, stop in self.runs)

    @property
    def lanes(self) -> np.ndarray:
        """The lanes' numbers, in the order of the block."""
        return np.concatenate([np.arange(*run) for run in self.runs])

    def only(self, wanted: np.ndarray) -> "Chunk":
        """The chunk with some of its lanes.

        Args:
            wanted: of the block's shape, bool: which. The chunk has all lanes of its block.
        """
        return self._replace(runs=_as_runs(self.lanes[wanted.ravel()].tolist()))

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


def chunks(
    static_sizes: Sequence[int],
    sizes: Sequence[int],
    shape: Sequence[int],
    *,
    order: Sequence[Sequence[int] | None] = (),
    parts: Sequence[Sequence[int]] = (),
    packed: bool = False,
) -> list[Chunk]:
    """All chunks of a sweep, in the order in which they are stored, program by program.

    Args:
        static_sizes: of the static axes.
        sizes: of (*axes, seed).
        shape: from `chunk_shape`, for these sizes or for those that the sweep had when it was smaller.
        order: for every dimension of (*static axes, *axes, seed), the places in the grid of what is stored, None where
            they are in the order of the grid; without it, all are.
        parts: sizes of (*static axes, *axes, seed) that a sweep which grew has had, the first ones first.
        packed: whether lanes may be in any places of tiles.
    """
    all_sizes = (*static_sizes, *sizes)
    told = order or [None] * len(all_sizes)
    all_places = [range(size) if own is None else own for own, size in zip(told, all_sizes, strict=True)]
    found = []
    for stored in range(math.prod(static_sizes)):
        at = _unravel(stored, static_sizes)
        program = 0
        for index, size, places in zip(at, static_sizes, all_places, strict=False):
            program = program * size + places[index]
        counts = [-(-size // part) for size, part in zip(sizes, shape, strict=True)]
        for index in range(math.prod(counts)):
            block = tuple(
                (at * part, min((at + 1) * part, size))
                for at, part, size in zip(_unravel(index, counts), shape, sizes, strict=True)
            )
            runs = _runs(block, sizes, all_places[len(static_sizes) :])
            place = (*((index, index + 1) for index in at), *block)
            part = next((number for number, size in enumerate(parts) if _is_within(place, size)), 0)
            found.append(Chunk(len(found), program, runs, place, part, packed))
    return found


def share(all_chunks: Sequence[Chunk], index: int, count: int) -> list[Chunk]:
    """The chunks that one of several processes computes.

    They are a run of those of each program, and of each part of a sweep that grew, so that each gets its share of all.

    Args:
        all_chunks: from `chunks`.
        index: of the process, in [0, count).
        count: number of processes.
    """
    groups: dict[tuple[int, int], list[Chunk]] = {}
    for chunk in all_chunks:
        groups.setdefault((chunk.program, chunk.part), []).append(chunk)
    mine = []
    for (program, part), own in groups.items():
        place = (index + program + part) % count  # where chunks are fewer than processes, others begin with the next
        mine += own[len(own) * place // count : len(own) * (place + 1) // count]
    return mine


def _runs(
    block: Sequence[tuple[int, int]], sizes: Sequence[int], order: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """The numbers of a block's lanes, in the order of the block."""
    runs, width = ((0, 1),), 1
    for (first, last), size, places in reversed(list(zip(block, sizes, order, strict=True))):
        own = places[first:last]
        if runs == ((0, width),):
            runs = tuple((start * width, stop * width) for start, stop in _as_runs(own))
        else:
            runs = tuple((place * width + start, place * width + stop) for place in own for start, stop in runs)
        width *= size
    return runs


def _as_runs(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Numbers as runs (first, one past the last)."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] += 1
        else:
            found.append([number, number + 1])
    return tuple((start, stop) for start, stop in found)


def _is_within(block: Sequence[tuple[int, int]], sizes: Sequence[int]) -> bool:
    return all(stop <= size for (_, stop), size in zip(block, sizes, strict=True))


def _unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(sizes):
        index, remainder = divmod(index, size)
        found.append(remainder)
    return tuple(reversed(found))
