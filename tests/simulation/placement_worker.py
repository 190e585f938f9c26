"""Run as a process of its own, since the number of CPU devices is fixed when JAX starts: writes a sweep's outputs.

Usage: python -m tests.simulation.placement_worker NAME NUM_DEVICES CHUNK_SIZE FILE
"""

import math
import pickle
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.simulation import Run
from tests.simulation.learners import linear_bandit
from tests.simulation.worlds import linear_rewards

SWEEP: dict = {"axes": {"epsilon": [0.5, 2.0, math.inf]}, "num_seeds": 9, "tile_size": 4}


def commit() -> Run:
    learner = jaxdp.bandits.explore_then_commit(num_arms=3, explore_rounds=30)
    return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.3, 0.5, 0.6]), 200, checkpoints=3)


def experts() -> Run:
    learner = jaxdp.experts.exponential_weights(num_experts=37, horizon=60)
    return jaxdp.simulator(learner, jaxdp.experts.adaptive_losses(np.linspace(0.2, 0.8, 37), penalty=0.2), 60)


def cholesky() -> Run:
    learner = linear_bandit(num_arms=4, dim=3)
    return jaxdp.simulator(learner, linear_rewards(np.asarray([0.5, -0.3, 0.2]), num_arms=4), 40)


def eigenvalues() -> Run:
    """Computes batched eigh: one program partitioned over CPU devices would never return."""

    def simulate(key, params):
        def step(total, key):
            draw = jax.random.normal(key, (12, 12))
            return total + jnp.linalg.eigh(draw + draw.T)[0] / params["epsilon"], None

        return {"values": jax.lax.scan(step, jnp.zeros(12), jax.random.split(key, 20))[0]}

    return Run(
        simulate=simulate,
        params=lambda *, epsilon: {"epsilon": jnp.asarray(epsilon, float)},
        guarantee=lambda **values: {},
        dims={"values": ("index",)},
    )


BUILDS = {build.__name__: build for build in (commit, experts, cholesky, eigenvalues)}


def main(name: str, num_devices: int, chunk_size: int, file: Path) -> None:
    jax.config.update("jax_num_cpu_devices", num_devices)
    assert len(jax.devices()) == num_devices
    results = jaxdp.sweep(BUILDS[name], **SWEEP, key=jax.random.key(0), chunk_size=chunk_size)
    file.write_bytes(pickle.dumps({output: results[output].values for output in results}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
