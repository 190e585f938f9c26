"""Worlds and problems use each key once: their functions are traced, and keys are followed through the traces."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import contextual, convex, drifting_bandit, gaussian_bandit, heavy_tailed_bandit
from jaxdp.core import Environment, Problem, Space
from jaxdp.dueling import ballot_duels, linear_duels
from jaxdp.estimation import gaussian_rewards, offline_bandit, plackett_luce_rewards
from jaxdp.experts import shifting_losses, stochastic_losses
from jaxdp.testing.keys import check_keys_of

WORLDS: dict[str, Callable[[], Environment]] = {
    "gaussian": lambda: gaussian_bandit([0.9, 0.1]),
    "heavy_tailed": lambda: heavy_tailed_bandit([0.9, 0.1]),
    "drifting": lambda: drifting_bandit([0.9, 0.5], drift=0.1),
    "linear_contexts, ball": lambda: contextual.linear_contexts("ball", num_arms=3, dim=2, gap=0.1),
    "linear_contexts, cube": lambda: contextual.linear_contexts("cube", num_arms=3, dim=2, rewards="gaussian"),
    "generalized_linear_contexts": lambda: contextual.generalized_linear_contexts(num_arms=3, dim=2),
    "logistic_losses": lambda: convex.logistic_losses(dim=2),
    "ballot_duels": lambda: ballot_duels([[1, 2, 3], [3, 0, 1]]),
    "linear_duels": lambda: linear_duels(np.eye(3), [0.5, 0.2, 0.1]),
    "stochastic_losses": lambda: stochastic_losses([0.2, 0.5]),
    "shifting_losses": lambda: shifting_losses(num_experts=3, horizon=8, num_shifts=2),
}
PROBLEMS: dict[str, Callable[[], tuple[Problem, dict[str, float]]]] = {
    "gaussian_rewards": lambda: (gaussian_rewards(num_samples=8, dim=2), {}),
    "plackett_luce_rewards": lambda: (plackett_luce_rewards(num_samples=8, num_actions=3, dim=2), {}),
    "offline_bandit": lambda: (offline_bandit(num_samples=8, dim=2, num_states=2, num_actions=2), {"radius": 1.0}),
}


def first_action(environment: Environment) -> Any:
    def zeros(space: Space) -> jax.Array:
        return jnp.zeros(space.shape, jnp.int32 if space.kind == "integers" else float)

    assert environment.interface is not None
    return jax.tree.map(zeros, environment.interface.action, is_leaf=lambda node: isinstance(node, Space))


def check_world(environment: Environment) -> None:
    """Checks that no function of the environment uses a key twice."""
    params, key = jax.tree.map(jnp.asarray, environment.params()), jax.random.key(0)
    check_keys_of(jax.make_jaxpr(environment.init)(key, params))
    world = jax.eval_shape(environment.init, key, params)
    if environment.context is not None:
        check_keys_of(jax.make_jaxpr(environment.context)(key, params, world))
    check_keys_of(jax.make_jaxpr(environment.feedback)(key, params, world, first_action(environment)))


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_uses_its_keys_once(name):
    check_world(WORLDS[name]())


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_uses_its_key_once(name):
    problem, values = PROBLEMS[name]()
    params = jax.tree.map(jnp.asarray, problem.params(**values))
    check_keys_of(jax.make_jaxpr(problem.sample)(jax.random.key(0), params))


@pytest.mark.parametrize("part", ["init", "feedback"])
def test_a_key_that_is_used_twice_is_noticed(part):
    world = WORLDS["linear_contexts, ball"]()
    function = getattr(world, part)

    def twice(key: jax.Array, *others: Any) -> Any:
        jax.random.uniform(key)
        return function(key, *others)

    with pytest.raises(AssertionError, match="a key is used twice"):
        check_world(world._replace(**{part: twice}))
