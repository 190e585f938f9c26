"""Measures how much one user changes the values that get noise, while the transcript is held fixed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import cost, loss
from jaxdp.audit.adversary import Answer, UserData, feedback_of_action
from jaxdp.audit.checks import budget
from jaxdp.audit.findings import SLACK, GreyBox, find_reuse, measure_sites, wrong_use
from jaxdp.audit.forced import Base, replacements, run_starter
from jaxdp.audit.noise_distributions import distribution_faults
from jaxdp.audit.persons import audited_claim, check_people, first_visits, replace_people
from jaxdp.audit.play import with_short_blocks
from jaxdp.audit.replay import Release, Site, UnreadableError, replay
from jaxdp.audit.same_results import blocks_equal_rounds
from jaxdp.audit.steps import at, steps_of
from jaxdp.audit.units import map_units
from jaxdp.audit.unrecorded import Played, check_changes
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner, Visits
from jaxdp.core.delays import LONGEST
from jaxdp.simulation.run.late import hear_late
from jaxdp.validation import check_count, check_key


def grey_box(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    draw_user: Callable[..., UserData],
    *,
    rounds: int,
    answer: Answer = feedback_of_action,
    num_bases: int = 4,
    num_neighbours: int = 256,
    path: str = "rounds",
    unit: str | None = None,
    visits: Visits | None = None,
    delays: Sequence[int] | np.ndarray | None = None,
) -> GreyBox:
    """Measures how much one user changes the values that get noise, and compares this with the declared sensitivities.

    The audit plays the learner against random users in several runs. Then it replays each run many times with the same
    keys and, if the adversary sees them, with the same public states and (for single rounds in the central and the
    shuffle model) the same plays. In each replay the data of one user, or all answers of one person, are replaced: the
    leaves that the claim's `sensitive_fields` name (all leaves if it is None). A tape records each value to which a
    mechanism adds noise; the mechanism then gets the original run's value. Therefore all releases stay the same, and a
    recorded value changes only because of the replaced data. The audit finds:

    * a declared sensitivity that is exceeded; a total privacy cost that exceeds the claim;
    * a change of anything that the claim's `adversary_view` lets an adversary see (data that bypass the noise);
    * a noise scale that depends on the data; values outside the range of a local randomizer;
    * a key that is used for two releases of a run, or is the same in every run; noise that is used twice in every run
      (for integer noise of a small scale only if it is unlikely that the draws are equal by chance);
    * noise that does not follow its recorded distribution (tested with 4096 keys); a release that is not the sum of its
      value and its noise.

    The adversary sees plays, public states and reports if `adversary_view` names them. In the local model the adversary
    always sees reports; public states follow from reports and are not compared. In the joint model the adversary sees
    the plays of all users except the replaced user, and no reports. The stopping time of a learner with `done` is
    always seen. In the shuffle model the costs of a user's report are compared with `local_epsilon`; amplification by
    shuffling is not computed.

    A changed value may have noise from a mechanism that records nothing on the tape. The audit computes this value with
    4096 keys. If a changed entry is the same with all keys (an integer: in all steps), it has no noise, which is a
    fault. (4096 keys are too few for unrecorded randomized response at an epsilon above about 6.) If all changed
    entries vary, and every one depends on recorded releases, data were added to a number that already has noise, which
    is a fault. Otherwise the audit cannot decide, and adds a note.

    Steps are compiled, and the compiled programs are used again in later steps (for blocks: in steps with the same
    slots). Compilation is impossible if a mechanism is called inside a loop, an inner `jit` or a branch other than
    `jaxdp.mechanisms.branches.branch`, if a step has more than 8 such branches, or if users decide how long a block is.
    In these cases JAX runs one operation at a time, so that a mechanism may be called inside a branch on public values.
    Then a round takes about a tenth of a second, and a block up to several seconds.

    Args:
        key: a typed PRNG key.
        learner: the learner to audit. It must call mechanisms at the top level of `act`, `privatize` and `update` (for
            blocks and counts: of `plan`, `privatize`, and `update_block` or `update_counts`), or under branches and
            loops over public values.
        values: a grid point of the learner's params.
        draw_user: key -> UserData of one round, without the leading axis; or (key, history) -> UserData of a user who
            reacts to a `History`, with an argument that is named `history`. The function draws the original users and
            their replacements. It should sometimes draw the extremes of a user's data, and values that the learner
            clips.
        rounds: number of rounds to play, >= 1; enough for every kind of release to occur.
        answer: (answers, history, action) -> feedback.
        num_bases: number of runs, each against freshly drawn users, >= 2. For blocks and counts, the audit stops after
            the first run in which anything that the adversary sees has changed.
        num_neighbours: replacements tried for each run, >= 1.
        path: how rounds are played: "rounds"; "blocks" or "counts" if the learner has them.
        unit: "record" replaces one user, "person" replaces a person in all their rounds. None means "person" if there
            are visits, otherwise the claim's unit. A change by a person is compared with the declared sensitivity times
            the number of reports that the learner has heard from this person so far, at least 1. If the learner's claim
            is for one round, the learner's costs are compared with `Guarantee.at_user_level`, for the most visits of
            any person. A learner that is made for a schedule, such as `jaxdp.person_means`, declares the sensitivity of
            a person.
        visits: the public schedule for "person", with at least `rounds` rounds; the visits are the learner's contexts.
            `draw_user` then takes only a key, and draws no contexts.
        delays: the public delay of each round's feedback, [rounds] integers in [0, 2^20], as for `jaxdp.delayed`;
            None if feedback arrives immediately. The audit plays the learner as in an environment with these delays.
            With `visits`, only reports that have arrived count as heard.

    Returns:
        The findings. If the learner claims no privacy for these values, there are no faults. The replaced users are
        random, so the audit may miss a rare worst case.

    Raises:
        ValueError: if key is not a single typed key, a count is too small, draw_user does not return UserData, the
            learner lacks the path or does not support delays, `delays` are not [rounds] integers in [0, 2^20], an entry
            of `sensitive_fields` is not a field of users' data, unit does not fit the claim or the visits, there are
            fewer than `rounds` visits or other visits than the learner's, or a release lies behind a branch on private
            data or inside a `vmap`.

    Source:
        The audit computes the quantities of the usual proof of adaptive composition, which fixes the transcript.

    Examples:
        >>> import jaxdp
        >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        >>> def draw_user(key):
        ...     return UserData(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))
        >>> audited = grey_box(jax.random.key(0), learner, {"epsilon": 0.5}, draw_user, rounds=6)
        >>> audited.verdict, round(audited.spent, 3)
        ('consistent', 0.5)
        >>> [(one.site, one.declared, one.measured) for one in audited.sites]
        [('laplace in update', 1.0, 1.0)]
    """
    check_key(key)
    check_made("learner", learner, Learner)
    check_count("rounds", rounds)
    check_count("num_bases", num_bases, 2)
    check_count("num_neighbours", num_neighbours)
    claim = audited_claim(learner, learner.guarantee(**values), unit, visits)
    contexts = None if visits is None else first_visits(visits, rounds)
    arrivals = np.arange(rounds)
    if delays is not None:
        table = np.asarray(delays)
        if table.shape != (rounds,) or table.dtype.kind not in "iu" or not 0 <= table.min() <= table.max() <= LONGEST:
            raise ValueError(f"delays must be {rounds} integers in [0, 2^20], one for each round, got {delays!r}")
        learner, arrivals = hear_late(learner, table, visits).adapt(), arrivals + table
    if path not in paths_of(learner):
        raise ValueError(f"path must be one of the learner's, {', '.join(paths_of(learner))}, got {path!r}")
    params = jax.tree.map(jnp.asarray, learner.params(**values))
    learner = with_short_blocks(learner, rounds)
    base = Base(learner, answer, params, claim, path, draw_user, rounds, contexts)
    start = run_starter(base)
    runs, all_replaced, programs = [], [], {}
    for key_base in jax.random.split(key, num_bases):
        key_users, key_play, key_where, key_others = jax.random.split(key_base, 4)
        scene, users = start(key_users, key_play)
        replaced = jax.random.randint(key_where, (num_neighbours,), 0, rounds)
        if contexts is None:
            new_users = replacements(base, scene, key_others, replaced)
            new_users = map_units(claim, lambda old, new: new, at(users, np.asarray(replaced)), new_users)
            streams = jax.tree.map(partial(_replace_round, np.asarray(replaced)), users, new_users)
        else:
            streams = replace_people(base, users, key_others, replaced)
        steps, replaced_rounds = steps_of(scene), np.concatenate([[-1], np.asarray(replaced)])
        run = replay(scene, steps, key_play, streams, replaced_rounds, programs=programs)
        runs.append(Played(scene, steps, key_play, streams, run))
        all_replaced.append(np.asarray(replaced))
        if run.changed and path != "rounds":  # further runs take seconds, and would find the same
            break
    faults, notes = check_changes(jax.random.fold_in(key, 1), runs)
    noise_faults, num_drawn = distribution_faults(jax.random.fold_in(key, 2), runs[0])
    if visits is None:
        return _make_result(claim, runs, [*faults, *noise_faults], notes, num_drawn)
    releases = [played.run.releases for played in runs]
    of_people, late_notes = check_people(learner, visits, arrivals, all_replaced, releases)
    return _make_result(claim, runs, [*faults, *noise_faults, *of_people], [*notes, *late_notes], num_drawn)


def grey_box_of_paths(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    draw_user: Callable[..., UserData],
    *,
    rounds: int,
    answer: Answer = feedback_of_action,
    num_bases: int = 2,
    num_neighbours: int = 64,
) -> GreyBox:
    """Audits every path of a learner by `grey_box`, and combines the findings.

    Blocks are not audited if, in random runs, they give the same plays and public states as single rounds, bit for bit:
    the audit of rounds then covers blocks, too. There are 4,096 of these runs, or fewer if transcripts are large. So a
    learner may draw noise inside the kernels of its blocks.

    Args:
        key: a typed PRNG key.
        learner: as for `grey_box`.
        values: a grid point of the learner's params.
        draw_user: as for `grey_box`.
        rounds: number of rounds to play, >= 1.
        answer: as for `grey_box`.
        num_bases: number of runs for each path, >= 2.
        num_neighbours: replacements tried for each run, >= 1.

    Returns:
        The findings on all paths. Findings on blocks and counts begin with "in blocks: " or "in counts: ". If the tape
        cannot read the releases of a path, a note says so. If blocks are not audited, `equal_paths` contains "blocks".

    Raises:
        ValueError: as `grey_box`, except for releases that cannot be read.
    """
    check_made("learner", learner, Learner)
    check_count("rounds", rounds)
    claim, sites, spent, faults, notes = learner.guarantee(**values), [], 0.0, [], []
    losses, pair, equal_paths = [], None, []
    base = Base(learner, answer, learner.params(**values), claim, "blocks", draw_user, rounds)
    for path in paths_of(learner):
        prefix = "" if path == "rounds" else f"in {path}: "
        if path == "blocks" and blocks_equal_rounds(jax.random.fold_in(key, 2), base):
            equal_paths.append(path)
            continue
        try:
            result = grey_box(
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
        sites += [dataclasses.replace(site, site=f"{prefix}{site.site}") for site in result.sites]
        if pair is None or result.spent > spent:
            pair = result.pair
        spent = max(spent, result.spent)
        losses += [] if result.loss is None else [result.loss]
        faults += [f"{prefix}{fault}" for fault in result.faults]
        notes += [f"{prefix}{note}" for note in result.notes]
    return GreyBox(
        guarantee=claim,
        sites=tuple(sites),
        spent=spent,
        faults=tuple(faults),
        notes=tuple(notes),
        pair=pair,
        loss=max(losses, default=None),
        equal_paths=tuple(equal_paths),
    )


def paths_of(learner: Learner) -> list[str]:
    """Returns the paths on which a learner is audited: "rounds", and "blocks" and "counts" if the learner has them."""
    return ["rounds", *(["blocks"] if learner.blocks else []), *(["counts"] if learner.counts else [])]


def _replace_round(rounds: np.ndarray, base: jax.Array, new: jax.Array) -> jax.Array:
    """Returns [neighbours + 1, rounds, ...]: `base`, then for neighbour i a copy with `new[i]` in round `rounds[i]`."""
    copies = np.repeat(np.asarray(base)[None], len(rounds) + 1, axis=0)
    copies[np.arange(1, len(copies)), rounds] = new
    return jnp.asarray(copies)


def _make_result(
    claim: Guarantee, plays: list[Played], faults: list[str], notes: list[str], num_drawn: Mapping[Site, int]
) -> GreyBox:
    """Builds the result of replays from the given faults and notes, and from the recorded releases.

    If the claim is not private, the result has no faults.
    """
    runs = [site.run.releases for site in plays]
    sites = measure_sites(runs, num_drawn)
    spent, overspent, unknown, pair = _account(claim, runs, plays)
    notes = [*notes, *unknown]
    if claim.trust_model == "shuffle":
        notes = [*notes, "amplification by shuffling is not computed here"]
    faults = [*faults, *overspent]
    for site in sites:
        if claim.unit == "record" and site.declared is not None and site.measured > site.declared * (1 + SLACK):
            faults.append(
                f"{site.site} changes by {site.measured:.6g} in {site.norm} norm, but {site.declared:.6g} is declared"
            )
    faults += [fault for releases in runs for site in releases for fault in wrong_use(site)]
    faults += find_reuse(runs)
    if not claim.is_private:  # without a claim there is no fault
        faults = []
    return GreyBox(
        guarantee=claim,
        sites=sites,
        spent=spent,
        faults=tuple(dict.fromkeys(faults)),
        notes=tuple(dict.fromkeys(notes)),
        pair=pair,
        loss=None if claim.trust_model == "shuffle" else _largest_loss(runs),
    )


def _largest_loss(runs: list[list[Release]]) -> float | None:
    """Returns the largest absolute privacy loss of a run under a neighbour; None if it is 0 or unknown.

    The privacy loss of a run is the sum of the signed losses of its releases. Neighbours with an unknown loss are
    skipped.
    """
    totals = [np.abs(np.sum([loss(release.entry) for release in releases], axis=0)) for releases in runs if releases]
    largest = max((float(total[~np.isnan(total)].max()) for total in totals), default=0.0)  # the base's loss is 0
    return largest or None


def _account(
    claim: Guarantee, runs: list[list[Release]], plays: list[Played]
) -> tuple[float, list[str], list[str], tuple[UserData, UserData] | None]:
    """Returns (largest epsilon of any neighbour, faults, notes, a pair of neighbours with this epsilon).

    The pair consists of the original users and the users with the costliest replacement; it is None if every epsilon is
    0. In the shuffle model only the releases in `privatize` count: together they are one user's report.
    """
    is_shuffled = claim.trust_model == "shuffle"
    spent, implied, faults, notes, (claimed_epsilon, delta) = 0.0, 0.0, [], [], budget(claim)
    pair = None
    for releases, play in zip(runs, plays, strict=True):
        counted = [release for release in releases if not is_shuffled or release.site.stage == "privatize"]
        costs = cost(
            [(release.entry, release.change) for release in counted], len(jax.tree.leaves(play.streams)[0]), delta
        )
        if costs.epsilon.max() > spent:
            worst_neighbour, users = int(np.argmax(costs.epsilon)), play.streams
            pair = tuple(jax.tree.map(lambda x, row=row: np.asarray(x[row]), users) for row in (0, worst_neighbour))
        spent = max(spent, float(costs.epsilon.max()))
        if is_shuffled:
            continue
        in_epsilon = costs.epsilon
        if claim.mu is not None:
            # For pure noise mu is only an upper bound on the cost, so it is a fault only if epsilon is exceeded, too.
            exceeds = costs.mu > claim.mu * (1 + SLACK)
            in_epsilon = costs.epsilon[exceeds & ~costs.is_gaussian]
            if (exceeds & costs.is_gaussian).any():
                faults.append(
                    f"releases cost mu = {costs.mu[costs.is_gaussian].max():.6g}, but {claim.mu:g} is claimed"
                )
            if len(in_epsilon):
                notes.append(
                    f"releases cost at most mu = {costs.mu.max():.6g} (releases with pure noise may cost less), but "
                    f"{claim.mu:g} is claimed"
                )
        implied = max(implied, float(in_epsilon.max(initial=0.0)))
        if claim.rho is not None and costs.rho.max() > claim.rho * (1 + SLACK):
            faults.append(f"releases cost rho = {costs.rho.max():.6g}, but {claim.rho:g} is claimed")
    if is_shuffled:
        if claim.local_epsilon is not None and spent > claim.local_epsilon * (1 + SLACK):
            faults.append(f"a user's report costs epsilon = {spent:.6g}, but local_epsilon is {claim.local_epsilon:g}")
    elif claim.rho is None and implied > claimed_epsilon * (1 + SLACK):
        faults.append(f"releases cost epsilon = {implied:.6g} at delta = {delta:g}, but {claimed_epsilon:g} is claimed")
    return spent, faults, notes, pair
