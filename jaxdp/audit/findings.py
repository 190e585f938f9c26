"""Measures, in a grey-box audit, how much neighbours change the value at each site, and finds faults in the noise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxdp.audit.accounting import exact, noise_scale, scalar
from jaxdp.audit.replay import Release, Site, is_shared
from jaxdp.core import Guarantee
from jaxdp.core.made_by import shorten
from jaxdp.mechanisms import tape

SLACK = 1e-4  # relative tolerance for sums in float32
GRID = 2.0**-10  # largest step of a noise's grid relative to the sensitivity, and largest relative error of the noise
# At least twice the largest step of a noise's grid relative to the noise's scale, at epsilon <= 1.
STEP = 2.0**-14
ERROR = 1e-6  # probability of a false alarm for equal noise
SCALES = ("sensitivity", "epsilon", "rho", "noise_stddev", "run")  # they determine the noise: data must not change them


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The changes that neighbouring users cause at one site; a site is a call of a mechanism.

    Attributes:
        site: names of the mechanism and of the function that calls it; for later calls in a round also their number.
        norm: norm of the changes, named as in `tape.Entry`.
        declared: declared sensitivity; None if there is none.
        measured: change that is the largest relative to the declared sensitivity, or to 1 if there is none.
        releases: mean number of releases at the site in a run, rounded to an integer.
        drawn: number of noise values of the site that were compared with their recorded distribution; 0 if none.
    """

    site: str
    norm: str
    declared: float | None
    measured: float
    releases: int
    drawn: int = 0


@dataclass(frozen=True, kw_only=True)
class GreyBox:
    """The result of a grey-box audit.

    Attributes:
        guarantee: the audited claim.
        sites: the changes at each site; empty if nothing was released in the rounds played.
        spent: largest epsilon, over the pairs of neighbours tried, that accounting gives for the recorded releases at
            the claimed delta (0.01 for zCDP and Gaussian claims); in the shuffle model, the epsilon of one user's
            report. This is not a lower bound on the true epsilon: several mechanisms together may cost less than the
            sum of their costs.
        faults: faults, as sentences.
        notes: open questions and their reasons, as sentences.
        pair: the users of two runs that differ in one round, or in the rounds of one person, for which the cost is
            `spent`; None if no cost is > 0.
        loss: largest absolute privacy loss of a played transcript: the log ratio of the densities of all its noisy
            numbers under the original users and under neighbours. The loss is exact for that transcript if the noise
            has its recorded distribution. If the adversary can compute these noisy numbers from the view under the
            claim, `loss` is a lower bound on the true epsilon at delta = 0, without any error probability. For a pure
            claim, the loss never exceeds `spent`. None in the shuffle model, or if every neighbour has loss 0 or
            changes a value without additive Laplace, geometric or Gaussian noise.
        equal_paths: paths that gave the same plays and public states as single rounds, bit for bit, in random runs.
    """

    guarantee: Guarantee
    sites: tuple[Measured, ...]
    spent: float
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    pair: tuple[Any, Any] | None = field(default=None, compare=False)
    loss: float | None = None
    equal_paths: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = f"{len(self.sites)} sites, {len(self.faults)} faults, {len(self.notes)} notes"
        costs = f"epsilon spent {self.spent:.4g}" + ("" if self.loss is None else f", loss {self.loss:.4g}")
        return shorten(f"GreyBox({self.verdict}: {counts}, {costs}, claim {self.guarantee})")

    @property
    def verdict(self) -> str:
        """The verdict: "violated" if there are faults; else "inconclusive" if there are notes; else "consistent".

        "consistent" is no proof.
        """
        return "violated" if self.faults else "inconclusive" if self.notes else "consistent"


def wrong_use(release: Release) -> list[str]:
    """Returns a release's faults: data-dependent scales, values beyond bounds, output that is not value plus noise."""
    entry, faults = release.entry, []
    for name in SCALES:
        scale = getattr(entry, name)
        if scale is not None and not is_shared(np.asarray(scale)):
            faults.append(f"{'threshold' if name == 'run' else name} of {release.site} depends on private data")
    value = exact(entry.value)
    for bound, outside in ((entry.low, np.less), (entry.high, np.greater)):
        if bound is not None:
            limit = np.asarray(bound).reshape(-1, *[1] * (value.ndim - 1))
            if outside(value, limit + SLACK * np.abs(limit) * (1 if outside is np.greater else -1)).any():
                faults.append(
                    f"{release.site} gets a value beyond its bound {scalar(bound):g}: its cost holds only within the "
                    "bound"
                )
    if entry.released is not None and not _is_sum(entry):
        faults.append(f"{release.site} releases a number that is not the sum of its value and its recorded noise")
    return faults


def _is_sum(entry: tape.Entry) -> bool:
    """Returns whether the base's value and the scaled noise sum to the release, up to a mechanism's rounding."""
    value, noise, released = (exact(x)[0] for x in (entry.value, entry.noise, entry.released))
    dtype, scale = np.asarray(entry.released).dtype, noise_scale(entry)
    rounding = float(np.finfo(dtype).eps) if np.issubdtype(dtype, np.inexact) else 0.0
    sensitivity = 0.0 if entry.sensitivity is None else scalar(entry.sensitivity)
    scaled = scale * noise
    with np.errstate(invalid="ignore"):
        sums = value + scaled
        slack = rounding * (np.abs(value) + np.abs(scaled)) + GRID * (np.abs(scaled) + max(sensitivity, GRID * scale))
        return bool(((np.abs(released - sums) <= slack) | ~np.isfinite(sums)).all())


def measure_sites(runs: list[list[Release]], drawn: Mapping[Site, int]) -> tuple[Measured, ...]:
    """Returns, for each site, the largest change by neighbours over all runs, relative to the declared sensitivity.

    `drawn` contains, for each site, the number of noise values that were compared with their recorded distribution.
    """
    changes: dict[Site, list[tuple[float, float | None, str]]] = {}
    for release in (release for releases in runs for release in releases):
        sensitivity = release.entry.sensitivity
        declared = None if sensitivity is None else scalar(sensitivity)
        changes.setdefault(release.site, []).append((float(release.change.largest.max()), declared, release.entry.norm))
    rows = []
    for site, site_changes in changes.items():
        # The release with the largest ratio of change to declared sensitivity.
        largest, declared, norm = max(site_changes, key=lambda change: change[0] / (change[1] or 1.0))
        count = round(len(site_changes) / len(runs))
        rows.append(
            Measured(
                site=str(site),
                norm=norm,
                declared=declared,
                measured=largest,
                releases=count,
                drawn=drawn.get(site, 0),
            )
        )
    return tuple(rows)


def find_reuse(runs: list[list[Release]]) -> list[str]:
    """Returns faults for keys used twice in a run, keys equal in all runs, and noise used twice in all runs.

    Draws that are equal in all runs are a fault only if this is too unlikely by chance.
    """
    faults, uses = [], []
    for releases in runs:
        keys = [((r.round, r.site), np.asarray(r.entry.key)[0].tobytes()) for r in releases if r.entry.key is not None]
        draws = [
            ((r.round, r.site, index), value)
            for r in releases
            if r.entry.noise is not None
            for index, value in enumerate(np.asarray(r.entry.noise)[0].ravel().tolist())
        ]
        uses.append((dict(keys), _pairs(keys), _pairs(draws)))
    for round_and_site, data in uses[0][0].items():
        if len(uses) > 1 and all(keys.get(round_and_site) == data for keys, _, _ in uses[1:]):
            faults.append(f"{round_and_site[1]} has the same key in every run")
    # Keys are too long to be equal by chance, and may be reused in only some runs, such as the runs that drop an arm in
    # a round.
    same_key = set.union(*(pairs for _, pairs, _ in uses))
    same_noise = set.intersection(*(pairs for _, _, pairs in uses)) if len(uses) > 1 else set()
    if same_noise:
        same_noise = _unlikely(runs, same_noise)
    for what, pairs in (("key serves", same_key), ("noise is drawn", same_noise)):
        sites = sorted({tuple(sorted((str(first[1]), str(second[1])))) for first, second in pairs})
        faults += [f"the same {what} twice: {first} and {second}" for first, second in sites]
    return faults


def _unlikely(runs: list[list[Release]], pairs: set[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """Returns the pairs of draws that are equal in all runs with a probability of at most ERROR / number of pairs."""
    # For two independent draws from one distribution, the probability that they have the same value, and that this
    # value has a probability <= p, is <= p.
    chances, num_draws = {first: 1.0 for first, _ in pairs}, 0
    for releases in runs:
        draws = 0
        for release in releases:
            if release.entry.noise is None:
                continue
            for index, chance in enumerate(_chance(release.entry).tolist()):
                draws += 1
                site = release.round, release.site, index
                if site in chances:
                    chances[site] *= chance
        num_draws = max(num_draws, draws)
    return {pair for pair in pairs if chances[pair[0]] * num_draws**2 / 2 <= ERROR}


def _chance(entry: tape.Entry) -> np.ndarray:
    """Returns upper bounds on the probabilities of the base's draws, [entries]."""
    epsilon = 1.0 if entry.epsilon is None else scalar(entry.epsilon)
    if entry.distribution == "geometric":
        step = epsilon / (1.0 if entry.sensitivity is None else scalar(entry.sensitivity))
    else:
        step = STEP * max(1.0, epsilon)
    return np.tanh(step / 2) * np.exp(-np.abs(np.asarray(entry.noise)[0].ravel().astype(np.float64)))


def _pairs(values: list[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """Returns pairs of sites with equal values: the first site of a value, with each later one."""
    sites: dict[Any, list[Any]] = {}
    for site, value in values:
        sites.setdefault(value, []).append(site)
    return {(same[0], other) for same in sites.values() for other in same[1:]}
