"""Programs that run briefly are compiled with options that this version of XLA knows, and once for equal shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import quick_programs
from jaxdp.audit.quick_programs import jit_quickly, quick_options, sums_in_inner_loops


def test_an_option_that_this_version_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(quick_programs, "ON_OLDER_CPU", {"xla_no_such_option": False})
    options = quick_options.__wrapped__()
    assert "xla_no_such_option" not in options
    assert options["xla_backend_optimization_level"] == 0
    assert quick_options.__wrapped__(runs_long=True)["xla_backend_optimization_level"] == 3


def test_programs_without_ynn_have_none_of_its_kernels():
    totals = jax.jit(lambda x: (x * x).sum(axis=1)).lower(jax.ShapeDtypeStruct((1024, 10), jnp.float32))
    options = [quick_options.__wrapped__(runs_long=True, without_ynn=flag) for flag in (False, True)]
    usual, without = (str(totals.compile(one).as_text()) for one in options)
    assert "__ynn_fusion" not in without
    if jax.default_backend() == "cpu":
        assert "__ynn_fusion" in usual  # otherwise the option has no use, and should go


def test_sums_in_loops_in_loops_are_found():
    def repeat(step, x):
        return jax.lax.fori_loop(0, 3, lambda _, x: step(x), x)

    def total(x):
        return jax.lax.cond(x[0] > 0, lambda: x + jnp.sum(x), lambda: x)

    x = np.ones(4, np.float32)
    assert sums_in_inner_loops(lambda x: repeat(lambda x: repeat(total, x), x), x)
    for shallow in (total, lambda x: repeat(total, x), lambda x: total(repeat(lambda x: repeat(jnp.sin, x), x))):
        assert not sums_in_inner_loops(shallow, x)


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
