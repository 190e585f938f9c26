"""Helpers of several test files of experts."""

import jax
import numpy as np


def in_lanes(function, *inputs):
    return jax.jit(jax.vmap(function))(*inputs)


def equal(left, right):
    same = jax.tree.map(lambda one, other: bool(np.array_equal(one, other)), left, right)
    return all(jax.tree.leaves(same))
