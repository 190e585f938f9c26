"""Helpers of several test files of bandits."""

import functools
import math
from functools import partial

import jax
import numpy as np

import jaxdp
from jaxdp.bandits import bernoulli_bandit

KEY = partial(jax.random.key, 8)


@functools.cache
def compiled(learner, means, horizon, engine):
    """Compiles a run, and the run of many lanes, once."""
    run = jaxdp.simulator(learner, bernoulli_bandit(list(means)), horizon, engine=engine)
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


def run(learner, means, lanes, *, horizon=10**7, engine="auto", **values):
    run, go = compiled(learner, means, horizon, engine)
    found = go(jaxdp.lane_keys(KEY(), lanes), run.params(**values))
    return {name: np.asarray(values) for name, values in found.items()}


def check_errors(found, failure_prob):
    """Checks that at most failure_prob of the runs err, up to 5 standard errors."""
    wrong = ~found["correct"].ravel()
    assert not found["censored"].any()
    assert wrong.mean() <= failure_prob + 5 * math.sqrt(failure_prob * (1 - failure_prob) / len(wrong))


def check_slope(make, low, high):
    """Checks the slope of the logarithm of the median stopping time against the logarithm of c^2."""
    epsilons = (1.0, 2.0, 4.0)
    medians = [np.median(run(make(num_arms=2), (0.75, 0.25), 200, epsilon=epsilon)["rounds"]) for epsilon in epsilons]
    slope = np.polyfit([-2 * math.log(math.tanh(epsilon / 2)) for epsilon in epsilons], np.log(medians), 1)[0]
    assert low <= slope <= high, slope
