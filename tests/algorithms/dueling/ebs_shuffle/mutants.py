"""Mistakes of duels in the shuffle model."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import feedback_of_pair, learner_attack
from jaxdp.core import Learner, State
from jaxdp.dueling import ebs_shuffle
from jaxdp.mechanisms import shuffle_local_epsilon, shuffled
from jaxdp.registry.dueling.ebs_shuffle import one_batch
from tests.privacy.case import Case

# A first batch of twenty users for each of two arms, at a budget of 2.
VALUES = {"epsilon": 1.0, "delta": 0.05, "failure_prob": 0.1, "confidence_multiplier": 0.13}
RIGHT = ebs_shuffle(num_arms=2)


def _attack(learner: Learner, look=lambda seen: seen["public"].seen[-1]):
    """Attacks the server's view at the end of the batches."""
    return learner_attack(learner, VALUES, one_batch(2, **VALUES), answer=feedback_of_pair, observe=look)


def batches_claimed_as_twice_as_large() -> Case:
    """Lets users report at the budget that suffices among twice as many."""
    right = _attack(RIGHT)
    users = 2 * int(right.params.passes[0, 2])
    local = shuffle_local_epsilon(VALUES["epsilon"], VALUES["delta"], 2 * users)
    params = dataclasses.replace(right.params, local_epsilon=np.full_like(right.params.local_epsilon, local))
    return Case(wrong=right._replace(params=params), right=(right,), trials=20_000)


def reports_claimed_as_shuffled() -> Case:
    """Gives the server each report as it comes, under the claim of the batch."""

    def guarantee(**values):
        return dataclasses.replace(RIGHT.guarantee(**values), adversary_view=frozenset({"action", "report", "public"}))

    wrong = _attack(RIGHT._replace(guarantee=guarantee), look=lambda seen: seen["report"][1][0])
    return Case(wrong=wrong, right=(_attack(RIGHT),), trials=10_000)


def shuffler_that_keeps_the_order() -> Case:
    """Gives the server the reports of a batch in the users' order; the correct twin gives them in random order."""
    rounds = 4 * int(RIGHT.params(**VALUES).passes[0, 2])

    def hands_over(in_order: bool) -> Learner:
        def init(key, params):
            state, none = RIGHT.init(key, params), jnp.zeros(rounds, jnp.int32)
            return State((state.private, none), (state.public, none))

        def update(key, params, state, report):
            (private, reports), (public, _) = state.private, state.public
            reports = reports.at[public.played].set(report[1])
            after = RIGHT.update(key, params, State(private, public), report)
            arms = reports.reshape(-1, 2).T  # which take turns on the left
            batches = arms if in_order else jax.vmap(shuffled)(jax.random.split(key), arms)
            seen = jnp.where(after.public.phase > public.phase, batches.ravel(), 0)
            return State((after.private, reports), (after.public, seen))

        return RIGHT._replace(
            init=init,
            act=lambda key, params, public, context: RIGHT.act(key, params, public[0], context),
            privatize=lambda key, params, public, context, action, feedback: RIGHT.privatize(
                key, params, public[0], context, action, feedback
            ),
            update=update,
            blocks=(),
            counts=None,
        )

    wrong, right = (
        _attack(hands_over(in_order), look=lambda seen: seen["public"][1][-1]) for in_order in (True, False)
    )
    return Case(wrong=wrong, right=(right,), trials=10_000)


CASES = {
    "shuffled batches claimed as twice as large": batches_claimed_as_twice_as_large,
    "reports that are not shuffled claimed as a batch": reports_claimed_as_shuffled,
    "a shuffler of duels that keeps the order": shuffler_that_keeps_the_order,
}
