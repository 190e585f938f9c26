"""Creates learners written in ordinary Python, calls their methods, and reads the numbers that an adversary sees."""

import contextlib
import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np


class WrongArgumentError(ValueError):
    """An error for a wrong argument of `python_learner` that is detected only after a round was played."""


@dataclass(frozen=True)
class Attributes:
    """A function learner -> [numbers] float64 that reads named attributes of a learner."""

    names: tuple[str, ...]

    def __call__(self, learner: Any) -> np.ndarray:
        return np.concatenate([read_numbers(learner, name) for name in self.names])

    def name_of(self, learner: Any, index: int) -> str:
        """Returns the name of the attribute that contains the number with this index."""
        sizes = [read_numbers(learner, name).size for name in self.names]
        return repr(self.names[int(np.searchsorted(np.cumsum(sizes), index, side="right"))])


def read_numbers(learner: Any, name: str) -> np.ndarray:
    """Returns a learner's attribute as [numbers] float64; raises WrongArgumentError if it is missing or not numeric."""
    try:
        value = getattr(learner, name)
    except AttributeError as error:
        raise WrongArgumentError(f"observe must name attributes of the learner, got {name!r}: {error}") from error
    try:
        numbers = flatten(value)
        if numbers.size and all(leaf is not None for leaf in jax.tree.leaves(value, is_leaf=lambda leaf: leaf is None)):
            return numbers
    except (OverflowError, TypeError, ValueError):
        pass
    raise WrongArgumentError(f"observe must name attributes with numbers, got {name!r}, which is {value!r}")


def observer(observe: Sequence[str] | Callable[[Any], Any]) -> Callable[[Any], np.ndarray] | None:
    """Returns a function learner -> [numbers] float64 for attribute names or a function; None if there are no names."""
    if isinstance(observe, str):
        raise ValueError(f"observe must be a list of names, such as [{observe!r}], got {observe!r}")
    if callable(observe):
        return lambda learner: flatten(observe(learner))
    names = tuple(observe)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"observe must be a list of names or a function, got {observe!r}")
    return Attributes(names) if names else None


def check_numbers(observe: Any, learner: Any, numbers: np.ndarray) -> None:
    """Raises ValueError if any of the `numbers` [rounds, numbers] that `observe` read from the learner is NaN."""
    if np.isnan(numbers).any():
        round_, index = np.argwhere(np.isnan(numbers))[0]
        where = observe.name_of(learner, index) if isinstance(observe, Attributes) else f"number {index}"
        raise ValueError(
            f"observe must return numbers, got nan in {where} after round {round_}, counted from 0; if this is no "
            "mistake of the code, let a function return another number for it"
        )


def flatten(numbers: Any) -> np.ndarray:
    """Returns all numbers of nested lists, dicts and arrays as [numbers] float64.

    Raises WrongArgumentError for complex numbers, dates and text, because a float would not keep them.
    """
    if isinstance(numbers, np.ndarray | float | int):
        return _as_floats(numbers)
    leaves = [_as_floats(leaf) for leaf in jax.tree.leaves(numbers)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def _as_floats(leaf: Any) -> np.ndarray:
    array = np.ravel(leaf)
    if array.dtype.kind in "cmMSU" or (array.dtype == object and any(isinstance(x, str | bytes) for x in array)):
        raise WrongArgumentError(f"observe must return real numbers, got {leaf!r}")
    return array.astype(float)


def as_function(name: str, method: str | Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function (learner, *arguments) -> result from a method's name or a function; errors use `name`."""
    if isinstance(method, str):
        return lambda learner, *arguments: getattr(learner, method)(*arguments)
    if not callable(method):
        raise ValueError(f"{name} must be the name of a method or a function, got {method!r}")
    return method


def check_method(name: str, method: str | Callable[..., Any], learner: Any, arguments: tuple[str, ...]) -> None:
    """Raises ValueError if a learner has no such method, or if the method or function cannot take these arguments."""
    function: Any = method
    if isinstance(method, str):
        function = getattr(learner, method, None)
        if not callable(function):
            methods = [other for other in dir(type(learner)) if not other.startswith("_")]
            raise ValueError(
                f"{name} must name a method of the learner, got {method!r}; {type(learner).__name__} has "
                f"{', '.join(methods) or 'none'}"
            )
    else:
        arguments = ("learner", *arguments)
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ValueError(f"{name} must take ({', '.join(arguments)}), got {signature}: {error}") from error


def make_learner(make: Callable[..., Any], words: np.ndarray) -> Any:
    """Seeds the global generators with `words` and makes a learner; does not restore the generators' states."""
    np.random.seed(words)  # noqa: NPY002 -- the code under attack may draw from this generator
    random.seed(int(words[0]))
    try:
        return make(np.random.default_rng(words)) if takes_generator(make) else make()
    except Exception as error:
        raise RuntimeError(f"the learner failed when it was made: {type(error).__name__}: {error}") from error


def takes_generator(make: Callable[..., Any]) -> bool:
    """Returns whether `make` has a positional argument without a default."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # some built-in classes have no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.default is p.empty and p.kind in positional for p in parameters)


def takes_nothing(function: Any) -> bool:
    """Returns whether an object is a function with a known signature that can be called without arguments."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True


@contextlib.contextmanager
def keep_global_generators() -> Iterator[None]:
    """Restores the states of NumPy's and Python's global generators at the end of a `with` block."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
