"""An adversary's view of a learner, by the trust model of its claim and by what the world may log under it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.audit.adversary import History, zero_other_rows
from jaxdp.core import Guarantee, Learner


class Parts(NamedTuple):
    """One value for each part of a transcript.

    Attributes:
        actions: for the plays.
        reports: for the reports.
        before: for `public` before each round.
        after: for `public` after each round.
    """

    actions: Any
    reports: Any
    before: Any
    after: Any


def is_seen(claim: Guarantee, what: str) -> bool:
    """Returns whether an adversary sees `what` of rounds: if it is logged, and for the actions of the joint model.

    In the joint model every user sees their own action, and all users except the one who differs may be
    the adversary's.

    Args:
        claim: of the learner.
        what: "action", "report" or "public".
    """
    return what in claim.adversary_view or (claim.trust_model == "joint" and what == "action")


def rounds_seen(claim: Guarantee, changed: int | None, rounds: int) -> Parts:
    """Returns, for each part of a transcript, the rounds that an adversary sees.

    *Central*, *shuffle*: all rounds of the parts in `adversary_view`; the server's view of a batch is in `public`.
    *Local*: the report of the user who differs, and the other parts in `adversary_view`: the play, and `public` before
    the report; all later values follow from these and from others' data. *Joint*: the actions of all other users, and
    `public` after every round if `adversary_view` has it. Others' reports follow from what they see and from noise of
    their own.

    Args:
        claim: of the learner.
        changed: the round of the user who differs, counted from 0; irrelevant in the first two models.
        rounds: number of rounds.

    Returns:
        Tuples of rounds, counted from 0.

    Raises:
        ValueError: if changed is missing, or not a round, in the local or the joint model.
    """
    model = claim.trust_model
    if model in ("local", "joint") and (changed is None or not 0 <= changed < rounds):
        raise ValueError(f"changed must be a round in [0, {rounds}) in the {model} model, got {changed}")
    every = tuple(range(rounds))
    own_round, other_rounds = (changed,), tuple(r for r in every if model != "joint" or r != changed)

    def if_logged(what: str, which: tuple[Any, ...]) -> tuple[Any, ...]:
        return which if is_seen(claim, what) else ()

    if model == "local":
        return Parts(if_logged("action", own_round), own_round, if_logged("public", own_round), ())
    return Parts(if_logged("action", other_rounds), if_logged("report", every), (), if_logged("public", every))


def stop_is_seen(claim: Guarantee, learner: Learner) -> bool:
    """Returns whether a learner's stopping time adds to the view: everybody sees it, even without `public`.

    In the local model it follows from reports.
    """
    return learner.done is not None and claim.trust_model != "local" and "public" not in claim.adversary_view


def visible_history(claim: Guarantee, changed: int | None, history: History) -> History:
    """Returns an adversary's view of the past: everything that the claim lets be logged, and other users' knowledge.

    In the local and the joint model all other users may be the adversary's, who then knows their plays, and in the
    local model their reports and the states that follow from these.

    Args:
        claim: of the learner.
        changed: the round of the user who differs; None if there is none.
        history: all of it.

    Returns:
        The past, with zeros for what is not seen.
    """
    leaves = jax.tree.leaves((history.actions, history.public))
    rounds = len(leaves[0]) if leaves else 0
    nobody, everybody = jnp.zeros(rounds, bool), jnp.ones(rounds, bool)
    others = everybody if changed is None else jnp.arange(rounds) != changed
    model = claim.trust_model

    def mask(tree: Any, name: str) -> Any:
        if model == "joint" and name == "action":  # one's own action may follow one's own data
            rows = others
        elif name in claim.adversary_view:
            rows = everybody
        else:  # public states of the local model follow from reports; in the others they are the curator's
            rows = others if model == "local" else nobody
        return jax.tree.map(lambda x: zero_other_rows(rows, x), tree)

    return history._replace(
        actions=mask(history.actions, "action"),
        public=mask(history.public, "public"),
        reports=mask(history.reports, "report") if "report" in claim.adversary_view else None,
    )
