"""Defines named checks, shared computations of checks, and a function that runs all checks."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxdp.validation import did_you_mean

STRUCTURE, DISTRIBUTION = "structure", "distribution"


@dataclass(frozen=True)
class Check:
    """A check of one property that an algorithm must have. Call the check to run it.

    Checks from one call of `checks_of` share their computations: a value that several checks need is computed once.

    Attributes:
        name: the property, in a few words.
        kind: "distribution" for properties of a learner's blocks and counts; "structure" for all other properties.
        run: raises an exception if the algorithm fails.
    """

    name: str
    kind: str
    run: Callable[[], None] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Runs the check.

        Raises:
            AssertionError: if the algorithm fails.
        """
        try:
            self.run()
        except AssertionError:
            raise
        except Exception as error:  # from the algorithm's functions, or from JAX, which calls them
            raise AssertionError(f"{type(error).__name__}: {error}") from error


def run_checks(checks: Sequence[Check], *, skip: Collection[str] = (), only: Collection[str] = ()) -> None:
    """Runs all checks, even if some fail.

    Args:
        checks: the checks.
        skip: names of checks to skip.
        only: names of the checks to run; empty to run all.

    Raises:
        AssertionError: if checks failed. The message lists each failed check with the reason.
        ValueError: if skip or only is a string, or has a name that no check has.
    """
    all_names = [check.name for check in checks]
    _check_names("skip", skip, all_names)
    _check_names("only", only, all_names)
    selected = [check for check in checks if check.name not in skip and (not only or check.name in only)]
    failed = failures(selected)
    if not failed:
        return
    rows = [f"{names[0]}: {reason}{_and_others(names[1:])}" for names, reason in failed]
    raise AssertionError(f"{len(rows)} of {len(selected)} checks failed: " + "\n".join(rows))


def failures(checks: Sequence[Check]) -> list[tuple[list[str], str]]:
    """Runs checks, and returns the names and the reasons of failed checks.

    If a shared computation fails, all checks that need it fail for the same reason; their names are in one entry.
    """
    failed: dict[int, tuple[list[str], str]] = {}
    causes = []  # keeps the exceptions alive, so that their ids differ
    for check in checks:
        try:
            check()
        except AssertionError as error:
            cause = error.__cause__ or error
            causes.append(cause)
            failed.setdefault(id(cause), ([], str(error).strip()))[0].append(check.name)
    return list(failed.values())


def _check_names(argument: str, names: Collection[str], known: Collection[str]) -> None:
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a collection of names of checks, as ({names!r},), got {names!r}")
    for name in names:
        if name not in known:
            raise ValueError(
                f"{argument} must be names of this algorithm's checks, got {name!r}{did_you_mean(name, known)} "
                f"(it has: {', '.join(known)})"
            )


def _and_others(names: Collection[str]) -> str:
    return f"\n(not run, for the same reason: {', '.join(names)})" if names else ""


class Shared:
    """A property that is computed at its first use. If the computation fails, each use raises the same exception."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_shared_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self.name not in vars(instance):
            try:
                outcome = self.function(instance), None, None
            except Exception as error:
                outcome = None, error, error.__traceback__
            vars(instance)[self.name] = outcome
        value, error, traceback = vars(instance)[self.name]
        if error is not None:
            raise error.with_traceback(traceback)
        return value
