"""Audits a person as the privacy unit of a grey box: all rounds of one person are replaced."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.accounting import scalar
from jaxdp.audit.adversary import UserData
from jaxdp.audit.findings import SLACK
from jaxdp.audit.forced import Base, draws_without_history
from jaxdp.audit.replay import Release
from jaxdp.audit.units import map_units
from jaxdp.core import Guarantee, Learner, Visit, Visits
from jaxdp.validation import check_choice

UNITS = ("record", "person")


def audited_claim(learner: Learner, claim: Guarantee, unit: str | None, visits: Visits | None) -> Guarantee:
    """Returns the claim to audit: the claim for one round's data, or the claim for a person.

    If `unit` is None, it is "person" if visits are given, and otherwise the claim's unit.

    Raises:
        ValueError: if unit is not one of `UNITS`, does not fit the claim or the visits, or is "person" for a joint
            claim; if visits are missing, or differ from the learner's visits.
    """
    default = claim.unit if visits is None else "person"
    unit = default if unit is None else check_choice("unit", unit, UNITS)
    if unit == "record" and (claim.unit == "person" or visits is not None):
        raise ValueError(f'unit must be "person" for visits or a claim for a person, got "record" for {claim}')
    if unit == "record":
        return claim
    if not isinstance(visits, Visits):
        raise ValueError(f"visits must be a jaxdp.Visits to audit a claim for a person, got {type(visits).__name__}")
    if learner.visits is not None and not learner.visits.is_same(visits):
        raise ValueError(f"visits must equal the learner's visits, {learner.visits!r}, got {visits!r}")
    if claim.trust_model == "joint":
        raise ValueError(f'unit must be "record" for a claim of joint privacy, got "person" for {learner!r}')
    return claim if claim.unit == "person" else claim.at_user_level(visits.most, privacy_unit="one person")


def first_visits(visits: Visits, rounds: int) -> Visit:
    """Returns the visits of the first rounds, as public contexts.

    Raises:
        ValueError: if the schedule has fewer rounds.
    """
    if rounds > len(visits):
        raise ValueError(f"rounds must be <= {len(visits)}, the number of visits, got {rounds}")
    return Visit(jnp.asarray(visits.person[:rounds]), jnp.asarray(visits.nth[:rounds]))


def replace_people(base: Base, users: UserData, key: jax.Array, replaced: jax.Array) -> UserData:
    """Stacks the original users and copies of them to arrays [neighbours + 1, rounds, ...].

    In each copy, one person has new answers in all rounds of that person, in the leaves of the answers that the claim's
    `sensitive_fields` name.

    Args:
        base: the learner, its claim, and the source of its users.
        users: the original users, [rounds, ...].
        key: a typed PRNG key.
        replaced: [neighbours] integers, a round of each person to replace.

    Raises:
        ValueError: if users react to the past, or an entry of `sensitive_fields` is not a field of users' data.
    """
    if not draws_without_history(base):
        raise ValueError("draw_user must take only a key if visits are given, got a function that reads the history")
    person = users.contexts.person
    keys = jax.random.split(key, (len(replaced), base.rounds))
    drawn_answers = jax.vmap(jax.vmap(lambda key: base.draw_user(key).answers))(keys)
    is_replaced = person[None] == person[replaced][:, None]

    def replace(copies: jax.Array, drawn: jax.Array) -> jax.Array:
        mask = is_replaced.reshape(*is_replaced.shape, *[1] * (drawn.ndim - 2))
        return jnp.concatenate([copies[:1], jnp.where(mask, drawn, copies[1:])])

    copies = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(replaced) + 1, *x.shape)), users)
    same_visits = jax.tree.map(lambda x: x[1:], copies.contexts)
    return map_units(base.guarantee, replace, copies, UserData(drawn_answers, same_visits))


def check_people(
    learner: Learner, visits: Visits, arrivals: np.ndarray, replaced: list[np.ndarray], runs: list[list[Release]]
) -> tuple[list[str], list[str]]:
    """Compares each change with a report's declared sensitivity, times the number of the person's reports heard so far.

    A learner that is made for a schedule declares the sensitivity of a person instead.

    Args:
        learner: the learner that was played.
        visits: the schedule.
        arrivals: [rounds] integers, the round in which each round's report arrives.
        replaced: for each run, [neighbours] a round of each replaced person.
        runs: the releases of each run.

    Returns:
        (faults, notes). There is a note if, at every release, fewer reports of the replaced person had been heard than
        a person can send. For a learner that is made for a schedule, there is a note if there is no release.
    """
    reports = visits.most if learner.reports is None else learner.reports
    faults: dict[str, None] = {}
    is_late = False
    for rounds, releases in zip(replaced, runs, strict=True):
        people = visits.person[rounds]
        for release in releases:
            is_heard = (visits.nth[: len(arrivals)] < reports) & (arrivals <= release.round)
            heard = (is_heard[None] & (visits.person[None, : len(arrivals)] == people[:, None])).sum(axis=1)
            factor = np.maximum(heard, 1) if learner.visits is None else 1
            is_late |= learner.visits is not None or bool((heard >= min(reports, visits.most)).any())
            if release.entry.sensitivity is None:
                continue
            declared = scalar(release.entry.sensitivity)
            moved = release.change.largest[1:]
            exceeds = moved > declared * factor * (1 + SLACK)
            if exceeds.any():
                worst = int(np.argmax(np.where(exceeds, moved, -1.0)))
                faults[
                    f"{release.site} changes by {moved[worst]:.6g} in {release.entry.norm} norm by {heard[worst]} "
                    f"reports of a person, but {declared:.6g} is declared for "
                    f"{'one' if learner.visits is None else 'all'}"
                ] = None
    notes = [] if is_late else ["nothing was released after a person's last heard report: play more rounds"]
    return list(faults), notes
