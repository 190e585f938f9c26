"""Plays late feedback with Python lists of reports, from the functions of a learner that knows of no delays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.simulation.run.rounds import round_keys, split_lane_key


def play_by_queues(learner, world, delays, key, *, matches=True, person=None, reports=1, rest=None, counts="visits"):
    """Plays with a list of reports for each action. Returns (actions, final public, heard rounds in order).

    Args:
        learner: that knows of neither delays nor people.
        world: without them, too.
        delays: of each round.
        key: of the lane.
        matches: False plants a learner that hears every report when it arrives.
        person: the person of each round; None hears all rounds.
        reports: k, for people.
        rest: (params, public) -> the action of a round that is not heard; None is the learner's next action.
        counts: "visits" hears a person's first k visits; "arrivals" plants visits that count once their reports arrive.
    """
    horizon = len(delays)
    params, env_params = learner.params(epsilon=2.0), world.params()
    params, env_params = (jax.tree.map(jnp.asarray, each) for each in (params, env_params))
    key_state, key_world, roots = split_lane_key(key)
    state, world_state = learner.init(key_state, params), world.init(key_world, env_params)
    all_alike = learner.interface.feedback.shape != () or not matches
    act, privatize, update, feedback = (
        jax.jit(function) for function in (learner.act, learner.privatize, learner.update, world.feedback)
    )
    queues: dict[str, list[Any]] = {}
    sent: list[Any] = []
    counted: dict[int, int] = {}
    pending, actions, heard = None, [], []
    for round_, delay in enumerate(delays):
        keys = round_keys(roots, jnp.asarray(round_), horizon)
        is_heard = person is None or counted.get(person[round_], 0) < reports
        if is_heard or rest is None:
            action = act(keys.act, params, state.public, None) if pending is None else pending
        else:
            action = rest(params, state.public)
        actions.append(np.asarray(action).tolist())
        world_state, answer, _ = feedback(keys.feedback, env_params, world_state, action)
        if is_heard:
            pending = action
            report = privatize(keys.user, params, state.public, None, action, answer)
            sent.append((round_ + delay, round_, "all" if all_alike else str(actions[-1]), report))
            if person is not None and counts == "visits":
                counted[person[round_]] = counted.get(person[round_], 0) + 1
        for _, sender, name, report in sorted((one for one in sent if one[0] == round_), key=lambda one: one[1]):
            queues.setdefault(name, []).append((sender, report))
            if person is not None and counts == "arrivals":
                counted[person[sender]] = counted.get(person[sender], 0) + 1
        number, later = 0, jax.random.fold_in(keys.update, 0x6C617465)
        while pending is not None or all_alike:
            name = "all" if all_alike else str(np.asarray(pending).tolist())
            if not queues.get(name):
                break
            sender, report = queues[name].pop(0)
            state = update(jax.random.fold_in(later, 2 * number) if number else keys.update, params, state, report)
            heard.append(sender)
            if not any(queues.values()):
                pending = None
                break
            if not all_alike:
                pending = act(jax.random.fold_in(later, 2 * number + 1), params, state.public, None)
            number += 1
        if all_alike:
            pending = None
    return actions, state.public, heard
