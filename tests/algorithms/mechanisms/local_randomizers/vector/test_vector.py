"""Tests of `vector` alone."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import vector_randomizer
from jaxdp.mechanisms.local_randomizers._ball import OnSphere

KEY = partial(jax.random.key, 7)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_vector_leaves_the_ball(norm):
    """Checks that no vector leaves the ball's edge by more than the sensitivity allows for."""
    size, radius = 200, 0.3
    randomizer = vector_randomizer((size,), norm)
    delta = {} if norm == "l1" else {"delta": 0.1}
    params = jax.tree.map(jnp.asarray, randomizer.params(epsilon=math.inf, radius=radius, **delta))
    scales = np.float32(10.0) ** np.arange(-44, 39, dtype=np.float32)
    values = np.asarray(np.random.default_rng(0).normal(size=(len(scales), size)), np.float32) * scales[:, None]
    shown = np.asarray(jax.jit(jax.vmap(lambda v: randomizer.report(KEY(), params, v)))(values), float)
    norms = np.linalg.norm(shown, 1 if norm == "l1" else 2, axis=1)
    assert np.all(2 * norms <= float(params.sensitivity))
    assert np.all(norms[scales > 1] >= radius * (1 - 1e-5))
    with np.errstate(invalid="ignore", over="ignore"):
        inside = np.linalg.norm(values.astype(float), 1 if norm == "l1" else 2, axis=1) < radius
    normal = inside & (scales > 1e-30)
    assert np.array_equal(shown[normal], values[normal])


def test_coordinates_of_points_on_a_sphere_are_within_their_quantiles():
    """Checks the circle, where a coordinate is a cosine of a uniform angle, and the sphere, where it is uniform."""
    share = 0.05 / 10 / 2
    circle = OnSphere(size=2.0, report_radius=3.0, bias=1.0, coordinates=2).range_bound(10, 0.05)
    assert circle == pytest.approx(2 * 3 * math.cos(math.pi * share / 2), rel=1e-9)
    sphere = OnSphere(size=2.0, report_radius=3.0, bias=1.0, coordinates=3).range_bound(10, 0.05)
    assert sphere == pytest.approx(2 * 3 * (1 - 0.05 / 10 / 3), rel=1e-9)
