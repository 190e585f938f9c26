"""The interface of a sweep's chunk sources: this process's devices, or an executor's workers."""

from collections.abc import Sequence
from typing import Any, Protocol

from jaxdp.memory import free_host_bytes
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.plan import Place, Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks

BYTES_OF_A_CHUNK = 2**28


class Source(Protocol):
    """Computes a sweep's chunks: `LocalSource` on this process's devices, `RemoteSource` elsewhere.

    A sweep calls `best_chunk_lanes` once, before any chunk is computed, unless its caller or its store fixes the size:
    the best size depends on how fast the source is. All results then come from `chunks`.

    Attributes:
        place: the hardware and settings of the source.
        identity: the sweep's identity, as `Plan.identity` determines it there.
    """

    @property
    def place(self) -> Place: ...  # noqa: D102

    @property
    def identity(self) -> dict[str, Any]: ...  # noqa: D102

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """Returns the identity of another sweep, determined there."""
        ...

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes one chunk, and keeps its program compiled.

        Returns:
            Its outputs by name, each with a leading axis of its lanes.
        """
        ...

    def chunks(self, requested: Sequence[Chunk]) -> Chunks:
        """Computes chunks, and reports progress.

        Args:
            requested: chunks of the sweep, in the order of their lanes.

        Yields:
            Each chunk as it is done, and its outputs by name, each with a leading axis of its lanes.
        """
        ...

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """Returns the number of lanes that a chunk should have, a whole number of tiles.

        Args:
            sharers: number of processes that share the chunks of a store. Their chunks should be small: a process that
                is killed loses its unfinished chunk. None if there is no store, and only memory limits a chunk.
        """
        ...


def fitting_lanes(plan: Plan, part: int) -> int:
    """Returns how many lanes have results of at most `BYTES_OF_A_CHUNK`, and 1 / part of this machine's free memory."""
    memory = min(BYTES_OF_A_CHUNK, (free_host_bytes() or BYTES_OF_A_CHUNK) // part)
    return min(memory // max(plan.lane_bytes, 1), plan.lanes.num_lanes)


def whole_tiles(plan: Plan, lanes: int) -> int:
    """Returns `lanes` rounded down to whole tiles, at least one tile."""
    return max(1, lanes // plan.tile_size) * plan.tile_size
