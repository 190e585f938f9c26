"""Rows of audits: one audit, between the registered neighbours."""

import jax

from benchmarks.measure import Case, Work
from benchmarks.row import Row
from jaxdp import registry
from jaxdp.audit import audit

NAMES = ("randomized_response", "laplace", "gaussian", "noisy_max_exponential", "above_threshold")


def case(name, trials):
    attack = registry.attacks([name])[name].attacks["release"]
    works = {"jaxdp": Work(lambda: audit(jax.random.key(1), attack, trials=trials), 2 * trials)}
    return Case(works=works, size=f"2 x {trials:,}", unit="output")


ROWS = [
    Row(
        name=f"audit, {name}",
        make=lambda trials, name=name: case(name, trials),
        size={"trials": 10**6},
        quick={"trials": 1000},
    )
    for name in NAMES
]
