"""Runs to be played again: users who are drawn, also as they react, and the transcripts that they lead to."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.adversary import Answer, Past, Users, example
from jaxdp.audit.play import by_totals, draw_key, play
from jaxdp.audit.seen import shown
from jaxdp.audit.steps import Scene, past_of
from jaxdp.core import Guarantee, Learner
from jaxdp.simulation.run.values import parameters


class Base(NamedTuple):
    """What is audited, and who draws its users."""

    learner: Learner
    answer: Answer
    params: Any
    claim: Guarantee
    path: str
    draw_user: Callable[..., Users]
    rounds: int


def starting(base: Base) -> Callable[[jax.Array, jax.Array], tuple[Scene, Users]]:
    """A function of two keys, of the users and of the learner, that plays a run: its scene, and users [rounds, ...].

    Raises:
        ValueError: if draw_user does not return Users.
    """
    example, alone = _example(base), drawn_alone(base)

    @jax.jit
    def run(key: jax.Array, users: Users) -> Any:
        return play(
            base.learner,
            base.answer,
            key,
            base.params,
            users,
            path=base.path,
            draw_user=None if alone else base.draw_user,
            shown=partial(shown, base.claim, None),
        )

    def start(key_users: jax.Array, key: jax.Array) -> tuple[Scene, Users]:
        if alone:
            users = jax.vmap(base.draw_user)(jax.random.split(key_users, base.rounds))
        else:
            users = jax.tree.map(lambda x: jnp.zeros((base.rounds, *x.shape), x.dtype), example)
        scene = Scene(base.learner, base.answer, base.params, base.claim, base.path, run(key, users))
        if not alone:
            rounds = jnp.arange(base.rounds)
            users = _reacting(base, scene, jax.vmap(lambda round_: draw_key(key, round_))(rounds), rounds)
        return scene, users

    return start


def replacements(base: Base, scene: Scene, key: jax.Array, where: jax.Array) -> Users:
    """Other users [n, ...] for the rounds `where` [n]."""
    keys = jax.random.split(key, len(where))
    return jax.vmap(base.draw_user)(keys) if drawn_alone(base) else _reacting(base, scene, keys, where)


def _reacting(base: Base, scene: Scene, keys: jax.Array, rounds: jax.Array) -> Users:
    """Users [n, ...] who are drawn by what was known before these rounds [n]."""
    starts = np.flatnonzero(np.asarray(scene.transcript.length))
    start = jnp.asarray(starts[np.searchsorted(starts, np.asarray(rounds), side="right") - 1])

    @jax.jit
    @jax.vmap
    def draw(key: jax.Array, start: jax.Array, round_: jax.Array) -> Users:
        return jax.tree.map(jnp.asarray, base.draw_user(key, past=past_of(scene, start, round_)))

    return draw(keys, start, rounds)


def drawn_alone(base: Base) -> bool:
    """Whether draw_user needs no past."""
    if "past" not in parameters(base.draw_user):
        return True
    try:  # it may take one, and need none
        jax.eval_shape(base.draw_user, jax.random.key(0))
    except (TypeError, ValueError):
        return False
    return True


def _example(base: Base) -> Users:
    """Shapes of a user."""
    key = jax.random.key(0)
    if drawn_alone(base):
        drawn = jax.eval_shape(base.draw_user, key)
    else:
        drawn = jax.eval_shape(lambda: base.draw_user(key, past=_no_past(base, key)))
    if not isinstance(drawn, Users):
        raise ValueError(f"draw_user must return Users, got {type(drawn).__name__}")
    return drawn


def _no_past(base: Base, key: jax.Array) -> Past:
    """The past before the first round: zeros, of the shapes that the learner's interface tells, or its functions."""
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
    if "report" in base.claim.sees and not by_totals(base.learner, base.path):
        if "feedback" not in spaces:
            raise ValueError("interface must be declared by a learner whose users react to reports, got None")
        reports = learner.privatize(key, params, public, context, action, value("feedback"))
    log = jax.tree.map(lambda x: jnp.zeros((base.rounds, *jnp.shape(x)), jnp.result_type(x)), (action, public, reports))
    return shown(base.claim, None, Past(jnp.zeros((), jnp.result_type(int)), *log))
