"""Spaces of the actions, feedback, contexts and recommendations that learners and environments exchange."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core.params import default_float
from jaxdp.core.visits import Visit
from jaxdp.numerics.lookup import widen_index
from jaxdp.validation import check_choice, check_count, check_positive

KINDS = {"integers": np.integer, "numbers": np.floating}
NORMS = ("l1", "l2", "max")
ROUNDING = 1e-12  # relative error of a norm
BOUNDED = '; a bandit for numbers is made with rewards="bounded", if it takes this argument'


class Space(NamedTuple):
    """A set of arrays of one shape, with bounds on their entries and, if `radius` is finite, on their norm.

    Attributes:
        kind: "integers" or "numbers" (floats).
        shape: shape of the arrays.
        low: lower bound on the entries.
        high: upper bound on the entries.
        radius: upper bound on the norm of an array; infinity if the norm is not bounded.
        norm: the norm that `radius` bounds: "l1", "l2" or "max" (the maximum absolute value of an entry).

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
        """Returns whether `other` is contained in this space, as far as bounds and norms show it.

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
        """Returns whether an array has this space's shape and kind; the array's entries are not checked."""
        return array.shape == self.shape and np.issubdtype(array.dtype, KINDS[self.kind])

    def holds(self, array: jax.Array) -> jax.Array:
        """Returns whether an array lies in the space, [] bool; an array with a NaN does not.

        The array must have this space's shape and kind. Its norm may exceed the radius by the norm's rounding error.

        Examples:
            >>> bool(arms(3).holds(jnp.int32(2))), bool(arms(3).holds(jnp.int32(3)))
            (True, False)
        """
        if self.kind == "numbers":
            inside = jnp.all((array >= self.low) & (array <= self.high))
            return inside if self.radius == math.inf else inside & self._in_ball(array)
        array = widen_index(array)
        smallest, largest = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        inside = jnp.asarray(self.low <= largest and self.high >= smallest)
        if self.low > smallest:
            inside = inside & jnp.all(array >= min(math.ceil(self.low), largest))
        if self.high < largest:
            inside = inside & jnp.all(array <= max(math.floor(self.high), smallest))
        return inside if self.radius == math.inf else inside & self._in_ball(array.astype(default_float()))

    def _ends(self) -> tuple[float, float]:
        """Returns the minimum and maximum entry that the space allows; integers if its kind is "integers"."""
        low, high = max(self.low, -self.radius), min(self.high, self.radius)
        if self.kind == "integers":
            low = math.ceil(low) if math.isfinite(low) else low
            high = math.floor(high) if math.isfinite(high) else high
        return low, high

    def _largest(self, norm: str) -> float:
        """Returns an upper bound on the given norm of the arrays in the space."""
        size = max(math.prod(self.shape), 1)
        norm_of_ones = {"l1": size, "l2": math.sqrt(size), "max": 1.0}
        norm_of_box = max(map(abs, self._ends())) * norm_of_ones[norm]
        return min(norm_of_box, self.radius * max(norm_of_ones[norm] / norm_of_ones[self.norm], 1.0))

    def _in_ball(self, array: jax.Array) -> jax.Array:
        rounding = 1 + 4 * float(jnp.finfo(array.dtype).eps) * math.sqrt(max(array.size, 1))
        scaled = jnp.abs(array) / jnp.asarray(self.radius, array.dtype)  # a square of the norm itself may overflow
        if self.norm == "max":
            return jnp.all(scaled <= rounding)
        size = jnp.sum(scaled) if self.norm == "l1" else jnp.sqrt(jnp.sum(scaled * scaled))
        return size <= rounding


class Probe(NamedTuple):
    """A pair of points, centre + offset and centre - offset, that a learner queries at once.

    The environment returns the difference of their losses, computed without cancellation of two nearly equal numbers.

    Attributes:
        centre: [dim] float, the point that is played.
        offset: [dim] float, the displacement of the two points from the centre.
    """

    centre: Any
    offset: Any


class Interface(NamedTuple):
    """The spaces of actions, feedback, contexts and recommendations.

    Each attribute is a pytree of `Space` with the structure of the arrays that are exchanged.

    Attributes:
        action: space of the learner's actions.
        feedback: space of the environment's feedback.
        context: space of the contexts that the learner sees before it acts; None if there are no contexts.
        recommendation: space of the recommendations that the learner returns and the environment evaluates; None if
            there are none.
    """

    action: Any
    feedback: Any
    context: Any = None
    recommendation: Any = None


def arms(num_arms: int) -> Space:
    """Returns the space of the indices of a finite number of arms or experts.

    Raises:
        ValueError: if num_arms is not an integer >= 2.
    """
    return Space("integers", (), 0, check_count("num_arms", num_arms, 2) - 1)


def pairs(num_arms: int) -> Space:
    """Returns the space of a dueling bandit's actions, ordered pairs of arms (left, right).

    Raises:
        ValueError: if num_arms is not an integer >= 2.

    Examples:
        >>> print(pairs(4))
        integers in [0, 3] of shape (2,)
    """
    return arms(num_arms)._replace(shape=(2,))


def ball(dim: int, radius: float = 1.0, *, norm: str = "l2") -> Space:
    """Returns the space of vectors with bounded norm.

    Raises:
        ValueError: if dim is not an integer >= 1, radius is not finite and > 0, or norm is unknown.

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
    """Returns whether a node of a pytree is a space. Used as `is_leaf`, because a space is itself a tuple."""
    return isinstance(node, Space)


def map_spaces(spaces: Any, others: Any, compare: Callable[[Space, Any], Any]) -> list[Any] | None:
    """Applies `compare` to each space and the matching leaf of `others`. Returns None if the structures differ."""
    flat_spaces, flat_others = jax.tree.flatten(spaces, is_leaf=is_space), jax.tree.flatten(others, is_leaf=is_space)
    if flat_spaces[1] != flat_others[1]:
        return None
    return [compare(*pair) for pair in zip(flat_spaces[0], flat_others[0], strict=True)]


def fits(spaces: Any, arrays: Any) -> bool:
    """Returns whether a pytree of arrays has the same structure, shapes and kinds as a pytree of spaces."""
    return _every(spaces, arrays, Space.fits)


def holds(spaces: Any, arrays: Any) -> jax.Array:
    """Returns whether all arrays of a pytree lie in their spaces, [] bool; False if the pytrees' structures differ.

    The arrays must have the spaces' shapes and kinds.
    """
    inside = map_spaces(spaces, arrays, Space.holds)
    return jnp.asarray(False) if inside is None else jnp.stack(inside).all()


def text(spaces: Any) -> str:
    """Formats a pytree of spaces."""
    return str(jax.tree.map(str, spaces, is_leaf=is_space))


def check_interfaces(learner: Interface | None, environment: Interface | None) -> None:
    """Checks that a learner and an environment fit together, if both have an interface.

    Raises:
        ValueError: if their spaces of actions differ; if the environment's feedback is not contained in the learner's;
            if the environment's contexts are not contained in the learner's, or only one of the two has contexts
            (visits are allowed, because a learner without contexts ignores them); or if both have recommendations, and
            the learner's are not contained in the environment's.
    """
    if learner is None or environment is None:
        return
    for name in Interface._fields:
        learner_spaces, environment_spaces = getattr(learner, name), getattr(environment, name)
        if name == "recommendation":
            fit = (
                learner_spaces is None
                or environment_spaces is None
                or _every(environment_spaces, learner_spaces, Space.__contains__)
            )
        elif name == "context" and learner_spaces is None and isinstance(environment_spaces, Visit):
            fit = True  # visits are public, and a learner may ignore them
        elif learner_spaces is None or environment_spaces is None:
            fit = learner_spaces is environment_spaces
        else:
            fit = _every(learner_spaces, environment_spaces, Space.__eq__ if name == "action" else Space.__contains__)
        if not fit:
            is_unbounded = name == "feedback" and _are_numbers_for_integers(learner_spaces, environment_spaces)
            raise ValueError(
                f"{name} must be the same for learner and environment, got {text(learner_spaces)} and "
                f"{text(environment_spaces)}{BOUNDED if is_unbounded else ''}"
            )


def _are_numbers_for_integers(learner_spaces: Any, environment_spaces: Any) -> bool:
    """Returns whether the learner expects one integer and the environment gives one number."""
    are_spaces = isinstance(learner_spaces, Space) and isinstance(environment_spaces, Space)
    return (
        are_spaces
        and learner_spaces.shape == environment_spaces.shape == ()
        and (learner_spaces.kind, environment_spaces.kind) == ("integers", "numbers")
    )


def _every(spaces: Any, others: Any, compare: Callable[[Space, Any], bool]) -> bool:
    matches = map_spaces(spaces, others, compare)
    return matches is not None and all(matches)
