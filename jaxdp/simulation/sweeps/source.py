"""Where a sweep's chunks come from, whether this process computes them or an executor's workers do."""

from collections.abc import Sequence
from typing import Any, Protocol

from jaxdp.memory import free_host_bytes
from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.sweeps.plan import Place, Plan
from jaxdp.simulation.sweeps.schedule import Arrays, Chunks

BYTES_OF_A_CHUNK = 2**28


class Source(Protocol):
    """Computes a sweep's chunks: `LocalSource` on this process's devices, `RemoteSource` elsewhere.

    A sweep asks `best_chunk_lanes` once, before any chunk is computed, unless its caller chose the size or its store
    has one: the best size depends on how fast the source is. All results then come from `chunks`.

    Attributes:
        place: what computes the chunks.
        identity: the sweep's, as `Plan.identity` finds it in that place.
    """

    @property
    def place(self) -> Place: ...  # noqa: D102

    @property
    def identity(self) -> dict[str, Any]: ...  # noqa: D102

    def identity_of(self, plan: Plan) -> dict[str, Any]:
        """The identity of another sweep, found in that place."""
        ...

    def sample(self, chunk: Chunk) -> Arrays:
        """Computes a chunk by itself, and keeps its program compiled.

        Returns:
            Its outputs by name, each with a leading axis of its lanes.
        """
        ...

    def chunks(self, wanted: Sequence[Chunk]) -> Chunks:
        """Computes chunks, and reports how far they are.

        Args:
            wanted: chunks of the sweep, in the order of their lanes.

        Yields:
            Each chunk as it is done, and its outputs by name, each with a leading axis of its lanes.
        """
        ...

    def best_chunk_lanes(self, sharers: int | None) -> int:
        """How many lanes a chunk should have, a whole number of tiles.

        Args:
            sharers: processes that share the chunks of a store, which should be small: a process that is killed loses
                its unfinished chunk. None where there is no store, and only memory limits a chunk.
        """
        ...


def fitting_lanes(plan: Plan, part: int) -> int:
    """Lanes whose results take at most `BYTES_OF_A_CHUNK`, and 1 / part of this machine's free memory."""
    memory = min(BYTES_OF_A_CHUNK, (free_host_bytes() or BYTES_OF_A_CHUNK) // part)
    return min(memory // max(plan.lane_bytes, 1), plan.lanes.num_lanes)


def whole_tiles(plan: Plan, lanes: int) -> int:
    """As many lanes as whole tiles have, at least one tile's."""
    return max(1, lanes // plan.tile_size) * plan.tile_size
