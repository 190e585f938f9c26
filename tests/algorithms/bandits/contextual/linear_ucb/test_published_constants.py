"""LinUCB with the published constants: the first action, the first width, keys, regret, refused noise."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits.contextual import linear_contexts, linear_ucb
from jaxdp.testing.keys import check_keys_of

KEY = partial(jax.random.key, 8)
DTYPE = jnp.result_type(float)
PRIVATE = {"epsilon": 1.0, "delta": 1e-3}


def test_the_first_action_is_uniform_with_the_published_constants():
    context = jnp.asarray([[1.0, 0], [0.1, 0], [0, 0]], DTYPE)
    for constants, shares in (("paper", [1 / 3] * 3), ("tight", [1, 0, 0])):
        learner = linear_ucb(num_arms=3, dim=2, horizon=9, constants=constants)
        params = learner.params(**PRIVATE)
        public = jax.jit(learner.init)(KEY(), params).public
        act = jax.jit(
            jax.vmap(lambda key, act=learner.act, params=params, public=public: act(key, params, public, context))
        )
        arms = act(jax.random.split(KEY(), 900))
        np.testing.assert_allclose(np.bincount(arms, minlength=3) / 900, shares, atol=5 * math.sqrt(2 / 9 / 900))


def test_no_key_is_used_twice_with_the_published_constants():
    learner = linear_ucb(num_arms=3, dim=2, horizon=9, constants="paper")
    params = learner.params(**PRIVATE)
    public = jax.eval_shape(learner.init, KEY(), params).public
    check_keys_of(jax.make_jaxpr(learner.act)(KEY(), params, public, jnp.zeros((3, 2), DTYPE)))


def test_the_first_width_is_the_published_one():
    learner = linear_ucb(num_arms=3, dim=2, horizon=9, constants="paper")
    params = learner.params(**PRIVATE)
    expected = 2 * params.radii.vector_rate * math.sqrt(math.log(9)) + math.sqrt(3) * 2 * math.log(9)
    assert float(learner.init(KEY(), params).public.model.width) == pytest.approx(expected, rel=1e-5)


def test_regret_is_less_than_with_the_published_constants():
    world = linear_contexts(num_arms=4, dim=2, theta=[0.5, 0.0])

    def regret(**options):
        run = jaxdp.simulator(linear_ucb(num_arms=4, dim=2, horizon=600, **options), world, 600, checkpoints=1)
        keys = jax.random.split(KEY(), 400)  # standard errors of 4; tight and ball differ by about 25
        values = {"epsilon": 1.0, **({} if "report" in options else {"delta": 1e-3})}
        return jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, run.params(**values))["pseudo_regret"].mean()

    published, tight, ball = regret(constants="paper"), regret(), regret(report="l2_ball")
    assert tight < 0.95 * published
    assert ball < tight


def test_the_published_noise_is_refused_where_nobody_proved_it():
    learner = linear_ucb(num_arms=2, dim=2, horizon=10, constants="paper")
    assert learner.guarantee(epsilon=1.0, delta=1e-5).epsilon == 1.0
    with pytest.raises(ValueError, match="epsilon must be"):
        learner.params(epsilon=1.5, delta=1e-5)
    with pytest.raises(TypeError, match="noise_proxy"):
        learner.params(**PRIVATE, noise_proxy=1.0)
