"""How often a right claim is called violated: 300 default audits, search included, at 95% confidence each.

Not part of `make bench`: run `python benchmarks/false_alarms.py FILE [NAMES]` after a change to the auditor, for hours.
Finished audits are kept in FILE, one line of JSON each, and a later run continues from there.
"""

import json
import sys
import time
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from jaxdp import registry
from jaxdp.audit import scoreboard

AUDITS, TRIALS = 300, 100_000

if __name__ == "__main__":
    file = Path(sys.argv[1])
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    targets = {
        name: target for name, target in registry.attacks(sys.argv[2:] or None).items() if target.guarantee.is_private
    }
    kept = {(row["name"], row["seed"]) for row in done}
    for number in range(AUDITS):
        name, seed = list(targets)[number % len(targets)], number // len(targets)
        if (name, seed) in kept:
            continue
        start = time.perf_counter()
        (row,) = scoreboard(jax.random.key(1000 + seed), {name: targets[name]}, trials=TRIALS, turn=seed)
        found = {"name": name, "seed": seed, "verdict": row.verdict, "ratio": row.ratio, "point": row.point}
        found |= {"found": bool(row.code), "faults": row.faults, "notes": row.notes}
        done.append({**found, "seconds": round(time.perf_counter() - start, 1)})
        with file.open("a") as out:
            out.write(json.dumps(done[-1]) + "\n")
        print(done[-1], flush=True)
        jax.clear_caches()  # the processor's memory for programs ends after some eighty audits
    alarms = sum(row["verdict"] in ("violated", "blunt") for row in done)
    print(f"{alarms} false alarms in {len(done)} audits")
