"""Events that are rare where they are chosen, and still counted often where they are evaluated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Attack, audit, black_box
from jaxdp.core import Guarantee

FLOAT = jnp.result_type(float)
CLAIM = Guarantee.pure(1.0, trust_model="central", privacy_unit="one number", argument="Laplace noise of scale 1")


def laplace_that_fails(key, chance, number):
    """Returns a number with Laplace(1) noise, or, with this probability, without any."""
    key_noise, key_fails = jax.random.split(key)
    return jnp.where(jax.random.uniform(key_fails) < chance, number, number + jax.random.laplace(key_noise))


def audited(chance, seed):
    inputs = np.zeros((), FLOAT), np.ones((), FLOAT)
    return audit(jax.random.key(seed), Attack(laplace_that_fails, np.asarray(chance, FLOAT), inputs, CLAIM))


@pytest.mark.parametrize("chance", [3e-4, 1e-4])
def test_noise_that_seldom_fails_is_found(chance):
    assert [audited(chance, seed).verdict for seed in range(2)] == ["violated", "violated"]


def test_rare_events_cost_a_right_mechanism_little():
    result = audited(0.0, 0)
    assert result.verdict == "consistent"
    assert result.lower_bound > 0.98


def test_guesses_share_the_error(monkeypatch):
    """Plants guesses with the whole error each."""
    errors, bound = [], black_box.guess_bound

    def spy(*counts, error, **more):
        errors.append(error)
        return bound(*counts, error=error, **more)

    monkeypatch.setattr(black_box, "guess_bound", spy)
    audited(3e-4, 0)
    assert len(errors) >= 2
    assert np.isclose(sum(errors), 0.05)
    assert not np.isclose(0.05 * len(errors), 0.05)
