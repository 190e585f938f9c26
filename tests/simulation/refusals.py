"""How tests of what does not fit ask for a refusal."""

import functools
import re
from functools import partial
from typing import Any

import jax
import pytest

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.simulation import simulator

KEY = partial(jax.random.key, 0)
LEARNER = functools.cache(lambda: explore_then_commit(num_arms=2, explore_rounds=4))
BANDIT = functools.cache(lambda: bernoulli_bandit([0.4, 0.6]))


def refused(message, learner=None, environment=None, horizon: Any = 10, **options):
    """Checks that the simulator or the run's tracing refuses; nothing is executed."""

    def trace():
        run = simulator(learner or LEARNER(), environment or BANDIT(), horizon, **options)
        jax.eval_shape(run, KEY(), run.params(epsilon=1.0))

    with pytest.raises(ValueError, match=re.escape(message)):
        trace()
