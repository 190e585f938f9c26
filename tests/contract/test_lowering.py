"""Every registered run can be compiled for a GPU by the engine that `auto` chooses. No GPU is needed for that.

The structural contract has the same check of single rounds.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.random import fast_key
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.simulation import simulator
from jaxdp.testing.devices import check_for_gpu, foreign_calls
from tests.any_device import any_device

LANES = 4


@pytest.fixture(autouse=True, scope="module")
def all_forms():
    with any_device():
        yield


def traced(function: Callable[..., Any], *arguments: Any) -> Any:
    with jax.default_matmul_precision("highest"):
        return jax.jit(function).trace(*arguments)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_by_its_usual_engine(name):
    entry = LEARNERS[name]
    run = simulator(entry.make(), entry.make_environment(), entry.horizon, checkpoints=[1, entry.horizon])
    keys = jax.random.split(fast_key(jax.random.key(0)), LANES)
    check_for_gpu(jax.jit(jax.vmap(run, (0, None))).trace(keys, run.params(**entry.values)))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_over_lanes(name):
    entry = ESTIMATORS[name]
    estimator, (features, labels) = entry.make(), entry.make_data(jax.random.key(0))

    def one(key, params):
        key_report, key_fit = jax.random.split(key)
        return estimator.fit(key_fit, params, features, estimator.privatize(key_report, params, features, labels))

    check_for_gpu(
        traced(
            jax.vmap(one, (0, None)),
            jax.random.split(fast_key(jax.random.key(0)), LANES),
            estimator.params(**entry.values),
        )
    )


def test_forms_of_other_devices_are_what_is_lowered():
    text = (
        jax.jit(lambda key: jax.random.split(key))
        .trace(fast_key(jax.random.key(0)))
        .lower(lowering_platforms=("cuda",))
    )
    assert "inlineable" not in text.as_text()  # as kernels of a CPU are


def test_a_call_of_the_cpu_is_found():
    def factorized(x):
        return jax.ffi.ffi_call("lapack_spotrf_ffi", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(AssertionError, match="nothing that only a CPU has, got lapack_spotrf_ffi"):
        check_for_gpu(traced(factorized, jnp.eye(3)))
    assert not foreign_calls(traced(jnp.linalg.cholesky, jnp.eye(3)))  # CUDA has its own


def test_what_does_not_lower_is_an_error():
    with pytest.raises(NotImplementedError):
        check_for_gpu(traced(lambda x: jax.scipy.linalg.schur(x)[0], jnp.eye(3)))


def test_a_callback_is_found():
    def called(x):
        return jax.lax.fori_loop(0, 3, lambda _, x: jax.pure_callback(np.sin, x, x), x)

    with pytest.raises(AssertionError, match=r"no call of Python.*line"):
        check_for_gpu(traced(called, jnp.ones(2)))


@pytest.mark.parametrize("precision", ["default", "high", (jax.lax.Precision.HIGHEST, jax.lax.Precision.DEFAULT)])
def test_a_rounded_product_is_found(precision):
    with pytest.raises(AssertionError, match="factors are rounded"):
        check_for_gpu(traced(lambda x: jnp.matmul(x, x, precision=precision), jnp.eye(3)))
    check_for_gpu(traced(jnp.matmul, jnp.eye(3), jnp.eye(3)))
    check_for_gpu(traced(lambda x: jnp.matmul(x, x, precision=precision), jnp.eye(3, dtype=int)))


def test_a_random_order_of_additions_is_found():
    indices = jnp.array([0, 1, 1])
    sums = jnp.zeros(2)
    with pytest.raises(AssertionError, match="order is random"):
        check_for_gpu(traced(lambda x, i: x.at[i].add(jnp.ones(3)), sums, indices))
    check_for_gpu(traced(lambda x, i: x.at[i].add(1.0), sums, 1))
    check_for_gpu(traced(lambda x, i: x.at[i].add(1), jnp.zeros(2, int), indices))
    check_for_gpu(traced(jax.vmap(lambda x, i: x.at[i].add(1.0)), jnp.zeros((3, 2)), indices))  # a place in each row
