"""Builds attacks on a learner for a search over neighbouring runs: one compiled program serves every changed round."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.audit.adversary import Answer, UserData, feedback_of_action, num_rounds, zero_other_rows
from jaxdp.audit.black_box import Attack
from jaxdp.audit.play import Transcript, play
from jaxdp.audit.seen import must_add_stop, rounds_seen
from jaxdp.audit.transcripts import changed_round, starts_at_random
from jaxdp.core import Guarantee, Learner


def moving_attack(
    learner: Learner,
    values: Mapping[str, float],
    neighbours: tuple[UserData, UserData],
    *,
    answer: Answer = feedback_of_action,
    path: str = "rounds",
) -> Attack:
    """Builds the same attack as `learner_attack`, but each input is a pair (users, changed round).

    JAX traces the round, so one compiled program serves all rounds. The view differs in form from the view of
    `learner_attack`: in the joint model the changed round's play is replaced by zeros; in the local model all rounds
    are played to get the view of one user.

    Args:
        learner: the learner to attack.
        values: a grid point of the learner's params.
        neighbours: users of two runs, which differ in one round.
        answer: (answers, history, action) -> feedback.
        path: how rounds are played: "rounds", "blocks" or "counts".

    Raises:
        ValueError: if the two runs are not neighbours under the learner's claim.
    """
    claim, params = learner.guarantee(**values), learner.params(**values)
    changed = jnp.int32(changed_round(claim, *neighbours))
    stops = must_add_stop(claim, learner)
    at_random = starts_at_random(learner, params)

    def release(key: jax.Array, params: Any, data: tuple[UserData, jax.Array]) -> dict[str, Any]:
        users, changed = data
        transcript = play(learner, answer, key, params, users, path=path)
        return _adversary_view(claim, transcript, changed, num_rounds(users), path, stops, at_random)

    first, second = neighbours
    return Attack(release, params, ((first, changed), (second, changed)), claim)


def _adversary_view(
    claim: Guarantee,
    transcript: Transcript,
    changed: jax.Array,
    rounds: int,
    path: str,
    stops: bool,
    at_random: bool,
) -> dict[str, Any]:
    which, model, in_steps = rounds_seen(claim, 0, rounds), claim.trust_model, path != "rounds"
    others = jnp.arange(rounds, dtype=changed.dtype) != changed

    def rows(tree: Any, are_seen: Any) -> Any:
        if not are_seen:
            return None
        return jax.tree.map(lambda x: x[changed], tree) if model == "local" else tree

    before, actions = rows(transcript.before, which.before), rows(transcript.actions, which.actions)
    if in_steps and model == "local" and which.before:
        before = transcript.before
    if model != "local" and at_random and "public" in claim.adversary_view:
        before = jax.tree.map(lambda x: x[0], transcript.before)
    if model == "joint":
        actions = jax.tree.map(lambda x: zero_other_rows(others, x), actions)
    reports = rows(transcript.reports, which.reports)
    if path == "counts":  # a step has one report for all its rounds
        reports = transcript.reports if which.reports else None
    view = {
        "report": reports,
        "action": None if path == "counts" and model == "local" else actions,
        "before": before,
        "public": rows(transcript.after, which.after),
        "length": transcript.length if in_steps or stops else None,
    }
    return {name: tree for name, tree in view.items() if tree is not None}
