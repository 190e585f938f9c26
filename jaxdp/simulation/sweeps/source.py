"""Defines `Source`, the interface of objects that compute the chunks of a sweep."""

from collections.abc import Sequence
from typing import Any, Protocol

from jaxdp.memory import free_host_bytes
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.plan import Hardware, Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks

BYTES_OF_A_CHUNK = 2**28


class Source(Protocol):
    """A source of a sweep's chunks, which computes them.

    `LocalSource` computes on this process's devices, and `RemoteSource` on an executor's workers.

    Unless the caller or a store fixes the size of chunks, a sweep calls `best_chunk_lanes` once, before any chunk is
    computed. All results then come from `chunks`.

    Attributes:
        hardware: the hardware and settings of the source.
        identity: the result of `Plan.identity` on the source's hardware.
    """

    @property
    def hardware(self) -> Hardware: ...  # noqa: D102

    @property
    def identity(self) -> dict[str, Any]: ...  # noqa: D102

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """Returns the identity that the sweep `plan` would have on the source's hardware."""
        ...

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes one chunk, keeps its program, and returns outputs keyed by name, with a leading axis of lanes."""
        ...

    def chunks(self, requested: Sequence[Chunk]) -> Chunks:
        """Computes chunks, and reports progress.

        Args:
            requested: chunks of the sweep, in any order.

        Yields:
            Each chunk when it is done, with its outputs keyed by name, which have a leading axis of the chunk's lanes.
        """
        ...

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """Returns the best number of lanes in a chunk, a multiple of the tile size.

        Args:
            sharers: number of processes that share the chunks of a store; None if there is no store. With a store,
                chunks should be small, as a process that is killed loses its unfinished chunk. `LocalSource` without a
                store limits chunks only by memory. `RemoteSource` ignores this number.
        """
        ...


def fitting_lanes(plan: Plan, part: int) -> int:
    """Returns how many lanes of a program have results that fit in the memory for a chunk.

    This memory is at most `BYTES_OF_A_CHUNK`, and at most 1 / `part` of the free memory. If the free memory is unknown,
    it is taken to be `BYTES_OF_A_CHUNK`.
    """
    free = free_host_bytes()
    memory = BYTES_OF_A_CHUNK if free is None else min(BYTES_OF_A_CHUNK, free // part)
    return min(memory // max(plan.lane_bytes, 1), plan.lanes.num_lanes)


def whole_tiles(plan: Plan, lanes: int) -> int:
    """Returns `lanes` rounded down to a multiple of the tile size, at least one tile."""
    return max(1, lanes // plan.tile_size) * plan.tile_size
