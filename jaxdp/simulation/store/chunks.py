"""Divides the lanes of a sweep into chunks, which are computed and written together.

The lanes of a program are numbered in the grid's order: seeds change fastest, then the last axis. A chunk contains the
lanes of one block of the arrays, with dimensions (*static axes, *axes, seed). Each array stores the block in one file.
In a sweep that has not grown, the lanes of a chunk have consecutive numbers. When a sweep grows, its lanes are
renumbered but its blocks stay, so a block may then have several runs of consecutive numbers. Values of an axis are
stored in the order in which they were added, which may differ from the grid's order.
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
        runs: runs (first, one past the last) of consecutive lane numbers, in the order of the block. If a block is
            partly computed, the runs may contain only the missing lanes.
        block: (start, stop) along every dimension of (*static axes, *axes, seed), as stored.
        part: for a sweep that grew, the index of the part that added the chunk's last lanes.
        packed: whether lanes may be at any position of a tile; otherwise lane n is at position n modulo the tile size.
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
        """The numbers of the lanes, in the order of the block."""
        return np.concatenate([np.arange(*run) for run in self.runs])

    def only(self, keep: np.ndarray) -> "Chunk":
        """Returns a copy of this chunk with only the lanes where `keep` is true.

        `keep` is a bool array with the block's shape. This chunk must have all lanes of its block.
        """
        return self._replace(runs=_as_runs(self.lanes[keep.ravel()].tolist()))

    @property
    def region(self) -> tuple[slice, ...]:
        """The slices of the chunk's results in an array with dimensions (*static axes, *axes, seed, ...)."""
        return tuple(slice(*bounds) for bounds in self.block)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of the block."""
        return tuple(stop - start for start, stop in self.block)


def chunk_shape(sizes: Sequence[int], lanes: int) -> tuple[int, ...]:
    """Returns the sizes of the largest block of at most `lanes` lanes with consecutive numbers.

    Args:
        sizes: sizes of (*axes, seed).
        lanes: number of lanes requested for a chunk, >= 1.

    Returns:
        Sizes of the block: 1 along the first axes, then a part of one axis, then the full sizes of all later axes.

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
    """Returns all chunks of a sweep in stored order, program by program.

    Args:
        static_sizes: sizes of the static axes.
        sizes: sizes of (*axes, seed).
        shape: result of `chunk_shape`, for these sizes or for the sizes of the sweep before it grew.
        order: for every dimension of (*static axes, *axes, seed), the grid indices of the stored values, or None if the
            dimension is in the grid's order. If `order` is empty, all dimensions are in the grid's order.
        parts: for a sweep that grew, the sizes of (*static axes, *axes, seed) after each part, in order.
        packed: whether lanes may be at any position of a tile.
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
    """Returns the chunks that process `index` of `count` computes.

    Each process gets consecutive chunks of every program and, if the sweep grew, of every part of the sweep. If a
    program or part has fewer chunks than there are processes, some processes get none of it.
    """
    groups: dict[tuple[int, int], list[Chunk]] = {}
    for chunk in all_chunks:
        groups.setdefault((chunk.program, chunk.part), []).append(chunk)
    chunks_of_process = []
    for (program, part), group in groups.items():
        # Groups start with different processes. Otherwise groups with few chunks would all go to the same processes.
        rank = (index + program + part) % count
        chunks_of_process += group[len(group) * rank // count : len(group) * (rank + 1) // count]
    return chunks_of_process


def _runs(
    block: Sequence[tuple[int, int]], sizes: Sequence[int], order: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """Returns the lane numbers of a block, in the block's order, as runs of consecutive numbers.

    A run is (first, one past the last). All arguments have an entry for each dimension of (*axes, seed): in `block` the
    range of stored positions, in `sizes` the number of values, in `order` the grid indices of the stored values.
    """
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
    """Groups the numbers, in order, into runs (first, one past the last) of consecutive numbers."""
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
    return tuple(int(position) for position in np.unravel_index(index, tuple(sizes)))
