"""Counters over loss vectors, and mirror descent, that break their claims."""

import dataclasses

import jaxdp.core
from jaxdp.core import Guarantee
from jaxdp.experts._counter_parameters import counter_of


def for_one_expert(learner: jaxdp.core.Learner, **counted) -> jaxdp.core.Learner:
    """Builds counter weights with noise as if a user changed one expert's loss, not all."""

    def params(**values):
        honest = learner.params(**values)
        counter = counter_of(learner.horizon).params(rho=learner.guarantee(**values).rho, l2_sensitivity=1.0)
        return type(honest)(counter=counter, learning_rate=honest.learning_rate)

    return learner._replace(params=params)


def too_little_noise(learner: jaxdp.core.Learner) -> jaxdp.core.Learner:
    """Builds the same noise, with a claim for all experts."""
    mutant = for_one_expert(learner)

    def params(**values):
        counter = mutant.params(**values).counter
        scale = learner.params(**values).counter.l2_sensitivity
        return type(mutant.params(**values))(
            counter=type(counter)(noise_stddev=counter.noise_stddev, l2_sensitivity=scale),
            learning_rate=mutant.params(**values).learning_rate,
        )

    return mutant._replace(params=params)


def claimed_as_published(learner: jaxdp.core.Learner) -> jaxdp.core.Learner:
    """Builds the published mirror descent with its published claim: epsilon, although N epsilon is true."""

    def guarantee(*, epsilon, learning_rate=None):
        return Guarantee.pure(
            epsilon, trust_model="local", privacy_unit="one round's loss vector", argument="each loss changes by 1"
        )

    return learner._replace(guarantee=guarantee)


def overspent(learner: jaxdp.core.Learner) -> jaxdp.core.Learner:
    """Builds mirror descent by sampling at twice the rate that its budget pays for."""

    def params(**values):
        honest = learner.params(**values)
        return dataclasses.replace(honest, learning_rate=2 * honest.learning_rate)

    return learner._replace(params=params)
