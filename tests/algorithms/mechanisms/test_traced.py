"""Mechanisms are compiled once for calls of one form, and record on a tape nevertheless."""

import jax
import jax.numpy as jnp
import pytest

from jaxdp.mechanisms import (
    above_threshold_init,
    above_threshold_step,
    gaussian,
    k_norm,
    laplace,
    noisy_leads,
    noisy_max,
)
from jaxdp.mechanisms.tape import recording
from tests.events import durations_of

VALUES = jnp.arange(3, dtype=jnp.float32)


def ask(key):
    state = above_threshold_init(key, 1.0, threshold=2.0)
    return above_threshold_step(jax.random.fold_in(key, 1), state, VALUES[2])[1]


MECHANISMS = {
    "laplace": lambda key: laplace(key, VALUES, 1.0, l1_sensitivity=1.0),
    "gaussian": lambda key: gaussian(key, VALUES, 1.0),
    "k_norm": lambda key: k_norm(key, VALUES, 1.0, sensitivity=1.0),
    "noisy_max": lambda key: noisy_max(key, VALUES, 1.0),
    "noisy_leads": lambda key: noisy_leads(key, VALUES.astype(jnp.int32), 1.0, l1_sensitivity=1.0),
    "above_threshold": ask,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_second_call_compiles_nothing_and_is_recorded_on_a_tape(name):
    release, keys = MECHANISMS[name], [jax.random.key(seed) for seed in (1, 2)]
    first = release(keys[0])
    with durations_of("backend_compile_duration") as compiled:
        release(keys[1])
    assert not compiled
    with recording() as entries:
        again = release(keys[0])
    assert entries
    assert jnp.array_equal(first, again)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_key_that_is_used_twice_is_noticed(name):
    with jax.debug_key_reuse(True):
        key = jax.random.key(1)
        MECHANISMS[name](jax.random.clone(key))
        MECHANISMS[name](key)
        with pytest.raises(jax.errors.KeyReuseError):
            MECHANISMS[name](key)
