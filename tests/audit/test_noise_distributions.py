"""Noise is compared with its recorded distribution, and losses of transcripts with losses of written densities."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import full_information, grey_box
from jaxdp.audit.accounting import loss
from jaxdp.audit.noise_distributions import DISTRIBUTIONS, ERROR, ks_distance
from jaxdp.mechanisms import additive, gaussian, laplace, randomized_response, tape
from tests.audit import small_learners as small


def look(release, like: Any = 0.0):
    return grey_box(
        jax.random.key(0),
        small.releases_of(release, like),
        {"epsilon": 1.0},
        small.draw_corners(1),
        rounds=1,
        answer=full_information,
        num_bases=2,
        num_neighbours=8,
    )


def test_the_loss_of_laplace_noise_is_what_is_spent():
    found = look(lambda key, params, report: laplace(key, report[0], params, l1_sensitivity=1.0))
    assert (found.verdict, found.spent) == ("consistent", 1.0)
    assert found.sites[0].drawn == 4096
    assert found.loss is not None
    assert 0.5 < found.loss <= 1 + 1e-6
    assert "loss" in repr(found)


def test_what_no_additive_noise_hides_has_no_known_loss():
    def release(key, params, report):
        return randomized_response(key, (report[0] > 0.5).astype(jnp.int32), params)

    found = look(release, np.int32(0))
    assert (found.verdict, found.loss, found.sites[0].drawn) == ("consistent", None, 0)


def recorded_as(distribution, draw):
    """Runs a user's own mechanism, which records its noise."""

    def release(key, params, report):
        noise = draw(key)
        value = tape.record(
            tape.Entry("mine", report[0], "l1", key, 1.0, params, noise=noise, distribution=distribution)
        )
        return value + noise / params

    return release


WRONG = {
    "half the scale": lambda key: jax.random.laplace(key) / 2,
    "two thirds of the scale": lambda key: jax.random.laplace(key) * 2 / 3,
    "normal noise of its variance": lambda key: jax.random.normal(key) * 2**0.5,
    "one side": lambda key: jax.random.exponential(key),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_noise_is_a_fault(wrong):
    found = look(recorded_as("laplace", WRONG[wrong]))
    assert found.verdict == "violated"
    assert "the noise of mine in update does not follow the recorded laplace distribution" in found.faults[0]


def test_right_noise_is_none():
    assert look(recorded_as("laplace", jax.random.laplace)).verdict == "consistent"


def test_a_sampler_of_half_the_scale_is_seen_through_the_librarys_mechanism(monkeypatch):
    right = additive.laplace_of
    monkeypatch.setattr(
        additive,
        "laplace_of",
        lambda function, key, shape, scale, *about: right(function, key, shape, scale / 2, *about),
    )
    found = look(lambda key, params, report: laplace(key, report[0], params, l1_sensitivity=1.0))
    assert any("does not follow the recorded laplace distribution" in fault for fault in found.faults)


def test_what_is_released_must_be_value_and_noise():
    """Records right noise but adds half of it (planted)."""

    def release(share):
        def half(key, params, report):
            noise = jax.random.laplace(key)
            entry = tape.Entry("mine", report[0], "l1", key, 1.0, params, noise=noise, distribution="laplace")
            noisy = tape.record(entry) + share * noise / params
            tape.amend(released=noisy)
            return noisy

        return half

    assert look(release(1.0)).verdict == "consistent"
    assert look(release(0.5)).faults == (
        "mine in update releases a number that is not the sum of its value and its recorded noise",
    )


STEP = 0.8  # of geometric noise


def two_sided_geometric(key, shape):
    up, down = jax.random.geometric(key, 1 - np.exp(-STEP), (2, *shape))
    return STEP * (up - down).astype(float)


SAMPLERS = {
    "laplace": jax.random.laplace,
    "geometric": two_sided_geometric,
    "normal": jax.random.normal,
    "gumbel": jax.random.gumbel,
    "exponential": jax.random.exponential,
}


@pytest.mark.parametrize("distribution", tape.NOISE_DISTRIBUTIONS)
def test_distances(distribution):
    """Checks that right numbers are within the limit in each of 50 samples, and numbers of half the scale in none."""
    limit = np.sqrt(np.log(2 / ERROR) / (2 * 4096))
    samples = np.sort(np.asarray(SAMPLERS[distribution](jax.random.key(1), (50, 4096)), np.float64), axis=1)
    step = STEP if distribution == "geometric" else 0.0
    assert max(ks_distance(row, distribution, step) for row in samples) < limit
    assert min(ks_distance(row / 2, distribution, step) for row in samples) > limit
    assert set(DISTRIBUTIONS) == set(tape.NOISE_DISTRIBUTIONS)


def test_losses_are_log_ratios_of_densities():
    key, values = jax.random.key(2), jnp.asarray([[0.0, 2.0], [1.0, 2.0], [3.0, 1.5]])
    noise = {"laplace": jax.random.laplace(key, (2,)), "normal": jax.random.normal(key, (2,))}
    noise["geometric"] = noise["laplace"]  # its probabilities have the same ratios, in integers
    for name, density in (
        ("laplace", lambda y, x: -jnp.abs(y - x).sum(-1) / 1.5),
        ("geometric", lambda y, x: -jnp.abs(y - x).sum(-1) / 1.5),
        ("normal", lambda y, x: -jnp.square(y - x).sum(-1) / (2 * 1.5**2)),
    ):
        scale: dict[str, Any] = {"noise_stddev": 1.5} if name == "normal" else {"sensitivity": 3.0, "epsilon": 2.0}
        norm = "l2" if name == "normal" else "l1"
        one = jnp.broadcast_to(noise[name], values.shape)
        entry = tape.Entry(name, values, norm, noise=one, distribution=name, **scale)
        released = values[0] + 1.5 * noise[name]
        expected = density(released, values[0]) - density(released[None], values)
        np.testing.assert_allclose(loss(entry), expected, atol=1e-5)
    unknown = entry._replace(distribution=None)
    np.testing.assert_array_equal(np.isnan(loss(unknown)), [False, True, True])


def test_gaussian_and_laplace_losses_add_up():
    def release(key, params, report):
        keys = jax.random.split(key)
        one = laplace(keys[0], report[0], params / 2, l1_sensitivity=1.0)
        return one, gaussian(keys[1], report[0], 100.0, l2_sensitivity=1.0)

    found = look(release, (0.0, 0.0))
    assert found.loss is not None
    assert 0 < found.loss < 0.6
