"""Grey-box audit: what mechanisms are asked to noise, measured under neighbouring users along one forced transcript."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import Change, change, cost, scalar
from jaxdp.audit.adversary import Answer, Past, Users, by_action
from jaxdp.audit.checks import budget
from jaxdp.audit.play import Transcript, keys_of, play
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner, State
from jaxdp.mechanisms import tape
from jaxdp.simulation.rounds import Keys
from jaxdp.validation import check_count, check_key

SLACK = 1e-4  # relative, for what float32 adds up
STAGES = ("act", "privatize", "update")
SCALES = ("sensitivity", "epsilon", "rho", "noise_stddev", "run")  # what noise depends on must not depend on the data
LANE = "jaxdp_lane"
_traced_apart = jax.make_user_context(None)
_traces = [object()]  # names the traces made under tapes; a new name forgets them


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
        sites: where releases are made, and what changed there; empty if nothing was released in the rounds played.
        spent: largest epsilon that the accounting of the recorded releases gives to a pair of neighbours found, at the
            claimed delta (0.01 for zCDP and Gaussian claims). Not a lower bound on the true epsilon: several mechanisms
            may cost less than their sum.
        faults: what is wrong, in words.
        notes: what could not be told, and why.
        verdict: "violated" if there are faults, else "consistent", which is no proof.
    """

    claim: Guarantee
    sites: tuple[Measured, ...]
    spent: float
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the learner keeps to what it declares and claims, as far as was seen."""
        return "violated" if self.faults else "consistent"


class _Release(NamedTuple):
    """One release of a run, under the base's users (index 0) and under neighbours."""

    round: int
    site: Site
    entry: tape.Entry
    change: Change


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

    Plays the learner against random users, and then again with a tape open, with the same keys and *the same plays and
    public states put in*, for users of whom one is replaced. Each mechanism's value is written down, and the base's put
    in its place: all that is released stays as it was, and the next value differs by the one user's data alone. Found
    are: a declared sensitivity that is exceeded; a sum of costs beyond the claim; a play, report or public state that
    changes all the same (a path around the noise); noise whose size follows the data; values outside what a local
    randomizer takes; a key used for two releases, or the same in every run; the same noise twice.

    Rounds run operation by operation, about a tenth of a second each, so that a release may lie behind a branch on what
    is public. Blocks and counts are not run: `jaxdp.testing.check_learner` compares blocks with single rounds, and the
    law of counts with theirs.

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
        learner: to audit. Mechanisms are called at the top level of `act`, `privatize` and `update`, or under branches
            and loops over public values.
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
        ValueError: if key is not a single typed key, a count is too small, draw_user does not return Users, or a
            release lies behind a branch on private data or inside a `vmap`.

    Source: measuring what is noised along a fixed transcript is the usual proof of adaptive composition, run.
    """
    check_key(key)
    check_made("learner", learner, Learner)
    check_count("rounds", rounds)
    check_count("num_bases", num_bases, 2)
    check_count("num_neighbours", num_neighbours)
    drawn = jax.eval_shape(draw_user, key)
    if not isinstance(drawn, Users):
        raise ValueError(f"draw_user must return Users, got {type(drawn).__name__}")
    claim, params = learner.guarantee(**values), jax.tree.map(jnp.asarray, learner.params(**values))
    runs: list[list[_Release]] = []
    faults: list[str] = []
    played = learner._replace(interface=None, blocks=())  # these may have dicts and lists, which have no hash
    for key_base in jax.random.split(key, num_bases):
        key_users, key_play, key_where, key_others = jax.random.split(key_base, 4)
        users = jax.vmap(draw_user)(jax.random.split(key_users, rounds))
        where = jax.random.randint(key_where, (num_neighbours,), 0, rounds)
        others = jax.vmap(draw_user)(jax.random.split(key_others, num_neighbours))
        streams = jax.tree.map(lambda all_, new, where=where: _neighbours(all_, where, new), users, others)
        transcript = jax.jit(play, static_argnums=(0, 1))(played, answer, key_play, params, users)
        releases, moved = _replay(learner, answer, key_play, params, streams, transcript, claim.trust_model)
        runs.append(releases)
        faults += moved
    spent, (claimed, delta) = 0.0, budget(claim)
    for releases in runs:
        costs = cost([(one.entry, one.change) for one in releases], num_neighbours + 1, delta)
        spent = max(spent, float(costs.epsilon.max()))
        if claim.rho is not None and costs.rho.max() > claim.rho * (1 + SLACK):
            faults.append(f"releases cost rho = {costs.rho.max():.6g}, claimed is {claim.rho:g}")
    sites = _sites(runs)
    for one in sites:
        if one.declared is not None and one.measured > one.declared * (1 + SLACK):
            faults.append(
                f"{one.site} changes by {one.measured:.6g} in {one.norm} norm, declared is {one.declared:.6g}"
            )
    if claim.rho is None and spent > claimed * (1 + SLACK):
        faults.append(f"releases cost epsilon = {spent:.6g} at delta = {delta:g}, claimed is {claimed:g}")
    faults += [fault for one in (one for releases in runs for one in releases) for fault in _wrong_use(one)]
    faults += _repeated(runs)
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
    trust_model: str,
) -> tuple[list[_Release], list[str]]:
    count, rounds = jax.tree.leaves(streams)[0].shape[:2]
    key_init, keys = keys_of(key, rounds)
    private = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x))), learner.init(key_init, params).private
    )
    releases, faults = [], []
    for t in range(rounds):
        here = jax.tree.map(lambda x, t=t: x[t], (keys, transcript))
        past = Past(jnp.int32(t), jax.tree.map(lambda x, t=t: x.at[t:].set(0), transcript.actions))
        users = jax.tree.map(lambda x, t=t: x[:, t], streams)
        entries, private, released = _round(learner, answer, params, here, past, users, private, trust_model)
        numbers: dict[tuple[str, str], int] = {}
        for stage, entry in entries:
            number = numbers[stage, entry.name] = numbers.get((stage, entry.name), -1) + 1
            releases.append(_Release(t, Site(stage, entry.name, number), entry, change(entry)))
        for what, tree in released.items():
            if any(not _alike(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)):
                faults.append(f"{what} changes though all that is noised stays: a path around the noise")
    return releases, faults


def _round(
    learner: Learner,
    answer: Answer,
    params: Any,
    here: tuple[Keys, Transcript],
    past: Past,
    users: Users,
    private: Any,
    trust_model: str,
) -> tuple[list[tuple[str, tape.Entry]], Any, dict[str, Any]]:
    """One round under all users at once: entries of [neighbours + 1, ...], next private states, and what came out."""
    keys, transcript = here
    public = transcript.before
    made: list[tuple[str, tape.Entry]] = []

    def bases(value: jax.Array) -> jax.Array:
        return jax.lax.all_gather(value, LANE)[0]

    def one(users: Users, private: Any) -> Any:
        with tape.recording(bases) as acting:
            action = learner.act(keys.act, params, public, users.contexts)
        played = transcript.actions if trust_model == "central" else action
        feedback = answer(users.answers, past, played)
        with tape.recording(bases) as reporting:
            report = learner.privatize(keys.user, params, public, users.contexts, played, feedback)
        with tape.recording(bases) as updating:
            state = learner.update(keys.update, params, State(private, public), report)
        tapes = zip(STAGES, (acting, reporting, updating), strict=True)
        made[:] = [(stage, entry) for stage, entries in tapes for entry in entries]
        released = {"the public state": state.public}
        if trust_model == "central":
            released["the play"] = action
        if trust_model == "local":  # what the curator sees
            released["the report"] = report
        return [_arrays(entry) for _, entry in made], state.private, released

    # Batches of users, but one public state: branches on what is public are branches, and record what they release.
    try:
        # What was traced before, without a tape, would be taken from JAX's cache and write nothing.
        with jax.disable_jit(), _traced_apart(_traces[0]):
            arrays, private, released = jax.vmap(one, axis_name=LANE)(users, private)
    except (jax.errors.TracerBoolConversionError, jax.errors.UnexpectedTracerError) as error:
        _traces[0] = object()  # the branch's trace is in the cache now, and would write nothing either
        raise ValueError(
            "releases must be made at the top level of act, privatize and update, or behind branches on public values: "
            "not behind a branch on private data, whose choice would tell, nor inside a vmap (call the mechanism once, "
            f"with an array); got {type(error).__name__}"
        ) from error
    return [(stage, entry._replace(**own)) for (stage, entry), own in zip(made, arrays, strict=True)], private, released


def _arrays(entry: tape.Entry) -> dict[str, jax.Array]:
    """The entry's numbers, which a vmap may return."""
    words = ("name", "norm", "each")
    return {name: jnp.asarray(x) for name, x in entry._asdict().items() if name not in words and x is not None}


def _alike(batch: np.ndarray) -> bool:
    """Whether all neighbours have the base's value."""
    return bool(((batch == batch[:1]) | ((batch != batch) & (batch[:1] != batch[:1]))).all())


def _wrong_use(release: _Release) -> list[str]:
    entry, faults = release.entry, []
    for name in SCALES:
        scale = getattr(entry, name)
        if scale is not None and not _alike(np.asarray(scale)):
            faults.append(f"{'threshold' if name == 'run' else name} of {release.site} depends on private data")
    value = np.asarray(entry.value)
    for bound, outside in ((entry.low, np.less), (entry.high, np.greater)):
        if bound is not None:
            limit = np.asarray(bound).reshape(-1, *[1] * (value.ndim - 1))
            if outside(value, limit + SLACK * np.abs(limit) * (1 if outside is np.greater else -1)).any():
                faults.append(f"{release.site} gets a value beyond {scalar(bound):g}, for which its cost does not hold")
    return faults


def _sites(runs: list[list[_Release]]) -> tuple[Measured, ...]:
    found: dict[Site, list[tuple[float, float | None, str]]] = {}
    for release in (release for releases in runs for release in releases):
        sensitivity = release.entry.sensitivity
        declared = None if sensitivity is None else scalar(sensitivity)
        found.setdefault(release.site, []).append((float(release.change.largest.max()), declared, release.entry.norm))
    rows = []
    for site, all_ in found.items():
        # the release that comes nearest to its own declaration, or exceeds it most
        measured, declared, norm = max(all_, key=lambda one: one[0] / (one[1] or 1.0))
        count = round(len(all_) / len(runs))
        rows.append(Measured(site=str(site), norm=norm, declared=declared, measured=measured, releases=count))
    return tuple(rows)


def _repeated(runs: list[list[_Release]]) -> list[str]:
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
        if all(keys.get(where) == data for keys, _, _ in places[1:]):
            faults.append(f"{where[1]} has the same key in every run")
    same_key = set.union(*(pairs for _, pairs, _ in places))
    same_noise = set.intersection(*(pairs for _, _, pairs in places))
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
