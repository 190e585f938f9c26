"""Determines the parts of a learner's run that an adversary sees, from the claim's trust model and `adversary_view`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.audit.adversary import History, zero_other_rows
from jaxdp.core import Guarantee, Learner


class Parts(NamedTuple):
    """One value for each part of a transcript.

    Attributes:
        actions: value for the plays.
        reports: value for the reports.
        before: value for `public` before each round.
        after: value for `public` after each round.
    """

    actions: Any
    reports: Any
    before: Any
    after: Any


def is_seen(claim: Guarantee, what: str) -> bool:
    """Returns whether an adversary sees a part of the transcript: "action", "report" or "public".

    The adversary sees the parts that `adversary_view` names. In the joint model the adversary always sees actions, too:
    each user sees their own, and all users except the one who differs may belong to the adversary. In the local model
    the adversary always sees reports, too, which callers must add.
    """
    return what in claim.adversary_view or (claim.trust_model == "joint" and what == "action")


def rounds_seen(claim: Guarantee, changed: int | None, rounds: int) -> Parts:
    """Returns, for each part of a transcript, the rounds that an adversary sees.

    *Central*, *shuffle*: all rounds of the parts that `adversary_view` names. `public` is seen after each round; in the
    shuffle model it includes the server's view of a batch. *Local*: the report of the user who differs, and the user's
    play and `public` before the report if `adversary_view` names them. Later values follow from these values and from
    the data of other users. *Joint*: the actions of all other users, and `public` after every round if `adversary_view`
    names it.

    Args:
        claim: the learner's claim.
        changed: the round of the user who differs, counted from 0; unused in the central and the shuffle model.
        rounds: number of rounds.

    Returns:
        For each part, a tuple of rounds, counted from 0.

    Raises:
        ValueError: if changed is not a round, in the local or the joint model.
    """
    model = claim.trust_model
    if model in ("local", "joint") and (changed is None or not 0 <= changed < rounds):
        raise ValueError(f"changed must be a round in [0, {rounds}) in the {model} model, got {changed}")
    all_rounds = tuple(range(rounds))
    changed_round, action_rounds = (changed,), tuple(r for r in all_rounds if model != "joint" or r != changed)

    def if_shown(what: str, which: tuple[Any, ...]) -> tuple[Any, ...]:
        return which if is_seen(claim, what) else ()

    if model == "local":
        return Parts(if_shown("action", changed_round), changed_round, if_shown("public", changed_round), ())
    return Parts(if_shown("action", action_rounds), if_shown("report", all_rounds), (), if_shown("public", all_rounds))


def must_add_stop(claim: Guarantee, learner: Learner) -> bool:
    """Returns whether the stopping time must be added to the view; false for a learner that does not stop.

    Everybody sees when a learner stops. But the stopping time need not be added if `public` is seen, or in the local
    model, where the stopping time follows from the reports.
    """
    return learner.done is not None and claim.trust_model != "local" and "public" not in claim.adversary_view


def visible_history(claim: Guarantee, changed: int | None, history: History) -> History:
    """Returns an adversary's view of the past: the parts in `adversary_view`, and plays and states that others know.

    In the local and the joint model all other users may belong to the adversary, who then knows their plays. In the
    local model the adversary also knows the public states after their rounds.

    Args:
        claim: the learner's claim.
        changed: the round of the user who differs; None if there is none.
        history: the whole past.

    Returns:
        The past, with zeros in place of unseen values; `reports` is None if the claim does not show reports.
    """
    leaves = jax.tree.leaves((history.actions, history.public))
    rounds = len(leaves[0]) if leaves else 0
    nobody, everybody = jnp.zeros(rounds, bool), jnp.ones(rounds, bool)
    others = everybody if changed is None else jnp.arange(rounds) != changed
    model = claim.trust_model

    def mask(tree: Any, name: str) -> Any:
        if model == "joint" and name == "action":  # a user's action may depend on the user's own data
            rows = others
        elif name in claim.adversary_view:
            rows = everybody
        else:  # in the local model public states follow from reports; in the other models only the curator sees them
            rows = others if model == "local" else nobody
        return jax.tree.map(lambda x: zero_other_rows(rows, x), tree)

    return history._replace(
        actions=mask(history.actions, "action"),
        public=mask(history.public, "public"),
        reports=mask(history.reports, "report") if "report" in claim.adversary_view else None,
    )
