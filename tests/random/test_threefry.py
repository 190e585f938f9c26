"""The unrolled Threefry gives JAX's own values, word for word."""

import itertools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.random import binomial, fast_key, key, key_from_data, multinomial, weighted_index
from jaxdp.random.threefry import hash_words, pair_uniforms, two_uniforms, word_pairs, words_of_pairs
from tests.any_device import any_device
from tests.events import durations_of

MILLION = 10**6
DRAWS = (31,)
SAMPLERS = {
    "ball": lambda k: jax.random.ball(k, 3, 2, DRAWS),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, DRAWS),
    "beta": lambda k: jax.random.beta(k, 0.5, 2.0, DRAWS),
    "binomial": lambda k: jax.random.binomial(k, 50.0, 0.3, DRAWS),
    "bits8": lambda k: jax.random.bits(k, (1001,), jnp.uint8),
    "bits16": lambda k: jax.random.bits(k, (7, 11), jnp.uint16),
    "bits32": lambda k: jax.random.bits(k, (3, 5, 7)),
    "scalar": jax.random.bits,
    "empty": lambda k: jax.random.bits(k, (0, 3)),
    "categorical": lambda k: jax.random.categorical(k, jnp.zeros(5), shape=DRAWS),
    "cauchy": lambda k: jax.random.cauchy(k, DRAWS),
    "chisquare": lambda k: jax.random.chisquare(k, 3.0, DRAWS),
    "choice": lambda k: jax.random.choice(k, 10, (5,), replace=False),
    "choice_weighted": lambda k: jax.random.choice(k, 4, DRAWS, p=jnp.full(4, 0.25)),
    "clone": lambda k: jax.random.key_data(jax.random.clone(k)),
    "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(4), DRAWS),
    "double_sided_maxwell": lambda k: jax.random.double_sided_maxwell(k, 0.0, 1.0, DRAWS),
    "exponential": lambda k: jax.random.exponential(k, DRAWS),
    "f": lambda k: jax.random.f(k, 3.0, 4.0, DRAWS),
    "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 2**31 + 7)),
    "gamma": lambda k: jax.random.gamma(k, 0.3, DRAWS),
    "generalized_normal": lambda k: jax.random.generalized_normal(k, 1.5, DRAWS),
    "geometric": lambda k: jax.random.geometric(k, 0.3, DRAWS),
    "gumbel": lambda k: jax.random.gumbel(k, DRAWS),
    "laplace": lambda k: jax.random.laplace(k, DRAWS),
    "loggamma": lambda k: jax.random.loggamma(k, 0.3, DRAWS),
    "logistic": lambda k: jax.random.logistic(k, DRAWS),
    "lognormal": lambda k: jax.random.lognormal(k, 1.0, DRAWS),
    "maxwell": lambda k: jax.random.maxwell(k, DRAWS),
    "multinomial": lambda k: jax.random.multinomial(k, 50.0, jnp.full(4, 0.25)),
    "multivariate_normal": lambda k: jax.random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3), DRAWS),
    "normal": lambda k: jax.random.normal(k, DRAWS),
    "orthogonal": lambda k: jax.random.orthogonal(k, 5),
    "pareto": lambda k: jax.random.pareto(k, 2.0, DRAWS),
    "permutation": lambda k: jax.random.permutation(k, 31),
    "rademacher": lambda k: jax.random.rademacher(k, DRAWS),
    "randint": lambda k: jax.random.randint(k, DRAWS, 0, 1000),
    "rayleigh": lambda k: jax.random.rayleigh(k, 1.0, DRAWS),
    "split": lambda k: jax.random.key_data(jax.random.split(k, (5, 3))),
    "t": lambda k: jax.random.t(k, 3.0, DRAWS),
    "triangular": lambda k: jax.random.triangular(k, 0.0, 0.5, 1.0, DRAWS),
    "truncated_normal": lambda k: jax.random.truncated_normal(k, -1.0, 2.0, DRAWS),
    "uniform": lambda k: jax.random.uniform(k, DRAWS),
    "wald": lambda k: jax.random.wald(k, 2.0, DRAWS),
    "weibull_min": lambda k: jax.random.weibull_min(k, 1.0, 2.0, DRAWS),
}
WIDE = ("bits8", "split", "fold_in", "uniform", "normal", "choice", "randint")  # of 64-bit words under x64
OWN = {
    "weighted_index": lambda k: weighted_index(k, jnp.ones(5)),
    "binomial": lambda k: binomial(k, jnp.full(3, 50, jnp.int32), jnp.full(3, 0.3, jnp.float32)),
    "multinomial": lambda k: multinomial(k, jnp.int32(50), jnp.full(4, 0.25, jnp.float32)),
    "multinomial of one": lambda k: multinomial(k, jnp.int32(50), jnp.ones(1, jnp.float32)),
}
QUICK = ("weighted_index", "binomial")


def builtin(seed):
    return jax.random.key(seed, impl="threefry2x32")


def same(ours, theirs):
    """Checks that words and decisions are equal; floats computed from them may differ in the last bits."""
    if jnp.issubdtype(ours.dtype, jnp.floating):
        np.testing.assert_allclose(ours, theirs, rtol=1000 * float(jnp.finfo(ours.dtype).eps))
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.precision] if name in WIDE else []) for name in SAMPLERS]
)
def test_samplers_agree_eagerly_under_jit_and_under_vmap(name):
    sampler = SAMPLERS[name]
    compiled, mapped = jax.jit(sampler), jax.jit(jax.vmap(sampler))
    for seed in (0, 2**31 - 1):
        same(compiled(key(seed)), compiled(builtin(seed)))
        keys = jax.random.split(builtin(seed), 3)
        same(mapped(fast_key(keys)), mapped(keys))
    same(sampler(key(1)), sampler(builtin(1)))


def test_a_million_words_agree():
    draw = jax.jit(lambda k: jax.random.bits(k, (MILLION,)))
    np.testing.assert_array_equal(draw(key(42)), draw(builtin(42)))


def test_a_million_words_of_many_keys_agree():
    keys = jax.random.split(builtin(42), 250)
    draw = jax.jit(jax.vmap(lambda k: jax.random.bits(k, (MILLION // 250,))))
    np.testing.assert_array_equal(draw(fast_key(keys)), draw(keys))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 25, 26, 33, 96, 1001])
def test_every_way_to_shape_the_hashes_agrees(size):
    """Checks sizes on both sides of those at which the words or keys are computed in another arrangement."""

    def draw(k):
        return jax.random.bits(k, (size,)), jax.random.key_data(jax.random.split(k, size))

    keys = jax.random.split(builtin(5), 3)
    for ours, theirs in ((key(5), builtin(5)), (fast_key(keys), keys)):
        mapped = jax.jit(jax.vmap(draw) if ours.ndim else draw)
        for words, expected in zip(mapped(ours), mapped(theirs), strict=True):
            np.testing.assert_array_equal(words, expected)


def test_a_loop_that_folds_in_and_splits_agrees():
    def lane(k):
        def step(t, words):
            first, second = jax.random.split(jax.random.fold_in(k, t))
            return words ^ jax.random.bits(first, (64,), jnp.uint32) ^ jax.random.bits(second, (), jnp.uint32)

        return jax.lax.fori_loop(0, 5, step, jnp.zeros(64, jnp.uint32))

    keys = jax.random.split(builtin(9), 17)
    run = jax.jit(jax.vmap(lane))
    np.testing.assert_array_equal(run(fast_key(keys)), run(keys))


def operations(function):
    analysis = jax.jit(function).lower(key(0)).compile().cost_analysis()
    assert analysis is not None
    return analysis["flops"]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on CPU the words are stored")
@pytest.mark.parametrize("size", [5, 4096])
def test_words_with_two_consumers_are_hashed_once(size):
    def once(k):
        return jax.random.uniform(k, (size,))

    def twice(k):
        uniform = once(k)
        return uniform * 2, uniform - 1

    assert operations(twice) < 1.3 * operations(once)


def test_other_platforms_may_fuse_the_words():
    def uniforms(k):
        return jax.random.uniform(jax.random.split(jax.random.fold_in(k, 3))[0], (4096,))

    with any_device():
        trace = jax.jit(uniforms).trace(key(0))
        assert "inlineable" in trace.lower(lowering_platforms=("cpu",)).as_text()
        assert "inlineable" not in trace.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.precision
@pytest.mark.skipif(not jax.config.read("jax_enable_x64"), reason="64-bit words need x64")
@pytest.mark.parametrize("size", [33, 1001])
def test_64_bit_words_agree(size):
    np.testing.assert_array_equal(
        jax.random.bits(key(3), (size,), jnp.uint64), jax.random.bits(builtin(3), (size,), jnp.uint64)
    )


@pytest.mark.precision
def test_known_answers():
    """Checks Random123's kat_vectors for threefry2x32, 20 rounds."""
    ones, pi = np.uint32(0xFFFFFFFF), [np.uint32(w) for w in (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)]
    zero = np.uint32(0)
    for words, expected in (
        ((zero, zero, zero, zero), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones, ones, ones), (0x1CB996FC, 0xBB002BE7)),
        (pi, (0xC4923A9C, 0x483DF7A0)),
    ):
        hashed = hash_words(*(jnp.asarray(w) for w in words))
        assert tuple(int(word) for word in hashed) == expected


def test_fast_key_leaves_other_implementations_alone():
    other = jax.random.key(0, impl="rbg")
    assert fast_key(other) is other
    assert jax.random.key_impl(fast_key(builtin(0))) == jax.random.key_impl(key(0))


def test_poisson_counts_of_a_key_of_this_package():
    """Draws as the docstring of `key` says."""
    words = jax.random.wrap_key_data(jax.random.key_data(key(4)), impl="threefry2x32")
    np.testing.assert_array_equal(jax.random.poisson(words, 3.0, DRAWS), jax.random.poisson(builtin(4), 3.0, DRAWS))


@pytest.mark.parametrize("make_key", [key, builtin])
@pytest.mark.parametrize(
    "name",
    ["uniform", "split", *(f"own {n}" for n in QUICK), "gamma", *(f"own {n}" for n in OWN if n not in QUICK)],
)
def test_a_key_that_is_used_twice_is_found(name, make_key):
    sampler = OWN[name.removeprefix("own ")] if name.startswith("own ") else SAMPLERS[name]

    def twice(k):
        return sampler(k) * sampler(k)

    def apart(k):
        first, second = jax.random.split(k)
        return sampler(first) * sampler(second)

    twice(make_key(0))
    with jax.debug_key_reuse(True):
        for once in (sampler, jax.jit(sampler), apart, jax.jit(apart)):
            once(make_key(0))
        for function in (twice, jax.jit(twice)):
            with pytest.raises(jax.errors.KeyReuseError):
                function(make_key(0))


def test_blocks_of_words_are_the_same_where_keys_are_checked():
    made = [np.stack(words_of_pairs(word_pairs(key(7), 5, blocks=blocks))) for blocks in (range(1), range(1, 3))]
    for blocks, make_key in itertools.product((range(3), range(2)), (key, builtin)):
        words = np.concatenate(made, axis=1)[:, : 5 * len(blocks)]
        np.testing.assert_array_equal(np.stack(words_of_pairs(word_pairs(make_key(7), 5, blocks=blocks))), words)
        with jax.debug_key_reuse(True):
            checked = word_pairs(make_key(7), 5, blocks=blocks)
        np.testing.assert_array_equal(np.stack(words_of_pairs(checked)), words)


def test_the_checker_of_key_reuse_follows_a_key_through_fast_key():
    with jax.debug_key_reuse(True):
        root = builtin(0)
        assert fast_key(root) is root
        jax.random.uniform(fast_key(root))
        with pytest.raises(jax.errors.KeyReuseError):
            jax.random.uniform(fast_key(root))


@pytest.mark.parametrize("make_key", [key, builtin])
@pytest.mark.parametrize("name", ["bits32", "split", "fold_in", "normal", *(f"own {name}" for name in OWN)])
def test_a_second_eager_call_compiles_nothing(name, make_key):
    sampler = OWN[name.removeprefix("own ")] if name.startswith("own ") else SAMPLERS[name]
    sampler(make_key(0))
    with durations_of("backend_compile_duration") as compiled:
        sampler(make_key(1))
    assert compiled == []


def test_a_key_has_one_name_and_survives_storage():
    name = str(jax.random.key_impl(key(0)))
    assert name == "jaxdp_threefry2x32"
    assert name in repr(jax.random.key_impl(key(0)))
    data = jax.random.key_data(key(5))
    for stored in (
        key_from_data(data, name),
        key_from_data(np.asarray(data), name),
        pickle.loads(pickle.dumps(key(5))),
    ):
        assert stored.dtype == key(0).dtype
        assert bool(stored == key(5))
    assert bool(key_from_data(data, "threefry2x32") == builtin(5))
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        key_from_data(data, "unknown")


@pytest.mark.precision
def test_two_uniforms():
    """Checks both words of one hash; JAX's own keys alike; keys without such words have the same distribution."""
    keys = jax.random.split(jax.random.key(5), 20_000)
    draw = jax.jit(jax.vmap(two_uniforms))
    found = np.asarray(draw(keys), np.float64)
    np.testing.assert_array_equal(found, draw(fast_key(keys)))
    assert found.shape == (20_000, 2)
    assert 0 <= found.min() < 1e-3 < 1 - 1e-3 < found.max() < 1
    half_width = 5 / np.sqrt(len(found))
    np.testing.assert_allclose(found.mean(0), 0.5, atol=half_width / np.sqrt(12))
    np.testing.assert_allclose(found.var(0), 1 / 12, atol=half_width / np.sqrt(180))
    assert abs(np.mean((found[:, 0] - 0.5) * (found[:, 1] - 0.5))) < half_width / 12
    other = jax.random.key(5, impl="rbg")
    drawn = jax.random.uniform(jax.random.fold_in(other, 3), (2,))
    np.testing.assert_array_equal(two_uniforms(other, 3), drawn)


@pytest.mark.precision
@pytest.mark.parametrize("implementation", ["rbg", "threefry2x32"])
def test_pairs_of_uniforms_from_keys_of_other_kinds(implementation):
    found = np.asarray(pair_uniforms(jax.random.key(5, impl=implementation), 20_000))
    assert found.dtype == np.float32
    assert abs(np.mean(found, dtype=np.float64) - 0.5) < 5 / np.sqrt(12 * 20_000)
