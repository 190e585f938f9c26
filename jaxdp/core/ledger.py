"""A privacy ledger (`Ledger`), which charges each release to the budget of everyone or of single persons."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from jaxdp.core.conversions import zcdp_rho
from jaxdp.core.guarantee import Guarantee, claim_from_dict
from jaxdp.core.ids import id_kind
from jaxdp.validation import check_choice, check_epsilon, check_number

EVERYONE = "everyone"
ACCOUNTING = ("sums", "zcdp")
KEPT = Fraction(9, 10)  # fraction of delta for the conversion of zCDP; the rest is for the numerical deltas of claims
FORMAT = 1


class Spent(NamedTuple):
    """Sums of privacy costs over releases, as exact fractions.

    Attributes:
        epsilon: sum for pure and approximate claims; 0 with accounting "zcdp".
        delta: sum of the deltas of approximate claims and of all numerical deltas.
        rho: sum for zCDP, Gaussian and pure claims; 0 with accounting "sums".
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def plus(self, other: "Spent") -> "Spent":
        """Returns the sums of the fields of two records."""
        return Spent(*(one + two for one, two in zip(self, other, strict=True)))


class Ledger:
    """The privacy budget of each person, and a list of the releases that were charged to it.

    Call `spend` and `save` before each release; `spend` rejects a release that exceeds the budget. The ledger is a
    privacy filter: you may choose the next release after seeing the results of earlier releases. `save` does not
    overwrite a file that has releases which this ledger does not have, but it takes no lock, so only one process at a
    time may spend and save.

    Args:
        epsilon: the budget of each person, > 0 and finite.
        delta: the delta of each person, in [0, 1).
        accounting: "sums" adds the epsilons and deltas of pure and approximate claims. "zcdp" adds the rhos of zCDP,
            Gaussian and pure claims, up to the largest rho that gives at most `epsilon` at 0.9 delta. "zcdp" needs
            delta > 0, and allows more releases than "sums" if each release has a small budget.
        privacy_unit: the unit that the budget protects. Claims for other units are rejected; `Guarantee.at_user_level`
            converts them.

    Raises:
        ValueError: if an argument is out of its range.

    Privacy:
        - Claim: all releases together are (epsilon, delta)-DP for each person, even if they are chosen adaptively.
        - Why: sums of epsilons and deltas are a filter (Rogers et al.); so are sums of rhos and deltas (Whitehouse et
          al.). The list of persons in a release must be public.
        - The delta of rounding (`Guarantee.numerical_delta`) counts if a claim states it.
        - A person is stored as a salted hash. The salt is in the file, so anyone who has the file can test a guessed
          id.

    Source:
        Rogers, Roth, Ullman & Vadhan (2016), "Privacy odometers and filters", section 4; Whitehouse, Ramdas, Rogers &
        Wu (2023), "Fully adaptive composition in differential privacy".

    Examples:
        >>> ledger = Ledger(epsilon=1.0)
        >>> claim = Guarantee.pure(0.4, trust_model="central", privacy_unit="one person", argument="noise")
        >>> ledger.spend(claim)
        >>> ledger.spend(claim, persons=["ann", "bob"])
        >>> ledger.balance("ann"), ledger.balance("eve"), ledger.fits(claim, persons=["ann"])
        (0.2, 0.6, False)
    """

    def __init__(
        self, *, epsilon: float, delta: float = 0.0, accounting: str = "sums", privacy_unit: str = "one person"
    ) -> None:
        if check_epsilon(epsilon) == float("inf"):
            raise ValueError("epsilon must be finite, got inf")
        if not 0 <= check_number("delta", delta) < 1:
            raise ValueError(f"delta must be in [0, 1), got {delta}")
        if check_choice("accounting", accounting, ACCOUNTING) == "zcdp" and delta == 0:
            raise ValueError('delta must be > 0 for accounting="zcdp", got 0')
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.accounting, self.privacy_unit = accounting, privacy_unit
        self._salt = secrets.token_hex(16)
        self._entries: list[dict[str, Any]] = []
        self._everyone = Spent()
        self._persons: dict[str, Spent] = {}
        self._largest_of_persons = Spent()  # largest of each sum over persons, without the releases of everyone

    def spend(self, guarantee: Guarantee, *, persons: str | Iterable[Any] = EVERYONE) -> None:
        """Charges a release to the budget and records it. Call this before the release.

        Args:
            guarantee: the claim of the release, for the ledger's privacy unit.
            persons: "everyone", or the public ids (strings or integers) of the persons who take part.

        Raises:
            ValueError: if the release exceeds the budget (the message states the remaining epsilon or rho, and delta);
                if guarantee is no `Guarantee`, or the claim has no budget, is joint, has another privacy unit than the
                ledger, or has another adjacency or other sensitive fields than earlier releases; if the accounting does
                not support claims of this kind; or if persons is another string, has no id, or has an id that is
                neither a string nor an integer.
        """
        cost, hashes = self._cost(guarantee), self._hashes(persons)
        if not self._fits(cost, hashes):
            spent = self._largest_spent(hashes)
            name = "epsilon" if self.accounting == "sums" else "rho"
            left = f"{name} {float(self._balance(spent)):.9g} and delta {float(self._most_delta - spent.delta):.9g}"
            whose = "everyone" if hashes is None else f"each of {len(hashes)} persons"
            fits_except_delta = self._balance(spent.plus(cost)) >= 0 and not guarantee.delta
            needs_delta = fits_except_delta and not self.delta
            hint = " (make the ledger with a delta, which covers rounding)" if needs_delta else ""
            raise ValueError(
                f"guarantee must fit into the budget that is left for {whose}, {left}{hint}, got {guarantee}"
            )
        self._record(cost, hashes)
        self._entries.append({"claim": guarantee.to_dict(), "persons": EVERYONE if hashes is None else sorted(hashes)})

    def fits(self, guarantee: Guarantee, *, persons: str | Iterable[Any] = EVERYONE) -> bool:
        """Returns whether the release fits the budget, without recording it. Raises the other errors of `spend`."""
        return self._fits(self._cost(guarantee), self._hashes(persons))

    def balance(self, person: Any = EVERYONE) -> float:
        """Returns the remaining epsilon (accounting "sums") or rho ("zcdp") of a person.

        By default, this is the smallest balance of all persons, which limits a release of everyone. `spend` may
        reject a release within this balance if the remaining delta is too small.
        """
        return float(self._balance(self._largest_spent(None if person == EVERYONE else self._hashes([person]))))

    def tight_epsilon(self, person: Any = EVERYONE) -> float:
        """Returns dp-accounting's epsilon, at this ledger's delta, for the releases that use a person's data.

        By default, these are the releases that use everyone's data. The epsilon is valid only if the list of releases
        was fixed in advance. Use it only for comparison; `spend` ignores it.

        Raises:
            ImportError: if dp-accounting is not installed (`pip install 'jaxdp[accounting]'`).
            ValueError: if there are such releases, and the ledger's delta does not exceed the sum of their deltas and
                numerical deltas.
        """
        person_hash = None if person == EVERYONE else next(iter(self._hashes([person]) or ()))
        person_entries = [
            entry for entry in self._entries if entry["persons"] == EVERYONE or person_hash in entry["persons"]
        ]
        claims = [claim_from_dict(entry["claim"]) for entry in person_entries]
        delta = self.delta - sum(claim.delta + (claim.numerical_delta or 0.0) for claim in claims)
        if not claims:
            return 0.0
        if delta <= 0:
            raise ValueError(f"delta must exceed the sum of the claims' deltas, got {self.delta}")
        kind = "rdp" if any(claim.rho is not None for claim in claims) else "pld"
        from dp_accounting import NeighboringRelation  # optional
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        relation = NeighboringRelation.REPLACE_ONE if kind == "rdp" else NeighboringRelation.ADD_OR_REMOVE_ONE
        accountant = RdpAccountant(neighboring_relation=relation) if kind == "rdp" else PLDAccountant(relation)
        for claim in claims:
            accountant.compose(claim.to_dp_event(accountant=kind, delta_apart=True))
        return float(accountant.get_epsilon(delta))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the ledger to a JSON file, which is replaced atomically.

        Raises:
            ValueError: if the file exists and is not a ledger, holds another ledger, or has releases that this ledger
                does not have. The file is then not changed.
            OSError: if the file cannot be written.
        """
        path = Path(path)
        if path.exists():
            saved = Ledger.load(path)
            if saved._salt != self._salt or saved._entries != self._entries[: len(saved._entries)]:
                raise ValueError(f"path must be new or hold an earlier state of this ledger, got {os.fspath(path)}")
        content = {
            "format": FORMAT,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "accounting": self.accounting,
            "privacy_unit": self.privacy_unit,
            "salt": self._salt,
            "releases": self._entries,
        }
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        part.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.replace(part, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ledger":
        """Reads a ledger that `save` wrote, and checks that all its releases fit.

        Raises:
            ValueError: if the file is not a ledger, or its releases exceed its budget.
            OSError: if the file cannot be read.
        """
        name = os.fspath(path)
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            salt, entries = str(content.pop("salt")), content.pop("releases")
            ledger = cls(**content)
            ledger._salt = salt
            for entry in entries:
                claim, hashes = claim_from_dict(entry["claim"]), entry["persons"]
                cost = ledger._cost(claim)
                hashes = None if hashes == EVERYONE else {str(person_hash) for person_hash in hashes}
                if not ledger._fits(cost, hashes):
                    raise ValueError("its releases exceed its budget")
                ledger._record(cost, hashes)
                ledger._entries.append(entry)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"path must be a file that Ledger.save wrote, got {name}: {error}") from None
        return ledger

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        spent = self._everyone.epsilon if self.accounting == "sums" else self._everyone.rho
        name = "epsilon" if self.accounting == "sums" else "rho"
        return (
            f"Ledger(epsilon={self.epsilon:g}{delta}, accounting={self.accounting!r}, {self.privacy_unit}): "
            f"{len(self._entries)} releases, {name} {float(spent):.4g} of {float(self._total):.4g} spent by everyone, "
            f"{len(self._persons)} persons with more"
        )

    @property
    def _total(self) -> Fraction:
        if self.accounting == "sums":
            return _decimal(self.epsilon)
        return _decimal(zcdp_rho(self.epsilon, float(KEPT * _decimal(self.delta))))

    def _cost(self, guarantee: Guarantee) -> Spent:
        """Returns the cost of a release with this claim. Raises a ValueError if the ledger cannot add the claim."""
        if not isinstance(guarantee, Guarantee):
            raise ValueError(f"guarantee must be a jaxdp.Guarantee, got {type(guarantee).__name__}")
        if guarantee.trust_model == "joint" or not guarantee.is_private:
            raise ValueError(f"guarantee must have a budget and must not be joint, got {guarantee}")
        if guarantee.privacy_unit != self.privacy_unit:
            raise ValueError(
                f"guarantee must be for {self.privacy_unit} (Guarantee.at_user_level converts), got {guarantee}"
            )
        first = self._entries[0]["claim"] if self._entries else guarantee.to_dict()
        for name in ("adjacency", "sensitive_fields"):
            value = guarantee.to_dict()[name]
            if value != first[name]:
                raise ValueError(f"guarantee must have the {name} of earlier releases, {first[name]}, got {value}")
        numerical = _decimal(guarantee.numerical_delta or 0.0)
        if self.accounting == "sums":
            if guarantee.kind not in ("pure", "approximate"):
                raise ValueError(f'guarantee must have an epsilon for accounting="sums", got {guarantee}')
            return Spent(_decimal(guarantee.epsilon), _decimal(guarantee.delta) + numerical)
        if guarantee.kind == "approximate":
            raise ValueError(f'guarantee must not be an (epsilon, delta) claim for accounting="zcdp", got {guarantee}')
        budget = guarantee.epsilon if guarantee.mu is None else guarantee.mu
        rho = _decimal(budget) ** 2 / 2 if guarantee.rho is None else _decimal(guarantee.rho)
        return Spent(Fraction(0), numerical, rho)

    def _hashes(self, persons: str | Iterable[Any]) -> set[str] | None:
        """Returns the salted hashes of the ids of persons; None if `persons` is "everyone"."""
        if isinstance(persons, str):
            if persons != EVERYONE:
                raise ValueError(f"persons must be {EVERYONE!r} or a list of ids, got {persons!r}")
            return None
        is_vector = isinstance(persons, Iterable) and getattr(persons, "ndim", 1) == 1
        if not is_vector or isinstance(persons, bytes | bytearray | memoryview | Mapping):
            # a table would be charged by the names of its columns, and bytes as integers
            raise ValueError(f"persons must be {EVERYONE!r} or a list of ids, got {type(persons).__name__}")
        ids = list(persons)
        if not ids:
            raise ValueError("persons must have at least one id, got none")
        if wrong := {id_kind(person) for person in ids} - {"text", "integer"}:  # 7.0 is not stored as the person 7
            raise ValueError(f"persons must be ids that are text or integers, got {', '.join(sorted(wrong))}")
        return {hashlib.sha256(f"{self._salt}:{person}".encode()).hexdigest()[:32] for person in ids}

    def _largest_spent(self, hashes: set[str] | None) -> Spent:
        """Returns the maximum of each sum over persons (all persons if None), including releases of everyone."""
        if hashes is None:
            return self._everyone.plus(self._largest_of_persons)
        spent = [self._persons.get(person_hash, Spent()) for person_hash in hashes]
        return self._everyone.plus(Spent(*(max(sums) for sums in zip(*spent, strict=True))))

    def _balance(self, spent: Spent) -> Fraction:
        return self._total - (spent.epsilon if self.accounting == "sums" else spent.rho)

    @property
    def _most_delta(self) -> Fraction:
        return _decimal(self.delta) * (1 if self.accounting == "sums" else 1 - KEPT)

    def _fits(self, cost: Spent, hashes: set[str] | None) -> bool:
        after = self._largest_spent(hashes).plus(cost)
        return self._balance(after) >= 0 and after.delta <= self._most_delta

    def _record(self, cost: Spent, hashes: set[str] | None) -> None:
        if hashes is None:
            self._everyone = self._everyone.plus(cost)
            return
        for person_hash in hashes:
            spent = self._persons[person_hash] = self._persons.get(person_hash, Spent()).plus(cost)
            self._largest_of_persons = Spent(*(max(pair) for pair in zip(self._largest_of_persons, spent, strict=True)))


def _decimal(value: float) -> Fraction:
    """Returns the exact fraction of a number's decimal digits, so that three times 0.1 is 0.3."""
    return Fraction(repr(float(value)))
