"""Local randomizers: unbiased, exact at infinity, private for any value."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import Attack, audit
from jaxdp.core import Guarantee, LocalRandomizer, default_float
from jaxdp.mechanisms import label_randomizer, laplace, moment_randomizer, scalar_randomizer, vector_randomizer
from jaxdp.mechanisms.local_randomizers.vector import into_ball
from jaxdp.registry import MECHANISMS
from tests.algorithms.mechanisms.local_randomizers.randomizers import CASES, DRAWS, params_of, sampler, stacked

KEY = partial(jax.random.key, 7)
RANDOMIZERS = {name: entry for name, entry in MECHANISMS.items() if entry.family == "local randomizers"}
WIDE = jax.config.read("jax_enable_x64")


def check_unbiased(estimates, clipped):
    error = estimates.std(0) / math.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(0) - clipped) <= 5 * error + 1e-5)


def truth(name, data):
    return np.stack([CASES[name].clipped(jax.tree.map(np.float64, value)) for value in data])


@pytest.mark.parametrize("name", CASES)
def test_estimates_are_unbiased_for_the_clipped_value(name):
    case = CASES[name]
    clipped = truth(name, case.data)
    for epsilon in (0.1, 1.0, 8.0):
        estimates = np.asarray(sampler(name, DRAWS)(KEY(), params_of(name, epsilon), stacked(case.data)), float)
        check_unbiased(estimates, clipped)
        if epsilon == 1.0:
            with pytest.raises(AssertionError):  # planted: reports that are clipped again after the noise
                check_unbiased(np.clip(estimates, clipped.min(), clipped.max()), clipped)


@pytest.mark.precision
@pytest.mark.parametrize("name", CASES)
def test_values_outside_count_as_the_edge_and_infinity_reports_the_clipped_value(name):
    """Checks that with equal keys reports are equal, so that values outside are as private as the edge."""
    case = CASES[name]
    outside, inside = (stacked(part) for part in zip(*case.outside, strict=True))
    for epsilon in (1.0, math.inf):
        reports, others = (sampler(name, 20)(KEY(), params_of(name, epsilon), part) for part in (outside, inside))
        assert np.isfinite(reports).all()
        np.testing.assert_allclose(reports, others, rtol=1e-5, atol=1e-6)
    exact = np.asarray(sampler(name, DRAWS)(KEY(), params_of(name, math.inf), stacked(case.data)))
    assert np.all(exact == exact[:1])
    np.testing.assert_allclose(exact[0], truth(name, case.data), rtol=1e-6, atol=2e-7)


@pytest.mark.precision
def test_infinity_is_exact_bit_for_bit():
    values = jnp.asarray([-1.0, 0.1, 1 / 3, 2.7182817, 3.0], jnp.float32)
    for report, more in (("rr", {}), ("laplace", {}), ("gaussian", {"delta": 0.1})):
        randomizer = scalar_randomizer(report)
        params = randomizer.params(epsilon=math.inf, low=-1.0, high=3.0, **more)
        assert np.array_equal(randomizer.report(KEY(), params, values), np.asarray(values))
    user = jnp.asarray([0.1, 0.7, 1 / 3], jnp.float32), jnp.float32(-0.3)
    randomizer = moment_randomizer(3)
    outer, cross = randomizer.report(KEY(), randomizer.params(epsilon=math.inf, delta=0.1), user)
    x, y = (part.astype(outer.dtype) for part in user)
    assert np.array_equal(outer, (x[:, None] * x[None, :])[np.triu_indices(3)])
    assert np.array_equal(cross, y * x)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_an_audit_finds_no_more_than_is_claimed(name):
    """Audits neighbours that are NaN, infinite or far outside the domain."""
    entry = RANDOMIZERS[name]
    made = entry.make()
    params, claim = made.params(**entry.values), made.guarantee(**entry.values)
    found = audit(KEY(), Attack(made.release, params, entry.make_neighbours(), claim), trials=20_000)
    assert found.verdict == "consistent", found
    if name != "moment_randomizer_paper":  # with noise that hides much more than it claims
        assert found.lower_bound > 0.1 * claim.epsilon, found


def unclipped(key, params, value):
    """Plants noise for an interval, on a value outside."""
    near = jnp.clip(jnp.nan_to_num(value, nan=-9.0), -9, 9)
    return laplace(key, near, params.epsilon, l1_sensitivity=params.width)


def unprojected(key, params, value):
    """Plants a norm that overflows, and is taken for 0."""
    norm = jnp.sqrt(jnp.sum(value * value))
    shown = jnp.where(jnp.isfinite(norm), value / jnp.maximum(norm, 1), jnp.clip(value, -1, 1))
    return shown + params.noise_stddev.astype(value.dtype) * jax.random.normal(key, value.shape, value.dtype)


MUTANTS = {
    "rr at twice epsilon": ("scalar_randomizer_rr", lambda entry: entry.release, 2.0),
    "moments at four times epsilon": ("moment_randomizer", lambda entry: entry.release, 4.0),
    "four labels at twice epsilon": ("label_randomizer_4", lambda entry: entry.release, 2.0),
    "no clipping": ("scalar_randomizer_laplace", lambda entry: unclipped, 1.0),
    "no projection": ("vector_randomizer_l2", lambda entry: unprojected, 1.0),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_an_audit_catches_mutants(name):
    registered, release, factor = MUTANTS[name]
    entry = RANDOMIZERS[registered]
    made, values = entry.make(), {**entry.values, "epsilon": factor * entry.values["epsilon"]}
    attack = Attack(release(made), made.params(**values), entry.make_neighbours(), made.guarantee(**entry.values))
    assert audit(KEY(), attack, trials=50_000).verdict == "violated"


@pytest.mark.precision
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_few_vectors_of_a_sphere_are_rounded(norm):
    """Checks that only vectors with a computed norm above the radius are rounded: 7% at most."""
    vectors = np.random.default_rng(0).uniform(-1, 1, (4000, 3)).astype(default_float())
    norms = abs(vectors).sum(1) if norm == "l1" else np.sqrt((vectors * vectors).sum(1))
    shown = np.asarray(jax.jit(jax.vmap(lambda vector, radius: into_ball(vector, radius, norm)))(vectors, norms))
    np.testing.assert_allclose(shown, vectors, rtol=4 * np.finfo(vectors.dtype).eps)
    assert (shown == vectors).all(1).mean() > 0.85


def test_one_program_serves_every_epsilon():
    traces = []
    for name in ("rr", "labels_5", "moments", "l1"):
        case = CASES[name]

        @jax.jit
        def run(key, params, value, randomizer=case.randomizer):
            traces.append(1)
            return randomizer.estimate(params, randomizer.report(key, params, value))

        value = jax.tree.map(lambda leaf: leaf[0], stacked(case.data))
        points = [params_of(name, epsilon) for epsilon in (0.5, 1.0, math.inf)]
        each = [run(KEY(), point, value) for point in points]
        assert len(traces) == 1
        together = jax.vmap(run, (None, 0, None))(KEY(), jax.tree.map(lambda *x: jnp.stack(x), *points), value)
        for row, one in enumerate(each):
            for many, single in zip(jax.tree.leaves(together), jax.tree.leaves(one), strict=True):
                np.testing.assert_allclose(many[row], single, rtol=1e-5)
        traces.clear()


REFUSED = [
    (lambda: scalar_randomizer("bits"), "report must be one of rr, laplace, gaussian, got 'bits'"),
    (lambda: scalar_randomizer(binary=1), "binary must be True or False, got 1"),  # pyright: ignore[reportArgumentType]
    (lambda: scalar_randomizer().params(epsilon=0.0), "epsilon must be > 0, got 0.0"),
    (lambda: scalar_randomizer().params(epsilon=1.0, low=2.0), "low must be < high, as float.*, got 2.0 and 1.0"),
    (lambda: scalar_randomizer().params(epsilon=1.0, high=math.nan), "high must be finite, got nan"),
    (lambda: scalar_randomizer("gaussian").params(epsilon=1.0, delta=1.0), r"delta must be in \(0, 1\), got 1.0"),
    (lambda: scalar_randomizer().range_bound(0, 0.1, epsilon=1.0), "horizon must be an integer >= 1, got 0"),
    (lambda: scalar_randomizer().range_bound(9, 1.0, epsilon=1.0), r"failure_prob must be in \(0, 1\), got 1.0"),
    (lambda: scalar_randomizer().second_moment(epsilon=-1.0), "epsilon must be > 0, got -1.0"),
    (lambda: scalar_randomizer().guarantee(epsilon=math.nan), "epsilon must be > 0, got nan"),
    (lambda: label_randomizer(1), "num_labels must be an integer >= 2, got 1"),
    (lambda: label_randomizer(3).params(epsilon=-1.0), "epsilon must be > 0, got -1.0"),
    (lambda: label_randomizer(3).report(KEY(), label_randomizer(3).params(epsilon=1.0), 0.5), "value must be integers"),
    (lambda: vector_randomizer((3, 0), "l1"), "shape must be an integer >= 1, got 0"),
    (lambda: vector_randomizer(3, "l1"), "shape must be a list, got 3"),  # pyright: ignore[reportArgumentType]
    (lambda: vector_randomizer((3,), "linf"), "norm must be one of l1, l2, got 'linf'"),
    (lambda: vector_randomizer((3,), "l1").params(epsilon=1.0, radius=0.0), "radius must be > 0, got 0.0"),
    (
        lambda: vector_randomizer((3,), "l1").report(
            KEY(), vector_randomizer((3,), "l1").params(epsilon=1.0), jnp.ones(4)
        ),
        r"value must have shape \(3,\), got \(4,\)",
    ),
    (lambda: moment_randomizer(0), "dim must be an integer >= 1, got 0"),
    (lambda: moment_randomizer(2, "ball"), "report must be one of gaussian, l2_ball, got 'ball'"),
    (lambda: moment_randomizer(2, constants="old"), "constants must be one of tight, paper, got 'old'"),
    (lambda: moment_randomizer(2, "l2_ball", constants="paper"), 'constants must be "tight" for reports from the ball'),
    (lambda: moment_randomizer(2, constants="paper").params(epsilon=1.5, delta=0.1), "epsilon must be < 1.5"),
    (lambda: moment_randomizer(2).params(epsilon=1.0, delta=0.1, reward_bound=math.inf), "reward_bound must be finite"),
    (
        lambda: moment_randomizer(2).report(
            KEY(), moment_randomizer(2).params(epsilon=1.0, delta=0.1), (jnp.ones(3), jnp.ones(()))
        ),
        r"value must be a pair of shapes \(2,\) and \(\), got \(3,\) and \(\)",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_bad_values_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.skipif(WIDE, reason="the range of float32")
def test_values_out_of_range_are_refused():
    for make in (
        lambda: scalar_randomizer().params(epsilon=1e-37, high=1e3),
        lambda: scalar_randomizer("laplace").params(epsilon=1e-9, high=1e30),
        lambda: scalar_randomizer().params(epsilon=1.0, low=-3e38, high=3e38),
        lambda: label_randomizer().params(epsilon=1e-40),
        lambda: vector_randomizer((2,), "l2").params(epsilon=1.0, delta=0.1, radius=3e38),
        lambda: vector_randomizer((2,), "l1").params(epsilon=1e-9, radius=1e30),
        lambda: moment_randomizer(2).params(epsilon=1e-10, delta=1e-9, reward_bound=1e30),
    ):
        with pytest.raises(ValueError, match="must be within the range of float32"):
            make()


def test_values_that_do_not_matter_are_refused():
    with pytest.raises(TypeError, match="delta"):
        scalar_randomizer("rr").params(epsilon=1.0, delta=0.1)
    with pytest.raises(TypeError, match="low"):
        scalar_randomizer("rr", binary=True).params(epsilon=1.0, low=0.0)
    with pytest.raises(TypeError, match="delta"):
        vector_randomizer((2,), "l2").params(epsilon=1.0)


def test_claims_and_names():
    claim = moment_randomizer(2).guarantee(epsilon=0.5, delta=1e-3)
    assert isinstance(claim, Guarantee)
    assert str(claim) == "(0.5, 0.001)-DP, local, one user's context and reward"
    assert claim.adversary_view == {"report", "public"}
    assert str(scalar_randomizer("laplace").guarantee(epsilon=2.0)) == "2-DP, local, one value"
    assert not label_randomizer(3).guarantee(epsilon=math.inf).is_private
    assert repr(scalar_randomizer("laplace", binary=True)) == "scalar_randomizer(report='laplace', binary=True)"
    assert repr(vector_randomizer((3, 2), "l1")) == "vector_randomizer(shape=(3, 2), norm='l1')"
    assert isinstance(label_randomizer(), LocalRandomizer)


@pytest.mark.precision
def test_numpys_wide_integers_keep_their_signs():
    """Checks 2^32: without x64 JAX drops the upper bits of an int64 that becomes an int32, which leaves 0."""
    vector = np.asarray([2**32, -(2**32)], np.int64)
    moments, l1 = moment_randomizer(2), vector_randomizer((2,), "l1")
    found = l1.report(KEY(), l1.params(epsilon=math.inf), vector)
    np.testing.assert_allclose(found, [0.5, -0.5], rtol=1e-6)
    clear = moments.params(epsilon=math.inf, delta=0.1)
    np.testing.assert_allclose(
        moments.report(KEY(), clear, (vector, np.int64(-(2**33)))).cross, [-(0.5**0.5), 0.5**0.5], rtol=1e-6
    )
