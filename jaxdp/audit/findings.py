"""What a grey-box audit found: what neighbours changed at each site, and what is wrong with how it was noised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxdp.audit.accounting import exact, noise_scale, scalar
from jaxdp.audit.replay import Release, Site, alike
from jaxdp.core import Guarantee
from jaxdp.core.made_by import shorten
from jaxdp.mechanisms import tape

SLACK = 1e-4  # relative, for what float32 adds up
SCALES = ("sensitivity", "epsilon", "rho", "noise_stddev", "run")  # what noise depends on must not depend on the data


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What neighbouring users changed at one site.

    Attributes:
        site: where.
        norm: of the change, as `tape.Entry` names it.
        declared: largest change that the learner declares; None if it declares none.
        measured: largest change found.
        releases: how many were made there in one run.
        drawn: numbers of noise that were drawn there to compare their law with the one recorded; 0 if none was.
    """

    site: str
    norm: str
    declared: float | None
    measured: float
    releases: int
    drawn: int = 0


@dataclass(frozen=True, kw_only=True)
class GreyBox:
    """What a grey-box audit found.

    Attributes:
        claim: that was attacked.
        sites: where releases are made, and what changed there; empty if nothing was released in the rounds played.
        spent: largest epsilon that the accounting of the recorded releases gives to a pair of neighbours found, at the
            claimed delta (0.01 for zCDP and Gaussian claims); in the shuffle model that of one user's report. Not a
            lower bound on the true epsilon: several mechanisms may cost less than their sum.
        faults: what is wrong, in words.
        notes: what could not be told, and why.
        pair: users of two runs who differ in one round, to whom `spent` belongs; None if nothing was released.
        loss: the largest privacy loss, in absolute value, of a transcript that was played: the log ratio of the
            densities of all numbers that Laplace and Gaussian noise was added to, under a base's users and under
            neighbours. It is exact for that transcript, if noise has the law that is recorded. Where these noisy
            numbers follow from what the claim lets be seen, it is a lower bound on the epsilon of a pure claim, true
            without any error probability; it never exceeds what is spent. None in the shuffle model, and where all
            that neighbours change, or nothing, meets other randomness.
    """

    claim: Guarantee
    sites: tuple[Measured, ...]
    spent: float
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    pair: tuple[Any, Any] | None = field(default=None, compare=False)
    loss: float | None = None

    def __repr__(self) -> str:
        counts = f"{len(self.sites)} sites, {len(self.faults)} faults, {len(self.notes)} notes"
        found = f"epsilon spent {self.spent:.4g}" + ("" if self.loss is None else f", loss {self.loss:.4g}")
        return shorten(f"GreyBox({self.verdict}: {counts}, {found}, claim {self.claim})")

    @property
    def verdict(self) -> str:
        """Whether the learner keeps to what it declares and claims, as far as was seen.

        "violated" if there are faults; else "cannot tell" if there are notes; else "consistent", which is no proof.
        """
        return "violated" if self.faults else "cannot tell" if self.notes else "consistent"


def wrong_use(release: Release) -> list[str]:
    """Faults in how one release is noised."""
    entry, faults = release.entry, []
    for name in SCALES:
        scale = getattr(entry, name)
        if scale is not None and not alike(np.asarray(scale)):
            faults.append(f"{'threshold' if name == 'run' else name} of {release.site} depends on private data")
    value = exact(entry.value)
    for bound, outside in ((entry.low, np.less), (entry.high, np.greater)):
        if bound is not None:
            limit = np.asarray(bound).reshape(-1, *[1] * (value.ndim - 1))
            if outside(value, limit + SLACK * np.abs(limit) * (1 if outside is np.greater else -1)).any():
                faults.append(f"{release.site} gets a value beyond {scalar(bound):g}, for which its cost does not hold")
    if entry.released is not None and not _is_sum(entry):
        faults.append(f"{release.site} releases something else than its value and the noise that it records")
    return faults


def _is_sum(entry: tape.Entry) -> bool:
    """Whether the base's value and the scaled noise make what is released, as nearly as floats tell."""
    value, noise, released = (exact(x)[0] for x in (entry.value, entry.noise, entry.released))
    scaled = noise_scale(entry) * noise
    with np.errstate(invalid="ignore"):
        sums, slack = value + scaled, SLACK * (np.abs(value) + np.abs(scaled))
        return bool(((np.abs(released - sums) <= slack) | ~np.isfinite(sums)).all())


def measured(runs: list[list[Release]], drawn: Mapping[Site, int]) -> tuple[Measured, ...]:
    """What neighbours changed at each site, in any of the runs, and how many numbers of its noise were compared."""
    found: dict[Site, list[tuple[float, float | None, str]]] = {}
    for release in (release for releases in runs for release in releases):
        sensitivity = release.entry.sensitivity
        declared = None if sensitivity is None else scalar(sensitivity)
        found.setdefault(release.site, []).append((float(release.change.largest.max()), declared, release.entry.norm))
    rows = []
    for site, all_ in found.items():
        # the release that comes nearest to its own declaration, or exceeds it most
        most, declared, norm = max(all_, key=lambda one: one[0] / (one[1] or 1.0))
        count = round(len(all_) / len(runs))
        rows.append(
            Measured(
                site=str(site),
                norm=norm,
                declared=declared,
                measured=most,
                releases=count,
                drawn=drawn.get(site, 0),
            )
        )
    return tuple(rows)


def repeated(runs: list[list[Release]]) -> list[str]:
    """Keys and noise that serve twice. Noise must be equal in every run: in one, two floats may be so by chance.

    Keys are too long for that, and may come together in some runs only, such as those that drop an arm in this round.
    """
    faults, places = [], []
    for releases in runs:
        keys = [((r.round, r.site), np.asarray(r.entry.key)[0].tobytes()) for r in releases if r.entry.key is not None]
        draws = [
            ((r.round, r.site, index), value)
            for r in releases
            if r.entry.noise is not None
            for index, value in enumerate(np.asarray(r.entry.noise)[0].ravel().tolist())
        ]
        places.append((dict(keys), _pairs(keys), _pairs(draws)))
    for where, data in places[0][0].items():
        if len(places) > 1 and all(keys.get(where) == data for keys, _, _ in places[1:]):
            faults.append(f"{where[1]} has the same key in every run")
    same_key = set.union(*(pairs for _, pairs, _ in places))
    same_noise = set.intersection(*(pairs for _, _, pairs in places)) if len(places) > 1 else set()
    for what, pairs in (("key serves", same_key), ("noise is drawn", same_noise)):
        sites = sorted({tuple(sorted((str(first[1]), str(second[1])))) for first, second in pairs})
        faults += [f"the same {what} twice: {first} and {second}" for first, second in sites]
    return faults


def _pairs(found: list[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """Places with equal values, each with the first of its kind."""
    places: dict[Any, list[Any]] = {}
    for place, value in found:
        places.setdefault(value, []).append(place)
    return {(same[0], other) for same in places.values() for other in same[1:]}
