"""Optimised programs choose as unoptimised ones do.

With optimisation XLA may compute a number again wherever it is used, each time with other last bits. That moves no
result by more than rounding, unless a program takes two such numbers for the same one: where scores were compared with
their maximum, none was equal to it, and the first index was taken. Other tests compile without optimisation.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxdp.core import Environment
from jaxdp.random import ties
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.simulation import simulator
from jaxdp.simulation.run.values import select_values
from jaxdp.simulation.store.processor import host_processor
from jaxdp.testing.distributions import record_public
from tests.contract.test_distribution import implementations

pytestmark = [pytest.mark.optimised, pytest.mark.filterwarnings("ignore:the horizon")]

LANES = 4096  # XLA reduces fewer in another way
TOLERANCE = 1e-3  # of floats, beside the largest of their kind
PLAINLY: Any = {"xla_backend_optimization_level": 0}
REST = ".excess"  # rounding error of a compensated sum
KEY = jax.random.key(5)
PART = 0.9  # of the registered epsilon: by a power of two products are exact, and nothing is rounded
# What `make test` tries of them: private selection, and an equal choice among equals.
FIRST = ("noisy_max_gumbel", "noisy_max_exponential", "explore_then_commit", "limited_updates", "rucb")


def cases() -> list[Any]:
    names = [*MECHANISMS, *ESTIMATORS, *(f"{name}-rounds" for name in LEARNERS), *implementations()]
    always = {*FIRST, *(f"{name}-rounds" for name in FIRST)}
    return [pytest.param(name, marks=[pytest.mark.always] if name in always else []) for name in names]


def values_of(entry: Any) -> dict[str, float]:
    return {name: PART * value if name == "epsilon" else value for name, value in entry.values.items()}


def program(case: str) -> tuple[Callable[..., Any], Any]:
    """Returns the program to compile, (key, params) -> outputs of a lane; and the params."""
    name, _, engine = case.partition("-")
    if name in MECHANISMS:
        entry = MECHANISMS[name]
        made, (data, _) = entry.make(), entry.make_neighbours()
        # Backwards: of scores that neighbours have, the first one is the least likely.
        data = jax.tree.map(lambda leaf: jnp.flip(jnp.atleast_1d(leaf), 0).reshape(jnp.shape(leaf)), data)
        return lambda key, params: made.release(key, params, data), made.params(**values_of(entry))
    if name in ESTIMATORS:
        entry = ESTIMATORS[name]
        made, (features, labels) = entry.make(), entry.make_data(KEY)

        def estimate(key, params):
            key_privatize, key_fit = jax.random.split(key)
            report = made.privatize(key_privatize, params, features, labels)
            fitted = made.fit(key_fit, params, features, report)
            return report, fitted.theta  # how many steps it takes to converge hangs on rounding

        return estimate, made.params(**values_of(entry))
    entry = LEARNERS[name]
    learner, world = entry.make(), with_uneven_contexts(entry.make_environment())
    record = record_public(learner, learner.params(**select_values(learner.params, entry.values)))
    run = simulator(learner, world, entry.horizon, engine=engine, record=record)
    return run, run.params(**values_of(entry))


def with_uneven_contexts(world: Environment) -> Environment:
    """Makes arms that are equally far away: their bounds are equal up to rounding, which then chooses."""

    def uneven(contexts: Any) -> Any:
        return contexts * (1 - jnp.arange(contexts.shape[-2], dtype=contexts.dtype)[:, None] / 16)

    context, contexts = world.context, world.contexts
    return world._replace(
        context=context and (lambda key, params, state: uneven(context(key, params, state))),
        contexts=contexts and (lambda keys, params, state: uneven(contexts(keys, params, state))),
    )


def differences(case: str) -> list[str]:
    """Returns the outputs in which the optimised program differs from the other one, and in how many lanes."""
    run, params = program(case)
    keys, params = jax.random.split(KEY, LANES), jax.tree.map(jnp.asarray, params)
    lowered = jax.jit(jax.vmap(run, (0, None))).lower(keys, params)
    outputs, others = (jax.device_get(lowered.compile(options)(keys, params)) for options in (None, PLAINLY))
    found = []
    for (path, one), (_, other) in zip(*map(jax.tree_util.tree_leaves_with_path, (outputs, others)), strict=True):
        name, lanes = jax.tree_util.keystr(path), np.any(differ(one, other).reshape(LANES, -1), axis=1).sum()
        if lanes and REST not in name:
            found.append(f"{name} in {lanes} of {LANES} lanes")
    return found


def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if not np.issubdtype(one.dtype, np.inexact):
        return one != other
    largest = np.max(np.abs(other), where=np.isfinite(other), initial=0)
    return ~np.isclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * largest, equal_nan=True)


@pytest.mark.parametrize("case", cases())
def test_an_optimised_program_chooses_as_an_unoptimised_one(case):
    assert not differences(case)


@pytest.mark.always
@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="in 64 bits XLA on a CPU rounds both uses alike")
@pytest.mark.skipif("optimization_level=0" in os.environ.get("XLA_FLAGS", ""), reason="compiled without optimisation")
@pytest.mark.skipif("avx512f" not in host_processor(), reason="without AVX-512 XLA rounds both uses alike")
def test_scores_that_are_compared_with_their_maximum_are_noticed(monkeypatch):
    def largest(scores, order):
        tied = scores == jnp.max(scores, axis=-1, keepdims=True)
        return lax.argmax(jnp.where(tied, order, -1), scores.ndim - 1, jnp.int32)

    jax.clear_caches()
    monkeypatch.setattr(ties, "largest", largest)
    try:
        assert differences("noisy_max_gumbel")
    finally:
        jax.clear_caches()
