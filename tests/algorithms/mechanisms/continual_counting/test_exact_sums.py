"""Streams of floats: their sums are integers, which a replaced entry moves by its change alone, at every size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import additive, doubling_counter, toeplitz_counter, tree_counter
from jaxdp.mechanisms.continual_counting.counter import sum_along
from jaxdp.mechanisms.continual_counting.noise import node_noise
from jaxdp.mechanisms.tape import recording
from jaxdp.numerics import compensated
from jaxdp.numerics.fixed_point import UNITS, Sum, from_floats

pytestmark = pytest.mark.precision

INTEGER = jnp.result_type(int)
LENGTH = 300
LARGE = [(2**24, 0), (2**26, UNITS - 1), (2**30 - 1, UNITS - 1), (-(2**26), 1), (0, UNITS - 1)]
MAKE = {
    "tree": (lambda: tree_counter(horizon=2**10 - 1, arity=2), {"epsilon": 1.0}),
    "gaussian tree": (lambda: tree_counter(horizon=2**10 - 1, arity=2, noise="gaussian"), {"rho": 1.0}),
    "toeplitz": (lambda: toeplitz_counter(horizon=2**10 - 1, num_buffers=5), {"rho": 1.0}),
    "doubling": (lambda: doubling_counter(horizon=2**10 - 1), {"epsilon": 1.0}),
}


def integers_of(sums: Sum) -> np.ndarray:
    """Returns the numbers of units."""
    assert ((np.asarray(sums.part) >= 0) & (np.asarray(sums.part) < UNITS)).all()
    return np.asarray(sums.whole, np.int64) * UNITS + np.asarray(sums.part, np.int64)


def neighbours() -> np.ndarray:
    """Makes streams [LENGTH, 3] that differ in one entry."""
    entries = np.random.default_rng(0).uniform(0.5, 1.0, (LENGTH, 1)).astype(np.float32).repeat(3, axis=1)
    entries[100] = [0.0, 1.0, 0.3]
    return entries


def with_sums(state, large):
    """Returns the state with sums of this size, with two entries, and half of a larger block's."""
    if not hasattr(state, "nodes"):
        return state._replace(total=Sum(*(jnp.full_like(state.total.whole, word) for word in large)))
    sums = Sum(*(leaf.at[1].set(word) for leaf, word in zip(state.nodes.sums, large, strict=True)))
    nodes = state.nodes._replace(digits=state.nodes.digits.at[1].set(1), sums=sums)
    return state._replace(nodes=nodes, clock=jnp.full_like(state.clock, 2**9 + 1))  # within the last epoch


@pytest.mark.parametrize("name", MAKE)
def test_a_replaced_entry_moves_sums_by_its_change_alone(name):
    make, values = MAKE[name]
    counter, entries = make(), neighbours()
    params = counter.params(**values)

    @jax.jit
    def run(state, entries):
        def step(state, now):
            return counter.feed(jax.random.key(0), params, state, now), None

        return jax.lax.scan(step, state, entries)[0]

    added = np.round(entries.astype(np.float64) * UNITS).astype(np.int64).sum(axis=0)
    for large in LARGE:
        end = run(with_sums(counter.init(None, params, (3,), dtype=float), large), jnp.asarray(entries, float))
        found = integers_of(end.nodes.sums).sum(axis=0) if hasattr(end, "nodes") else integers_of(end.total)
        assert found.tolist() == (large[0] * UNITS + large[1] + added).tolist()


def test_sums_of_floats_move_by_something_else():
    """Shows the mistake, with and without compensation."""
    entries = jnp.asarray(neighbours(), jnp.float32)
    start = compensated.zero(entries[0])._replace(total=jnp.full(3, 2.0**26, jnp.float32))

    def step(state, now):
        kept, plain = state
        return (compensated.add(kept, now), plain + now), None

    (kept, plain), _ = jax.jit(lambda: jax.lax.scan(step, (start, start.total), entries))()
    for sums in (
        np.asarray(kept.total, np.float64) - np.asarray(kept.excess, np.float64),
        np.asarray(plain, np.float64),
    ):
        assert sums[1] - sums[0] != 1.0


def test_entries_are_multiples_of_a_unit():
    """Compares with Python's integers, at both ends, at halves, and for NaN."""
    values = [0.0, 1.0, -1.0, 0.3, -0.3, 2.0**-21, 3 * 2.0**-21, -(2.0**-21), 1 - 2.0**-22, -1e-30, 5.75]
    entries = np.asarray(values, jnp.result_type(float))
    exact = [round(float(value) * UNITS) for value in entries]
    assert integers_of(jax.jit(from_floats)(entries)).tolist() == exact
    ends = from_floats(jnp.asarray([np.nan, np.inf, -np.inf, 1e30], float))
    largest = int(np.nextafter(jnp.result_type(float).type(2.0 ** (jnp.iinfo(INTEGER).bits - 1)), 0))
    assert ends.whole.tolist() == [0, largest, -largest, min(largest, int(1e30))]
    assert not np.any(np.asarray(ends.part))


def test_many_entries_are_summed_at_once():
    """Sums more entries than parts of 32-bit integers hold."""
    sums = Sum(jnp.full((2, 5000), 7, INTEGER), jnp.full((2, 5000), UNITS - 1, INTEGER))
    assert integers_of(jax.jit(lambda sums: sum_along(sums, 1))(sums)).tolist() == [5000 * (8 * UNITS - 1)] * 2
    if jnp.int32 == INTEGER:
        assert int(sums.part.sum(axis=1)[0]) != 5000 * (UNITS - 1)


@pytest.mark.parametrize("name", MAKE)
def test_whole_streams_are_summed_exactly(name):
    """Checks that without noise the release is the exact sum, rounded once; an infinite budget adds nothing."""
    make, values = MAKE[name]
    counter, entries = make(), neighbours()[90:110]
    params = counter.params(**dict.fromkeys(values, np.inf))
    keys = jax.random.split(jax.random.key(0), len(entries))
    found = np.asarray(jax.jit(counter.prefixes)(keys, params, jnp.asarray(entries, float)))
    exact = np.round(entries.astype(np.float64) * UNITS).cumsum(axis=0) / UNITS
    places = 1 if name in ("toeplitz", "gaussian tree") else 8  # estimates of blocks are floats
    np.testing.assert_allclose(found, exact, rtol=places * float(np.finfo(found.dtype).eps), atol=0)


@pytest.mark.parametrize(("noise", "grid"), [("laplace", "laplace_grid"), ("gaussian", "normal_grid")])
def test_the_noise_of_one_node_covers_the_rounding_of_all_nodes_of_an_entry(noise, grid, monkeypatch):
    """Releases one of 20 nodes at a scale with coarse steps: an entry's change is rounded in each of them."""
    grids, build, kind = [], getattr(additive, grid), node_noise(noise, 20)
    monkeypatch.setattr(additive, grid, lambda *args: grids.append(build(*args)) or grids[-1])
    budget, share = {"laplace": ("epsilon", 0.01), "gaussian": ("rho", 1e-14)}[noise]
    params = kind.params(**{budget: share, f"{'l1' if noise == 'laplace' else 'l2'}_sensitivity": 0.9})
    with recording():  # without a shared trace
        kind.add(jax.random.key(0), params, None, Sum(jnp.zeros((), INTEGER), jnp.zeros((), INTEGER)), 1)
    change, scale = 0.9 / float(grids[0].step) + 1, float(grids[0].scale)
    spent = 20 * np.floor(change) / scale if noise == "laplace" else 20 * (change / scale) ** 2 / 2
    assert spent <= share
