"""Plays the runs that a grey box replays: draws users, who may react to the past, and records transcripts."""

import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.adversary import Answer, History, UserData, example
from jaxdp.audit.play import draw_key, play
from jaxdp.audit.quick_programs import jit_quickly
from jaxdp.audit.seen import visible_history
from jaxdp.audit.steps import Scene, history_of
from jaxdp.core import Guarantee, Learner, Visit
from jaxdp.simulation.run.values import parameters


class Base(NamedTuple):
    """Everything that is the same in all runs of an audit.

    Attributes:
        learner: the audited learner.
        answer: (answers, history, action) -> feedback.
        params: the learner's params, as arrays.
        guarantee: the learner's claim.
        path: "rounds", "blocks" or "counts".
        draw_user: (key) or (key, history=...) -> a user; see `draws_without_history`.
        rounds: number of rounds.
        visits: the visits of all rounds, [rounds] each, as the users' contexts; None if the audit has no visits.
    """

    learner: Learner
    answer: Answer
    params: Any
    guarantee: Guarantee
    path: str
    draw_user: Callable[..., UserData]
    rounds: int
    visits: Visit | None = None


def run_starter(base: Base) -> Callable[[jax.Array, jax.Array], tuple[Scene, UserData]]:
    """Returns a function (key of users, key of the run) -> (scene of the run, users of the run).

    The scene contains the learner and the run's transcript; users are [rounds, ...].
    """
    example, needs_no_history = _example(base), draws_without_history(base)

    @jit_quickly
    def run(key: jax.Array, users: UserData) -> Any:
        return play(
            base.learner,
            base.answer,
            key,
            base.params,
            users,
            path=base.path,
            draw_user=None if needs_no_history else base.draw_user,
            shown=partial(visible_history, base.guarantee, None),
        )

    def start(key_users: jax.Array, key: jax.Array) -> tuple[Scene, UserData]:
        if needs_no_history:
            users = _draw_users(base.draw_user)(jax.random.split(key_users, base.rounds))
        else:
            users = jax.tree.map(lambda x: jnp.zeros((base.rounds, *x.shape), x.dtype), example)
        if base.visits is not None:
            users = users._replace(contexts=base.visits)
        transcript, has_contexts = run(key, users), users.contexts is not None
        scene = Scene(base.learner, base.answer, base.params, base.guarantee, base.path, transcript, has_contexts)
        if not needs_no_history:
            rounds = jnp.arange(base.rounds)
            users = _draw_reacting(base, scene, jax.vmap(lambda round_: draw_key(key, round_))(rounds), rounds)
        return scene, users

    return start


def replacements(base: Base, scene: Scene, key: jax.Array, rounds: jax.Array) -> UserData:
    """Draws new users [n, ...] for these rounds [n]."""
    keys = jax.random.split(key, len(rounds))
    if draws_without_history(base):
        return _draw_users(base.draw_user)(keys)
    return _draw_reacting(base, scene, keys, rounds)


@functools.lru_cache(maxsize=64)
def _draw_users(draw_user: Callable[..., UserData]) -> Callable[[jax.Array], UserData]:
    """Returns a jitted function (keys [n]) -> users [n, ...]; without jit, each operation would be one program."""
    return jit_quickly(jax.vmap(draw_user))


def _draw_reacting(base: Base, scene: Scene, keys: jax.Array, rounds: jax.Array) -> UserData:
    """Draws users [n, ...] for these rounds [n]; the users react to the part of the past that the claim shows.

    The past contains the actions before the user's round (with contexts, before the step of this round), and the public
    states and reports before the step of this round.
    """
    starts = np.flatnonzero(np.asarray(scene.transcript.length))
    start = jnp.asarray(starts[np.searchsorted(starts, np.asarray(rounds), side="right") - 1])

    @jit_quickly
    @jax.vmap
    def draw(key: jax.Array, start: jax.Array, round_: jax.Array) -> UserData:
        return jax.tree.map(jnp.asarray, base.draw_user(key, history=history_of(scene, start, round_)))

    return draw(keys, start, rounds)


def draws_without_history(base: Base) -> bool:
    """Returns whether `draw_user` can be called without a history."""
    if "history" not in parameters(base.draw_user):
        return True
    try:  # the history may be optional
        jax.eval_shape(base.draw_user, jax.random.key(0))
    except (TypeError, ValueError):
        return False
    return True


def _example(base: Base) -> UserData:
    """Returns the shapes and dtypes of a drawn user; raises ValueError if `draw_user` does not return UserData."""
    key = jax.random.key(0)
    if draws_without_history(base):
        drawn = jax.eval_shape(base.draw_user, key)
    else:
        drawn = jax.eval_shape(lambda: base.draw_user(key, history=_no_history(base, key)))
    if not isinstance(drawn, UserData):
        raise ValueError(f"draw_user must return UserData, got {type(drawn).__name__}")
    return drawn


def _no_history(base: Base, key: jax.Array) -> History:
    """Returns the history before the first round: zeros, with shapes from the learner's interface or functions."""
    learner, params = base.learner, base.params
    public = learner.init(key, params).public
    spaces: Mapping[str, Any] = {} if learner.interface is None else learner.interface._asdict()

    def value(name: str) -> Any:
        return example(spaces.get(name))

    context = value("context")
    try:
        action = value("action") if "action" in spaces else learner.act(key, params, public, context)
    except Exception as error:
        raise ValueError(
            "interface must be declared by a learner that reads contexts where users react: act without a context "
            f"fails, got {type(error).__name__}: {error}"
        ) from error
    reports = None
    if "report" in base.guarantee.adversary_view and base.path != "counts":
        if "feedback" not in spaces:
            raise ValueError("interface must be declared by a learner whose users react to reports, got None")
        reports = learner.privatize(key, params, public, context, action, value("feedback"))
    log = jax.tree.map(lambda x: jnp.zeros((base.rounds, *jnp.shape(x)), jnp.result_type(x)), (action, public, reports))
    return visible_history(base.guarantee, None, History(jnp.zeros((), jnp.result_type(int)), *log))
