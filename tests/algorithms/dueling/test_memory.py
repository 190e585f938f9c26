"""The memory of a run of duels does not grow with its horizon."""

from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import (
    double_thompson,
    ebs_elimination,
    ebs_local,
    ebs_phased,
    rucb,
    utility_duels,
    versatile_sparring,
)

LANES = 64
MAKE = {
    "ebs_elimination": lambda horizon: ebs_elimination(num_arms=4, horizon=horizon),
    "ebs_phased": lambda horizon: ebs_phased(num_arms=4),
    "ebs_local": lambda horizon: ebs_local(num_arms=4, horizon=horizon),
    "versatile_sparring": lambda horizon: versatile_sparring(num_arms=4),
    "rucb": lambda horizon: rucb(num_arms=4),
    "double_thompson": lambda horizon: double_thompson(num_arms=4),
}


def bytes_held(name, horizon):
    """Returns the bytes of a lane, by the engine that a user gets."""
    duels = utility_duels(np.linspace(1, 0, 4))
    run = jaxdp.simulator(MAKE[name](horizon), duels, horizon)
    lowered = jax.jit(jax.vmap(run, (0, None))).lower(
        jax.random.split(jax.random.key(0), LANES), run.params(epsilon=1.0)
    )
    analysis: Any = lowered.compile().memory_analysis()
    return analysis.temp_size_in_bytes / LANES


@pytest.mark.parametrize("name", MAKE)
def test_memory_of_a_lane(name):
    """Checks for a few more words only: a tree of counters has a level for each factor of its arity."""
    short, long = (bytes_held(name, horizon) for horizon in (10**4, 10**8))
    assert 0 < long <= 1.2 * short
