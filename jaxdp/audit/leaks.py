"""Leak test: at a tiny epsilon noise drowns all that it enters, so what still follows the data never met it."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxdp.audit.adversary import Answer, Users, by_action
from jaxdp.audit.checks import check_alike
from jaxdp.audit.play import play
from jaxdp.core import Learner
from jaxdp.validation import check_count, check_key

EPSILON = 1e-6
RELATIVE = 1e-3  # what data adds to noise of scale 1 / EPSILON, with room for 1000 rounds


def leaks(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    users: tuple[Users, Users],
    *,
    answer: Answer = by_action,
    num_keys: int = 4,
) -> tuple[str, ...]:
    """What a learner releases about two unrelated runs' users at epsilon = 1e-6 with the same keys.

    For learners whose noise is added: then every released number is noise of scale 1e6, the same in both runs, and
    every decision is made by it. Randomized response is not of this kind: its report is the label, turned or not.

    Found is what is released *beside* the noise: a number or a decision that none of it has entered. Not found is what
    is added *to* a noised number, as a raw reward to a noised estimate: the noise drowns both. Nor is noise that is too
    small, unless it is a thousand times so. `grey_box` finds these.

    >>> import jaxdp
    >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
    >>> users = (Users(np.tile(np.int32([0, 1]), (6, 1))), Users(np.tile(np.int32([1, 0]), (6, 1))))
    >>> leaks(jax.random.key(0), learner, {}, users)
    ()

    Args:
        key: a typed PRNG key.
        learner: to test.
        values: a grid point of its params; epsilon is replaced, and delta, where there is one.
        users: of two runs, of the same shapes and dtypes; the more they differ the better.
        answer: (answers, past, action) -> feedback.
        num_keys: runs; a difference counts if it is there with every key, since noise may be small by chance. >= 1.

    Returns:
        Names of what differs and where; empty if nothing leaks, as far as was seen.

    Raises:
        ValueError: if key is not a single typed key, num_keys < 1, or the runs' users differ in shapes or dtypes.
    """
    check_key(key)
    check_count("num_keys", num_keys)
    check_alike("users", *users)
    tiny = {**values, "epsilon": EPSILON} | ({"delta": EPSILON**2} if "delta" in values else {})
    params = learner.params(**tiny)
    model = learner.guarantee(**tiny).trust_model

    @jax.jit
    def seen(key: jax.Array, users: Users) -> Any:
        transcript = play(learner, answer, key, params, users)
        if model == "local":
            return {"report": transcript.reports}
        # in the joint model a user's own play may follow the user's context
        return {"public": transcript.after} | ({"play": transcript.actions} if model == "central" else {})

    differ: dict[str, np.ndarray] = {}
    for one in jax.random.split(key, num_keys):
        first, second = (jax.tree_util.tree_leaves_with_path(seen(one, run)) for run in users)
        for (path, left), (_, right) in zip(first, second, strict=True):
            name = "".join(str(part).strip("[]'") for part in path)
            differ[name] = _differ(np.asarray(left), np.asarray(right)) & differ.get(name, np.True_)
    return tuple(
        f"{name} of round {int(np.flatnonzero(where.reshape(len(where), -1).any(axis=1))[0]) + 1}"
        for name, where in differ.items()
        if where.any()
    )


def _differ(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Integers too may be large and noisy; what is NaN or infinite in one run only differs."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        near = np.abs(left - right) <= RELATIVE * np.maximum(np.abs(left), np.abs(right))
    return ~(same | (near & np.isfinite(left) & np.isfinite(right)))
