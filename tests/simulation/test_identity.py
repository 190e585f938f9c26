"""Programs that differ in the last bit of a constant, and stores of other versions."""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.seal import seal
from jaxdp.simulation.sweeps.lanes import Program
from tests.lazily import Lazy

SWEEP: Callable[[], dict] = functools.cache(
    lambda: {"axes": {"a": [1.0, 2.0]}, "num_seeds": 6, "tile_size": 4, "key": jax.random.key(0)}
)


def run(function):
    return Run(
        simulate=lambda key, a: {"x": function(a)},
        params=lambda a: np.float32(a),
        guarantee=lambda a: {},
        dims={"x": ()},
    )


def program(function) -> Program:
    return Program(run(function), jax.random.key(0), [np.float32(1.5)], 2, jax.devices())


def neighbours(value):
    return value, np.nextafter(value, np.float32(np.inf))


def matrices():
    matrix = np.eye(4, dtype=np.float32) + np.float32(0.1)
    other = matrix.copy()
    other[1, 2] = np.nextafter(other[1, 2], np.float32(1))
    return matrix, other


def solve(matrix):
    return lambda a: jnp.linalg.solve(jnp.asarray(matrix), a * jnp.ones(4, jnp.float32))[0]


def solve_by_steps(matrix):
    def steps(product, right):
        return jax.lax.scan(lambda found, _: (found + right - product(found), None), right, None, length=3)[0]

    return lambda a: jax.lax.custom_linear_solve(
        lambda x: jnp.asarray(matrix) @ x, a * jnp.ones(4, jnp.float32), steps, symmetric=True
    )[0]


def scaled(constant):
    return lambda a: jax.lax.custom_linear_solve(lambda x: x * constant, a, lambda _, right: right / constant)


def times(constant):
    return lambda a: a * constant


def in_a_loop(constant):
    return lambda a: jax.lax.while_loop(lambda x: x < constant, lambda x: x + 1, a)


def bits(constant):
    return lambda a: jax.lax.bitcast_convert_type(jnp.where(a > 0, constant, a), jnp.int32)


def plus(constant):
    return lambda a: a.astype(jnp.int32) + constant


DIFFERENT = Lazy(
    {
        "a matrix that is solved": lambda: (solve, *matrices()),
        "a matrix that is solved step by step": lambda: (solve_by_steps, *matrices()),
        "a scale that is solved for": lambda: (scaled, *neighbours(np.float32(0.1))),
        "a factor": lambda: (times, *neighbours(np.float32(0.1))),
        "a large factor": lambda: (times, *neighbours(np.float32(1.2345678e30))),
        "the least number": lambda: (times, *neighbours(np.float32(1e-45))),
        "a factor of 16 bits": lambda: (times, jnp.float32(jnp.bfloat16(1.0)), jnp.float32(jnp.bfloat16(1.0078125))),
        "a bound": lambda: (in_a_loop, *neighbours(np.float32(3.0))),
        "a zero's sign": lambda: (bits, np.float32(0.0), np.float32(-0.0)),
        "a NaN's bits": lambda: (bits, *np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)),
        "the largest integer": lambda: (plus, np.int32(2**31 - 1), np.int32(2**31 - 2)),
    }
)


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_constants_last_bit_is_another_program(case):
    make, first, second = DIFFERENT[case]
    assert program(make(first)).hashes()["program"] == program(make(first)).hashes()["program"]
    assert program(make(first)).hashes()["program"] != program(make(second)).hashes()["program"]


SAME = {
    "a bit that rounding loses": (
        solve,
        *(np.float32(0.5) + np.eye(4, dtype=np.float32) * c for c in (0.1, 0.1 + 1e-9)),
    ),
    "a float32 of large integers": (times, np.float32(2**31 - 1), np.float32(2**31 - 2)),
    "a Python number": (times, 2.0**31 - 1, 2.0**31 - 2),
}


@pytest.mark.parametrize("case", SAME)
def test_constants_that_round_to_one_number_are_one_program_with_one_result(case):
    make, first, second = SAME[case]
    programs = program(make(first)), program(make(second))
    assert programs[0].hashes() == programs[1].hashes()
    index = np.zeros(2, np.uint32)
    results = [np.asarray(one.compile().tiles[0](index, index)["x"]) for one in programs]
    assert results[0].tobytes() == results[1].tobytes()


def with_identity(store: Path, **changes) -> None:
    """Gives a store another record of itself."""
    file = store / "zarr.json"
    told = json.loads(file.read_text())
    notes = told["consolidated_metadata"]["metadata"]["computed"]["attributes"]
    identity = json.loads(notes["identity"]) | changes
    notes["identity"] = json.dumps({name: value for name, value in identity.items() if value is not None})
    seal(told)
    file.write_text(json.dumps(told))


@pytest.mark.parametrize("written", [None, 3, 5])
def test_a_store_of_another_version_is_refused_and_read(tmp_path, written):
    store = tmp_path / "s.zarr"
    first = sweep(lambda: run(times(2)), **SWEEP(), store=store).load()
    with_identity(store, format=written)
    with pytest.raises(
        ValueError, match=r"store must have this version.s format, got .*s\.zarr, written by .*jaxdp\.open reads it"
    ):
        sweep(lambda: run(times(2)), **SWEEP(), store=store)
    assert jaxdp.open(store).x.equals(first.x)
    assert sweep(lambda: run(times(2)), **SWEEP(), store=store, overwrite=True).equals(first)


def test_other_options_of_the_compiler_and_other_libraries_are_refused(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(lambda: run(times(2)), **SWEEP(), store=store)
    with_identity(store, compiler_options={"xla_cpu_enable_fast_math": True})
    with pytest.raises(ValueError, match=r"compiler_options\.xla_cpu_enable_fast_math is True there, None here"):
        sweep(lambda: run(times(2)), **SWEEP(), store=store)
    with_identity(store, compiler_options=None, versions={"jax": "0.1"})
    with pytest.raises(ValueError, match=r"versions\.scipy is None there, '.*' here"):
        sweep(lambda: run(times(2)), **SWEEP(), store=store)
