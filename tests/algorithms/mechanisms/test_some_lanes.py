"""Releases in flagged lanes have the values that a computation of all lanes has; other lanes keep their values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms.some_lanes import FEWEST, MOST, in_flagged_lanes

LANES = 2 * FEWEST + 5


def draw(key, scale):
    return jax.random.bits(key, (3,), jnp.uint32) ^ scale.astype(jnp.uint32), scale + 1


@jax.jit
@jax.vmap
def in_each_lane(flag, key, scale):
    other = jnp.zeros(3, jnp.uint32), scale
    return in_flagged_lanes(flag, draw, other, key, scale), draw(key, scale)


@pytest.mark.parametrize(
    ("lanes", "share"),
    [(LANES, 0.0), (LANES, 0.1), (LANES, 0.6), (LANES, 1.0), (FEWEST - 1, 0.6), (FEWEST + 1, 1.0), (8 * MOST + 9, 0.3)],
)
def test_only_flagged_lanes_have_new_values(lanes, share):
    flags = np.random.default_rng(0).random(lanes) < share
    keys, scales = jax.random.split(jax.random.key(0), lanes), jnp.arange(lanes, dtype=jnp.int32)
    found, drawn = jax.device_get(in_each_lane(jnp.asarray(flags), keys, scales))
    np.testing.assert_array_equal(found[0], np.where(flags[:, None], drawn[0], 0))
    np.testing.assert_array_equal(found[1], np.where(flags, drawn[1], scales))
    assert (np.roll(drawn[0], 1, axis=0) != drawn[0]).any(1).all()  # values of another lane would be seen


def test_a_single_lane_and_lanes_of_lanes():
    key, scale = jax.random.key(1), jnp.int32(7)
    other = jnp.zeros(3, jnp.uint32), scale
    for flag in (False, True):
        found = in_flagged_lanes(jnp.asarray(flag), draw, other, key, scale)
        assert int(found[1]) == 7 + flag
    flags = jnp.asarray(np.arange(6).reshape(2, 3) % 2 == 0)
    nested = jax.vmap(jax.vmap(lambda flag: in_flagged_lanes(flag, draw, other, key, scale)[1]))(flags)
    np.testing.assert_array_equal(nested, 7 + np.asarray(flags))
