"""Builds attacks on learners; the attacked output is the adversary's view of the transcript under the trust model."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from jaxdp.audit.adversary import Answer, UserData, feedback_of_action, num_rounds
from jaxdp.audit.black_box import Attack
from jaxdp.audit.checks import check_alike, differ
from jaxdp.audit.play import DrawUser, Transcript, play
from jaxdp.audit.seen import Parts, must_add_stop, rounds_seen, visible_history
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner


def learner_attack(
    learner: Learner,
    values: Mapping[str, float],
    neighbours: tuple[UserData, UserData],
    *,
    answer: Answer = feedback_of_action,
    observe: Callable[[Any], Any] | None = None,
    path: str = "rounds",
    draw_user: DrawUser | None = None,
) -> Attack:
    """Builds an attack on a learner's claim, which tries to distinguish two runs that differ in one user.

    The output is everything that the adversary sees. This depends on the claim's trust model and its `adversary_view`:

    * *Central*: the parts of every round that `adversary_view` names, by default all plays and all `public` states.
    * *Local*: the report of the user who differs, and the user's play and `public` before the report if
      `adversary_view` names them. `act` and `privatize` together are the randomizer; its input is the user's context
      and answers to all actions.
    * *Joint*: the plays of all other users, and `public` after every round if `adversary_view` names it.
    * *Shuffle*: the same parts as in the central model; the server's view of a batch is in `public`.

    If the adversary sees `public`, and `init` draws it at random, the adversary also sees `public` before the first
    round (in the local model only if the user who differs has round 0). If the learner has `done`, the stopping time is
    in the output, unless it follows from the other parts.

    Args:
        learner: the learner to attack.
        values: a grid point of the learner's params.
        neighbours: users of two runs, which differ in one round.
        answer: (answers, history, action) -> feedback, for the answers of one user. It may depend on the past.
        observe: function of the view that returns the output to attack; a good choice makes the attack stronger. None
            attacks the whole view. The function's argument is a dict of the parts that are seen: "action", "report",
            "public" (after each step) and "before" (`public` before each step), which are `actions`, `reports`, `after`
            and `before` of `Transcript` in the rounds that are seen. The dict also has "length" (`length` of
            `Transcript`) if the path is "blocks" or "counts", or if the stopping time must be added.
        path: how rounds are played: "rounds"; "blocks" or "counts" if the learner has them.
        draw_user: (key, history) -> the user of a round. The drawn users replace the users of all rounds except the
            round that differs. This models an adversary who chooses all other data while the learner plays. None plays
            `neighbours`.

    Returns:
        The attack, for `audit`.

    Raises:
        ValueError: if the two runs do not have the same shapes and dtypes, do not differ in exactly one round, or
            differ in a leaf outside the claim's privacy unit. If `path` is unknown or the learner lacks it, `audit`
            raises the error.

    Examples:
        >>> import jaxdp
        >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=2)
        >>> users = (UserData(np.asarray([[1, 0], [0, 0]], np.int32)), UserData(np.asarray([[0, 0], [0, 0]], np.int32)))
        >>> attack = learner_attack(learner, {"epsilon": 1.0}, users)
        >>> jaxdp.audit.audit(jax.random.key(0), attack, trials=20_000).verdict
        'consistent'
    """
    check_made("learner", learner, Learner)
    claim, params = learner.guarantee(**values), learner.params(**values)
    changed = changed_round(claim, *neighbours)
    is_local = claim.trust_model == "local"
    which = _recorded_rounds(
        claim, changed, num_rounds(neighbours[0]), starts_at_random=starts_at_random(learner, params)
    )

    def release(key: jax.Array, params: Any, users: UserData) -> Any:
        if is_local:  # later values follow from the report and from others' data
            users = jax.tree.map(lambda x: x[: changed + 1], users)
        transcript = play(
            learner,
            answer,
            key,
            params,
            users,
            path=path,
            draw_user=draw_user,
            fixed=changed,
            shown=lambda history: visible_history(claim, changed, history),
        )
        output = _adversary_view(claim, which, path, transcript, stops=must_add_stop(claim, learner))
        return output if observe is None else observe(output)

    return Attack(release, params, neighbours, claim)


def changed_round(claim: Guarantee, first: UserData, second: UserData) -> int:
    """Returns the round in which the users of two neighbouring runs differ.

    Raises:
        ValueError: if shapes or dtypes differ, the users do not differ in exactly one round, or a leaf outside the
            claim's privacy unit differs.
    """
    rounds = num_rounds(first)
    check_alike("neighbours", first, second)
    differs = np.zeros(rounds, bool)
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(first), jax.tree.leaves(second), strict=True):
        leaf_differs = differ(np.asarray(a), np.asarray(b)).reshape(rounds, -1).any(axis=1)
        if leaf_differs.any() and not in_unit(claim, path):
            unit = ", ".join(claim.sensitive_fields or ())
            raise ValueError(f"neighbours must differ only in the privacy unit ({unit}), got {leaf_name(path)}")
        differs |= leaf_differs
    if differs.sum() != 1:
        raise ValueError(f"neighbours must differ in exactly one round, got {np.flatnonzero(differs).tolist()}")
    return int(np.flatnonzero(differs)[0])


def leaf_name(path: Any) -> str:
    """Returns the dotted name of a leaf of users, such as "contexts.features"."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def in_unit(claim: Guarantee, path: Any) -> bool:
    """Returns whether a leaf may differ between neighbours.

    It may if `sensitive_fields` is None, or names the leaf or a subtree that contains the leaf.
    """
    name = leaf_name(path)
    return claim.sensitive_fields is None or any(
        name == unit or name.startswith(f"{unit}.") for unit in claim.sensitive_fields
    )


def _recorded_rounds(claim: Guarantee, changed: int, rounds: int, *, starts_at_random: bool) -> Parts:
    """Returns, for each part of the transcript, the rounds that the output contains.

    These are the rounds that the adversary sees. If the claim shows `public`, then `public` before round 0 is in the
    output only if it is random, because a constant reveals nothing. In the local model with `changed` > 0, the output
    has `public` before round `changed` instead.
    """
    which = rounds_seen(claim, changed, rounds)
    if "public" not in claim.adversary_view or (claim.trust_model == "local" and changed > 0):
        return which
    return which._replace(before=(0,) if starts_at_random else ())


def starts_at_random(learner: Learner, params: Any) -> bool:
    """Returns whether `public` before the first round may depend on the key of `init`."""
    jaxpr = jax.make_jaxpr(lambda key: learner.init(key, params).public)(jax.random.key(0)).jaxpr
    random_variables = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        if any(not isinstance(atom, Literal) and atom in random_variables for atom in equation.invars):
            random_variables.update(equation.outvars)
    return any(not isinstance(atom, Literal) and atom in random_variables for atom in jaxpr.outvars)


def _adversary_view(
    claim: Guarantee, which: Parts, path: str, transcript: Transcript, *, stops: bool
) -> dict[str, Any]:
    model, in_steps, by_counts = claim.trust_model, path != "rounds", path == "counts"
    # In a block or a step of counts, a position does not identify a user. A step of counts has one report of all its
    # users.
    reports = transcript.reports if which.reports else None
    all_before = in_steps and model == "local" and which.before
    view = {
        "report": reports if by_counts else _rows(transcript.reports, which.reports),
        "action": None if by_counts and model == "local" else _rows(transcript.actions, which.actions),
        "before": transcript.before if all_before else _rows(transcript.before, which.before),
        "public": _rows(transcript.after, which.after),
        "length": transcript.length if in_steps or stops else None,
    }
    return {name: tree for name, tree in view.items() if tree is not None}


def _rows(tree: Any, which: tuple[int, ...]) -> Any:
    """Returns the rows `which` of each array of a pytree; None if `which` is empty."""
    return jax.tree.map(lambda x: x[np.asarray(which)], tree) if which else None
