"""Keys of one lane: the data's, each estimator's for privatizing and for fitting are different, in any company."""

import jax
import numpy as np

import jaxdp
from jaxdp.core import Problem, Sample, scalar_leaf
from jaxdp.estimation import mle


def key_recorder():
    """Builds a problem and an estimator that output the keys they were given."""

    def sample(key, params):
        return Sample(jax.random.key_data(key)[None, :], jax.numpy.zeros(1, jax.numpy.int32), None, {})

    def metrics(params, sample, estimate):
        privatizing, fitting = estimate
        return {"data": sample.features[0], "privatizing": privatizing, "fitting": fitting}

    names = ("data", "privatizing", "fitting")
    problem = Problem(lambda: scalar_leaf("unused", 0.0), sample, metrics, dict.fromkeys(names, ("word",)), {})
    recorder = mle()._replace(
        params=lambda: scalar_leaf("unused", 0.0),
        guarantee=mle().guarantee,
        privatize=lambda key, params, features, labels: jax.random.key_data(key),
        fit=lambda key, params, features, report: (report, jax.random.key_data(key)),
    )
    return problem, recorder


def keys_of_a_lane(seed=0):
    problem, recorder = key_recorder()
    run = jaxdp.estimation_run({"first": recorder, "second": recorder}, problem)
    outputs = run(jax.random.key(seed), run.params())
    return {
        (name, index): tuple(np.asarray(words)[index].tolist()) for name, words in outputs.items() for index in range(2)
    }


def all_differ(keys):
    return len(set(keys.values())) == len(keys)


def test_no_key_serves_twice():
    keys = keys_of_a_lane()
    assert keys.pop(("data", 0)) == keys[("data", 1)]  # both meet the same data
    assert all_differ(keys)
    assert not all_differ({**keys, ("fitting", 0): keys[("privatizing", 0)]})  # planted
    assert not set(keys.values()) & set(keys_of_a_lane(seed=1).values())
