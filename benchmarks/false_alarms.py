"""How often a correct mechanism is flagged: 1000 audits at 95% confidence.

Not part of `make bench`: run `python benchmarks/false_alarms.py` once after a change to the auditor.
"""

import sys
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from jaxdp import registry
from jaxdp.audit import audit

KEYS, TRIALS = 100, 20_000
NAMES = (
    "laplace",
    "gaussian",
    "randomized_response",
    "k_ary_randomized_response",
    "randomize_scalar",
    "noisy_max_laplace",
    "noisy_max_gumbel",
    "noisy_max_exponential",
    "above_threshold",
    "above_threshold_optimal_split",
)

if __name__ == "__main__":
    total = 0
    for name, target in registry.attacks(NAMES).items():
        attack = target.attacks["release"]
        results = [audit(jax.random.key(1000 + key), attack, trials=TRIALS) for key in range(KEYS)]
        alarms = sum(result.verdict == "violated" for result in results)
        total += alarms
        print(f"{name:<32}{alarms:>4} of {KEYS}", flush=True)
    print(f"{'all':<32}{total:>4} of {KEYS * len(NAMES)}")
