"""Grey-box audit: what mechanisms are asked to noise, measured under neighbouring users along one forced transcript."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import cost, loss
from jaxdp.audit.adversary import Answer, Users, by_action
from jaxdp.audit.checks import budget
from jaxdp.audit.findings import SLACK, GreyBox, measured, repeated, wrong_use
from jaxdp.audit.forced import Base, replacements, starting
from jaxdp.audit.noise_laws import off_law
from jaxdp.audit.replay import Release, Site, UnreadableError, replay
from jaxdp.audit.same_results import as_rounds
from jaxdp.audit.steps import at, steps_of
from jaxdp.audit.units import map_units
from jaxdp.audit.unrecorded import Played, unexplained
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner
from jaxdp.simulation.run.engines import ENGINES
from jaxdp.validation import check_choice, check_count, check_key


def grey_box(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    draw_user: Callable[..., Users],
    *,
    rounds: int,
    answer: Answer = by_action,
    num_bases: int = 4,
    num_neighbours: int = 256,
    path: str = "rounds",
) -> GreyBox:
    """Measures how far one user moves what a learner noises, and compares it with what is declared.

    Plays the learner against random users, and then again with a tape open, with the same keys and *the same plays and
    public states put in*, for users of whom one is replaced, in what the claim's `unit_leaves` name. Each mechanism's
    value is written down, and the base's put in its place: all that is released stays as it was, and the next value
    differs by the one user's data alone. Found are: a declared sensitivity that is exceeded; a sum of costs beyond the
    claim; what the claim's `sees` lets an adversary see and what changes all the same (a path around the noise); noise
    whose size follows the data; values outside what a local randomizer takes; a key used for two releases, or the same
    in every run; the same noise twice; noise that does not follow the law that is recorded of it, drawn with 4096 keys;
    and a release that is not the sum of its value and that noise.

    *Seen*, if `sees` names it: plays, public states and reports; in the local model reports always, and no public
    states, which follow from them; in the joint model plays and reports of all users but the replaced one. Where a
    learner with `done` stops is seen in any case. In the shuffle model the reports' mechanisms are held to
    `local_epsilon`; what shuffling gains is not accounted for.

    What changes may have been noised by something that writes nothing on the tape. It has not if it is the same with
    4096 keys: too few for randomized response that writes nothing at an epsilon above about 6. Else, if nothing at all
    was written, the verdict is "cannot tell". In a learner that writes some of its releases, what changes is a fault if
    all of it depends on them: data are added to a noised number. Where some of it does not, the verdict is "cannot
    tell", too.

    Rounds and counts whose releases lie behind no branch, loop or inner `jit` are compiled, once for all of them. Other
    steps run operation by operation, a round in about a tenth of a second, a block in up to some seconds, so that a
    release may lie behind a branch on what is public.

    Args:
        key: a typed PRNG key.
        learner: to audit. Mechanisms are called at the top level of `act`, `privatize` and `update` (of `plan`,
            `privatize` and `absorb`), or under branches and loops over public values.
        values: a grid point of its params.
        draw_user: key -> Users of one round, without the leading axis; or (key, past) -> Users, who react to a `Past`.
            Both the users played against and those that replace them: let it reach the extremes of what a user may
            hold, and beyond what the learner clips.
        rounds: to play, >= 1; at least until the last kind of release.
        answer: (answers, past, action) -> feedback.
        num_bases: runs against users drawn afresh, >= 2.
        num_neighbours: replacements tried for each run, >= 1.
        path: how rounds are played: "rounds"; "blocks" or "counts" where the learner has them.

    Returns:
        What was found. The search is random: a rare worst case may be missed.

    Raises:
        ValueError: if key is not a single typed key, a count is too small, draw_user does not return Users, the learner
            lacks the path, `unit_leaves` names no data of users, or a release lies behind a branch on private data or
            inside a `vmap`.

    Source:
        Measuring what is noised along a fixed transcript is the usual proof of adaptive composition, run.

    Examples:
        >>> import jaxdp
        >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        >>> def draw_user(key):
        ...     return Users(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))
        >>> found = grey_box(jax.random.key(0), learner, {"epsilon": 0.5}, draw_user, rounds=6)
        >>> found.verdict, round(found.spent, 3)
        ('consistent', 0.5)
        >>> [(one.site, one.declared, one.measured) for one in found.sites]
        [('laplace in update', 1.0, 1.0)]
    """
    check_key(key)
    check_made("learner", learner, Learner)
    check_count("rounds", rounds)
    check_count("num_bases", num_bases, 2)
    check_count("num_neighbours", num_neighbours)
    if check_choice("path", path, ENGINES) not in paths_of(learner):
        raise ValueError(f"path must be one of the learner's, {', '.join(paths_of(learner))}, got {path!r}")
    claim, params = learner.guarantee(**values), jax.tree.map(jnp.asarray, learner.params(**values))
    base = Base(learner, answer, params, claim, path, draw_user, rounds)
    start = starting(base)
    played, programs = [], {}
    for key_base in jax.random.split(key, num_bases):
        key_users, key_play, key_where, key_others = jax.random.split(key_base, 4)
        scene, users = start(key_users, key_play)
        where = jax.random.randint(key_where, (num_neighbours,), 0, rounds)
        others = replacements(base, scene, key_others, where)
        others = map_units(claim, lambda mine, new: new, at(users, where), others)
        streams = jax.tree.map(partial(_replaced, where), users, others)
        steps, of_whom = steps_of(scene), np.concatenate([[-1], np.asarray(where)])
        run = replay(scene, steps, key_play, streams, of_whom, programs=programs)
        played.append(Played(scene, steps, key_play, streams, run))
        if run.changed and path != "rounds":  # which takes seconds, and can only end in the same way
            break
    faults, notes = unexplained(jax.random.fold_in(key, 1), played)
    wrong, drawn = off_law(jax.random.fold_in(key, 2), played[0])
    return _judged(claim, played, [*faults, *wrong], notes, drawn)


def grey_box_of_paths(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    draw_user: Callable[..., Users],
    *,
    rounds: int,
    answer: Answer = by_action,
    num_bases: int = 2,
    num_neighbours: int = 64,
) -> GreyBox:
    """A grey-box audit of every path that a learner has, as one.

    Blocks that give the plays and public states of single rounds in some thousand random runs, bit for bit, are not
    audited again: what rounds are, they are. So learners can be audited whose blocks draw noise inside their kernels.

    Args:
        key: a typed PRNG key.
        learner: as for `grey_box`.
        values: a grid point of its params.
        draw_user: as for `grey_box`.
        rounds: to play.
        answer: as for `grey_box`.
        num_bases: runs for each path, >= 2.
        num_neighbours: replacements tried for each run, >= 1.

    Returns:
        What was found on all paths; what is told of another one than "rounds" begins with its name. A path whose
        releases cannot be read is a note.

    Raises:
        ValueError: as `grey_box`, but for releases that cannot be read.
    """
    check_made("learner", learner, Learner)
    check_count("rounds", rounds)
    claim, sites, spent, faults, notes = learner.guarantee(**values), [], 0.0, [], []
    losses, pair = [], None
    base = Base(learner, answer, learner.params(**values), claim, "blocks", draw_user, rounds)
    for path in paths_of(learner):
        prefix = "" if path == "rounds" else f"in {path}: "
        if path == "blocks" and as_rounds(jax.random.fold_in(key, 2), base):
            continue
        try:
            found = grey_box(
                key,
                learner,
                values,
                draw_user,
                rounds=rounds,
                answer=answer,
                num_bases=num_bases,
                num_neighbours=num_neighbours,
                path=path,
            )
        except UnreadableError as error:
            notes.append(f"{prefix}{error}")
            continue
        sites += [dataclasses.replace(one, site=f"{prefix}{one.site}") for one in found.sites]
        if pair is None or found.spent > spent:
            pair = found.pair
        spent = max(spent, found.spent)
        losses += [] if found.loss is None else [found.loss]
        faults += [f"{prefix}{fault}" for fault in found.faults]
        notes += [f"{prefix}{note}" for note in found.notes]
    return GreyBox(
        claim=claim,
        sites=tuple(sites),
        spent=spent,
        faults=tuple(faults),
        notes=tuple(notes),
        pair=pair,
        loss=max(losses, default=None),
    )


def paths_of(learner: Learner) -> list[str]:
    """The engines that a learner has."""
    return ["rounds", *(["blocks"] if learner.blocks else []), *(["counts"] if learner.counts else [])]


def _replaced(where: jax.Array, base: jax.Array, new: jax.Array) -> jax.Array:
    """[neighbours + 1, rounds, ...]: the base itself, and copies with one round replaced."""
    copies = jnp.broadcast_to(base, (len(where), *base.shape)).at[jnp.arange(len(where)), where].set(new)
    return jnp.concatenate([base[None], copies])


def _judged(
    claim: Guarantee, played: list[Played], faults: list[str], notes: list[str], drawn: Mapping[Site, int]
) -> GreyBox:
    """Adds what is wrong with the releases to what is told of changes."""
    runs = [one.run.releases for one in played]
    sites = measured(runs, drawn)
    spent, overspent, unknown, pair = _spent(claim, runs, played)
    notes = [*notes, *unknown]
    if claim.trust_model == "shuffle":
        notes = [*notes, "the amplification by shuffling is not accounted here"]
    faults = [*faults, *overspent]
    for one in sites:
        if one.declared is not None and one.measured > one.declared * (1 + SLACK):
            faults.append(
                f"{one.site} changes by {one.measured:.6g} in {one.norm} norm, declared is {one.declared:.6g}"
            )
    faults += [fault for releases in runs for one in releases for fault in wrong_use(one)]
    faults += repeated(runs)
    if not claim.is_private:  # no claim cannot be violated
        faults = []
    return GreyBox(
        claim=claim,
        sites=sites,
        spent=spent,
        faults=tuple(dict.fromkeys(faults)),
        notes=tuple(dict.fromkeys(notes)),
        pair=pair,
        loss=None if claim.trust_model == "shuffle" else _largest_loss(runs),
    )


def _largest_loss(runs: list[list[Release]]) -> float | None:
    """The largest known loss of a transcript, of all its releases together."""
    totals = [np.abs(np.sum([loss(one.entry) for one in releases], axis=0)) for releases in runs if releases]
    largest = max((float(total[~np.isnan(total)].max()) for total in totals), default=0.0)  # the base's own is 0
    return largest or None


def _spent(
    claim: Guarantee, runs: list[list[Release]], played: list[Played]
) -> tuple[float, list[str], list[str], tuple[Users, Users] | None]:
    """The largest epsilon that one neighbour costs, what is wrong with costs, what is not known of them, and whose.

    In the shuffle model the accounting is of one user's report, which is made in `privatize`. Elsewhere a claim is held
    to its own currency. Of a Gaussian claim that pure noise is paid for, costs are known only from above: what exceeds
    it is a fault where the epsilon that it implies is exceeded, too.
    """
    is_shuffled = claim.trust_model == "shuffle"
    spent, implied, faults, notes, (claimed, delta) = 0.0, 0.0, [], [], budget(claim)
    pair = None
    for releases, one in zip(runs, played, strict=True):
        counted = [each for each in releases if not is_shuffled or each.site.stage == "privatize"]
        costs = cost([(each.entry, each.change) for each in counted], len(jax.tree.leaves(one.streams)[0]), delta)
        if costs.epsilon.max() > spent:
            worst, of_base = int(np.argmax(costs.epsilon)), one.streams
            pair = tuple(jax.tree.map(lambda x, row=row: np.asarray(x[row]), of_base) for row in (0, worst))
        spent = max(spent, float(costs.epsilon.max()))
        if is_shuffled:
            continue
        in_epsilon = costs.epsilon
        if claim.mu is not None:
            exceeds = costs.mu > claim.mu * (1 + SLACK)
            in_epsilon = costs.epsilon[exceeds & ~costs.is_gaussian]
            if (exceeds & costs.is_gaussian).any():
                faults.append(f"releases cost mu = {costs.mu[costs.is_gaussian].max():.6g}, claimed is {claim.mu:g}")
            if len(in_epsilon):
                notes.append(
                    f"releases cost at most mu = {costs.mu.max():.6g}, by pure noise perhaps less, claimed is "
                    f"{claim.mu:g}"
                )
        implied = max(implied, float(in_epsilon.max(initial=0.0)))
        if claim.rho is not None and costs.rho.max() > claim.rho * (1 + SLACK):
            faults.append(f"releases cost rho = {costs.rho.max():.6g}, claimed is {claim.rho:g}")
    if is_shuffled:
        if claim.local_epsilon is not None and spent > claim.local_epsilon * (1 + SLACK):
            faults.append(f"a user's report costs epsilon = {spent:.6g}, local_epsilon is {claim.local_epsilon:g}")
    elif claim.rho is None and implied > claimed * (1 + SLACK):
        faults.append(f"releases cost epsilon = {implied:.6g} at delta = {delta:g}, claimed is {claimed:g}")
    return spent, faults, notes, pair
