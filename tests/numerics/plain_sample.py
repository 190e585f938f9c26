"""Computes a sample of results and prints them as JSON: a script for JAXDP_PLAIN=1, and a module without it."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.numerics import private_jax
from jaxdp.numerics.eigen import eigh
from jaxdp.numerics.kernels import across_lanes

HORIZON = 40


def variates():
    keys = jaxdp.lane_keys(jax.random.key(0), 5)
    matrices = jax.vmap(jnp.diag)(jnp.arange(12.0).reshape(4, 3))
    return {
        "normal": jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys),
        "gamma": jax.vmap(lambda key: jaxdp.random.gamma(key, jnp.full(2, 2.5)))(keys),
        "sums": jax.vmap(across_lanes(lambda values: values.sum(0)))(jnp.arange(12.0).reshape(3, 4)),
        "eigenvalues": jax.vmap(lambda matrix: eigh(matrix).values)(matrices),
    }


def regrets():
    bandit = jaxdp.bandits.bernoulli_bandit((0.3, 0.5, 0.7))
    losses = np.random.default_rng(0).uniform(size=(HORIZON, 4)).astype(np.float32)
    commit = jaxdp.bandits.explore_then_commit(num_arms=3, explore_rounds=12)
    epsilons = {"epsilon": [0.5, 2.0]}
    runs = {
        "rounds": (jaxdp.simulator(commit, bandit, HORIZON, engine="rounds"), epsilons),
        "blocks": (jaxdp.simulator(commit, bandit, HORIZON, engine="blocks"), epsilons),
        "tsallis_inf": (jaxdp.simulator(jaxdp.bandits.tsallis_inf(num_arms=3), bandit, HORIZON), epsilons),
        "hedge": (
            jaxdp.simulator(
                jaxdp.experts.hedge(num_experts=4, horizon=HORIZON), jaxdp.experts.loss_sequence(losses), HORIZON
            ),
            {"learning_rate": [0.1, 1.0]},
        ),
    }
    keys = jaxdp.lane_keys(jax.random.key(1), 6)

    def results(run, values):
        params, axes = run.points(**values)
        outcomes = jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, axes)))(keys, params)
        return next(found for name, found in sorted(outcomes.items()) if "regret" in name)

    return {name: results(*run) for name, run in runs.items()}


PARTS = {"variates": variates, "regrets": regrets}


def sample(part):
    return jax.tree.map(lambda found: np.asarray(found).tolist(), PARTS[part]())


if __name__ == "__main__":
    print(json.dumps({"plain": private_jax.PLAIN, "sample": sample(sys.argv[1])}))
