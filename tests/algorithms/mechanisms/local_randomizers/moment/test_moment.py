"""Moments of a contextual user: the report from the ball, the paper's constants, sums of reports."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betainc, expit, gamma

from jaxdp.audit import exact_epsilon, g_test
from jaxdp.mechanisms import exact_moments, moment_randomizer, randomize_scalar
from jaxdp.mechanisms._randomized_response import sign_turns
from jaxdp.mechanisms.local_randomizers._ball import any_proxy, fixed_proxy, randomize_in_ball, sphere_radius
from jaxdp.mechanisms.tape import recording

KEY = partial(jax.random.key, 31)
DRAWS = 40_000
ROOT = math.sqrt(2)
# Moments of two users at an angle of 60 degrees with opposite rewards, as (x_1^2, x_2^2, sqrt(2) x_1 x_2, y x).
FIRST = np.asarray([1.0, 0.0, 0.0, 1.0, 0.0])
SECOND = np.asarray([1 / 4, 3 / 4, ROOT * math.sqrt(3) / 4, -1 / 2, -math.sqrt(3) / 2])


def reports(vector, epsilon, radius=None):
    """Returns reports, [DRAWS, 5]."""
    radius = sphere_radius(5, epsilon, ROOT) if radius is None else radius
    one = jax.jit(
        jax.vmap(lambda key: randomize_in_ball(key, jnp.asarray(vector), epsilon, radius=ROOT, report_radius=radius))
    )
    return np.asarray(one(jax.random.split(KEY(), DRAWS)), float)


# ---- the ball --------------------------------------------------------------------------------------------------------
def check_mean_and_covariance(found, vector, radius):
    second = found[:, :, None] * found[:, None, :]
    for seen, expected in ((found, vector), (second, np.eye(5) * radius**2 / 5)):
        assert np.all(np.abs(seen.mean(0) - expected) <= 5 * seen.std(0) / math.sqrt(DRAWS) + 1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), radius, rtol=1e-5)


def test_mean_and_covariance_are_those_of_theory():
    """Checks E Z = v and E Z Z^T = B^2 / D. Planted: B of one dimension less.

    A side that is as likely at any length.
    """
    for vector in (FIRST, 0.3 * SECOND, 0 * FIRST):
        check_mean_and_covariance(reports(vector, 2.0), vector, sphere_radius(5, 2.0, ROOT))
    less = sphere_radius(4, 2.0, ROOT)
    with pytest.raises(AssertionError):
        check_mean_and_covariance(reports(FIRST, 2.0, less), FIRST, less)
    with pytest.raises(AssertionError):
        check_mean_and_covariance(reports(FIRST, 2.0), 0.3 * FIRST, sphere_radius(5, 2.0, ROOT))


def test_the_radius_is_that_of_spec():
    """Checks tau = 3.79 at dim = 5, epsilon = 1, where the analytic Gaussian has 7.91 at delta = 1e-5."""
    for size in (2, 5, 20, 65):
        share = math.sqrt(math.pi) / 2 * size * gamma((size + 1) / 2) / gamma(size / 2 + 1)
        assert sphere_radius(size, 1.0, ROOT) == pytest.approx(ROOT / math.tanh(0.5) * share)
    params = moment_randomizer(5, "l2_ball").params(epsilon=1.0)
    assert float(params.noise_stddev) == pytest.approx(3.79, abs=5e-3)
    assert float(params.report_radius) == pytest.approx(float(params.noise_stddev) * math.sqrt(20))
    clear = moment_randomizer(5, "l2_ball").params(epsilon=math.inf)
    assert (float(clear.noise_stddev), float(clear.cross_stddev)) == (0.0, 0.0)
    assert moment_randomizer(5, "l2_ball").guarantee(epsilon=1.0).kind == "pure"


def test_a_report_is_one_of_two_opposite_vectors_whatever_the_value():
    """Checks that the distribution depends on the value through a coin alone, bit for bit."""
    far, zero = (3e38 * np.ones(5), np.zeros(5))
    given = jnp.asarray(np.stack([FIRST, SECOND, 0.3 * SECOND, zero, far]), jnp.float32)
    keys = jax.random.split(KEY(), 200)
    both = jax.vmap(
        jax.vmap(lambda key, v: randomize_in_ball(key, v, 1.0, radius=ROOT, report_radius=9.0), (None, 0)), (0, None)
    )
    found = np.asarray(jax.jit(both)(keys, given))
    first = found[:, :1]
    assert np.all(np.all(found == first, axis=-1) | np.all(found == -first, axis=-1))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0, 30.0])
def test_the_coin_is_never_surer_than_claimed(epsilon, monkeypatch):
    """Checks that the 32 bits below which a sign flips are between 2^32 / (1 + e^epsilon) and half of all."""
    for magnitude in (0.0, 0.5, 1.0):
        least = 2**32 * (0.5 - magnitude / 2 * math.tanh(epsilon / 2))
        for bits, turns in ((max(math.ceil(least) - 1, 0), True), (2**31, False)):
            monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype, bits=bits: jnp.full(shape, bits, dtype))
            assert bool(sign_turns(KEY(), jnp.float32(magnitude), epsilon)) is turns
            sign = randomize_scalar(KEY(), jnp.float32(magnitude), epsilon, bound=1.0)
            assert bool(sign == 1) is ((magnitude > 0) ^ turns)


def sides(vector, epsilon):
    """Returns the distribution of the sides of two users' vectors for one user's report."""
    angle = math.acos(FIRST @ SECOND / 2)
    own = FIRST if vector is FIRST else SECOND
    alike = (math.pi - angle) / math.pi
    distribution = {}
    for side in ((True, True), (True, False), (False, True), (False, False)):
        towards = side[0] if own is FIRST else side[1]
        distribution[side] = (alike if side[0] == side[1] else 1 - alike) * expit(epsilon if towards else -epsilon)
    return distribution


def test_the_exact_distribution_of_sides():
    """Checks that it spends all of epsilon, and that reports follow it. Planted: half of epsilon."""
    distributions = [sides(vector, 1.0) for vector in (FIRST, SECOND)]
    assert exact_epsilon(distributions[0], distributions[1]) == pytest.approx(1.0)
    for vector, distribution in zip((FIRST, SECOND), distributions, strict=True):
        found = reports(vector, 1.0)
        seen = list(zip((found @ FIRST >= 0).tolist(), (found @ SECOND >= 0).tolist(), strict=True))
        assert g_test(seen, distribution) > 1e-4
        assert g_test(seen, sides(vector, 0.5)) < 1e-9


def test_a_tape_sees_one_release_of_the_whole_vector():
    with recording() as entries:
        moment_randomizer(2, "l2_ball").report(
            KEY(), moment_randomizer(2, "l2_ball").params(epsilon=1.0), (jnp.ones(2), jnp.ones(()))
        )
    (entry,) = entries
    assert (entry.name, entry.norm, entry.value.shape) == ("randomize_in_ball", "any", (5,))


# ---- how far reports from the ball spread ----------------------------------------------------------------------------
def true_proxy(dim, bias):
    """Returns sup of 2 ln E exp(l (Z - E Z)) / l^2 over directions at an angle to the vector, its length, and l."""
    angles = (np.arange(600) + 0.5) * (math.pi / 1200)
    s, w = np.sin(angles), np.cos(angles) ** (dim - 2)
    w, best = w / w.sum() / 2, 0.0
    for tilt in np.linspace(0, 1.4, 8):
        reach = np.minimum(1, s / np.sqrt(1 - s * s) / max(math.tan(tilt), 1e-9))
        towards = betainc(0.5, (dim - 2) / 2, reach**2)
        for slope in np.geomspace(0.3, 12, 30) * math.sqrt(dim):
            for share in np.linspace(0.05, 1, 20) * bias:
                for sign in (1, -1):
                    k = sign * share * towards
                    grown = np.sum(w * (np.exp(slope * s) * (1 + k) + np.exp(-slope * s) * (1 - k)))
                    best = max(best, 2 / slope**2 * (math.log(grown) - slope * 2 * np.sum(w * k * s)))
    return best


@pytest.mark.parametrize(("dim", "epsilon"), [(5, 1.0), (65, 1.0), (65, 6.0)])
def test_the_proxy_of_a_report(dim, epsilon):
    bias = math.tanh(epsilon / 2)
    found, least = fixed_proxy(dim, bias), true_proxy(dim, bias)
    assert least <= found <= 1.02 * least
    assert found <= 1.13 / (dim - 1)
    assert found <= any_proxy(dim, bias) <= 1.6 / dim
    if dim == 65:
        with pytest.raises(AssertionError):  # planted: the variance of a coordinate
            assert least <= 1 / dim


def test_proxies_of_many_dimensions():
    for dim in (2, 3, 560, 20_000):
        for bias in (0.01, 0.5, 1.0):
            assert 1 / dim <= fixed_proxy(dim, bias) <= 1.13 / (dim - 1)


# ---- the paper's constants, and sums ---------------------------------------------------------------------------------
def test_the_papers_constants():
    """Checks 6 sqrt(2 ln(2.5 / delta)) / epsilon for both, at |y| <= 2."""
    randomizer = moment_randomizer(3, constants="paper")
    params = randomizer.params(epsilon=1.0, delta=1e-5, reward_bound=2.0)
    sigma = 6 * math.sqrt(2 * math.log(2.5e5))
    assert float(params.noise_stddev) == pytest.approx(sigma, rel=1e-4)
    assert 2 * float(params.cross_stddev) == pytest.approx(sigma, rel=1e-4)
    claim = randomizer.guarantee(epsilon=1.0, delta=1e-5)
    assert (claim.epsilon, claim.delta) == (1.0, 1e-5)
    with recording() as entries:
        randomizer.report(KEY(), params, (jnp.ones(3), jnp.ones(())))
    assert [entry.value.shape for entry in entries] == [(6,), (3,)]
    assert not np.array_equal(*(entry.key for entry in entries))


@pytest.mark.parametrize("constants", ["tight", "paper"])
def test_a_sum_of_reports_has_the_noise_of_all_of_them(constants):
    """Checks root of the count times the noise, in each entry.

    Planted: the noise of one report, and count times the noise.
    """
    randomizer = moment_randomizer(3, constants=constants)
    params = jax.tree.map(jnp.asarray, randomizer.params(epsilon=1.0, delta=1e-2, reward_bound=2.0))
    users = (jnp.asarray([[1.0, 0.0, 0.0], [0.6, 0.0, 0.8], [3.0, 4.0, 0.0]]), jnp.asarray([2.0, -1.0, jnp.nan]))
    exact = jax.tree.map(lambda x: x.sum(0), jax.vmap(exact_moments, (None, 0))(params, users))
    np.testing.assert_allclose(exact.cross, [2 - 0.6, 0, -0.8], atol=1e-6)
    np.testing.assert_allclose(exact.outer[:3], [1 + 0.36 + 0.36, 0.48, 0.48], rtol=1e-6)
    assert randomizer.total is not None
    draw = jax.jit(jax.vmap(lambda key: randomizer.total(key, params, exact, jnp.int32(3))))  # pyright: ignore[reportOptionalCall]
    outer, cross = (np.asarray(x, float) for x in draw(jax.random.split(KEY(), 4000)))
    off = 1 if constants == "paper" else 1 / ROOT
    stddev = float(params.noise_stddev) * np.where(np.eye(3) > 0, 1, off)[np.triu_indices(3)]
    for found, mean, scale in ((outer, exact.outer, stddev), (cross, exact.cross, 2 * float(params.cross_stddev))):
        assert np.all(np.abs(found.mean(0) - mean) <= 5 * found.std(0) / math.sqrt(4000))
        spread = math.sqrt(3) * scale + 0 * found[0]
        np.testing.assert_allclose(found.std(0), spread, rtol=5 / math.sqrt(2 * 4000))
        for wrong in (scale, 3 * scale):
            with pytest.raises(AssertionError):
                np.testing.assert_allclose(found.std(0), wrong + 0 * spread, rtol=5 / math.sqrt(2 * 4000))
    clear = jax.tree.map(jnp.asarray, randomizer.params(epsilon=math.inf, delta=1e-2, reward_bound=2.0))
    for found, sums in zip(randomizer.total(KEY(), clear, exact, jnp.int32(3)), exact, strict=True):
        assert np.array_equal(found, sums)


def test_exact_moments_refuse_a_context_of_another_shape():
    params = moment_randomizer(2, "l2_ball").params(epsilon=1.0)
    for context, shape in ((0.5, r"\(\)"), (np.zeros((1, 2)), r"\(1, 2\)")):
        with pytest.raises(ValueError, match=rf"value must be a pair of shapes .*, got {shape} and \(\)"):
            exact_moments(params, (context, 1.0))
