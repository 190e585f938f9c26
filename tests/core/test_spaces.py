"""Containment of spaces, and texts of how something was made."""

import gc
import itertools
import math
import weakref

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import MadeBy, Space, ball
from jaxdp.dueling import utility_duels
from jaxdp.experts import loss_sequence
from jaxdp.preferences import probit

SPACES = [
    ball(3),
    ball(3, norm="l1"),
    ball(3, math.sqrt(3), norm="l1"),
    ball(3, 0.5),
    ball(3, norm="max"),
    ball(3, 0.4, norm="max"),
    ball(3)._replace(low=0.0),
    Space("numbers", (3,), -1, 1),
    Space("numbers", (3,), -1 / math.sqrt(3), 1 / math.sqrt(3)),
    Space("numbers", (3,), -1 / 3, 1 / 3),
    Space("numbers", (3,), 0, 1),
    Space("numbers", (3,)),
]


def corners(space):
    """Returns arrays of the space, those farthest out among them."""
    directions = [np.array(each, float) for each in itertools.product([-1, 0, 1], repeat=3) if any(each)]
    for direction in directions:
        size = np.linalg.norm(direction, {"l1": 1, "l2": 2, "max": np.inf}[space.norm])
        scale = min(space.radius / size, *(abs(end) for end in (space.low, space.high) if end), 10.0)
        yield jnp.asarray(np.clip(direction * scale * (1 - 1e-6), space.low, space.high))


@pytest.mark.parametrize(("one", "other"), list(itertools.product(SPACES, SPACES)))
def test_a_space_lies_in_another_if_its_arrays_do(one, other):
    assert all(bool(other.holds(array)) for array in corners(other))
    assert (other in one) == all(bool(one.holds(array)) for array in corners(other))


def test_integers():
    whole = Space("integers", (2,), radius=5.0)
    assert bool(whole.holds(jnp.array([3, 4])))
    assert not bool(whole.holds(jnp.array([3, 5])))
    assert not bool(whole.holds(jnp.array([3.0, 4.0]).astype(int) * 2**20))
    assert Space("integers", (), 0.5, 3.5) in Space("integers", (), 1, 3) in Space("integers", (), 0.5, 3)
    assert Space("integers", (), 0, 4) not in Space("integers", (), 0, 3)


def test_half_a_ball_has_its_bounds_in_its_text():
    assert str(ball(2)._replace(low=0.0)) == "numbers in [0, inf] of shape (2,) of l2 norm at most 1"


# ---- how something was made ------------------------------------------------------------------------------------------
def test_large_arguments_are_not_kept():
    losses = np.full((2000, 2), 0.5)
    gone = weakref.ref(losses)
    environment = loss_sequence(losses)
    del losses
    gc.collect()
    assert gone() is None
    assert repr(environment) == "loss_sequence(losses=<2000 by 2 array>)"
    assert environment.made_by is not None
    assert environment.made_by.arguments["losses"].shape == (2000, 2)


def test_texts_of_arguments():
    arguments = {"rate": jnp.float32(0.5), "size": np.array(3), "table": {"a": np.zeros((3, 2))}}
    text = "f(rate=0.5, size=3, table={'a': <3 by 2 array>})"
    assert repr(MadeBy("f", arguments)) == text
    assert repr(utility_duels([0.0, 1.0], link=probit)) == "utility_duels(utilities=[0.0, 1.0], link=<probit>)"
