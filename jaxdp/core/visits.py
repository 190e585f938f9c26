"""Public schedules of visits: the person of each round, and the number of the person's earlier visits."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core.ids import check_ids
from jaxdp.core.made_by import MadeBy, shorten
from jaxdp.validation import check_count

MOST_ROUNDS = 2**31 - 1  # tables are int32


class Visit(NamedTuple):
    """The public context of a round: the person who comes, and the number of this person's earlier visits.

    Attributes:
        person: [] int32 in [0, num_people), index of the person.
        nth: [] int32 >= 0, number of earlier visits of this person.
    """

    person: Any
    nth: Any


class Visits:
    """A public schedule of the person of each round, as a table on the host that all lanes share.

    Who comes in which round is public. All lanes meet the same people in the same order, for any key. To get another
    order, make the schedule with another `seed`.

    Attributes:
        person: [horizon] int32 in [0, num_people), the index of the person in each round; read-only.
        nth: [horizon] int32, number of earlier visits of this person; read-only.
        num_people: the number of people.
        most: the maximum number of visits of one person.

    Examples:
        >>> visits = Visits.from_ids(["ann", "bob", "ann"])
        >>> visits.person.tolist(), visits.nth.tolist()
        ([0, 1, 0], [0, 0, 1])
        >>> visits
        Visits.from_ids(<3 values>): 2 people in 3 rounds, at most 2 visits each
    """

    def __init__(self, person: np.ndarray, made_by: str) -> None:
        self.person = np.array(person, np.int32)
        self.nth = _earlier_visits(self.person)
        self.num_people, self.most = int(self.person.max()) + 1, int(self.nth.max()) + 1
        self.person.flags.writeable = self.nth.flags.writeable = False
        self._made_by = made_by

    def __len__(self) -> int:
        return len(self.person)

    def __repr__(self) -> str:
        counts = f"{self.num_people} people in {len(self)} rounds, at most {self.most} visits each"
        return shorten(f"Visits.{self._made_by}: {counts}")

    @classmethod
    def random(cls, *, people: int, each: int, seed: int = 0) -> "Visits":
        """Returns a schedule with the same number of visits of each person, in a random order.

        All orders are equally likely.

        Args:
            people: number of people, >= 1.
            each: number of visits of each person, >= 1.
            seed: seed of the order, an integer in [0, 2^31), or in [0, 2^63) in 64-bit mode.

        Returns:
            A schedule of people * each rounds.

        Raises:
            ValueError: if an argument is not an integer in its range, or there are 2^31 rounds or more.

        Examples:
            >>> Visits.random(people=3, each=2, seed=1).person.tolist()
            [2, 0, 1, 0, 2, 1]
        """
        check_count("each", each)
        return cls.sessions(people=people, sessions=each, length=1, seed=seed)._record_maker(
            "random", people=people, each=each, seed=seed
        )

    @classmethod
    def sessions(cls, *, people: int, sessions: int, length: int, seed: int = 0) -> "Visits":
        """Returns a schedule of sessions of several rounds with the same person, in a random order.

        All orders of sessions are equally likely.

        Args:
            people: number of people, >= 1.
            sessions: number of sessions of each person, >= 1.
            length: number of consecutive rounds in a session, >= 1.
            seed: seed of the order, an integer in [0, 2^31), or in [0, 2^63) in 64-bit mode.

        Returns:
            A schedule of people * sessions * length rounds.

        Raises:
            ValueError: if an argument is not an integer in its range, or there are 2^31 rounds or more.

        Examples:
            >>> Visits.sessions(people=2, sessions=2, length=3).person.tolist()
            [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]
        """
        people, sessions = check_count("people", people), check_count("sessions", sessions)
        length, seed = check_count("length", length), check_count("seed", seed, 0)
        rounds = people * sessions * length
        if rounds > MOST_ROUNDS:
            raise ValueError(f"people must have fewer than 2^31 visits together, got {rounds}")
        order = np.random.default_rng(seed).permutation(np.repeat(np.arange(people, dtype=np.int32), sessions))
        return cls(np.repeat(order, length), "")._record_maker(
            "sessions", people=people, sessions=sessions, length=length, seed=seed
        )

    @classmethod
    def from_ids(cls, ids: ArrayLike) -> "Visits":
        """Returns the schedule of a log, from the id of the person in each round.

        Args:
            ids: [horizon] integers or strings, the person of each round, as an array, a list or a pandas column. People
                are indexed in the order of their first visits.

        Returns:
            A schedule with the same number of rounds.

        Raises:
            ValueError: if ids are not a vector of at least one id, or are not all integers or all strings.
        """
        array = check_ids("ids", ids)
        _, first, index = np.unique(array, return_index=True, return_inverse=True)
        return cls(np.argsort(np.argsort(first))[index], f"from_ids(<{len(array)} values>)")

    def is_same(self, other: "Visits | None") -> bool:
        """Returns whether another schedule has the same people in the same rounds."""
        return other is self or (other is not None and np.array_equal(other.person, self.person))

    def num_heard(self, reports: int, rounds: int | None = None) -> int:
        """Returns the number of rounds that are among the first `reports` visits of their person.

        Args:
            reports: number of first visits of each person that count, >= 1.
            rounds: only the first `rounds` rounds are counted, in [1, horizon]; None counts all rounds.

        Raises:
            ValueError: if a number is out of range.

        Examples:
            >>> Visits.random(people=100, each=7).num_heard(2)
            200
        """
        check_count("reports", reports)
        first = len(self) if rounds is None else check_count("rounds", rounds, maximum=len(self))
        return int(np.count_nonzero(self.nth[:first] < reports))

    def _record_maker(self, name: str, **arguments: int) -> "Visits":
        self._made_by = repr(MadeBy(name, arguments))
        return self


def _earlier_visits(person: np.ndarray) -> np.ndarray:
    """Returns the number ([horizon]) of earlier visits of the person in each round; `person` is [horizon]."""
    order = np.argsort(person, kind="stable")
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    position = np.arange(len(person))
    earlier = np.empty(len(person), np.int32)
    earlier[order] = position - np.repeat(starts, np.diff(starts, append=len(person)))
    return earlier
