"""What learners and environments exchange, written down so that a pair that does not fit is refused."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core.params import default_float
from jaxdp.numerics.lookup import wide
from jaxdp.validation import check_choice, check_count, check_positive

KINDS = {"integers": np.integer, "numbers": np.floating}
NORMS = ("l1", "l2", "max")
ROUNDING = 1e-12  # of a norm, relative
BOUNDED = '; a bandit for numbers is made with rewards="bounded", if it takes this argument'


class Space(NamedTuple):
    """Arrays of one shape whose entries lie within bounds, and which lie in a ball where one is given.

    Attributes:
        kind: "integers" or "numbers" (floats).
        shape: of the arrays.
        low: smallest entry.
        high: largest entry.
        radius: the largest norm of an array; infinity is no ball.
        norm: of the ball, "l1", "l2" or "max", the largest absolute value of an entry.

    Examples:
        >>> print(arms(4))
        integers in [0, 3]
        >>> print(Space("numbers", (37,), 0, 1))
        numbers in [0, 1] of shape (37,)
    """

    kind: str
    shape: tuple[int, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    radius: float = math.inf
    norm: str = "l2"

    def __str__(self) -> str:
        shape = f" of shape {self.shape}" if self.shape else ""
        ball = f" of {self.norm} norm at most {self.radius:g}" if self.radius < math.inf else ""
        box = "" if ball and self.low == -math.inf and self.high == math.inf else f" in [{self.low:g}, {self.high:g}]"
        return f"{self.kind}{box}{shape}{ball}"

    def __contains__(self, other: object) -> bool:
        """Whether every array of the other space is of this one: by its bounds, or by its ball.

        Examples:
            >>> ball(3, norm="l1") in ball(3), ball(3) in Space("numbers", (3,), -1, 1), ball(3) in ball(3, norm="l1")
            (True, True, False)
        """
        if not (isinstance(other, Space) and (self.kind, self.shape) == (other.kind, other.shape)):
            return False
        (low, high), (lowest, highest) = self._ends(), other._ends()
        largest = other._largest(self.norm)
        return low <= lowest and highest <= high and largest <= self.radius * (1 + ROUNDING)

    def fits(self, array: jax.Array | jax.ShapeDtypeStruct) -> bool:
        """Whether an array has this shape and kind; its entries are not looked at."""
        return array.shape == self.shape and np.issubdtype(array.dtype, KINDS[self.kind])

    def holds(self, array: jax.Array) -> jax.Array:
        """Whether an array that fits lies within the bounds and in the ball, [] bool; NaN does not.

        A norm may exceed the radius by its rounding.

        Examples:
            >>> bool(arms(3).holds(jnp.int32(2))), bool(arms(3).holds(jnp.int32(3)))
            (True, False)
        """
        if self.kind == "numbers":
            inside = jnp.all((array >= self.low) & (array <= self.high))
            return inside if self.radius == math.inf else inside & self._in_ball(array)
        array = wide(array)
        smallest, largest = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        inside = jnp.asarray(self.low <= largest and self.high >= smallest)
        if self.low > smallest:
            inside = inside & jnp.all(array >= min(math.ceil(self.low), largest))
        if self.high < largest:
            inside = inside & jnp.all(array <= max(math.floor(self.high), smallest))
        return inside if self.radius == math.inf else inside & self._in_ball(array.astype(default_float()))

    def _ends(self) -> tuple[float, float]:
        """The smallest and the largest entry."""
        low, high = max(self.low, -self.radius), min(self.high, self.radius)
        if self.kind == "integers":
            low = math.ceil(low) if math.isfinite(low) else low
            high = math.floor(high) if math.isfinite(high) else high
        return low, high

    def _largest(self, norm: str) -> float:
        """No array has a larger norm than this."""
        size = max(math.prod(self.shape), 1)
        of_ones = {"l1": size, "l2": math.sqrt(size), "max": 1.0}  # the norm of an array of ones
        of_box = max(map(abs, self._ends())) * of_ones[norm]
        return min(of_box, self.radius * max(of_ones[norm] / of_ones[self.norm], 1.0))

    def _in_ball(self, array: jax.Array) -> jax.Array:
        rounding = 1 + 4 * float(jnp.finfo(array.dtype).eps) * math.sqrt(max(array.size, 1))
        scaled = jnp.abs(array) / jnp.asarray(self.radius, array.dtype)  # a square of the norm itself may overflow
        if self.norm == "max":
            return jnp.all(scaled <= rounding)
        size = jnp.sum(scaled) if self.norm == "l1" else jnp.sqrt(jnp.sum(scaled * scaled))
        return size <= rounding


class Probe(NamedTuple):
    """A pair of points that a learner asks about at once: centre + offset and centre - offset.

    The environment answers the difference of their losses, which it computes without the cancellation of two nearly
    equal numbers.

    Attributes:
        centre: [dim] float, the point that is played.
        offset: [dim] float, how far the two points lie from it.
    """

    centre: Any
    offset: Any


class Interface(NamedTuple):
    """What is exchanged in a round: pytrees of spaces, with the structure of what is exchanged.

    Attributes:
        action: what is played.
        feedback: what comes back.
        context: what is shown before, or None.
        answer: what the learner would answer now, and the environment judges; or None.
    """

    action: Any
    feedback: Any
    context: Any = None
    answer: Any = None


def arms(num_arms: int) -> Space:
    """The indices of a finite number of arms or experts.

    Raises:
        ValueError: if num_arms < 2.
    """
    return Space("integers", (), 0, check_count("num_arms", num_arms, 2) - 1)


def pairs(num_arms: int) -> Space:
    """Ordered pairs of arms, the left one first: what a dueling bandit plays.

    Raises:
        ValueError: if num_arms < 2.

    Examples:
        >>> print(pairs(4))
        integers in [0, 3] of shape (2,)
    """
    return arms(num_arms)._replace(shape=(2,))


def ball(dim: int, radius: float = 1.0, *, norm: str = "l2") -> Space:
    """Vectors of bounded norm.

    Raises:
        ValueError: if dim < 1, radius is not finite and > 0, or norm has another name.

    Examples:
        >>> print(ball(3))
        numbers of shape (3,) of l2 norm at most 1
        >>> print(ball(3, norm="max"))  # a box
        numbers of shape (3,) of max norm at most 1
    """
    return Space(
        "numbers",
        (check_count("dim", dim),),
        radius=check_positive("radius", radius),
        norm=check_choice("norm", norm, NORMS),
    )


def is_space(node: Any) -> bool:
    """Whether a node of a pytree is a space, which is itself a tuple."""
    return isinstance(node, Space)


def compared(spaces: Any, others: Any, compare: Callable[[Space, Any], Any]) -> list[Any] | None:
    """Compares two pytrees, space by space.

    Args:
        spaces: pytree of spaces.
        others: pytree of the same structure: of spaces, or of arrays.
        compare: (space, its counterpart) -> anything.

    Returns:
        What compare returns for each; None if the structures differ.
    """
    mine, theirs = jax.tree.flatten(spaces, is_leaf=is_space), jax.tree.flatten(others, is_leaf=is_space)
    if mine[1] != theirs[1]:
        return None
    return [compare(*each) for each in zip(mine[0], theirs[0], strict=True)]


def fits(spaces: Any, arrays: Any) -> bool:
    """Whether a pytree of arrays has the structure, shapes and kinds of a pytree of spaces."""
    return _every(spaces, arrays, Space.fits)


def holds(spaces: Any, arrays: Any) -> jax.Array:
    """Whether all arrays of a pytree that fits lie within their spaces, [] bool."""
    found = compared(spaces, arrays, Space.holds)
    return jnp.asarray(False) if found is None else jnp.stack(found).all()


def text(spaces: Any) -> str:
    """A pytree of spaces in words."""
    return str(jax.tree.map(str, spaces, is_leaf=is_space))


def check_interfaces(learner: Interface | None, environment: Interface | None) -> None:
    """Checks that what the environment takes and gives is what the learner is written for.

    Raises:
        ValueError: if their actions differ; if feedback or contexts of the environment are not among the learner's; or
            if the learner's answers are not among those that the environment judges.
    """
    if learner is None or environment is None:
        return
    for name in Interface._fields:
        mine, theirs = getattr(learner, name), getattr(environment, name)
        if name == "answer":
            fit = mine is None or theirs is None or _every(theirs, mine, Space.__contains__)
        elif mine is None or theirs is None:
            fit = mine is theirs
        else:
            fit = _every(mine, theirs, Space.__eq__ if name == "action" else Space.__contains__)
        if not fit:
            raise ValueError(
                f"{name} must be the same for learner and environment, got {text(mine)} and {text(theirs)}"
                f"{BOUNDED if name == 'feedback' and _are_numbers_for_integers(mine, theirs) else ''}"
            )


def _are_numbers_for_integers(mine: Any, theirs: Any) -> bool:
    """Whether one integer is expected and one number is given."""
    are_spaces = isinstance(mine, Space) and isinstance(theirs, Space)
    return are_spaces and mine.shape == theirs.shape == () and (mine.kind, theirs.kind) == ("integers", "numbers")


def _every(spaces: Any, others: Any, compare: Callable[[Space, Any], bool]) -> bool:
    found = compared(spaces, others, compare)
    return found is not None and all(found)
