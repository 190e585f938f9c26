"""What learners and environments exchange, written down so that a pair that does not fit is refused."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.lookup import wide
from jaxdp.validation import check_count

KINDS = {"integers": np.integer, "numbers": np.floating}


class Space(NamedTuple):
    """Arrays of one shape whose entries lie within bounds.

    Attributes:
        kind: "integers" or "numbers" (floats).
        shape: of the arrays.
        low: smallest entry.
        high: largest entry.

    >>> print(arms(4))
    integers in [0, 3]
    >>> print(Space("numbers", (37,), 0, 1))
    numbers in [0, 1] of shape (37,)
    """

    kind: str
    shape: tuple[int, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        shape = f" of shape {self.shape}" if self.shape else ""
        return f"{self.kind} in [{self.low:g}, {self.high:g}]{shape}"

    def __contains__(self, other: object) -> bool:
        """Whether every array of the other space is of this one."""
        return (
            isinstance(other, Space)
            and (self.kind, self.shape) == (other.kind, other.shape)
            and self.low <= other.low
            and other.high <= self.high
        )

    def fits(self, array: jax.Array | jax.ShapeDtypeStruct) -> bool:
        """Whether an array has this shape and kind; its entries are not looked at."""
        return array.shape == self.shape and np.issubdtype(array.dtype, KINDS[self.kind])

    def holds(self, array: jax.Array) -> jax.Array:
        """Whether all entries of an array that fits lie within the bounds, [] bool; NaN does not.

        >>> bool(arms(3).holds(jnp.int32(2))), bool(arms(3).holds(jnp.int32(3)))
        (True, False)
        """
        if self.kind == "numbers":
            return jnp.all((array >= self.low) & (array <= self.high))
        array = wide(array)
        smallest, largest = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        inside = jnp.asarray(self.low <= largest and self.high >= smallest)
        if self.low > smallest:
            inside = inside & jnp.all(array >= min(math.ceil(self.low), largest))
        if self.high < largest:
            inside = inside & jnp.all(array <= max(math.floor(self.high), smallest))
        return inside


class Interface(NamedTuple):
    """What is exchanged in a round.

    Attributes:
        action: what is played.
        feedback: what comes back.
        context: what is shown before, or None.
    """

    action: Space
    feedback: Space
    context: Space | None = None


def arms(num_arms: int) -> Space:
    """The indices of a finite number of arms or experts.

    Raises:
        ValueError: if num_arms < 2.
    """
    return Space("integers", (), 0, check_count("num_arms", num_arms, 2) - 1)


def pairs(num_arms: int) -> Space:
    """Ordered pairs of arms, the left one first: what a dueling bandit plays.

    >>> print(pairs(4))
    integers in [0, 3] of shape (2,)

    Raises:
        ValueError: if num_arms < 2.
    """
    return arms(num_arms)._replace(shape=(2,))


def check_interfaces(learner: Interface | None, environment: Interface | None) -> None:
    """Checks that what the environment takes and gives is what the learner is written for.

    Raises:
        ValueError: if their actions differ, or feedback or contexts of the environment are not among the learner's.
    """
    if learner is None or environment is None:
        return
    for name in ("action", "feedback", "context"):
        mine, theirs = getattr(learner, name), getattr(environment, name)
        fits = mine == theirs if name == "action" or mine is None or theirs is None else theirs in mine
        if not fits:
            raise ValueError(f"{name} must be the same for learner and environment, got {mine} and {theirs}")
