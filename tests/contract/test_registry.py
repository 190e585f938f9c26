"""Every registered mechanism and estimator keeps the contract; a broken one does not."""

import jax
import jax.numpy as jnp
import pytest

from jaxdp import registry
from jaxdp.estimation import debiased_rr
from jaxdp.registry import ESTIMATORS, MECHANISMS
from jaxdp.testing import check_estimator, check_mechanism


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanism(name):
    entry = MECHANISMS[name]
    first, second = (jnp.asarray(data) for data in entry.neighbours)
    assert first.shape == second.shape
    assert first.dtype == second.dtype
    for data in (first, second):
        check_mechanism(
            entry.params, entry.guarantee, entry.release, entry.values, data, exact=entry.exact, key=jax.random.key(0)
        )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator(name):
    entry = ESTIMATORS[name]
    features, labels = registry.tiny_data(jax.random.key(1))
    check_estimator(entry.make(), entry.values, features, labels, key=jax.random.key(2))


def _broken(**changes):
    return debiased_rr()._replace(**changes)


def _reuses_its_key(key, params, features, report):
    estimate = debiased_rr().fit(key, params, features, report)
    noise = jax.random.normal(key, estimate.theta.shape) + jax.random.normal(key, estimate.theta.shape)
    return estimate._replace(theta=estimate.theta + noise.astype(estimate.theta.dtype))


def _branches_on_epsilon(key, params, features, report):
    if params.epsilon > 1:
        return debiased_rr().fit(key, params, features, 1 - report)
    return debiased_rr().fit(key, params, features, report)


def _noisy_at_infinity(key, params, features, labels):
    return jnp.where(jax.random.bernoulli(key, 0.1, labels.shape), 1 - labels, labels)


def _renamed(key, params, x, y):
    return debiased_rr().privatize(key, params, x, y)


def _claims_too_little(*, epsilon, radius):
    return debiased_rr().guarantee(epsilon=epsilon / 2)


@pytest.mark.parametrize(
    "broken",
    [
        _broken(fit=_reuses_its_key),
        _broken(fit=_branches_on_epsilon),
        _broken(privatize=_noisy_at_infinity),
        _broken(privatize=_renamed),
        _broken(guarantee=_claims_too_little),
        _broken(params=lambda *, epsilon, radius: debiased_rr().params(epsilon=abs(epsilon) or 1.0, radius=radius)),
    ],
)
def test_a_broken_estimator_is_caught(broken):
    features, labels = registry.tiny_data(jax.random.key(1))
    with pytest.raises((AssertionError, jax.errors.KeyReuseError, jax.errors.TracerBoolConversionError)):
        check_estimator(broken, ESTIMATORS["debiased_rr"].values, features, labels, key=jax.random.key(2))


def test_listing_names_everything_once():
    lines = registry.listing().splitlines()
    for name in (*MECHANISMS, *ESTIMATORS):
        assert sum(line.split()[1] == name for line in lines) == 1
    assert len(registry.listing("mechanism").splitlines()) == 1 + len(MECHANISMS)
    with pytest.raises(ValueError, match="kind must be one of mechanism, estimator, got 'learner'"):
        registry.listing("learner")
