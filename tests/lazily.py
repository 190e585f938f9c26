"""Tables of cases; each case is built when it is looked up first: importing a test file builds none."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

Case = TypeVar("Case")


class Lazy(Mapping[str, Case]):
    """Cases by name, from functions that build them.

    Examples:
        >>> cases = Lazy({"one": lambda: [1], "none": lambda: 1 / 0})
        >>> list(cases), cases["one"], cases["one"] is cases["one"]
        (['one', 'none'], [1], True)
    """

    def __init__(self, builders: Mapping[str, Callable[[], Case]]) -> None:
        self._builders, self._built = dict(builders), {}

    def __getitem__(self, name: str) -> Case:
        if name not in self._built:
            self._built[name] = self._builders[name]()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)
