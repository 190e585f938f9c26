"""Local randomizers with values to report, and a clipping of values that was written on its own."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import LocalRandomizer
from jaxdp.mechanisms import label_randomizer, moment_randomizer, scalar_randomizer, vector_randomizer
from tests.lazily import Lazy

DRAWS = 20_000  # the same in all tests, which share programs


class Case(NamedTuple):
    """A randomizer and its test data.

    Attributes:
        randomizer: the randomizer.
        values: a grid point, without epsilon.
        data: values to report; the first has the worst second moment, the second the worst spread.
        outside: values outside the domain, each with the value that it must count as.
        clipped: (one value, in float64) -> the estimated vector.
    """

    randomizer: LocalRandomizer
    values: Mapping[str, float]
    data: list[Any]
    outside: list[tuple[Any, Any]]
    clipped: Callable[[Any], np.ndarray]


def ball(norm):
    order = 1 if norm == "l1" else 2
    return lambda v: (v * min(1, 2 / max(np.linalg.norm(v.ravel(), order), 1e-9))).ravel()


def moments(user):
    x, y = user
    x, y = x * min(1, 1 / max(np.linalg.norm(x), 1e-9)), np.clip(y, -2, 2)
    return np.concatenate([np.outer(x, x)[np.triu_indices(3)], y * x])


def _scalar(report, **more):
    return Case(
        scalar_randomizer(report),
        {"low": -1.0, "high": 3.0, **more},
        [3.0, -1.0, 0.3],
        [(math.nan, -1.0), (math.inf, 3.0), (-math.inf, -1.0), (1e38, 3.0), (-2.0, -1.0)],
        lambda v: np.clip(v, -1, 3)[None],
    )


def _bits(randomizer, **more):
    return Case(randomizer, more, [1, 0], [(7, 1), (-7, 0)], lambda v: np.asarray([float(v)]))


def _vector(norm, **more):
    edge = np.zeros((2, 2))
    edge[0, 0] = 2.0
    huge, full = np.full((2, 2), 1e30), np.full((2, 2), 0.5 if norm == "l1" else 1.0)
    mixed = np.asarray([[math.nan, 0.5], [-0.25, math.nan]])
    return Case(
        vector_randomizer((2, 2), norm),
        {"radius": 2.0, **more},
        [edge, -edge, np.asarray([[3.0, -4.0], [0.0, 1.0]]), np.asarray([[0.2, 0.1], [-0.3, 0.4]])],
        [
            (np.where(edge > 0, math.inf, 0), edge),
            (np.where(edge > 0, -math.inf, math.nan), -edge),
            (huge, full),
            (np.float64(3.4e38) * np.sign(full), full),
            (mixed, np.nan_to_num(mixed)),
        ],
        ball(norm),
    )


def _moments(report, **more):
    return Case(
        moment_randomizer(3, report),
        {"reward_bound": 2.0, **more},
        [(X, 2.0), (X, -2.0), (np.asarray([2.0, 1.0, -2.0]), 0.7), (np.asarray([0.1, 0.5, 0.2]), -3.0)],
        [
            ((1e30 * np.ones(3), math.inf), (FLAT, 2.0)),
            ((np.asarray([-math.inf, math.nan, 0]), -math.inf), (-X, -2.0)),
            ((X, math.nan), (X, 0.0)),
        ],
        moments,
    )


X, FLAT = np.asarray([1.0, 0.0, 0.0]), np.full(3, math.sqrt(1 / 3))
CASES = Lazy(
    {
        "rr": lambda: _scalar("rr"),
        "laplace": lambda: _scalar("laplace"),
        "gaussian": lambda: _scalar("gaussian", delta=1e-2),
        "binary_rr": lambda: _bits(scalar_randomizer("rr", binary=True)),
        "binary_laplace": lambda: _bits(scalar_randomizer("laplace", binary=True)),
        "binary_gaussian": lambda: _bits(scalar_randomizer("gaussian", binary=True), delta=1e-2),
        "labels_2": lambda: _bits(label_randomizer(2)),
        "labels_5": lambda: Case(
            label_randomizer(5), {}, [3, 0], [(9, 4), (-1, 0), (2**31 - 1, 4)], lambda v: np.eye(5)[int(v)]
        ),
        "l1": lambda: _vector("l1"),
        "l2": lambda: _vector("l2", delta=1e-2),
        "moments": lambda: _moments("gaussian", delta=1e-2),
        "moments_ball": lambda: _moments("l2_ball"),
    }
)


def stacked(data):
    """Stacks values to one pytree of arrays, of the types in which users give them."""

    def leaf(*parts):
        array = np.stack([np.asarray(part) for part in parts])
        return jnp.asarray(array, jnp.int32 if array.dtype.kind == "i" else jnp.float32)

    return jax.tree.map(leaf, *data)


def flat(estimates):
    """Flattens [...] of any structure to [..., coordinates]; keeps the leading axis, draws, and the second, values."""
    return jnp.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(estimates)], axis=-1)


@functools.cache
def sampler(name, draws):
    """Builds (key, params, data) -> [draws, values, coordinates] estimates."""
    randomizer = CASES[name].randomizer

    @jax.jit
    def sample(key, params, data):
        size = len(jax.tree.leaves(data)[0])

        def one(key, value):
            return randomizer.estimate(params, randomizer.report(key, params, value))

        keys = jax.random.split(key, (draws, size))
        return flat(jax.vmap(jax.vmap(one), (0, None))(keys, data))

    return sample


def params_of(name, epsilon):
    case = CASES[name]
    return jax.tree.map(jnp.asarray, case.randomizer.params(epsilon=epsilon, **case.values))
