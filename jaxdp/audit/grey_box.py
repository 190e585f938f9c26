"""Grey-box audit: what mechanisms are asked to noise, measured under neighbouring users along one forced transcript."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.transcripts import Answer, Past, Transcript, Users, by_action, keys_of, play
from jaxdp.learner import Guarantee, Learner, State
from jaxdp.mechanisms import gaussian_epsilon, tape, zcdp_epsilon
from jaxdp.simulation.rounds import Keys
from jaxdp.validation import check_count

SLACK = 1e-4  # relative, for what float32 adds up
STAGES = ("privatize", "update")


class Site(NamedTuple):
    """Where a release is made: the n-th call of a mechanism in one of a learner's functions."""

    stage: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} in {self.stage}" + (f", call {self.number + 1}" if self.number else "")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What neighbouring users changed at one site.

    Attributes:
        site: where.
        norm: of the change, as `tape.Entry` names it.
        declared: largest change that the learner declares; None if it declares none.
        measured: largest change found.
        releases: how many were made there in one run.
    """

    site: str
    norm: str
    declared: float | None
    measured: float
    releases: int


@dataclass(frozen=True, kw_only=True)
class GreyBox:
    """What a grey-box audit found.

    Attributes:
        claim: that was attacked.
        sites: where releases are made, and what changed there.
        spent: largest epsilon, at the claimed delta, that the accounting of the recorded releases gives to a pair of
            neighbours found. Not a lower bound on the true epsilon: several mechanisms may cost less than their sum.
        faults: what is wrong, in words.
        verdict: "violated" if there are faults, else "consistent", which is no proof.
    """

    claim: Guarantee
    sites: tuple[Measured, ...]
    spent: float
    faults: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether the learner keeps to what it declares and claims, as far as was seen."""
        return "violated" if self.faults else "consistent"


class _Release(NamedTuple):
    """One release of a run, under the base's users (index 0) and under neighbours."""

    round: int
    site: Site
    entry: tape.Entry
    change: np.ndarray  # [neighbours + 1]
    changed_entries: np.ndarray  # [neighbours + 1]


def grey_box(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    draw_user: Callable[[jax.Array], Users],
    *,
    rounds: int,
    answer: Answer = by_action,
    num_bases: int = 4,
    num_neighbours: int = 256,
) -> GreyBox:
    """Measures how far one user moves what a learner noises, and compares it with what is declared.

    Plays the learner against random users with a tape open, and then again, with the same keys and *the same released
    states and plays put in*, for users of whom one is replaced. What a mechanism is given then differs by that one
    user's data alone. Found are: a declared sensitivity that is exceeded; a sum of costs beyond the claim; a release
    that changes though nothing noised so far has (a path around the noise); the same noise drawn twice.

    Rounds run operation by operation, so that a release may lie behind a branch on what is public.

    >>> import jaxdp
    >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
    >>> def draw_user(key):
    ...     return Users(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))
    >>> found = grey_box(jax.random.key(0), learner, {"epsilon": 0.5}, draw_user, rounds=6)
    >>> found.verdict, round(found.spent, 3)
    ('consistent', 0.5)
    >>> [(one.site, one.declared, one.measured) for one in found.sites]
    [('laplace in update', 1.0, 1.0)]

    Args:
        key: a typed PRNG key.
        learner: to audit.
        values: a grid point of its params.
        draw_user: key -> Users of one round, without the leading axis. Both the users played against and those that
            replace them: let it reach the extremes of what a user may hold, and beyond what the learner clips.
        rounds: to play, >= 1; at least until the last kind of release.
        answer: (answers, past, action) -> feedback.
        num_bases: runs against users drawn afresh, >= 2.
        num_neighbours: replacements tried for each run, >= 1.

    Returns:
        What was found. The search is random: a rare worst case may be missed.

    Raises:
        ValueError: if a count is too small, or the learner branches on private data around a release.

    Source: Tracing what is noised along a fixed transcript is the usual proof of adaptive composition, run.
    """
    check_count("rounds", rounds)
    check_count("num_bases", num_bases, 2)
    check_count("num_neighbours", num_neighbours)
    claim, params = learner.guarantee(**values), jax.tree.map(jnp.asarray, learner.params(**values))
    runs, faults = [], []
    for key_base in jax.random.split(key, num_bases):
        key_users, key_play, key_where, key_others = jax.random.split(key_base, 4)
        users = jax.vmap(draw_user)(jax.random.split(key_users, rounds))
        where = jax.random.randint(key_where, (num_neighbours,), 0, rounds)
        others = jax.vmap(draw_user)(jax.random.split(key_others, num_neighbours))
        streams = jax.tree.map(lambda all_, new, where=where: _neighbours(all_, where, new), users, others)
        transcript = jax.jit(play, static_argnums=(0, 1))(learner, answer, key_play, params, users)
        central = claim.trust_model == "central"
        releases, leaks = _replay(learner, answer, key_play, params, streams, transcript, rounds, forced=central)
        runs.append(releases)
        faults += leaks
    sites = _sites(runs)
    for one in sites:
        if one.declared is not None and one.measured > one.declared * (1 + SLACK):
            faults.append(
                f"{one.site} changes by {one.measured:.6g} in {one.norm} norm, declared is {one.declared:.6g}"
            )
    spent = max(_spent(releases, claim.delta) for releases in runs)
    if spent > claim.epsilon * (1 + SLACK):
        faults.append(f"releases cost epsilon = {spent:.6g} at delta = {claim.delta:g}, claimed is {claim.epsilon:g}")
    faults += _repeated_noise(runs)
    return GreyBox(claim=claim, sites=sites, spent=spent, faults=tuple(dict.fromkeys(faults)))


def _neighbours(base: jax.Array, where: jax.Array, new: jax.Array) -> jax.Array:
    """[neighbours + 1, rounds, ...]: the base itself, and copies with one round replaced."""
    copies = jnp.broadcast_to(base, (len(where), *base.shape)).at[jnp.arange(len(where)), where].set(new)
    return jnp.concatenate([base[None], copies])


def _replay(
    learner: Learner,
    answer: Answer,
    key: jax.Array,
    params: Any,
    streams: Users,
    transcript: Transcript,
    rounds: int,
    *,
    forced: bool,
) -> tuple[list[_Release], list[str]]:
    key_init, keys = keys_of(key, rounds)
    count = jax.tree.leaves(streams)[0].shape[0]
    private = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x))), learner.init(key_init, params).private
    )
    releases, leaks, quiet = [], [], np.ones(count, bool)
    for t in range(rounds):
        here = jax.tree.map(lambda x, t=t: x[t], (keys, transcript))
        past = Past(jnp.int32(t), jax.tree.map(lambda x, t=t: x.at[t:].set(0), transcript.actions))
        users = jax.tree.map(lambda x, t=t: x[:, t], streams)
        entries, private, released = _round(learner, answer, params, here, past, users, private, forced=forced)
        numbers: dict[tuple[str, str], int] = {}
        for stage, entry in entries:
            number = numbers[stage, entry.name] = numbers.get((stage, entry.name), -1) + 1
            release = _Release(t, Site(stage, entry.name, number), entry, *_change(entry))
            quiet &= release.changed_entries == 0
            releases.append(release)
        moved = np.zeros(count, bool)
        for leaf in jax.tree.leaves(released):
            array = np.asarray(leaf)
            moved |= ~_same(array, array[:1]).reshape(count, -1).all(axis=1)
        if (moved & quiet).any():
            leaks.append("what is released changes though nothing noised has: a path around the noise")
    return releases, leaks


def _round(
    learner: Learner,
    answer: Answer,
    params: Any,
    here: tuple[Keys, Transcript],
    past: Past,
    users: Users,
    private: Any,
    *,
    forced: bool,
) -> tuple[list[tuple[str, tape.Entry]], Any, Any]:
    """One round under all users at once: entries of [neighbours + 1, ...], next private states, and what came out."""
    keys, transcript = here
    public = transcript.before
    fixed: list[tuple[str, tape.Entry]] = []

    def one(users: Users, private: Any) -> Any:
        action = transcript.actions if forced else learner.act(keys.act, params, public, users.contexts)
        feedback = answer(users.answers, past, action)
        with tape.recording() as first:
            report = learner.privatize(keys.user, params, public, users.contexts, action, feedback)
        with tape.recording() as second:
            state = learner.update(keys.update, params, State(private, public), report)
        entries = [(stage, entry) for stage, part in zip(STAGES, (first, second), strict=True) for entry in part]
        fixed[:] = entries
        # in the local model the curator sees the report; else what `update` releases
        return (
            [_arrays(entry) for _, entry in entries],
            state.private,
            state.public if forced else (report, state.public),
        )

    # Batches of users, but one public state: branches on what is public are branches, and record what they release.
    try:
        with jax.disable_jit():
            arrays, private, released = jax.vmap(one)(users, private)
    except (jax.errors.TracerBoolConversionError, jax.errors.UnexpectedTracerError) as error:
        raise ValueError(
            "releases must lie behind no branch, loop or map over private data, for their number would tell; got "
            f"{type(error).__name__}"
        ) from error
    return (
        [(stage, entry._replace(**own)) for (stage, entry), own in zip(fixed, arrays, strict=True)],
        private,
        released,
    )


def _arrays(entry: tape.Entry) -> dict[str, jax.Array]:
    return {
        name: jnp.asarray(x) for name, x in entry._asdict().items() if isinstance(x, jax.Array | np.generic | float)
    }


def _same(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return (first == second) | ((first != first) & (second != second))


def _change(entry: tape.Entry) -> tuple[np.ndarray, np.ndarray]:
    value = np.asarray(entry.value)
    value = value.astype(np.float64).reshape(len(value), -1, *value.shape[-1:][: value.ndim - 1])
    same = _same(value, value[:1])
    with np.errstate(invalid="ignore"):
        change = np.where(same, 0.0, np.abs(value - value[:1]))
    every = tuple(range(1, value.ndim))
    changed = (~same).sum(axis=every)
    if entry.norm == "l1":
        return change.sum(axis=every), changed
    if entry.norm == "l2":
        return np.sqrt(np.square(change).sum(axis=every)), changed
    if entry.norm == "max":
        return change.max(axis=-1).reshape(len(change), -1).sum(axis=1), changed
    return changed.astype(float), changed


def _number(value: Any) -> float:
    """A scalar of the base's run."""
    return float(np.asarray(value).ravel()[0])


def _sites(runs: list[list[_Release]]) -> tuple[Measured, ...]:
    found: dict[Site, list[tuple[float, float | None, str]]] = {}
    for release in (release for releases in runs for release in releases):
        sensitivity = release.entry.sensitivity
        declared = None if sensitivity is None else _number(sensitivity)
        found.setdefault(release.site, []).append((float(release.change.max()), declared, release.entry.norm))
    rows = []
    for site, all_ in found.items():
        # the release that comes nearest to its own declaration, or exceeds it most
        measured, declared, norm = max(all_, key=lambda one: one[0] / (one[1] or 1.0))
        count = round(len(all_) / len(runs))
        rows.append(Measured(site=str(site), norm=norm, declared=declared, measured=measured, releases=count))
    return tuple(rows)


def _spent(releases: list[_Release], delta: float) -> float:
    """The largest epsilon over neighbours: costs add; if delta > 0 also as zCDP and as one Gaussian, the least."""
    pure, rho, squares = (np.zeros_like(releases[0].change) if releases else np.zeros(1) for _ in range(3))
    lasting: dict[Site, np.ndarray] = {}

    def settle(cost: np.ndarray) -> None:
        nonlocal pure, rho
        pure, rho = pure + cost, rho + cost**2 / 2

    for release in releases:
        entry = release.entry
        if entry.noise_stddev is not None:
            stddev = _number(entry.noise_stddev)
            squares += np.square(_ratio(release.change, stddev))
            continue
        epsilon = _number(entry.epsilon)
        if entry.each:
            cost = np.where(release.changed_entries > 0, epsilon * release.changed_entries, 0.0)
        else:
            unit = 1.0 if entry.sensitivity is None else _number(entry.sensitivity)
            cost = _ratio(release.change * epsilon if np.isfinite(epsilon) else _ratio(release.change, 0.0), unit)
        if not entry.lasts:
            settle(cost)
            continue
        group = release.site._replace(stage="", number=0)
        if entry.starts and group in lasting:
            settle(lasting.pop(group))
        lasting[group] = np.maximum(lasting.get(group, 0.0), cost)
    for cost in lasting.values():
        settle(cost)
    worst = 0.0
    for one, its_rho, square in zip(pure, rho, squares, strict=True):
        basic = one + (gaussian_epsilon(delta, 1.0, float(np.sqrt(square))) if square > 0 and delta > 0 else 0.0)
        if square > 0 and delta == 0:
            basic = np.inf
        if delta > 0 and 0 < its_rho + square / 2 < np.inf:
            basic = min(basic, zcdp_epsilon(float(its_rho + square / 2), delta))
        worst = max(worst, float(basic))
    return worst


def _ratio(change: np.ndarray, unit: float) -> np.ndarray:
    """Change / unit, with no change free even where there is no noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change > 0, change / unit, 0.0)


def _repeated_noise(runs: list[list[_Release]]) -> list[str]:
    """Pairs of draws that are equal in every run: in one run two floats may be equal by chance."""
    common: set[tuple[Any, Any]] | None = None
    for releases in runs:
        draws = []
        for release in releases:
            if release.entry.noise is not None:
                noise = np.asarray(release.entry.noise)[0].ravel()
                draws += [((release.round, release.site, index), value) for index, value in enumerate(noise.tolist())]
        places: dict[float, list[Any]] = {}
        for place, value in draws:
            places.setdefault(value, []).append(place)
        pairs = {(same[0], other) for same in places.values() for other in same[1:]}
        common = pairs if common is None else common & pairs
    sites = sorted({tuple(sorted((str(first[1]), str(second[1])))) for first, second in common or ()})
    return [f"the same noise is drawn twice: {first} and {second}" for first, second in sites]
