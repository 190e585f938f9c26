"""Programs that run briefly are compiled with options that this version of XLA knows, and once for equal shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import quick_programs
from jaxdp.audit.quick_programs import jit_quickly, quick_options


def test_an_option_that_this_version_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(quick_programs, "ON_OLDER_CPU", {"xla_no_such_option": False})
    options = quick_options.__wrapped__()
    assert "xla_no_such_option" not in options
    assert options["xla_backend_optimization_level"] == 0
    assert quick_options.__wrapped__(runs_long=True)["xla_backend_optimization_level"] == 3


def test_programs_on_a_cpu_are_compiled_with_these_options(monkeypatch):
    monkeypatch.setattr(quick_programs, "quick_options", lambda **_: {"xla_no_such_option": False})
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        jit_quickly(lambda x: x)(np.float32(1))


def test_programs_on_other_devices_are_compiled_as_usual(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(quick_programs, "quick_options", lambda **_: {"xla_no_such_option": False})
    assert jit_quickly(lambda x: x)(np.float32(1)) == 1


def test_equal_shapes_share_a_program():
    traced = []

    @jit_quickly
    def double(x):
        traced.append(x)
        return 2 * x

    np.testing.assert_array_equal(double(jnp.arange(3)), [0, 2, 4])
    np.testing.assert_array_equal(double(jnp.arange(1, 4)), [2, 4, 6])
    assert len(traced) == 1


def test_static_arguments():
    assert jit_quickly(lambda f, x: f(x), static_argnums=0)(jnp.negative, np.float32(1)) == -1
