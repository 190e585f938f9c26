"""Checks values on the host. NaN is never valid.

Errors name the argument, the rule and, unless it is private, the value.
"""

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

Real = float | np.floating | np.integer
INT64_MAX = 2**63 - 1
WITH_X64 = "; set JAX_ENABLE_X64=1 or jax.config.update('jax_enable_x64', True) before anything else"
MOST_LISTED = 20  # an error that suggests a similar name lists all names only if there are at most this many
_PACKAGE = __name__.partition(".")[0]
# A coordinate with one of these names would overwrite a variable of `jaxdp.stats`, `jaxdp.open` or xarray.
RESULT_NAMES = ("computed", "crossings", "difference", "estimate", "exponent", "high", "low", "mean", "p_adjusted")
RESULT_NAMES += ("p_value", "quantile", "share")


def check_coordinates(where: str, names: Iterable[Any]) -> None:
    """Raises a ValueError if a coordinate or dimension of `where` has a name in `RESULT_NAMES`."""
    if clash := sorted(name for name in names if name in RESULT_NAMES):
        raise ValueError(
            f"{where} must not have the name of a result ({', '.join(RESULT_NAMES)}), got {', '.join(clash)}: rename it"
        )


@contextmanager
def name_options(**options: str) -> Iterator[None]:
    """Replaces an argument's name by an option's name in messages of ValueErrors from the `with` block.

    The argument's name is the first word of a message. `options` maps it to the name of a command-line option, such as
    --release.
    """
    try:
        yield
    except ValueError as error:
        first, *remainder = str(error).split(" ", 1)
        error.args = (" ".join([options.get(first, first), *remainder]),)
        raise


def check_epsilon(epsilon: float) -> float:
    """Returns epsilon as a float in (0, inf], where infinity means no privacy.

    Raises:
        ValueError: if epsilon is traced, is not a single number, or is not > 0 (zero, negative or NaN).
    """
    return check_above("epsilon", epsilon, 0.0)


def check_delta(delta: float) -> float:
    """Returns delta as a float in (0, 1).

    Raises:
        ValueError: if delta is traced, is not a single number, lies outside (0, 1) or is NaN.
    """
    return check_probability("delta", delta)


def warn_large_delta(delta: float, num_records: int) -> None:
    """Warns if delta > 1 / num_records, because such a claim allows a mechanism that publishes some records.

    Args:
        delta: delta of an (epsilon, delta) claim; 0 for a pure claim.
        num_records: number of privacy units in the data, >= 1; public.
    """
    if delta > 1 / num_records:
        warn_caller(
            f"delta should be far below 1 / {num_records}, one over the number of records, got {delta:g}: a mechanism "
            "that publishes some records satisfies such a claim"
        )


def warn_caller(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that called this package, for any depth of calls inside the package."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE


def check_probability(name: str, value: float) -> float:
    """Returns value as a float in (0, 1).

    Raises:
        ValueError: if value is traced, is not a single number, lies outside (0, 1) or is NaN.
    """
    if not 0 < _number(name, value) < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value}")
    return float(value)


def check_above(name: str, value: Real, bound: float) -> float:
    """Returns value as a float. Raises a ValueError unless it is a single number > bound."""
    if not _number(name, value) > bound:
        raise ValueError(f"{name} must be > {bound:g}, got {value}")
    return float(value)


def check_at_least(name: str, value: Real, bound: float) -> float:
    """Returns value as a float. Raises a ValueError unless it is a single number >= bound."""
    if not _number(name, value) >= bound:
        raise ValueError(f"{name} must be >= {bound:g}, got {value}")
    return float(value)


def check_finite(name: str, values: object, *, is_private: bool = False) -> np.ndarray:
    """Returns values as a NumPy array, after checking that all are finite numbers.

    Args:
        name: name of the argument, for the error.
        values: an array, or nested sequences.
        is_private: whether values are private. The error then shows no values, only how many violate the rule.

    Raises:
        ValueError: if a value is NaN or infinite (unless values are private, the error states the value's index),
            masked or traced; if the dtype is not an integer or float of NumPy (bool and bfloat16 are not); or if rows
            have different lengths.
    """
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except jax.errors.TracerArrayConversionError as error:
        raise ValueError(
            f"{name} must be numbers that are known on the host, got traced ones: pass them outside of jax.jit and "
            "jax.vmap"
        ) from error
    except (TypeError, ValueError) as error:  # a key has no numbers
        got = "other values, or rows of different lengths" if is_private else repr(values)
        raise ValueError(f"{name} must be an array of numbers, got {got}") from error
    if not np.issubdtype(array.dtype, np.integer) and not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"{name} must be numbers, got dtype {array.dtype}")
    _refuse(name, "finite", array, ~np.isfinite(array), is_private)
    return array


def refuse_masked(name: str, values: object) -> None:
    """Raises a ValueError if values have masked entries, because `np.asarray` returns the numbers behind the mask."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must have no masked entries, got {np.ma.count_masked(values)} of them")


def check_within(name: str, values: object, low: float, high: float, *, is_private: bool = False) -> np.ndarray:
    """Returns values as a NumPy array. Raises a ValueError unless all values are finite numbers in [low, high].

    If `is_private` is true, the error shows no values, only how many are wrong; otherwise it shows the first wrong one.
    """
    array = check_finite(name, values, is_private=is_private)
    _refuse(name, f"in [{low:g}, {high:g}]", array, ~((array >= low) & (array <= high)), is_private)
    return array


def refuse_private(name: str, rule: str, is_wrong: np.ndarray | np.bool_) -> None:
    """Raises a ValueError if private data violate a rule. The error states only the numbers of violations and entries.

    Args:
        name: name of the argument.
        rule: text after "must be".
        is_wrong: bools, one for each record or entry; true if it violates the rule.
    """
    if count := int(np.count_nonzero(is_wrong)):
        raise ValueError(f"{name} must be {rule}, got {count} of {np.size(is_wrong)} that are not")


def _refuse(name: str, rule: str, array: np.ndarray, is_wrong: np.ndarray, is_private: bool) -> None:
    """Raises a ValueError if an entry is wrong. The error shows the first wrong entry unless entries are private."""
    if is_private:
        refuse_private(name, rule, is_wrong)
    elif len(bad := np.argwhere(is_wrong)):
        index = tuple(bad[0].tolist())
        raise ValueError(f"{name} must be {rule}, got {array[index]} at index {index}")


def check_number(name: str, value: Real) -> float:
    """Returns value as a float. Raises a ValueError unless it is a single finite number."""
    if not np.isfinite(_number(name, value)):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def check_positive(name: str, value: Real) -> float:
    """Returns value as a float. Raises a ValueError unless it is a single finite number > 0."""
    return check_number(name, check_above(name, value, 0.0))


def largest_integer() -> int:
    """Returns the maximum of JAX's default integer type: 2^63 - 1 in 64-bit mode, and 2^31 - 1 otherwise."""
    return int(np.iinfo(jax.dtypes.canonicalize_dtype(int)).max)


def check_count(name: str, value: Any, minimum: int = 1, *, maximum: int | None = None) -> int:
    """Returns value as an int. Raises a ValueError unless value is an integer in [minimum, maximum], and not traced.

    Args:
        name: name of the argument, for the error.
        value: an int, or a float that is a whole number, such as 3.0; or an array of shape [] with such a number. A
            bool is not allowed.
        minimum: the smallest allowed value.
        maximum: the largest allowed value; None means the maximum of JAX's default integer type.
    """
    if isinstance(value, Tracer):
        raise ValueError(
            f"{name} must be an integer that is known on the host, got a traced number: pass it outside of jax.jit and "
            "jax.vmap, or as a static argument"
        )
    refuse_masked(name, value)
    is_array = isinstance(value, np.ndarray | np.generic | jax.Array) and not value.shape
    is_key = is_array and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    plain: Any = value.item() if is_array and not is_key else value
    is_whole = isinstance(plain, int) or (isinstance(plain, float) and plain.is_integer())
    if isinstance(plain, bool) or not is_whole or not plain >= minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {_short(plain)}")
    limit = largest_integer() if maximum is None else maximum
    if plain > limit:
        is_short = maximum is None and limit < INT64_MAX
        raise ValueError(
            f"{name} must be <= {limit}{' without 64-bit integers' if is_short else ''}, got {_short(plain)}"
            f"{WITH_X64 if is_short else ''}"
        )
    return int(plain)


def check_horizon(value: Any, *, name: str = "horizon", minimum: int = 1, spare: int = 0) -> int:
    """Returns value as an int, after checking that it is a number of rounds that JAX's integers can represent.

    Args:
        value: a number of rounds.
        name: name of the argument, for the error.
        minimum: the smallest allowed number of rounds.
        spare: the maximum amount by which counters may exceed the number of rounds.

    Raises:
        ValueError: if value is not an integer >= minimum, or value + spare is too large for int32 (int64 in 64-bit
            mode).
    """
    rounds, limit = check_count(name, value, minimum), largest_integer() - spare
    if rounds > limit:
        is_short = limit < INT64_MAX - spare
        raise ValueError(
            f"{name} must be <= {limit}{' without 64-bit integers' if is_short else ''}, got {rounds}"
            f"{WITH_X64 if is_short else ''}"
        )
    return rounds


def check_num_arms(num_arms: Any) -> int:
    """Returns a number of arms as an int. Raises a ValueError if it is < 2, or its square > `largest_integer()`."""
    checked, largest = check_count("num_arms", num_arms, 2), largest_integer()
    if checked**2 > largest:
        raise ValueError(f"num_arms must have at most {largest} pairs, got {num_arms}")
    return checked


def check_key(key: Any) -> jax.Array:
    """Returns key. Raises a ValueError unless key is a single typed PRNG key, which may be traced."""
    if not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
        several = ""
        if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            several = "; to run with each key, map over the keys: jax.vmap(run, in_axes=(0, None))(keys, params)"
        got = f"{key.dtype} of shape {key.shape}" if isinstance(key, jax.Array) else repr(key)
        raise ValueError(f"key must be one typed PRNG key, as jax.random.key(0) makes, got {got}{several}")
    return key


def check_flag(name: str, value: Any) -> bool:
    """Returns value. Raises a ValueError unless value is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def check_list(name: str, values: Any) -> list[Any]:
    """Returns values as a list. Raises a ValueError if values are not iterable."""
    try:
        return list(values)
    except TypeError as error:
        raise ValueError(f"{name} must be a list, got {values!r}") from error


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Returns value. Raises a ValueError unless value is one of the choices.

    The error lists similar choices. It also lists all choices if there are at most `MOST_LISTED`, or if none is
    similar.
    """
    if not isinstance(value, str) or value not in choices:
        suggestion = did_you_mean(value, choices)
        names = f"{len(choices)} names" if suggestion and len(choices) > MOST_LISTED else ", ".join(choices)
        raise ValueError(f"{name} must be one of {names}, got {value!r}{suggestion}")
    return value


def check_local_path(name: str, value: Any) -> Path:
    """Returns value as a path on this machine's file systems.

    Raises:
        ValueError: if value is empty, not a path, or an address such as s3://bucket/folder, which would create a folder
            named s3:.
    """
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError(f"{name} must be a path, got {value!r}")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(value)):  # a Path has one slash instead of two; C:/ is a drive
        raise ValueError(f"{name} must be a path in a file system, not an address, got {value}")
    return Path(value)


def did_you_mean(value: object, choices: Iterable[str]) -> str:
    """Returns a suggestion to append to an error, such as ". Did you mean laplace?"; empty if no name is similar."""
    by_lower_case = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(value).lower(), by_lower_case)
    return f". Did you mean {' or '.join(by_lower_case[match] for match in near)}?" if near else ""


def _short(value: object) -> str:
    """Returns the repr of a value, or the number of bits of an integer with more than 200 bits."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _number(name: str, value: object) -> float:
    if isinstance(value, Tracer):
        raise ValueError(
            f"{name} must be a number that is known on the host, got a traced number: make params outside of jax.jit "
            "and jax.vmap; run.points(epsilon=[0.1, 1.0]) makes params of several points, to map over"
        )
    is_other = isinstance(value, str | bytes | bool | list | tuple)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        is_other = not any(jnp.issubdtype(value.dtype, kind) for kind in (np.integer, np.floating))
    if is_other or np.ndim(value) > 0:  # pyright: ignore[reportArgumentType]
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except TypeError as error:  # None, complex numbers
        raise ValueError(f"{name} must be a number, got {value!r}") from error
    except OverflowError as error:
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        raise ValueError(
            f"{name} must be within the range of float64, got a larger {type(value).__name__}{bits}"
        ) from (error)
