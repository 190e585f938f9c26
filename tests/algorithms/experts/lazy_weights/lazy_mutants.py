"""Lazy weights that break their claims: parameters other than those that the claim is for."""

import dataclasses

import jaxdp.core


def altered(learner: jaxdp.core.Learner, **leaves) -> jaxdp.core.Learner:
    """Builds the learner with other leaves in its `Params`, and the same claim."""

    def params(**values):
        honest = learner.params(**values)
        return dataclasses.replace(
            honest, **{name: type(getattr(honest, name))(value) for name, value in leaves.items()}
        )

    return learner._replace(params=params)


def unlimited(learner: jaxdp.core.Learner) -> jaxdp.core.Learner:
    """Builds a learner that ignores its budget of resamples."""
    return altered(learner, budget=2**30)


def without_fake_switches(learner: jaxdp.core.Learner) -> jaxdp.core.Learner:
    """Resamples only because of losses, so that a resample reveals that there was a loss."""
    return altered(learner, fake_switch_prob=0.0)
