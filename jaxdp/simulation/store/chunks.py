"""Chunks: lanes that are computed, handed over and written together, each a block of the results' arrays.

Lanes are numbered in the grid's order: seeds change fastest, then the last axis. A chunk is a block of the arrays
(*static axes, *axes, seed), which one file can hold, and the lanes in it. In a sweep that has not grown, a chunk's
lanes are one run of numbers. A store that has grown keeps its blocks, which may then have several runs of lanes, and
keeps values in the order in which they were added, which may differ from the grid's.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """Lanes of one program, and their position in the results.

    Attributes:
        number: index among all chunks of the sweep.
        program: index of the combination of static values, in the order of the grid.
        runs: (first, one past the last) of the lanes' numbers, in the order of the block. If a block is partly
            computed, they may be the missing lanes' alone.
        block: (start, stop) along every dimension of (*static axes, *axes, seed), as stored.
        part: for a sweep that grew, the part that its last lanes were added with; 0 is the first.
        packed: whether its lanes may be at any positions in tiles; otherwise lane n is at n modulo the tile size.
    """

    number: int
    program: int
    runs: tuple[tuple[int, int], ...]
    block: tuple[tuple[int, int], ...]
    part: int = 0
    packed: bool = False

    @property
    def num_lanes(self) -> int:
        """Number of lanes in the runs."""
        return sum(stop - start for start, stop in self.runs)

    @property
    def lanes(self) -> np.ndarray:
        """The lanes' numbers, in the order of the block."""
        return np.concatenate([np.arange(*run) for run in self.runs])

    def only(self, keep: np.ndarray) -> "Chunk":
        """Returns a chunk with all lanes of its block, reduced to the lanes in `keep` ([block's shape] bool)."""
        return self._replace(runs=_as_runs(self.lanes[keep.ravel()].tolist()))

    @property
    def region(self) -> tuple[slice, ...]:
        """The slices of its results in an array of dimensions (*static axes, *axes, seed, ...)."""
        return tuple(slice(*bounds) for bounds in self.block)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of the block."""
        return tuple(stop - start for start, stop in self.block)


def chunk_shape(sizes: Sequence[int], lanes: int) -> tuple[int, ...]:
    """Returns the largest block of at most `lanes` lanes, numbered consecutively.

    Args:
        sizes: sizes of (*axes, seed).
        lanes: number of lanes requested for a chunk, >= 1.

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
    """Returns all chunks of a sweep, in the order in which they are stored, program by program.

    Args:
        static_sizes: sizes of the static axes.
        sizes: sizes of (*axes, seed).
        shape: from `chunk_shape`, for these sizes or for the sizes of the sweep before it grew.
        order: for every dimension of (*static axes, *axes, seed), the grid indices of the stored values; None for a
            dimension in the grid's order. If empty, all are in the grid's order.
        parts: for a sweep that grew, its successive sizes of (*static axes, *axes, seed), the first ones first.
        packed: whether lanes may be at any positions in tiles.
    """
    all_sizes = (*static_sizes, *sizes)
    orders = order or [None] * len(all_sizes)
    all_indices = [
        range(size) if order_of_dim is None else order_of_dim
        for order_of_dim, size in zip(orders, all_sizes, strict=True)
    ]
    all_chunks = []
    for stored in range(math.prod(static_sizes)):
        at = _unravel(stored, static_sizes)
        program = 0
        for index, size, indices in zip(at, static_sizes, all_indices, strict=False):
            program = program * size + indices[index]
        counts = [-(-size // part) for size, part in zip(sizes, shape, strict=True)]
        for index in range(math.prod(counts)):
            block = tuple(
                (at * part, min((at + 1) * part, size))
                for at, part, size in zip(_unravel(index, counts), shape, sizes, strict=True)
            )
            runs = _runs(block, sizes, all_indices[len(static_sizes) :])
            full_block = (*((index, index + 1) for index in at), *block)
            part = next((number for number, size in enumerate(parts) if _is_within(full_block, size)), 0)
            all_chunks.append(Chunk(len(all_chunks), program, runs, full_block, part, packed))
    return all_chunks


def share(all_chunks: Sequence[Chunk], index: int, count: int) -> list[Chunk]:
    """Returns the chunks that one of several processes computes.

    They are consecutive within each program and each part of a sweep that grew, so that each process gets its share of
    each.

    Args:
        all_chunks: from `chunks`.
        index: index of the process, in [0, count).
        count: number of processes.
    """
    groups: dict[tuple[int, int], list[Chunk]] = {}
    for chunk in all_chunks:
        groups.setdefault((chunk.program, chunk.part), []).append(chunk)
    chunks_of_process = []
    for (program, part), group in groups.items():
        turn = (index + program + part) % count  # each group starts with another process, if chunks are fewer
        chunks_of_process += group[len(group) * turn // count : len(group) * (turn + 1) // count]
    return chunks_of_process


def _runs(
    block: Sequence[tuple[int, int]], sizes: Sequence[int], order: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """Returns the numbers of a block's lanes, as runs in the order of the block."""
    runs, width = ((0, 1),), 1
    for (first, last), size, order_of_dim in reversed(list(zip(block, sizes, order, strict=True))):
        indices = order_of_dim[first:last]
        if runs == ((0, width),):
            runs = tuple((start * width, stop * width) for start, stop in _as_runs(indices))
        else:
            runs = tuple((index * width + start, index * width + stop) for index in indices for start, stop in runs)
        width *= size
    return runs


def _as_runs(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Returns numbers as runs (first, one past the last)."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    return tuple((start, stop) for start, stop in runs)


def _is_within(block: Sequence[tuple[int, int]], sizes: Sequence[int]) -> bool:
    return all(stop <= size for (_, stop), size in zip(block, sizes, strict=True))


def _unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    indices = []
    for size in reversed(sizes):
        index, remainder = divmod(index, size)
        indices.append(remainder)
    return tuple(reversed(indices))
