"""Tests whether noise follows its recorded distribution, by drawing the noise again with many keys."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from scipy.special import ndtr

from jaxdp.audit.accounting import noise_scale
from jaxdp.audit.decided import MOST_DECISIONS, Decisions, Undecided, with_decisions
from jaxdp.audit.quick_programs import quick_options
from jaxdp.audit.replay import NOT_CONCRETE, Release, Site, traced_apart
from jaxdp.audit.steps import at, choose, react, step_keys
from jaxdp.audit.unrecorded import Played, played_plan
from jaxdp.core import State
from jaxdp.mechanisms import tape

KEYS = 4096
MOST_DRAWN = 2**17  # maximum count of compared numbers of one site
ERROR = 1e-6  # probability of a false alarm, for each site


def geometric_cdf(numbers: np.ndarray, step: float) -> np.ndarray:
    """Returns the distribution function of step * K at `numbers`, which are multiples of `step` up to rounding.

    P(K = k) is proportional to exp(-step |k|).
    """
    with np.errstate(invalid="ignore"):
        nearest = np.rint(numbers / step) * step  # recorded noise is rounded to a float
    return np.where(nearest < 0, np.exp(-np.abs(nearest)), 1 + np.exp(-step) - np.exp(-nearest.clip(0) - step)) / (
        1 + np.exp(-step)
    )


# (numbers, distance of neighbouring numbers of discrete noise) -> distribution function
DISTRIBUTIONS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "laplace": lambda x, _: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2),
    "geometric": geometric_cdf,
    "normal": lambda numbers, _: ndtr(numbers),
    "gumbel": lambda x, _: np.exp(-np.exp(-x)),
    "exponential": lambda x, _: -np.expm1(-np.maximum(x, 0)),
}


def distribution_faults(key: jax.Array, played: Played) -> tuple[list[str], dict[Site, int]]:
    """Compares the noise of each site, drawn with many keys in the site's first step, with its recorded distribution.

    The Kolmogorov-Smirnov distance of n independent numbers exceeds sqrt(log(2 / ERROR) / (2 n)) with probability at
    most ERROR. With 4096 numbers this limit is 0.042. For noise of half the recorded scale, the distance of the true
    from the recorded distribution is 0.125 (Laplace) or 0.161 (normal).

    Args:
        key: a typed PRNG key.
        played: a run.

    Returns:
        (faults, number of compared values by site). The sites first seen in a step are skipped if the noise of this
        step cannot be drawn with many keys at once, for example behind a branch on random values.
    """
    releases_by_step: dict[int, list[Release]] = {}
    known_sites: set[Site] = set()
    starts = [step.start for step in played.steps]
    for release in played.run.releases:
        if (
            release.entry.distribution is not None
            and release.entry.noise is not None
            and release.site not in known_sites
        ):
            known_sites.add(release.site)
            number = int(np.searchsorted(starts, release.round, side="right")) - 1
            releases_by_step.setdefault(number, []).append(release)
    faults, num_drawn = [], {}
    for number, releases in releases_by_step.items():
        try:
            entries = _draw_noise(jax.random.fold_in(key, number), played, number)
        except NOT_CONCRETE:
            continue
        for release in releases:
            noise, distribution = entries.get((release.round, release.site)), release.entry.distribution
            if noise is None or distribution is None:
                continue
            numbers = np.sort(noise.ravel()[:MOST_DRAWN].astype(np.float64))
            num_drawn[release.site] = len(numbers)
            step = 1 / noise_scale(release.entry) if distribution == "geometric" else 0.0
            distance = ks_distance(numbers, distribution, step)
            if distance > np.sqrt(np.log(2 / ERROR) / (2 * len(numbers))):
                faults.append(
                    f"the noise of {release.site} does not follow the recorded {distribution} distribution: their "
                    f"distribution functions differ by {distance:.2g} in {len(numbers)} draws"
                )
    return faults, num_drawn


def ks_distance(ordered: np.ndarray, distribution: str, step: float = 0.0) -> float:
    """Returns the Kolmogorov-Smirnov distance of ordered numbers [n] from a distribution; NaN counts as infinity.

    Numbers of discrete noise are multiples of `step`; `step` is 0 for other noise.
    """
    numbers = np.where(np.isnan(ordered), np.inf, ordered)
    cdf, count = DISTRIBUTIONS[distribution], len(numbers)
    at_most, less = (np.searchsorted(numbers, numbers, side) / count for side in ("right", "left"))
    return float(max((at_most - cdf(numbers, step)).max(), (cdf(numbers - step, step) - less).max()))


def _draw_noise(key: jax.Array, played: Played, number: int) -> dict[tuple[int, Site], np.ndarray]:
    """Draws the noise of one step, [KEYS, ...] by round and site, with many keys; everything else is as in the run."""
    scene, step, users = played.scene, played.steps[number], at(played.streams, 0)
    public, private = at(scene.transcript.before, step.start), played.run.private[number]
    _, right_keys = step_keys(scene, played.key)
    plan, slots = played_plan(scene, step, right_keys, users, public)
    _, keys = jax.vmap(lambda run_key: step_keys(scene, run_key))(jax.random.split(key, KEYS))
    sites: list[tuple[int, Site]] = []

    def draw_once(keys: Any) -> list[Any]:
        records: list[tuple[int, Site, Any]] = []
        numbers: dict[tuple[str, int, str], int] = {}

        @contextmanager
        def open_tape(stage: str, round_: int) -> Iterator[None]:
            with tape.recording() as entries:
                yield
            for entry in entries:
                count = numbers[stage, round_, entry.name] = numbers.get((stage, round_, entry.name), -1) + 1
                if entry.noise is not None:
                    records.append((round_, Site(stage, entry.name, count), entry.noise))

        choose(scene, step, keys, users, public, open_tape)
        react(scene, step, keys, users, State(private, public), plan, slots, open_tape)
        sites[:] = [(round_, site) for round_, site, _ in records]
        return [noise for _, _, noise in records]

    noises = _draw_compiled(jax.vmap(draw_once), keys)
    if noises is None:
        with jax.disable_jit():
            noises = jax.vmap(draw_once)(keys)
    return {site: np.asarray(noise) for site, noise in zip(sites, noises, strict=True)}


def _draw_compiled(function: Callable[[Any], Any], keys: Any) -> Any:
    """Returns function(keys), compiled; None if a release lies behind a loop, an inner `jit` or a `jax.lax.cond`.

    The result is also None if a branch depends on the key, or if there are more than `MOST_DECISIONS` branches.
    """
    decisions: Decisions = ()
    while len(decisions) <= MOST_DECISIONS:
        try:
            with traced_apart(object()):
                draws = jax.jit(with_decisions(function, decisions), compiler_options=quick_options())(keys)
        except NOT_CONCRETE:
            return None
        if not isinstance(draws, Undecided):
            return draws
        decisions = (*decisions, bool(draws.flag))
    return None
