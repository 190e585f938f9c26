"""How tests of what does not fit ask for a refusal."""

import re
from typing import Any

import jax
import pytest

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.simulation import simulator

KEY = jax.random.key(0)
LEARNER = explore_then_commit(num_arms=2, explore_rounds=4)
BANDIT = bernoulli_bandit([0.4, 0.6])


def refused(message, learner=LEARNER, environment=BANDIT, horizon: Any = 10, **options):
    """The simulator or the run's tracing says so; nothing is executed."""

    def trace():
        run = simulator(learner, environment, horizon, **options)
        jax.eval_shape(run, KEY, run.params(epsilon=1.0))

    with pytest.raises(ValueError, match=re.escape(message)):
        trace()
