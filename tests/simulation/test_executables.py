"""The same program is compiled once in a process, as a notebook's cell that is run again."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.simulation import Run
from jaxdp.simulation.sweeps.executables import EXECUTABLES, Executables
from tests.events import durations_of

KEY = partial(jax.random.key, 0)


@pytest.fixture
def compiled():
    """Lists the programs that XLA compiles, or reads from the cache on disk."""
    EXECUTABLES.clear()
    with durations_of("backend_compile_duration") as events:
        yield events


def cell(shift, scales=(1.0, 2.0), *, unread=0, num_seeds=5, **given):
    """Runs a notebook's cell, which makes all that it needs: also the class of its parameters."""

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class Params:
        scale: np.float32
        unread: np.ndarray

    def build():
        return Run(
            simulate=lambda key, params: {"value": params.scale * jax.random.normal(key).astype(jnp.float32) + shift},
            params=lambda *, scale: Params(np.float32(scale), np.zeros(unread, np.float32)),
            guarantee=lambda **_: {},
            dims={"value": ()},
        )

    return jaxdp.sweep(build, axes={"scale": scales}, num_seeds=num_seeds, key=KEY(), **given).value.values


def test_a_cell_that_is_run_again(compiled, tmp_path):
    first = cell(np.float32(1))
    compiled.clear()
    np.testing.assert_array_equal(cell(np.float32(1)), first)
    assert len(cell(np.float32(1), scales=(3.0, 4.0), num_seeds=2)) == 2  # values are arguments, not the program
    np.testing.assert_array_equal(cell(np.float32(1), store=tmp_path / "s.zarr"), first)
    assert compiled == []
    np.testing.assert_allclose(cell(np.float32(2)), first + 1, rtol=1e-6)
    assert len(compiled) == 1


def test_what_is_another_program(compiled):
    """Changes an array that is closed over, a tile's size, an argument that nothing reads, the number of points,
    bits.
    """
    table = np.arange(3.0, dtype=np.float32)
    first = cell(table.sum())
    expected = [first, first, first, first[:1]]
    found = [first]
    for size, again in enumerate(
        [
            lambda: cell(table.sum(), tile_size=3),
            lambda: cell(table.sum(), unread=2),
            lambda: cell(table.sum(), scales=(1.0,)),
        ],
        2,
    ):
        compiled.clear()
        found.append(again())
        assert len(EXECUTABLES) == size
        assert len(compiled) >= 1
    with jax.enable_x64(not jax.config.read("jax_enable_x64")):
        cell(table.sum())
    assert len(EXECUTABLES) == 5
    np.testing.assert_allclose(cell(np.float32(4)), first + 1, rtol=1e-6)
    assert len(EXECUTABLES) == 6
    for mine, theirs in zip(found, expected, strict=True):  # programs of other sizes may fuse other operations
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_large_arrays_that_are_closed_over_are_told_apart(compiled):
    def swept(table):
        run = Run(
            simulate=lambda key, scale: {"value": scale * jnp.asarray(table)[jax.random.randint(key, (), 0, 1000)]},
            params=lambda *, scale: np.float32(scale),
            guarantee=lambda **_: {},
            dims={"value": ()},
        )
        return jaxdp.sweep(run, axes={"scale": [1.0]}, num_seeds=4, key=KEY()).value.values

    table = np.ones(1000, np.float32)
    np.testing.assert_array_equal(swept(table), 1)
    np.testing.assert_array_equal(swept(2 * table), 2)


def test_functions_of_python_are_called_and_not_their_predecessors(compiled):
    """Checks that the program's text is the same for any function that it calls back."""

    def swept(function):
        run = Run(
            simulate=lambda key, scale: {"value": jax.pure_callback(function, scale, scale, vmap_method="sequential")},
            params=lambda *, scale: np.float32(scale),
            guarantee=lambda **_: {},
            dims={"value": ()},
        )
        return jaxdp.sweep(run, axes={"scale": [3.0]}, num_seeds=1, tile_size=1, key=KEY()).value.item()

    assert [swept(lambda x: x + np.float32(1)), swept(lambda x: x * np.float32(2))] == [4.0, 6.0]
    assert len(EXECUTABLES) == 0


def test_the_last_ones_are_kept():
    made = []
    kept = Executables(most=2, most_bytes=10)

    def get(key, num_bytes=1):
        return kept.get(key, num_bytes, lambda: made.append(key) or key)

    assert [get(key) for key in "abacb"] == list("abacb")
    assert made == list("abcb")  # c took b's place, and b took a's
    assert get("large", 11) == "large"
    assert len(kept) == 0
    get("x", 6)
    get("y", 6)
    assert len(kept) == 1


def test_which_of_two_parameters_is_read_is_in_the_program(compiled, tmp_path):
    """Checks arguments that JAX drops as unread: one of the two programs would get the results of the other."""

    def run(which):
        return Run(
            simulate=lambda key, params: {"value": params[which] * 1.0},
            params=lambda *, scale: {"a": np.float32(scale), "b": np.float32(10 * scale)},
            guarantee=lambda **_: {},
            dims={"value": ()},
        )

    options = {"axes": {"scale": [1.0, 2.0]}, "num_seeds": 1, "key": KEY()}
    for which, expected in (("a", [1, 2]), ("b", [10, 20])):
        np.testing.assert_array_equal(jaxdp.sweep(run(which), **options).value.values[:, 0], expected)
    both = jaxdp.sweep(run, static_axes={"which": ["a", "b"]}, **options)
    np.testing.assert_array_equal(both.value.values[:, :, 0], [[1, 2], [10, 20]])
    jaxdp.sweep(run("a"), store=tmp_path / "s.zarr", **options)
    with pytest.raises(ValueError, match="program"):
        jaxdp.sweep(run("b"), store=tmp_path / "s.zarr", **options)


def test_what_a_program_prints_is_its_own(compiled, capfd):
    def swept(text):
        def simulate(key, scale):
            jax.debug.print(text, scale)
            return {"value": scale}

        run = Run(
            simulate=simulate, params=lambda *, scale: np.float32(scale), guarantee=lambda **_: {}, dims={"value": ()}
        )
        jaxdp.sweep(run, axes={"scale": [3.0]}, num_seeds=1, tile_size=1, key=KEY())
        jax.effects_barrier()
        return capfd.readouterr().out

    assert "one 3.0" in swept("one {}")
    assert "two 3.0" in swept("two {}")
