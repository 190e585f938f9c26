"""Every registered run lowers for CUDA, and calls nothing there that only a CPU has. No GPU is needed for that."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxdp.random import fast
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.simulation import simulator
from tests.any_device import any_device

LANES = 4
OF_CUDA = ("cu", "Sharding", "annotate_device_placement", "xla.gpu")  # cuSOLVER, cuBLAS, the GPU's Threefry


@pytest.fixture(autouse=True, scope="module")
def all_forms():
    with any_device():
        yield


def foreign(function: Callable[..., Any], *arguments: Any) -> set[str]:
    """Calls in a function's program for CUDA that are none of CUDA's."""
    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    called = set(re.findall(r"custom_call @([\w.$]+)", text)) | set(re.findall(r'call_target_name = "([^"]+)"', text))
    return {name for name in called if not name.startswith(OF_CUDA)}


def program(name: str) -> tuple[Callable[..., Any], Any, Any]:
    """What a sweep compiles of an entry, at its tiny problem: some lanes side by side."""
    keys = jax.random.split(fast(jax.random.key(0)), LANES)
    if name in ESTIMATORS:
        entry = ESTIMATORS[name]
        estimator, (features, labels) = entry.make(), entry.make_data(jax.random.key(0))

        def one(key, params):
            key_report, key_fit = jax.random.split(key)
            return estimator.fit(key_fit, params, features, estimator.privatize(key_report, params, features, labels))

        return jax.vmap(one, (0, None)), keys, estimator.params(**entry.values)
    entry = LEARNERS[name]
    run = simulator(entry.make(), entry.make_environment(), entry.horizon)
    return jax.vmap(run, (0, None)), keys, run.params(**entry.values)


@pytest.mark.parametrize("name", [*LEARNERS, *ESTIMATORS])
def test_it_lowers_for_cuda_without_a_call_of_the_cpu(name):
    assert not foreign(*program(name))


def test_forms_of_other_devices_are_what_is_lowered():
    text = jax.jit(lambda key: jax.random.split(key)).trace(fast(jax.random.key(0))).lower(lowering_platforms=("cuda",))
    assert "inlineable" not in text.as_text()  # as kernels of a CPU are


def test_a_call_of_the_cpu_is_found():
    def factorized(x):
        return jax.ffi.ffi_call("lapack_spotrf_ffi", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    assert foreign(factorized, jnp.eye(3)) == {"lapack_spotrf_ffi"}
    assert not foreign(jnp.linalg.cholesky, jnp.eye(3))  # CUDA has its own
    with pytest.raises(NotImplementedError):  # what only a CPU has does not even lower
        foreign(lambda x: jax.scipy.linalg.schur(x)[0], jnp.eye(3))
