"""How often a right claim is called violated: 100 audits of each registered one, by all its paths, at 95% confidence.

Not part of `make bench`: run `python benchmarks/false_alarms.py [NAMES]` after a change to the auditor; some hours.
"""

import dataclasses
import sys
import time
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from jaxdp import registry
from jaxdp.audit import scoreboard

KEYS, TRIALS = 100, 100_000
GREY_KEYS = 2  # a grey box takes seconds, and depends little on its key

if __name__ == "__main__":
    total, start = 0, time.perf_counter()
    for name, target in registry.attacks(sys.argv[1:] or None).items():
        if not target.claim.is_private:
            continue
        alone = {name: dataclasses.replace(target, grey_box=None, laws=None)}
        verdicts = [
            row.verdict for key in range(KEYS) for row in scoreboard(jax.random.key(1000 + key), alone, trials=TRIALS)
        ]
        boxes = [target.grey_box(jax.random.key(key)).verdict for key in range(GREY_KEYS)] if target.grey_box else []
        alarms = sum(verdict == "violated" for verdict in verdicts)
        total += alarms
        print(
            f"{name:<40}{alarms:>4} of {KEYS}   grey box {boxes.count('violated')} of {len(boxes)}   "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
    print(f"{'all':<40}{total:>4}")
