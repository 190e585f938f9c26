"""The kernels of the ball equal the geometry as it reads, bit for bit, and planted wrong kernels do not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits.convex import _ball, _ball_kernels
from jaxdp.numerics.compensated import Sum
from jaxdp.random import key_uniform
from tests.few import few

LANES = 2000
FLOAT = jnp.result_type(float)
STEPS = ("inner", "length", "project", "unit_vector", "descend")


def states(dim):
    """Points within the ball and beyond, the centre, and steps of all sizes."""
    random = np.random.default_rng(dim)
    x, step = random.normal(size=(2, LANES, dim)) * 10.0 ** random.integers(-6, 2, (2, LANES, 1))
    x[::7] = 0
    excess = random.uniform(-1, 1, x.shape) * np.abs(x) * jnp.finfo(FLOAT).eps
    radius = random.uniform(0, 2, LANES)
    x, excess, step, radius = (jnp.asarray(each, FLOAT) for each in (x, excess, step, radius))
    return {"x": Sum(x, excess), "step": step, "radius": radius, "key": jax.random.split(jax.random.key(dim), LANES)}


def played(form, given, change=lambda given: given):
    def lane(given):
        given = change(given)
        x = given["x"]
        return {
            "inner": form.inner(x.total, given["step"]),
            "length": form.length(x.total),
            "project": form.project(x.total, given["radius"]),
            "unit_vector": form.unit_vector(given["key"], x.total.shape[0]),
            "descend": form.descend(x, given["step"], given["radius"]),
        }

    return jax.jit(jax.vmap(lane))(given)


def differing(found, expected):
    equal = jax.tree.map(lambda left, right: bool(np.array_equal(left, right)), found, expected)
    return {name for name in STEPS if not all(jax.tree.leaves(equal[name]))}


@pytest.mark.parametrize("dim", few([1, 2, 5, 16, 17, 40], [1, 5, 17]))
def test_kernels_equal_the_plain_steps(dim):
    given = states(dim)
    assert differing(played(_ball_kernels, given), played(_ball, given)) == set()


WRONG = {
    "a longer step": (lambda given: given | {"step": 1.001 * given["step"]}, {"inner", "descend"}),
    "a larger ball": (lambda given: given | {"radius": 1.001 * given["radius"]}, {"project", "descend"}),
    "excess left out": (lambda given: given | {"x": given["x"]._replace(excess=0 * given["x"].excess)}, {"descend"}),
    "another key": (lambda given: given | {"key": jax.random.fold_in(given["key"], 1)}, {"unit_vector"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_noticed(name):
    change, noticed = WRONG[name]
    given = states(3)
    assert differing(played(_ball_kernels, given, change), played(_ball, given)) == noticed


def test_steps_of_a_long_descent_are_equal():
    """What rounding takes from a step is kept alike: 300 tiny steps, of which no single one moves the point."""

    def run(form, key):
        step = jnp.finfo(FLOAT).eps * (key_uniform(key, FLOAT) - 0.2) * jnp.ones(3, FLOAT)
        start = Sum(jnp.full(3, 0.3, FLOAT), jnp.zeros(3, FLOAT))
        return jax.lax.fori_loop(0, 300, lambda _, x: form.descend(x, step, jnp.asarray(0.6, FLOAT)), start)

    keys = jax.random.split(jax.random.key(3), 200)
    found, expected = (
        jax.jit(jax.vmap(lambda key, form=form: run(form, key)))(keys) for form in (_ball_kernels, _ball)
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)
