"""Stated bounds on arithmetic: they bound the programs, and every central claim states them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Guarantee
from jaxdp.estimation import (
    ballot_objective_perturbation,
    objective_perturbation,
    plackett_luce_objective_perturbation,
    sgd_objective_perturbation,
)
from jaxdp.experts import svt_lazy
from jaxdp.mechanisms import _integer_noise as noise
from jaxdp.mechanisms._grid import laplace_grid
from jaxdp.mechanisms.numerical import (
    COARSE,
    FEW,
    FINE,
    NORMAL_FACTOR,
    NORMAL_STEPS,
    TOEPLITZ_STEPS,
    _one_laplace,
    all_of,
    gaussian_rho,
    geometric_delta,
    laplace_delta,
    nodes_delta,
    normal_delta,
    selection_delta,
    vector_delta,
)
from jaxdp.mechanisms.sparse_vector import above_threshold_init, grid_of
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.registry.registered import claim_of
from tests.algorithms.mechanisms.test_integer_noise import excess, probabilities

RADIUS, TINY = 2.0**-48.5, 2.0**-52  # the largest error of a variate, of its radius and of one over the radius


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_the_bound_holds_for_the_program(epsilon):
    """Checks noise that is calibrated for the sensitivity alone: what it adds for rounding would hide the excess."""
    with jax.enable_x64(True):
        grid = laplace_grid(fixed_point.zero(1), jnp.float64(1.0), jnp.float64(epsilon))
        scale, shift = float(grid.scale), round(1 / float(grid.step))
    found, stated = excess(shift / epsilon, shift, epsilon, count=30), laplace_delta(epsilon)
    assert scale <= max(min(FEW, FINE / epsilon), COARSE / epsilon)
    assert stated is not None
    assert 0 < found <= stated < 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_bound_of_geometric_noise_holds(epsilon):
    """Computes the difference's probabilities from the program's words, at every integer of the noise."""
    numbers = np.arange(math.ceil(44 / epsilon) + 1, dtype=float)
    one = probabilities(numbers, (1 + 2.0**-50) / epsilon, digit=0)
    both = np.convolve(one, one[::-1])
    found = np.maximum(both[1:] - np.exp(epsilon) * both[:-1], 0).sum()
    stated = geometric_delta(epsilon)
    assert stated is not None
    assert found <= stated < 1e-11
    ratio, noise = np.exp(-epsilon), np.arange(len(both)) - len(one) + 1
    np.testing.assert_allclose(both, (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise), atol=1e-14)
    assert np.maximum(both[1:] - np.exp(0.99 * epsilon) * both[:-1], 0).sum() > stated  # a smaller budget


def words(count):
    """Makes words [count]; some are at the ends."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, 2**32, (2, 2, count), np.uint32)
    drawn[:, :, :8] = random.choice(np.asarray([0, 1, 2**31, 2**32 - 1], np.uint32), (2, 2, 8))
    return drawn


def exact_pair(drawn):
    """Computes the same transform in 80 bits."""
    pi = 2 * np.longdouble(np.arccos(np.longdouble(0)))
    high, low = drawn[0].astype(np.longdouble)
    radius = np.sqrt(-2 * np.log(high * np.longdouble(2.0) ** -32 + (low - low % 2 + 1) * np.longdouble(2.0) ** -64))
    turned = drawn[1, 0].astype(np.int32).astype(np.longdouble) * np.longdouble(2.0) ** -32
    turned += (drawn[1, 1] // 4 * np.longdouble(4) + 2) * np.longdouble(2.0) ** -64
    angle = pi / 2 * (turned + drawn[1, 1] % 4)
    return radius, radius * np.cos(angle), radius * np.sin(angle)


@in_64_bits
def program_pair(drawn, dtype):
    pairs = [jnp.asarray(np.ascontiguousarray(each.T).view(np.complex64)[:, 0]) for each in drawn]
    pair = noise._normal_pair(*pairs)
    return [np.asarray(each.astype(dtype), np.float64) for each in pair]


@pytest.mark.parametrize(("dtype", "holds"), [(jnp.float64, True), (jnp.float32, False)])
def test_normal_variates_are_as_near_as_the_proof_says(dtype, holds):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no numbers of 80 bits here")
    drawn = words(20_000)
    radius, *exact = exact_pair(drawn)
    off = np.abs(np.stack(program_pair(drawn, dtype)) - np.stack(exact))
    assert bool(np.all(off <= RADIUS * radius + TINY / radius)) is holds


@pytest.mark.parametrize(("dtype", "holds"), [(jnp.float64, True), (jnp.float32, False)])
def test_exponential_variates_are_as_near_as_the_proof_says(dtype, holds):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no numbers of 80 bits here")
    high, low = drawn = words(20_000)[0]
    near = slice(10_000, None)  # around sqrt(1/2), where the logarithm's error is largest
    high[near] = np.uint32(2**32 * np.sqrt(0.5)) + high[near] % 2001 - 1000
    uniform = high * np.longdouble(2.0) ** -32 + (low - low % 2 + 1) * np.longdouble(2.0) ** -64
    exact = -np.log(uniform)
    with jax.enable_x64(True):
        pairs = jnp.asarray(np.ascontiguousarray(drawn.T).view(np.complex64)[:, 0])
        scaled = np.asarray(noise._exponential(pairs).astype(dtype).astype(jnp.float64) * 3.0)
    off = np.abs(scaled / np.longdouble(3) - exact)
    assert bool(np.all(off <= 2.0**-51.4 * exact + 2.0**-52)) is holds
    assert bool(np.all(off <= 2.0**-51.4 * exact + 2.0**-53)) is False  # the rounding of the uniform number counts


def test_the_factor_of_normal_noise():
    """Checks cells of the two digits, from the error of a variate.

    The mean square of the radius is 2; the mean square of one over a radius of 2^-32 and more is below 23.
    """
    for stddev in (2.0**24, 2.0**25 - 1):
        coarse, fine = 2.0**10, 2.0**11
        off = RADIUS * math.sqrt(2) + TINY * math.sqrt(23)
        each = [2 * off * units for units in (stddev / coarse, fine)]
        assert math.hypot(*each) <= NORMAL_FACTOR * math.sqrt(NORMAL_STEPS)
    rho = gaussian_rho(1.0, 1e-3)
    one, four = normal_delta(1, rho=rho), normal_delta(4, rho=rho)
    assert one is not None
    assert one < 1e-9
    assert four == pytest.approx(2 * one)
    assert normal_delta(1, rho=math.inf) is None


def test_releases_add_up():
    one = laplace_delta(0.25)
    assert one is not None
    assert laplace_delta(0.25, releases=4) == pytest.approx(4 * one)
    assert nodes_delta(1.0, 4) == pytest.approx(4 * one)
    selected = selection_delta(3, 0.5)
    assert selected is not None
    assert all_of(one, selected) == one + selected
    assert all_of(one, None) is None
    unnoised = laplace_delta(math.inf), selection_delta(3, math.inf), vector_delta(math.inf, 0.0, numbers=1)
    assert unnoised == (None, None, None)
    assert vector_delta(1.0, None, numbers=1) == pytest.approx(1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 20.0])
def test_claims_count_the_steps_of_vectors(epsilon):
    """Checks learners that release sums of 64 arms together: the steps are finer than for one sum."""
    with jax.enable_x64(True):
        scale = laplace_grid(fixed_point.zero(64), jnp.float64(1.0), jnp.float64(epsilon)).scale
    learners = (
        jaxdp.bandits.explore_then_commit(num_arms=64, explore_rounds=64, rewards="bounded"),
        jaxdp.person_means(num_arms=64, visits=jaxdp.Visits.random(people=64, each=1), phase_ends=[64]),
    )
    for learner in learners:
        stated = learner.guarantee(epsilon=epsilon).numerical_delta
        assert stated is not None
        assert stated >= _one_laplace(float(scale), epsilon)


@pytest.mark.parametrize("l1_sensitivity", [3.0, 2.0**14, 2.0**17 - 1, 2.0**20])
def test_the_bound_counts_the_steps_of_integers(l1_sensitivity):
    for epsilon in (0.1, 1.0, 10.0):
        with jax.enable_x64(True):
            grid = laplace_grid(jnp.zeros(5, jnp.int32), jnp.float64(l1_sensitivity), jnp.float64(epsilon))
        stated = laplace_delta(epsilon, l1_sensitivity=l1_sensitivity)
        assert stated is not None
        assert stated >= _one_laplace(float(grid.scale), epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 4.0, 20.0])
def test_claims_count_both_shifts_of_the_sparse_vector_technique(epsilon):
    for name, split in (("above_threshold", "even"), ("above_threshold_optimal_split", "optimal")):
        run = above_threshold_init(jax.random.key(0), epsilon, threshold=0.0, split=split)
        steps, for_query = float(grid_of(run).scale), 2 / float(run.query_scale)
        stated = MECHANISMS[name].guarantee(epsilon=epsilon).numerical_delta
        assert stated is not None
        assert stated >= 0.999 * sum(_one_laplace(steps, shift) for shift in (for_query, epsilon - for_query))
        if split == "even":  # the learner's run has this budget; if losses rise, only the threshold's noise moves
            stated = svt_lazy(num_experts=2, horizon=10).guarantee(epsilon=epsilon).numerical_delta
            assert stated is not None
            assert stated >= _one_laplace(steps / 2, epsilon / 2)


def stated_by(name, size, **values):
    """Returns the stated delta of a mechanism's entry with all its sizes set to `size`."""
    entry = MECHANISMS[name]
    made = entry.sized(**dict.fromkeys(entry.sizes, size)).make()
    stated = made.guarantee(**{**entry.values, **values}).numerical_delta
    assert stated is not None
    return stated


def test_claims_of_mechanisms_count_their_sizes():
    """Checks long vectors and long streams; short ones have one claim."""
    rho = gaussian_rho(1.0, 1e-3)
    assert stated_by("laplace", 10**5) == laplace_delta(1.0, numbers=10**5, spread=10**5)
    assert stated_by("gaussian", 10**5) == normal_delta(10**5, rho=rho)
    assert stated_by("k_norm", 10**4) == vector_delta(1.0, None, numbers=10**4)
    assert stated_by("noisy_max_gumbel", 10**6) == selection_delta(10**6, 1.0)
    assert stated_by("tree_counter", 10**6) == stated_by("doubling_counter", 10**6) == nodes_delta(1.0, 20)
    assert stated_by("toeplitz_counter", 10**6) == normal_delta(10**6, rho=rho, steps=TOEPLITZ_STEPS)
    for name in ("laplace", "gaussian", "k_norm", "noisy_max_gumbel", "tree_counter", "toeplitz_counter"):
        assert stated_by(name, 2) == stated_by(name, 8)
    assert stated_by("doubling_counter", 10**6, epsilon=20.0) >= (
        nodes_delta(20.0, 1) or 1
    )  # one level has the whole budget
    assert stated_by("noisy_leads", 5, sensitivity=2.0**20) > stated_by("noisy_leads", 5)  # integers have coarse steps


UNSTATED = {"mirror_descent", "mirror_descent_clipped", "objective_perturbation_full"}  # see their argument


def is_stated(claim: Guarantee) -> bool:
    return claim.numerical_delta is not None or not claim.is_private


@pytest.mark.parametrize(
    ("factory", "shape"),
    [
        (objective_perturbation, (3, 5)),
        (sgd_objective_perturbation, (3, 5)),
        (plackett_luce_objective_perturbation, (3, 2, 5)),
        (ballot_objective_perturbation, (10, 5)),
    ],
)
def test_claims_of_vectors_hold_for_every_length_that_is_taken(factory, shape):
    """Checks that the bound counts the longest vector, and that a longer one is refused."""
    labels = jnp.zeros((3, 10) if shape[0] == 10 else 3, jnp.int32)
    for noise_name, values in (("gaussian", {"epsilon": 1.0, "delta": 1e-3}), ("k_norm", {"epsilon": 1.0})):
        numbers = {size: factory(noise=noise_name, max_dim=size).guarantee(**values) for size in (4, 5, 4096)}
        stated = [claim.numerical_delta for claim in numbers.values()]
        assert stated == [vector_delta(1.0, values.get("delta"), numbers=size) for size in numbers]
        assert stated[0] < stated[1] < stated[2]
        short, exact = (factory(noise=noise_name, max_dim=size) for size in (4, 5))
        exact.privatize(jax.random.key(0), exact.params(**values), jnp.ones(shape), labels)
        with pytest.raises(ValueError, match=r"at most max_dim=4 (columns|items), .* got 5: make the estimator with"):
            short.privatize(jax.random.key(0), short.params(**values), jnp.ones(shape), labels)
    with pytest.raises(ValueError, match="max_dim must be an integer >= 1, got 0"):
        factory(max_dim=0)


def test_a_fit_in_blocks_refuses_a_longer_vector_too():
    estimator = objective_perturbation(max_dim=4)
    assert estimator.large is not None
    with pytest.raises(ValueError, match="at most max_dim=4 columns"):
        estimator.large(jax.random.key(0), estimator.params(epsilon=1.0, delta=1e-3), np.ones((3, 5)), jnp.zeros(3))


def test_central_claims_state_it():
    entries = {**MECHANISMS, **LEARNERS, **ESTIMATORS}
    claims = {name: claim_of(entry) for name, entry in entries.items()}
    central = {name: claim for name, claim in claims.items() if claim.trust_model in ("central", "joint")}
    assert {name for name, claim in central.items() if not is_stated(claim)} == UNSTATED
    added = {name: claim.numerical_delta for name, claim in central.items() if claim.numerical_delta}
    assert max(delta for name, delta in added.items() if "lazy" not in name) < 1.01e-6  # lazy: floats of 32 bits
    assert all("rounding: delta" in str(claim) for claim in central.values() if claim.numerical_delta)
    assert not is_stated(Guarantee.pure(1.0, trust_model="central", privacy_unit="a", argument="b"))
