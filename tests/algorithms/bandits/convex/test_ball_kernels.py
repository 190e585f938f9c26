"""The kernels of the ball equal the plain geometry, and planted wrong kernels do not.

They are equal up to rounding: a compiler may or may not round the products and sums of a length as one. The rounding
errors of steps, which are carried along, are equal bit for bit.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits._lane_kernels import array_kernel
from jaxdp.bandits.convex import _ball, _ball_kernels
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.random import normal, uniform_from_key

LANES = 2000
FLOAT = jnp.result_type(float)
TOLERANCE = 1e-12 if jnp.float64 == FLOAT else 1e-5
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


def played(form, given):
    def lane(given):
        x = given["x"]
        return {
            "inner": form.inner(x.total, given["step"]),
            "length": form.length(x.total),
            "project": form.project(x.total, given["radius"]),
            "unit_vector": form.unit_vector(given["key"], x.total.shape[0]),
            "descend": form.descend(x, given["step"], given["radius"]),
        }

    return jax.jit(jax.vmap(lane))(given)


def given_arrays(given):
    return {name: given[name] for name in ("x", "step")}


def differing(found, expected, given):
    """Returns the steps that differ by more than rounding, relative to the size of the summands."""
    found, expected, given = ({**each} for each in jax.tree.map(np.asarray, (found, expected, given)))
    for outputs in (found, expected):
        outputs["descend"] = outputs["descend"].total - outputs["descend"].excess
    x, step = (np.linalg.norm(each, axis=1, keepdims=True) for each in (given["x"].total, given["step"]))
    sizes = {"inner": (x * step)[:, 0], "length": x[:, 0], "project": x, "unit_vector": 1, "descend": x + step}
    return {name for name in STEPS if not (np.abs(found[name] - expected[name]) <= TOLERANCE * sizes[name]).all()}


@pytest.mark.parametrize("dim", [1, 2, 5, 16, 17, 40])
def test_kernels_equal_the_plain_steps(dim):
    given = states(dim)
    assert differing(played(_ball_kernels, given), played(_ball, given), given_arrays(given)) == set()


WRONG = {
    "inner": array_kernel(lambda x, y: _ball.inner(x[:-1], y[:-1])),  # without the last entry
    "length": array_kernel(lambda x: _ball.inner(x, x)),  # without the root
    "project": array_kernel(lambda x, radius: x * (radius / _ball.length(x))),  # onto the sphere, from within as well
    "unit_vector": normal,  # not scaled
    "descend": lambda x, step, radius: compensated.add(x, step),  # not projected
}


@pytest.mark.parametrize("step", WRONG)
def test_wrong_kernels_are_noticed(step):
    given, right = states(3), {name: getattr(_ball_kernels, name) for name in STEPS}
    wrong = SimpleNamespace(**right | {step: WRONG[step]})
    assert differing(played(wrong, given), played(_ball, given), given_arrays(given)) == {step}


def test_steps_of_a_long_descent_are_equal():
    """Takes 300 tiny steps, each too small to move the point: the carried rounding error must be equal."""

    def run(descend, key):
        step = jnp.finfo(FLOAT).eps * (uniform_from_key(key, FLOAT) - 0.2) * jnp.ones(3, FLOAT)
        start = Sum(jnp.full(3, 0.3, FLOAT), jnp.zeros(3, FLOAT))
        return jax.lax.fori_loop(0, 300, lambda _, x: descend(x, step, jnp.asarray(0.6, FLOAT)), start)

    def forgetful(x, step, radius):
        return _ball_kernels.descend(x._replace(excess=0 * x.excess), step, radius)

    keys = jax.random.split(jax.random.key(3), 200)
    found, expected, planted = (
        jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key, descend=descend: run(descend, key)))(keys))
        for descend in (_ball_kernels.descend, _ball.descend, forgetful)
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert not np.array_equal(planted.total, expected.total)


@pytest.mark.parametrize("form", [_ball, _ball_kernels])
def test_vectors_with_squares_beyond_floats_are_projected(form):
    huge = float(jnp.finfo(FLOAT).max) ** 0.75
    x, zero = jnp.asarray([3 * huge, 4 * huge], FLOAT), jnp.zeros(2, FLOAT)
    np.testing.assert_allclose(form.length(x), 5 * huge, rtol=1e-6)
    for point in (
        form.project(x, jnp.asarray(1, FLOAT)),
        form.descend(Sum(zero, zero), x, jnp.asarray(1, FLOAT)).total,
    ):
        np.testing.assert_allclose(point, [0.6, 0.8], rtol=1e-6)
