"""`privatize` for the central model, in which the curator sees users' values and adds noise to releases."""

from typing import Any

import jax

from jaxdp.core.learner import CountPlan


def reveal_feedback(key, params, public, context, action, feedback) -> tuple[Any, Any]:
    """Returns (action, feedback) unchanged; a `PrivatizeFn`."""
    del key, params, public, context
    return action, feedback


def reveal_totals(key, params, public, plan: CountPlan, totals: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the counts of actions and the totals of their feedback unchanged; a `CountPrivatizeFn`."""
    del key, params, public
    return plan.counts, totals
