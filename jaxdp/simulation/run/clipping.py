"""Warns if mean feedback lies outside the interval to which a learner clips feedback, and counts clipped rounds."""

from collections.abc import Callable, Collection
from typing import Any

import jax
import numpy as np

from jaxdp.core import Environment, Learner
from jaxdp.validation import warn_caller

CLIPPED = "clipped"  # name of the outcome
ENDS = ("reward_low", "reward_high", "reward_bound")  # values that set a learner's interval
ROUNDING = 1e-6  # tolerance for means outside the interval, relative to the interval's width


def warn_outside(learner: Learner, environment: Environment, params: Any, name: str, takes: Collection[str]) -> None:
    """Warns if a mean of the environment's feedback lies outside the interval to which the learner clips feedback.

    `params` are host values with the entries "learner" and "environment". `name` is the learner's name for the warning,
    and `takes` contains the names of the learner's values.
    """
    if learner.clip is None or environment.means is None:
        return
    low, high = (float(end) for end in learner.clip(params["learner"]))
    means, slack = np.asarray(environment.means(params["environment"]), float), ROUNDING * (high - low)
    if not (low - slack <= means.min() and means.max() <= high + slack):
        ends = " and ".join(end_name for end_name in ENDS if end_name in takes)
        advice = f"Set {ends} so that the interval holds" if ends else "It should hold"
        warn_caller(
            f"mean rewards lie in [{means.min():g}, {means.max():g}], and {name} clips each reward to [{low:g}, "
            f"{high:g}]: it cannot distinguish arms whose rewards are clipped to the same end. {advice} "
            f"the rewards; the outcome {CLIPPED!r} counts clipped rewards"
        )


def count_clipped(learner: Learner, environment: Environment) -> Environment:
    """Adds the outcome `clipped` to an environment, true if a round's feedback lies outside the learner's interval.

    Functions of the new environment get parameters with the entries "learner" and "environment", except `hindsight` and
    `means`, which are unchanged.
    """
    block, clip = environment.block, learner.clip
    assert clip is not None

    def with_clipped(params: Any, world: Any, reward: jax.Array, outcome: Any) -> tuple[Any, Any, dict[str, jax.Array]]:
        low, high = clip(params["learner"])
        inside = (reward >= low) & (reward <= high)  # NaN is outside
        return world, reward, {CLIPPED: ~inside, **outcome}

    def feedback(key: jax.Array, params: Any, world: Any, action: Any) -> Any:
        return with_clipped(params, *environment.feedback(key, params["environment"], world, action))

    def block_with_clipped(keys: jax.Array, params: Any, world: Any, contexts: Any, actions: Any) -> Any:
        assert block is not None
        return with_clipped(params, *block(keys, params["environment"], world, contexts, actions))

    def after_key(function: Callable[..., Any] | None) -> Any:
        """Adapts a function of (key, params, ...) so that the function gets only the environment's parameters."""
        return function and (lambda key, params, *arguments: function(key, params["environment"], *arguments))

    evaluate, unheard = environment.evaluate, environment.unheard
    return environment._replace(
        init=after_key(environment.init),
        context=after_key(environment.context),
        contexts=after_key(environment.contexts),
        feedback=feedback,
        block=block and block_with_clipped,
        evaluate=evaluate and (lambda params, *arguments: evaluate(params["environment"], *arguments)),
        unheard=unheard and (lambda params, *arguments: unheard(params["environment"], *arguments)),
        drawn=(*environment.drawn, CLIPPED),
        feedback_totals=None,  # totals do not show which rounds were clipped
    )
