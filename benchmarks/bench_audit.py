"""The auditor: trials a second, and how many trials it takes to flag each known mistake.

Run as `python benchmarks/bench_audit.py`.
"""

import sys
import time
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.timing import machine
from jaxdp import registry
from jaxdp.audit import audit
from tests.privacy.mutants import ZOO

KEYS = 10
TRIALS = 10**6
FEWEST, MOST = 1000, 2_048_000


def bench_speed():
    print(f"one audit, {TRIALS} trials under each input")
    names = ["randomized_response", "laplace", "gaussian", "noisy_max_exponential", "above_threshold"]
    for name, target in registry.attacks(names).items():
        attack = target.attacks["release"]
        first = audit(jax.random.key(0), attack, trials=TRIALS).seconds
        again = min(audit(jax.random.key(key), attack, trials=TRIALS).seconds for key in (1, 2, 3))
        rate = 2 * TRIALS / again / 1e6
        print(f"  {name:<24}{again:7.2f} s   {rate:6.2f} million outputs a second   first {first:.1f} s")


def bench_mistakes():
    print(f"trials under each input until {KEYS} of {KEYS} keys flag a mistake, by doubling from {FEWEST}")
    for name, make in ZOO.items():
        case, trials, start = make(), FEWEST, time.perf_counter()
        if case.trials > MOST:
            print(f"  {name:<48}not tried: {case.trials:,} in the tests")
            continue
        while trials <= MOST:
            if all(audit(jax.random.key(k), case.wrong, trials=trials).verdict == "violated" for k in range(KEYS)):
                break
            trials *= 2
        print(f"  {name:<48}{trials:>9,}   {time.perf_counter() - start:6.1f} s for the search")


if __name__ == "__main__":
    print(machine())
    bench_speed()
    bench_mistakes()
