"""A million lanes to a store, and the most memory that the process had: `python benchmarks/million_lanes.py`."""

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import machine
from benchmarks.rows.sweeps import commit, sweep

LANES, HORIZON, TILE = 1_000_000, 2000, 256

if __name__ == "__main__":
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        results = sweep(lambda: commit(HORIZON), LANES, TILE, store=Path(folder) / "million.zarr")
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{LANES:,} lanes of explore_then_commit, horizon {HORIZON:,}, to a store", end=": ")
        print(f"{seconds:.1f} s, at most {peak:.2f} GiB; regret {float(results.pseudo_regret.mean()):.2f}")
